"""Corners of Vowpal Wabbit that are not here are refused by name, in one line."""

from __future__ import annotations

import pytest

from onlineauto.errors import OptionError
from onlineauto.workspace.options import REGISTRY

pytestmark = pytest.mark.lane("quick")

_SEARCH = "--vw_exact --cb_explore_adf --automl 4"
_DECAY = "--cb_explore_adf --epsilon_decay"
_NOT_EXACT = "is not reproduced by --vw_exact"
_ONE = "exclude each other: there is one explorer"
_NOT_HERE = "is an option of Vowpal Wabbit that onlineauto does not have: leave it out; "

REFUSED = [
    # A search with other explorers than these four, or with penalties beside three of them.
    (
        f"{_SEARCH} --squarecb --elim",
        f"--automl with --elim {_NOT_EXACT}, which has it with ε-greedy, --first, ",
    ),
    (f"{_SEARCH} --regcb", f"--automl with --regcb {_NOT_EXACT}, "),
    (f"{_SEARCH} --regcbopt", f"--automl with --regcbopt {_NOT_EXACT}, "),
    (f"{_SEARCH} --synthcover", f"--automl with --synthcover {_NOT_EXACT}, "),
    (f"{_SEARCH} --bag 2", f"--automl with --bag {_NOT_EXACT}, "),
    (f"{_SEARCH} --cover 2 --cb_type ips", f"--automl with --cover {_NOT_EXACT}, "),
    (f"{_SEARCH} --rnd 1", f"--rnd {_NOT_EXACT}: "),
    (f"{_SEARCH} --epsilon_decay", f"--automl with --epsilon_decay {_NOT_EXACT}, "),
    ("--vw_exact --cb_explore 4 --automl 4 --bag 2", f"--automl with --bag {_NOT_EXACT}, "),
    ("--vw_exact --ccb_explore_adf --automl 4 --cover 3", f"--automl with --cover {_NOT_EXACT}, "),
    (
        f"{_SEARCH} --squarecb --l1 1e-4",
        f"--automl with --squarecb and --l1 {_NOT_EXACT}: a search has penalties ",
    ),
    (f"{_SEARCH} --softmax --l2 1e-4", f"--automl with --softmax and --l2 {_NOT_EXACT}: "),
    (f"{_SEARCH} --first 9 --l2 1e-4", f"--automl with --first and --l2 {_NOT_EXACT}: "),
    # Models of which actions share weights.
    (
        "--vw_exact --cb 4 --automl 3",
        f"--cb with 3 models {_NOT_EXACT}: unless the models of all live configs ",
    ),
    ("--vw_exact --cb 4 --automl 3 --cb_type dr", f"--cb with 6 models {_NOT_EXACT}: "),
    ("--vw_exact --cb_explore 4 --bag 3", f"--cb_explore with 3 models {_NOT_EXACT}: "),
    ("--vw_exact --cb_explore 4 --cover 2", f"--cb_explore with 6 models {_NOT_EXACT}: "),
    ("--vw_exact --cb_explore 4 --epsilon_decay", f"--cb_explore with 3 models {_NOT_EXACT}: "),
    # Decaying ε beside another explorer, and of slots.
    (f"{_DECAY} --softmax", f"--softmax and --epsilon_decay {_ONE}"),
    (f"{_DECAY} --first 9 --vw_exact", f"--first and --epsilon_decay {_ONE}"),
    (f"{_DECAY} --squarecb", f"--squarecb and --epsilon_decay {_ONE}"),
    (f"{_DECAY} --synthcover", f"--synthcover and --epsilon_decay {_ONE}"),
    (f"{_DECAY} --bag 2", f"--bag and --epsilon_decay {_ONE}"),
    ("--ccb_explore_adf --epsilon_decay", "--epsilon_decay is not for --ccb_explore_adf; "),
    ("--ccb_explore_adf --epsilon_decay --vw_exact", "--epsilon_decay is not for --ccb_explore_adf; "),
    # Brent's method, and the trace.
    (f"{_SEARCH} --opt_func brentq", f"--opt_func {_NOT_HERE}bounds are found by bisection"),
    ("--cb_explore_adf --automl 4 --csv_trace", f"--csv_trace {_NOT_HERE}--journal has the decisions"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_what_is_not_here_is_refused_by_name(words: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        REGISTRY.parse(words)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        *(f"{_SEARCH} --{explorer}" for explorer in ("first 9", "softmax", "squarecb", "cb_sample")),
        f"{_SEARCH} --l1 1e-4 --l2 1e-3 --cb_type dr",
        "--vw_exact --ccb_explore_adf --automl 3 --squarecb",
        "--vw_exact --cb_adf --automl 3 --l1 1e-4 --bag 2",
        "--vw_exact --cb_explore 4 --automl 2 --cb_type dr",
        "--vw_exact --cb_explore 4 --bag 4",
        "--cb_explore 4 --automl 3 --bag 3 --l1 1e-4",
        *(f"--cb_explore_adf --automl 3 --{explorer}" for explorer in ("regcb", "cover 2", "rnd 1")),
        f"{_DECAY} --automl 3",
        f"{_DECAY} --vw_exact",
    ],
)
def test_what_is_next_to_it_is_taken(words: str) -> None:
    assert REGISTRY.parse(words).supplied
