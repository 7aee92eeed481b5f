"""Flag sets of single lines: losses, updates, passes, features, and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from tests.parity.case import cases

JSON = [
    *cases(
        "json/log",
        "--dsjson --cb_explore_adf",
        "--dsjson --cb_explore_adf -q :: --epsilon 0.2",
        "--dsjson --cb_adf --cb_type dr -q UA",
        "--dsjson --cb_adf --cb_type ips --chain_hash",
        "--dsjson --cb_explore_adf --hash all --noconstant --cubic UGA",
        "--dsjson --cb_explore_adf --ignore U --hash_seed 7 -b 10",
        "--dsjson --cb_explore_adf -t",
        "--dsjson --cb_explore_adf --automl 3 --oracle_type one_diff --default_lease 10",
        "--dsjson --cb_explore_adf --automl 2 --cb_type ips --default_lease 50",
        "--dsjson --cb_explore_adf --cover 2",
        "--dsjson --cb_explore_adf --cover 3 --cb_type dr",
        "--dsjson --cb_explore_adf --regcb --cb_min_cost -1",
        "--dsjson --cb_explore_adf --squarecb --elim --cb_min_cost -1 -q UA",
        "--dsjson --cb_explore_adf --bag 2 --cb_type dr",
        "--dsjson --cb_explore_adf --ngram 3 --skips 1 -q ::",
    ),
    *cases(
        "json/contexts",
        "--json --cb_adf",
        "--json --cb_explore_adf -q :: --hash_seed 5",
        "--json --cb_adf --cb_type dm --rank_all",
        "--json --cb_adf --ngram 2",
        "--json --cb_explore_adf --automl 2 --default_lease 10",
    ),
    *cases(
        "json/lines",
        "--json",
        "--json -q :: --chain_hash",
        "--json --noconstant --ignore U --hash all",
        "--json --loss_function quantile --passes 2 --holdout_off",
    ),
    *cases("json/classic", "--json --cb 4", "--json --cb_explore 4 --cb_type dr"),
    *cases("json/long_numbers", "--json", "--json --hash all -b 10"),
]

FEATURES = [
    *cases(
        "numbers",
        "-q ab",
        "-q ba",
        "-q aa",
        "-q ::",
        "-q a:",
        "-q :c",
        "-q ab -q cd -q ab",
        "-q ab -q ba",
        "-q az",
        "--quadratic bc --cubic abc",
        "--cubic aab",
        "--cubic aaa",
        "--cubic aba",
        "--cubic a:b",
        "--cubic :::",
        "--cubic ::c",
        "--interactions ab",
        "--interactions cab",
        "--interactions abcd",
        "--interactions aabb",
        "--interactions aaab -b 20",
        "--interactions aaaa",
        "--interactions abab",
        "--interactions ::::",
        "--interactions ab:c",
        "--interactions ab --interactions abc -q cc --cubic bcd --interactions abcc",
        "-q :: --permutations",
        "-q aa --permutations",
        "--cubic aab --permutations",
        "--cubic ::: --permutations",
        "--interactions abab --permutations",
        "-q ab -q ab --leave_duplicate_interactions",
        "-q :: --leave_duplicate_interactions",
        "-q ab -q ba --cubic aab --cubic baa --leave_duplicate_interactions",
        "--ignore a",
        "--ignore a --ignore c -q ::",
        "--ignore abc",
        "--keep a",
        "--keep a --keep b -q ::",
        "--keep ab -q ab",
        "--ignore_linear a",
        "--ignore_linear a --ignore_linear b -q ab -q bc",
        "--ignore_linear abcd -q ::",
        "--ignore d --ignore_linear b -q ::",
        "--noconstant",
        "--noconstant -q ::",
        "-C 2.5",
        "--constant -1 --noconstant",
        "--constant 0.5 --sgd -l 0.1",
        "-b 10 -q ::",
        "-b 10 --cubic :::",
        "-b 14 -q ::",
        "-b 22 -q ::",
        "-b 24 --cubic abc",
        "--hash all",
        "--hash strings",
        "--hash all -q :: --hash_seed 7",
        "--hash_seed 99",
        "--hash_seed 4294967295 -q ab",
        "--ngram 2",
        "--ngram 3 --skips 2 -q ab",
        "--ngram a2 --ngram 3 --ngram b4 --skips 1 --skips b2 -q ::",
        "--ngram 2 --ignore a --hash all -b 10",
    )
]


def _subsets() -> Iterable[str]:
    """Every subset of the three switches of gd, and the plain one."""
    for adaptive, normalized, invariant in product((False, True), repeat=3):
        chosen = {"--adaptive": adaptive, "--normalized": normalized, "--invariant": invariant}
        yield " ".join(name for name, wanted in chosen.items() if wanted) or "--sgd"


LOSSES = [
    *cases(
        "numbers",
        "",
        "--loss_function squared",
        "--loss_function classic",
        "--loss_function quantile",
        "--loss_function quantile --quantile_tau 0.9",
        "--loss_function quantile --quantile_tau 0.1 -l 2",
        "--loss_function expectile --expectile_q 0.3",
        "--loss_function expectile --expectile_q 0.05 --sgd",
        "--min_prediction -0.5 --max_prediction 0.75",
        "--max_prediction 0.25 --loss_function quantile",
        "--link logistic",
        "--link glf1",
    ),
    *cases(
        "signs",
        "--loss_function hinge",
        "--loss_function logistic",
        "--loss_function logistic --link logistic",
        "--loss_function logistic --link glf1",
        "--loss_function logistic --binary",
        "--loss_function hinge --binary",
        "--binary",
        "--loss_function logistic --min_prediction -2 --max_prediction 2",
        "--loss_function hinge -q ab --l1 1e-3",
    ),
    *cases(
        "bits",
        "--loss_function logistic --logistic_min 0",
        "--loss_function logistic --logistic_min 0 --logistic_max 1 --link logistic -q ab",
    ),
    *cases(
        "counts",
        "--loss_function poisson",
        "--loss_function poisson --link poisson",
        "--loss_function poisson -l 0.1 --sgd",
        "--loss_function poisson --max_prediction 1.5 --link poisson",
        "--link poisson",
    ),
]

UPDATES = [
    *[
        case
        for subset in _subsets()
        for case in (
            *cases("numbers", f"{subset} -l 0.1", f"{subset} -l 0.1 -q ab --initial_t 2 -b 12"),
            *cases("signs", f"{subset} --loss_function logistic"),
            *cases("weighted", f"{subset} -l 0.05"),
        )
    ],
    *[
        case
        for power in ("0", "0.25", "1")
        for case in cases(
            "numbers",
            f"--power_t {power}",
            f"--power_t {power} --sgd -l 0.2",
            f"--power_t {power} --adaptive -l 0.2",
        )
    ],
    *cases(
        "numbers",
        "--power_t 0.25 --normalized -l 0.2",
        "--power_t 1 --invariant -l 0.2",
        "--power_t 0.5 -q bc",
    ),
    *cases("numbers", "--normalized", "--adaptive", "--invariant", "--sgd --initial_t 10 --power_t 0.25"),
    *cases(
        "numbers", "--initial_t 10 -b 12", "--initial_t 0.5 -b 12 --adaptive", "--initial_t 3 --normalized"
    ),
    *cases("numbers", "-l 0.01", "-l 10", "--learning_rate 2.5 --sgd", "-l 1e-6"),
    *cases(
        "numbers",
        "--l1 1e-4",
        "--l1 0.01",
        "--l2 1e-4",
        "--l2 0.01",
        "--l1 1e-3 --l2 1e-3",
        "--l1 1e-3 -q ::",
    ),
    *cases(
        "numbers", "--sgd --l1 1e-3", "--sgd -l 0.1 --l2 1e-2", "--adaptive -l 0.1 --l1 1e-4 --l2 1e-4 -q ab"
    ),
    *cases("numbers", "--initial_weight 0.1 -b 12", "--initial_weight -0.5 -b 12 --sgd -l 0.1"),
    *cases("numbers", "-t", "-t -q ::", "--examples 17", "--examples 0", "-t --initial_weight 0.2 -b 10"),
    *cases(
        "large",
        "",
        "--sgd -l 1e-9",
        "--normalized",
        "--adaptive",
        "-q ab",
        "--power_t 0.25",
        "--loss_function quantile -q aa",
    ),
    *cases(
        "weighted",
        "",
        "--loss_function quantile -q ab",
        "--loss_function classic",
        "-t",
        "-q :: --noconstant",
    ),
    *cases(
        "weighted",
        "--l1 1e-3 --l2 1e-3",
        "--sgd --l2 0.01 -l 0.1",
        "--loss_function expectile --expectile_q 0.2",
    ),
]

PASSES = [
    *cases(
        "numbers",
        "--passes 3 --holdout_off",
        "--passes 3",
        "--passes 8",
        "--passes 3 --holdout_period 4",
        "--passes 4 --holdout_after 250",
        "--passes 10 --early_terminate 1 --holdout_period 3",
        "--passes 3 --holdout_off --decay_learning_rate 0.7 --sgd",
        "--passes 2 --holdout_off --l1 1e-3 --l2 1e-3",
        "--passes 3 --decay_learning_rate 0.9 -q ab",
        "--passes 3 --examples 50",
    ),
    *cases("weighted", "--passes 3", "--passes 3 --holdout_off"),
    *cases("signs", "--passes 3 --loss_function logistic --link logistic"),
    *cases("bandit", "--passes 3 --cb_explore_adf", "--passes 2 --cb_adf --holdout_off --cb_type dr"),
    *cases("classic_bandit", "--passes 3 --cb 4", "--passes 2 --cb_explore 4 --holdout_off"),
]
