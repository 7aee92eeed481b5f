"""The header against what VW 9.11.9 printed for the same flags."""

from __future__ import annotations

import pytest

from onlineauto.engine.report.header import enabled_learners, header
from onlineauto.workspace.options import REGISTRY

TITLES = [
    "average  since         example        example        current        current  current",
    "loss     last          counter         weight          label        predict features",
]


def lines_of(flags: str, *, kind: str = "simple") -> list[str]:
    return list(header(REGISTRY.parse(flags), kind=kind))


def test_single_line() -> None:
    assert lines_of("-d s.txt") == [
        "using no cache",
        "Reading datafile = s.txt",
        "num sources = 1",
        "Num weight bits = 18",
        "learning rate = 0.5",
        "initial_t = 0",
        "power_t = 0.5",
        "Enabled learners: gd, scorer-identity, count_label",
        "Input label = SIMPLE",
        "Output pred = SCALAR",
        *TITLES,
    ]


def test_everything_in_order() -> None:
    flags = (
        "-d s.txt -q ab -q :c --cubic abc --interactions abcd a: --ignore ba --ignore \\\\x63 "
        "--ignore_linear f --keep ed -t --l1 1e-6 --l2 0.00001234567 -p preds -r raw "
        "-b 24 -l 0.123456789 --initial_t 1e10 --power_t 0.25 --passes 3 "
        "--decay_learning_rate 0.9 --link glf1 --binary --extra_metrics m.json"
    )
    assert lines_of(flags) == [
        "creating quadratic features for pairs: ab :c",
        "creating cubic features for triples: abc",
        "creating features for following interactions: abcd a:",
        "ignoring namespaces beginning with: a b c",
        "ignoring linear terms for namespaces beginning with: f",
        "using namespaces beginning with: d e",
        "only testing",
        "using l1 regularization = 1e-06",
        "using l2 regularization = 1.23457e-05",
        "predictions = preds",
        "raw predictions = raw",
        "using no cache",
        "Reading datafile = s.txt",
        "num sources = 1",
        "Num weight bits = 24",
        "learning rate = 0.123457",
        "initial_t = 1e+10",
        "power_t = 0.25",
        "decay_learning_rate = 0.9",
        "Enabled learners: gd, generate_interactions, scorer-glf1, binary, extra_metrics, count_label",
        "Input label = SIMPLE",
        "Output pred = SCALAR",
        *TITLES,
    ]


@pytest.mark.parametrize(
    ("flags", "rates"),
    [
        ("", ("0.5", "0")),
        ("-l 0", ("0", "0")),
        ("--sgd", ("10", "1")),
        ("--sgd -l 2", ("2", "1")),
        ("--sgd --power_t 0.3 --initial_t 3", ("13.9039", "3")),
        ("--invariant --adaptive", ("10", "0")),
        ("--adaptive --normalized", ("0.5", "0")),
    ],
)
def test_rates(flags: str, rates: tuple[str, str]) -> None:
    lines = lines_of(flags)
    assert [line.partition(" = ")[2] for line in lines[4:6]] == list(rates)


@pytest.mark.parametrize(
    ("flags", "kind", "learners", "output"),
    [
        ("--cb_adf", "cb_adf", "csoaa_ldf-rank, cb_adf, shared_feature_merger", "ACTION_SCORES"),
        ("--cb_adf --rank_all", "cb_adf", "csoaa_ldf-rank, cb_adf, shared_feature_merger", "ACTION_SCORES"),
        (
            "--cb_explore_adf --cb_type ips --extra_metrics m",
            "cb_explore_adf",
            "csoaa_ldf-rank, cb_adf, cb_explore_adf_greedy, shared_feature_merger, extra_metrics",
            "ACTION_PROBS",
        ),
        (
            "--cb 3 --cb_type dr --extra_metrics m",
            "cb",
            "csoaa_ldf-rank, cb_adf, shared_feature_merger, cb_to_cbadf, extra_metrics",
            "MULTICLASS",
        ),
        (
            "--cb_explore 3 --cb_type dm",
            "cb_explore",
            "csoaa_ldf-rank, cb_adf, cb_explore_adf_greedy, shared_feature_merger, cb_to_cbadf",
            "ACTION_PROBS",
        ),
    ],
)
def test_bandits(flags: str, kind: str, learners: str, output: str) -> None:
    lines = lines_of(flags, kind=kind)
    cb_type = REGISTRY.parse(flags).get("cb_type")
    assert lines[-6:] == [
        f"cb_type = {cb_type}",
        f"Enabled learners: gd, scorer-identity, {learners}",
        "Input label = CB",
        f"Output pred = {output}",
        *TITLES,
    ]


def test_cb_type_without_a_bandit_is_printed_if_supplied() -> None:
    assert "cb_type = mtr" in lines_of("--cb_type mtr")
    assert not [line for line in lines_of("") if line.startswith("cb_type")]


@pytest.mark.parametrize(
    ("flags", "wild"),
    [
        ("-q ab", False),
        ("-q :b", True),
        ("--cubic a:b", True),
        ("--interactions abc:", True),
        ("--experimental_full_name_interactions 'user|:'", True),
        ("--experimental_full_name_interactions 'user|item'", False),
    ],
)
def test_wildcards_enable_generate_interactions(flags: str, wild: bool) -> None:
    learners = enabled_learners(REGISTRY.parse(flags), kind="simple")
    assert ("generate_interactions" in learners) == wild


@pytest.mark.parametrize("flags", ["", "-d -"])
def test_standard_input(flags: str) -> None:
    assert "Reading datafile = stdin" in lines_of(flags)


def test_ignored_bytes_are_printed_as_characters_or_escapes() -> None:
    assert "ignoring namespaces beginning with: z é" in lines_of("--ignore é --ignore z")
    assert r"ignoring namespaces beginning with: z \xff" in lines_of(r"--ignore '\xff' --ignore z")
    assert r"ignoring namespaces beginning with: z \xa9 \xc3" in lines_of("--ignore é --ignore z --vw_exact")


def test_full_name_interactions_and_hash_print_no_line() -> None:
    flags = "--experimental_full_name_interactions 'a|b' --hash all --noconstant -C 2.5 --initial_weight 0.1"
    assert lines_of(f"{flags} --random_seed 3") == lines_of("")
