"""Flag sets of explorers."""

from __future__ import annotations

from tests.parity.case import cases

__all__ = ["EXPLORING"]

_RANGE = "--cb_min_cost -1 --cb_max_cost 0"

EXPLORING = [
    *cases(
        "bandit",
        "--cb_explore_adf --first 20",
        "--cb_explore_adf --first 20 --epsilon 0.2",
        "--cb_explore_adf --softmax",
        "--cb_explore_adf --softmax --lambda 5 --epsilon 0.1 -q ::",
        "--cb_explore_adf --softmax --cb_type dr -q UA",
        "--cb_explore_adf --squarecb",
        "--cb_explore_adf --squarecb --gamma_scale 100 --gamma_exponent 0.3 --epsilon 0.2 -q ::",
        "--cb_explore_adf --squarecb --elim --cb_min_cost -2 --cb_max_cost 2 --mellowness 0.1",
        "--cb_explore_adf --squarecb --clip_p 0.5",
        "--cb_explore_adf --regcb",
        "--cb_explore_adf --regcb --regcbopt --first_only --mellowness 0.01",
        "--cb_explore_adf --regcb --adaptive -l 0.1",
        "--cb_explore_adf --regcb --sgd -l 0.05",
        "--cb_explore_adf --regcb --noconstant -q UA --sgd -l 0.01 --mellowness 0.01",
        "--cb_explore_adf --regcb --power_t 0.3",
        "--cb_explore_adf --regcb --l1 1e-4 --l2 1e-4 --mellowness 0.01",
        "--cb_explore_adf --regcb --loss_function quantile --invariant",
        "--cb_explore_adf --synthcover",
        "--cb_explore_adf --bag 1",
        "--cb_explore_adf --bag 3",
        "--cb_explore_adf --bag 4 --first_only --cb_type dr -q UA --random_seed 7",
        "--cb_explore_adf --bag 3 --cb_type dm --sgd -l 0.05",
        "--cb_explore_adf --bag 3 --l1 1e-4 --l2 1e-4",
        "--cb_explore_adf --bag 3 --cb_sample -b 12",
        "--cb_explore_adf --cover 1",
        "--cb_explore_adf --cover 3",
        "--cb_explore_adf --cover 3 --cb_type dr --first_only",
        "--cb_explore_adf --cover 3 --cb_type ips --nounif",
        "--cb_explore_adf --cover 3 --l1 1e-4 --l2 1e-4",
        "--cb_explore_adf --cover 3 -t",
        "--cb_explore_adf --cb_sample",
        "--cb_explore_adf --cb_sample -t --softmax",
    ),
    *cases(
        "rewards",
        "--cb_explore_adf --softmax --cb_type ips",
        "--cb_explore_adf --squarecb --elim",
        f"--cb_explore_adf --squarecb --elim {_RANGE} -q UA --mellowness 0.02",
        f"--cb_explore_adf --regcb {_RANGE}",
        f"--cb_explore_adf --regcb {_RANGE} --interactions UUA --mellowness 0.003",
        f"--cb_explore_adf --regcb --regcbopt {_RANGE} -q UA",
        f"--cb_explore_adf --regcb --regcbopt {_RANGE} -q ::",
        "--cb_explore_adf --synthcover --synthcoverpsi 0.5 --synthcoversize 37 --epsilon 0.1 -q ::",
        "--cb_explore_adf --bag 5 --greedify --epsilon 0.1 -q ::",
        "--cb_explore_adf --bag 2 --cb_type ips",
        "--cb_explore_adf --cover 4 --psi 0.1 --epsilon 0.1 -q ::",
        "--cb_explore_adf --cover 2 --nounif --epsilon 0.2",
        "--cb_explore_adf --cb_sample --squarecb --epsilon 0.1 --random_seed 5",
    ),
    *cases(
        "classic_bandit",
        "--cb_explore 4 --first 30",
        "--cb_explore 4 --softmax --lambda -3",
        "--cb_explore 4 --squarecb -q ab",
        "--cb_explore 4 --regcb --cb_max_cost 2",
        "--cb_explore 4 --synthcover --cb_type dr",
        "--cb_explore 4 --bag 4 -q ab",
        "--cb_explore 4 --cover 3 -q ab",
        "--cb_explore 4 --cb_sample",
    ),
    *cases("odd_bandit/tags", "--cb_explore_adf --cb_sample --softmax", "--cb_explore_adf --cb_sample -t"),
]
