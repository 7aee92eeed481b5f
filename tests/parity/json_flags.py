"""Flag sets of JSON and of decision-service logs."""

from __future__ import annotations

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
    ),
    *cases(
        "json/contexts",
        "--json --cb_adf",
        "--json --cb_explore_adf -q :: --hash_seed 5",
        "--json --cb_adf --cb_type dm --rank_all",
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
