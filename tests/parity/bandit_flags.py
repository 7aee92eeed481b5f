"""Flag sets of contextual bandits."""

from __future__ import annotations

from itertools import product

from tests.parity.case import cases

BANDITS = [
    *[
        case
        for stream, kind in product(("bandit", "rewards"), ("mtr", "ips", "dr", "dm"))
        for case in cases(
            stream,
            f"--cb_adf --cb_type {kind}",
            f"--cb_explore_adf --cb_type {kind} -q UA -b 14",
            f"--cb_explore_adf --cb_type {kind} --epsilon 0.2 -q :: --noconstant --sgd -l 0.1",
        )
    ],
    *[
        case
        for kind in ("mtr", "ips", "dr", "dm")
        for case in cases(
            "classic_bandit",
            f"--cb 4 --cb_type {kind}",
            f"--cb_explore 4 --cb_type {kind} -q ab",
            f"--cb_explore 4 --cb_type {kind} --power_t 0 -l 0.1 --noconstant",
        )
    ],
    *cases(
        "classic_bandit", "--cb 4", "--cb_explore 4 --epsilon 0.3 --first_only", "--cb 4 -q :: --ignore d"
    ),
    *cases(
        "classic_bandit", "--cb 6 --clip_p 0.4", "--cb_explore 5 -b 10 -q ::", "--cb 4 -t", "--cb 4 --l1 1e-3"
    ),
    *cases(
        "bandit",
        "--cb_adf",
        "--cb_adf --rank_all",
        "--cb_adf --rank_all --cb_type dr -q ::",
        "--cb_adf -t",
        "--cb_explore_adf",
        "--cb_explore_adf --epsilon 0",
        "--cb_explore_adf --epsilon 1",
        "--cb_explore_adf --first_only --epsilon 0.3",
        "--cb_explore_adf --clip_p 0.5",
        "--cb_explore_adf --clip_p 0.3 --cb_type ips",
        "--cb_adf --clip_p 0.3 --cb_type dr",
        "--cb_explore_adf --examples 33",
        "--cb_explore_adf -t -q ::",
        "--cb_explore_adf --cb_type dr -t",
        "--cb_explore_adf --adaptive -l 0.1",
        "--cb_explore_adf --normalized -l 0.1 -q ::",
        "--cb_explore_adf --invariant -l 0.01",
        "--cb_explore_adf --power_t 0.25 -q UA",
        "--cb_explore_adf --initial_t 5 -b 12",
        "--cb_explore_adf --l1 1e-4 --l2 1e-4",
        "--cb_explore_adf --loss_function quantile --quantile_tau 0.7",
        "--cb_explore_adf --link logistic",
        "--cb_explore_adf --min_prediction -0.5 --max_prediction 0.5",
        "--cb_explore_adf -C 0.5",
        "--cb_explore_adf --initial_weight 0.05 -b 12",
        "--cb_explore_adf --quiet",
        "--cb_explore_adf -P 50",
        "--cb_explore_adf --progress 1.3",
        "--cb_explore_adf -P 7 --cb_type dr",
    ),
    *cases(
        "rewards",
        "--cb_explore_adf -q UA",
        "--cb_explore_adf -q U: --ignore T",
        "--cb_explore_adf --cubic UTA",
        "--cb_explore_adf --interactions UUAA -b 16",
        "--cb_explore_adf --interactions :::: -b 20",
        "--cb_explore_adf --cubic ::: --ignore_linear U",
        "--cb_explore_adf -q :: -b 10",
        "--cb_explore_adf -q :: -b 24",
        "--cb_explore_adf -q UA --permutations -q AA",
        "--cb_explore_adf -q ::  --ignore_linear UTA",
        "--cb_explore_adf --keep U --keep A -q UA",
        "--cb_explore_adf --hash all -q ::",
        "--cb_explore_adf --cb_type dr --cubic UTA --l2 1e-5",
        "--cb_adf --noconstant -q ::",
        "--cb_adf -l 0.05 --power_t 0",
        "--cb_adf --rank_all --cb_type dr --l2 1e-3",
        "--cb_adf --rank_all --cb_type dr --l1 1e-4 -q UA",
        "--cb_adf --holdout_after 40",
        "--cb_explore_adf --holdout_after 40 -q ::",
    ),
]
