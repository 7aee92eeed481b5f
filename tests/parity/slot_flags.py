"""The catalogue's runs of ``--ccb_explore_adf``."""

from __future__ import annotations

from tests.parity.case import cases
from tests.parity.slot_streams import SLOT_STREAMS

_EACH = (
    "",
    "-q :: --all_slots_loss",
    "-q UA --cb_type ips --epsilon 0.2",
)
_FLAGS = (
    "-q UA -q AU --cubic UAS -b 14",
    "-q U: --interactions U:A --cb_type dr",
    "--cubic ::: --noconstant",
    "-q :: -q AB --interactions AAA",
    "--ignore A --ignore_linear U -q ::",
    "--keep U --keep A -q UA",
    "--ccb_no_slot_index -q ::",
    "--cb_type dm --first_only --epsilon 0",
    "--hash all --hash_seed 7 -q SA",
    "--l1 1e-4 --l2 1e-4 -q ::",
    "--power_t 0.4 -l 0.1 -P 7",
    "-t -q ::",
    "--passes 2 --holdout_off",
    "--passes 3 --holdout_period 4 -q UA",
    "--softmax --lambda 3",
    "--first 20 -q ::",
    "--squarecb -q ::",
    "--squarecb --elim",
    "--regcb",
    "--regcb -q ::",
    "--regcb --sgd -l 0.02 --mellowness 0.01",
    "--regcb --invariant -l 0.05 -q ::",
    "--sgd -l 0.02 -q UA",
    "--adaptive -l 0.2",
    "--invariant -q ::",
    "--normalized -q UA",
    "--loss_function logistic",
    "--ccb_no_slot_index --noconstant",
    "--permutations -q ::",
    "-b 8 -q ::",
    "--constant 0.5",
    "--nounif --cover 2 --epsilon 0.1",
    "--link logistic",
    "--regcbopt --cb_min_cost -1",
    "--synthcover",
    "--bag 3 -q UA",
    "--bag 4 --greedify",
    "--cover 3",
    "--random_seed 12 --clip_p 0.3",
)

_JSON = ("", "-q :: --all_slots_loss", "--chain_hash -q US --cb_type ips", "--softmax", "-t")

_SEARCH = (
    "--automl 3 --default_lease 20",
    "--automl 4 --oracle_type one_diff_inclusion --default_lease 10 --priority_challengers 1",
    "--automl 4 --default_lease 15 --fixed_significance_level --automl_significance_level 0.9",
    "--automl 3 --priority_type favor_popular_namespaces --default_lease 10",
    "--automl 3 --default_lease 20 --cb_type ips --epsilon 0.2",
    "--automl 3 --default_lease 20 --squarecb",
    "--automl 4 --default_lease 15 --fixed_significance_level --automl_significance_level 0.99",
)

SLOTS = [
    *[
        case
        for name in SLOT_STREAMS
        for case in cases(name, *(f"--ccb_explore_adf {flags}".strip() for flags in _EACH))
    ],
    *cases("slots", *(f"--ccb_explore_adf {flags}" for flags in _FLAGS)),
    *cases("slots", *(f"--ccb_explore_adf {flags}" for flags in _SEARCH)),
    *cases("slots_rewards", *(f"--ccb_explore_adf {flags}" for flags in _SEARCH)),
    *cases("json/slots_log", *(f"--dsjson --ccb_explore_adf {flags}".strip() for flags in _JSON)),
    *cases("json/slots_json", *(f"--json --ccb_explore_adf {flags}".strip() for flags in _JSON)),
    *cases("slots_at_last", *(f"--ccb_explore_adf {flags}" for flags in _FLAGS[::4])),
]
"""Every run."""
