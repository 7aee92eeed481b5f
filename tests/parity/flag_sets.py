"""The catalogue: which flags the parity tests run on which stream."""

from __future__ import annotations

from datasets.generate import STREAMS as GENERATORS
from tests.parity.bandit_flags import BANDITS, EXPLORING, SLOTS
from tests.parity.case import Case, cases, dataset_names
from tests.parity.odd_text import ODD_BANDIT, ODD_CLASSIC, ODD_SIMPLE
from tests.parity.single_line_flags import FEATURES, JSON, LOSSES, PASSES, UPDATES

_DATA_FLAGS = (
    "--cb_explore_adf --epsilon 0.1 -b 20",
    "--cb_explore_adf -q :: --cb_type dr",
    "--cb_adf --cb_type ips",
)
_LINE_FLAGS = ("-b 20", "-q :: --loss_function quantile", "--sgd -l 0.01 --l1 1e-5", "--adaptive -l 0.1")
_GENERATED_FLAGS = {
    "regression": ("", "-q ab --loss_function quantile", "--sgd -l 0.01 --l2 1e-4"),
    "classification": ("--loss_function logistic", "--loss_function hinge -q :: -b 16", "--binary"),
}

GENERATED = [
    case
    for name in GENERATORS
    for case in cases(f"generated/{name}", *_GENERATED_FLAGS.get(name, _DATA_FLAGS))
]

DATASETS = [
    case
    for name in dataset_names()
    for case in cases(f"dataset/{name}", *(_DATA_FLAGS if name.startswith("cb-") else _LINE_FLAGS))
]

_ODD_SIMPLE_FLAGS = ("", "-q :: --hash all", "--noconstant --ignore b --sgd -l 0.01")
_ODD_BANDIT_FLAGS = (
    "--cb_explore_adf -q ::",
    "--cb_adf --cb_type dr",
    "--cb_explore_adf --cb_type ips --ignore U",
)
_ODD_CLASSIC_FLAGS = ("--cb 4", "--cb_explore 4 --cb_type dr -q ::", "--cb 4 --cb_type ips --noconstant")

ODD_TEXT = [
    *[case for name in ODD_SIMPLE for case in cases(f"odd/{name}", *_ODD_SIMPLE_FLAGS)],
    *[case for name in ODD_BANDIT for case in cases(f"odd_bandit/{name}", *_ODD_BANDIT_FLAGS)],
    *[case for name in ODD_CLASSIC for case in cases(f"odd_classic/{name}", *_ODD_CLASSIC_FLAGS)],
    *cases("odd/repeated_namespaces", "-q aa", "--cubic aab", "-q ab --ignore_linear a"),
    *cases("odd/utf8", "--ignore é", "--keep 日 -q ::"),
    *cases("odd/tags", "-t", "--loss_function logistic --link logistic"),
    *cases("odd/mixture", "-b 10 -q ::", "--cubic :::", "--hash_seed 5", "--adaptive -l 0.1"),
    *cases(
        "odd_bandit/empty_shared", "--cb_explore_adf --squarecb --elim --cb_min_cost -1 -q :: --invariant"
    ),
    *cases("odd_bandit/one_letter_two_names", "--cb_explore_adf -q UA", "--cb_explore_adf -q UU -q AA"),
]

_VW_CRASHES = {Case(stream="odd_bandit/shared_only", flags="--cb_adf --cb_type dr")}
"""Not run: VW reads out of bounds there and dies."""

CASES: tuple[Case, ...] = tuple(
    case
    for case in dict.fromkeys(
        [
            *LOSSES,
            *UPDATES,
            *FEATURES,
            *PASSES,
            *BANDITS,
            *EXPLORING,
            *SLOTS,
            *GENERATED,
            *DATASETS,
            *ODD_TEXT,
            *JSON,
        ]
    )
    if case not in _VW_CRASHES
)
"""Every case once."""
