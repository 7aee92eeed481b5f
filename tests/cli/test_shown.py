"""Audits, models as text, and ``inspect``, from the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onlineauto import Workspace
from onlineauto.cli import inspect
from onlineauto.features.block import Block
from onlineauto.interop.named_blocks import named_blocks
from tests.cli.conftest import Command
from tests.parity.streams import STREAMS

CONTEXTS = (
    """shared |user tom
0:-1:0.5 |item a
|item b

shared |user ann
|item a
1:-0.25:0.5 |item b

"""
    * 30
)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    (tmp_path / "events.txt").write_text(CONTEXTS)
    (tmp_path / "lines.txt").write_bytes(STREAMS["numbers"](40, 1))


def test_the_features_of_an_audit_add_up_to_the_prediction(run: Command) -> None:
    lines = run("-d lines.txt -q ab --audit -p stdout --quiet").out.splitlines()
    for predicted, features, again in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        assert predicted == again
        total = sum(
            float(x) * float(w.partition("@")[0])
            for _, _, x, w in (each.rsplit(":", 3) for each in features.split("\t")[1:])
        )
        assert float(predicted) == pytest.approx(total, abs=1e-4) or abs(total) > abs(float(predicted))


def test_the_champion_is_audited(run: Command) -> None:
    lines = run("-d events.txt --cb_explore_adf --automl 3 -a --quiet").out.splitlines()
    assert len(lines) == 2 * 2 * 60
    assert "\titem^a*user^tom:" in lines[-7]


def test_invert_hash_names_the_observed_features(run: Command, tmp_path: Path) -> None:
    run("-d events.txt --cb_explore_adf -q :: --invert_hash names --readable_model text --quiet")
    named, plain = ((tmp_path / name).read_text().splitlines() for name in ("names", "text"))
    weights = [line for line in named if "^" in line]
    assert {"item^a*user^tom", "item^b", "user^ann"} <= {line.split(":")[0] for line in weights}
    assert [line.split(":", 1)[-1] for line in weights] == [
        line for line in plain[-len(weights) - 1 :] if any(line == each.split(":", 1)[1] for each in weights)
    ]


def test_invalid_audits_and_texts_of_models_are_rejected(run: Command) -> None:
    run(
        "-d events.txt --cb_explore_adf --bag 2 --audit --vw_exact",
        code=2,
        err="--audit with --bag is not reproduced by --vw_exact",
    )
    run(
        "-d events.txt --cb_explore_adf --audit --resume -f m",
        code=2,
        err="--audit and --resume exclude each other",
    )
    full_names = "--experimental_full_name_interactions user|item"
    run(f"-d events.txt --cb_explore_adf {full_names} --invert_hash n --quiet")
    run("-d events.txt --cb_explore_adf --readable_model no/where --quiet", code=1)
    run("-d events.txt --cb_explore_adf --readable_model events.txt --quiet", code=2)


def inspected(words: str, run: Command) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(f"inspect {words} --format json").out)
    return found


def test_a_model_is_inspected(run: Command, tmp_path: Path) -> None:
    run("-d events.txt --cb_explore_adf --automl 3 --default_lease 8 -f m --quiet")
    found = inspected("m --largest 3", run)
    assert found["file"]["bytes"] == (tmp_path / "m").stat().st_size
    assert found["options"] == "--cb_explore_adf --automl 3 --default_lease 8"
    assert found["champion"]["interactions"] == ["item*user"] or found["champion"]["interactions"]
    assert [each["index"] for each in found["live_configs"]] == list(range(len(found["live_configs"])))
    assert {each["name"]: each["actions"] for each in found["namespaces"]} == {"item": 120, "user": 120}
    assert [each["name"] for each in found["top_weights"]] == [None] * 3
    assert all(name for name in (each["name"] for each in inspected("m events.txt", run)["top_weights"]))


def test_models_keep_names_if_invert_hash_requests_them(run: Command) -> None:
    run("-d events.txt --cb_explore_adf -q :: --invert_hash names -f m --quiet")
    run("-d events.txt --cb_explore_adf -i m --invert_hash more -f again --quiet --examples 1")
    run("-i m -d events.txt --invert_hash small -f champion --predict_only_model --quiet")
    for model in ("m", "again", "champion"):
        weights = inspected(f"{model} --largest 100", run)["top_weights"]
        assert {"user^ann", "item^b", "Constant"} <= {each["name"] for each in weights}
        assert [abs(each["weight"]) for each in weights] == sorted(
            (abs(each["weight"]) for each in weights), reverse=True
        )
    assert inspected("champion", run)["predicts_only"]


def test_a_model_of_vw_can_be_inspected(run: Command) -> None:
    run("-d lines.txt -q ab --vw_exact -f m --quiet")
    run("convert m vw.model")
    found = inspected("vw.model lines.txt", run)
    assert found["file"]["program"] == "Vowpal Wabbit"
    assert all(each["name"] for each in found["top_weights"])
    assert "written by  Vowpal Wabbit\n" in run("inspect vw.model").out


@pytest.mark.parametrize("model", ["simple", "bandit"])
def test_tables(run: Command, model: str) -> None:
    flags = {"simple": "-d lines.txt -q ab", "bandit": "-d events.txt --cb_explore_adf --automl"}[model]
    run(f"{flags} -f m --quiet")
    text = run("inspect m").out
    assert text.startswith("Model\n")
    assert "Largest weights\n" in text
    text = run("inspect m --format markdown --largest 2").out
    assert text.count("\n| ") >= 10
    assert "## Largest weights\n\n| name | number | weight |\n| --- | --- | --- |\n" in text


def test_tables_on_a_terminal_are_drawn_with_rich(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    run("-d lines.txt -q ab -f m --quiet")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "┃" in run("inspect m").out
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert run("inspect m").out.startswith("Model\n")


def test_inspect_without_a_model_is_rejected(run: Command) -> None:
    run("inspect", code=2, err="inspect takes a model")
    run("inspect events.txt", code=1, err="is not a model file")


def test_inspect_reports_files_without_names(run: Command, tmp_path: Path) -> None:
    run("-d events.txt --cb_explore_adf -f m --quiet")
    (tmp_path / "noise").write_bytes(b"\x12\x80\n")
    run("inspect m noise", err="1 problem in the input:\n  1, of which the first: noise:1:1: not text")
    run("inspect m log.parquet", code=1, err="log.parquet: no such file or folder of Parquet")


def test_inspect_reads_events_until_all_weights_have_names(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 0

    def counted(*arguments: Any, **options: Any) -> Iterator[Block]:
        nonlocal n
        for block in named_blocks(*arguments, **options):
            n += 1
            yield block

    monkeypatch.setattr(inspect, "named_blocks", counted)
    run("-d events.txt --cb_explore_adf -q :: -f m --quiet")
    weights = json.loads(run("inspect m events.txt --format json").out)["top_weights"]
    assert "item^b*user^ann" in {weight["name"] for weight in weights}
    assert n == 2


def test_exact_models_that_only_predict_continue_to_learn_like_those_of_vw(
    run: Command, tmp_path: Path
) -> None:
    run("-d events.txt --cb_explore_adf --automl 2 -f m --predict_only_model --vw_exact --quiet")
    run("-d events.txt -i m -f n -p p --vw_exact --quiet")
    first, second = (Workspace.load(tmp_path / name) for name in "mn")
    assert "automl" not in first.configuration.supplied
    assert not (first.weights[:, 1:] != 0).any()
    assert (second.weights[:, 1:] != 0).any()


def test_options_of_the_search_may_change_when_a_model_is_loaded(run: Command) -> None:
    search = "--cb_explore_adf --automl 3 --oracle_type one_diff --priority_challengers 1 --quiet"
    for exact in ("", " --vw_exact"):
        run(f"-d events.txt {search} -f m{exact}")
        run("-d events.txt -i m --priority_challengers 0 --priority_type none -f n --quiet")
        error = run("-d events.txt -i m --oracle_type champdupe -f n --quiet", code=0 if exact else 2).err
        assert ("cannot use --oracle_type champdupe" in error) == (not exact)


def test_a_resumed_run_keeps_its_names(run: Command, tmp_path: Path) -> None:
    whole = "-d events.txt --cb_explore_adf -q :: --invert_hash names -f m --strict_parse --quiet"
    run(whole)
    text = (tmp_path / "names").read_bytes()
    (tmp_path / "m").unlink()
    events = CONTEXTS.split("\n\n")
    (tmp_path / "events.txt").write_text("\n\n".join([*events[:20], "0:a:b |item a", *events[20:]]))
    run(whole, code=1)
    assert (tmp_path / "names").read_bytes() != text
    (tmp_path / "events.txt").write_text(CONTEXTS)
    run(f"{whole} --resume")
    assert (tmp_path / "names").read_bytes() == text


def test_an_audit_of_a_wide_interaction_lists_its_most_important_features(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listed features equal those in the arrays, except for the features that are left out."""
    words = "-d lines.txt --cubic aab -q ab --audit --quiet"
    whole = run(words).out.splitlines()
    monkeypatch.setattr("onlineauto.cli.outputs._MOST_LISTED", 0)
    arrays = run(words).out.splitlines()
    for one, other in zip(whole[::2], arrays[::2], strict=True):
        assert float(one) == pytest.approx(float(other), abs=1e-5)
    for one, other in zip(whole[1::2], arrays[1::2], strict=True):
        assert sorted(one.split("\t")) == sorted(other.split("\t"))
    monkeypatch.setattr("onlineauto.workspace.inspection.named_examples._MOST", 2)
    cut = run(words).out.splitlines()
    assert cut[::2] == arrays[::2]
    assert "more of the widest interactions" in cut[-1]
    assert set(cut[-1].split("\t")[:-1]) <= set(arrays[-1].split("\t"))
