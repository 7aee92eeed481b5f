"""Options and streams drawn at random, for tests of models."""

from __future__ import annotations

import random
from typing import Any

from onlineauto.errors import OptionError
from onlineauto.options import Configuration
from onlineauto.workspace.workspace import Workspace

Options = dict[str, Any]

_KINDS: list[Options] = [
    {},
    {"cb_adf": True},
    {"cb_explore_adf": True},
    {"cb_explore_adf": True},
    {"ccb_explore_adf": True},
    {"cb": 3},
    {"cb_explore": 3},
]
_UPDATES: list[Options] = [
    {},
    {},
    {"sgd": True, "learning_rate": 0.1},
    {"adaptive": True, "power_t": 0.4},
    {"normalized": True},
    {"l1": 1e-4, "l2": 1e-4},
    {"initial_weight": 0.1, "decay_learning_rate": 0.9},
    {"constant": 0.2, "initial_t": 3.0},
]
_LOSSES: list[Options] = [
    {},
    {},
    {"loss_function": "logistic"},
    {"loss_function": "quantile", "quantile_tau": 0.3},
]
_TYPES: list[Options] = [{}, {"cb_type": "dr"}, {"cb_type": "ips"}, {"cb_type": "dm"}, {"clip_p": 0.3}]
_SURE: Options = {"epsilon_decay_significance_level": 1.9, "bonferroni_denominator": 1}
"""A level at which almost any younger model is better."""
_EXPLORERS: list[Options] = [
    {"epsilon": 0.2},
    {"first": 40},
    {"softmax": True, "lambda_": 3.0},
    {"squarecb": True, "elim": True},
    {"regcb": True},
    {"synthcover": True},
    {"bag": 3, "greedify": True},
    {"cover": 2},
    {"cb_sample": True},
    {"rnd": 2},
    {"epsilon_decay": True, "min_scope": 20, "min_champ_examples": 5},
    {"epsilon_decay": True, "min_scope": 5, "model_count": 2, **_SURE},
]
_SEARCHES: list[Options] = [
    {"automl": 3},
    {
        "automl": 4,
        "search": "interactions,namespaces,learning_rate,power_t,l1,l2",
        "on_drift": "reset_challengers",
    },
    {"automl": 5, "on_drift": "reset_model"},
    {"automl": 3, "oracle_type": "one_diff"},
    {"automl": 4, "oracle_type": "rand", "interaction_type": "cubic"},
    {"automl": 3, "oracle_type": "qbase_cubic", "estimator": "robust"},
    {"automl": 4, "oracle_type": "one_diff_inclusion", "priority_type": "favor_popular_namespaces"},
    {"automl": 3, "oracle_type": "champdupe"},
    {"automl": 4, "champion_test": "reward", "cost_range": "-1,0", "min_prob": 0.3},
    {"automl": 3, "predict_with": "champion"},
    {"automl": 3, "fixed_significance_level": True},
]
_FIXED: list[Options] = [{}, {"quadratic": ["::"]}, {"interactions": ["utn"], "ignore": ["n"]}]


def draw_configuration(draw: random.Random) -> Configuration:
    """Draw options that can be together."""
    while True:
        options: Options = {"bit_precision": draw.choice([6, 9, 12]), "random_seed": draw.randrange(9)}
        kind = draw.choice(_KINDS)
        options |= kind | draw.choice(_UPDATES) | {"vw_exact": draw.random() < 0.35}
        if not kind:
            options |= draw.choice(_LOSSES)
        else:
            options |= draw.choice(_TYPES)
        if any("explore" in name for name in kind):
            options |= draw.choice(_EXPLORERS)
        if draw.random() < 0.6:
            options |= draw.choice(_SEARCHES) | {"default_lease": draw.choice([16, 40, 100])}
            options["automl_significance_level"] = draw.choice([0.05, 0.9])
        else:
            options |= draw.choice(_FIXED)
        try:
            return Workspace(**options).configuration
        except OptionError:
            continue


def draw_stream(draw: random.Random, configuration: Configuration, *, n: int) -> list[str]:
    """Draw events in which what is best depends on two namespaces together, and changes half way."""
    slots = configuration.get("ccb_explore_adf")
    simple = not (slots or any(map(configuration.get, ("cb", "cb_adf", "cb_explore", "cb_explore_adf"))))
    adf = bool(configuration.get("cb_adf") or configuration.get("cb_explore_adf"))
    signs = configuration.get("loss_function") == "logistic"
    events = []
    for number in range(n):
        user, time = draw.choice("abc"), draw.choice("mn")
        best = (("abc".index(user) if time == "m" else 0) + (number > n // 2)) % 3
        context = f"|user {user} |time {time} |noise x{draw.randrange(9)}:{draw.randrange(1, 9) / 8}"
        if number > n // 3 and draw.random() < 0.3:
            context += " |late l"
        if simple:
            label = best - 1 if not signs else (1 if best else -1)
            events.append(f"{label} {context}\n" if draw.random() < 0.9 else f"{context}\n")
            continue
        logged = draw.randrange(3)
        cost = -1 if (logged == best) != (draw.random() < 0.1) else 0
        if slots:
            actions = [f"ccb action |Act p{action}" for action in range(3)]
            first = f"ccb slot {logged}:{cost}:0.333 |place top"
            others = ["ccb slot |place side"] if number > n // 4 and draw.random() < 0.5 else []
            events.append("\n".join([f"ccb shared {context}", *actions, first, *others]) + "\n\n")
            continue
        if not adf:
            events.append(f"{logged + 1}:{cost}:0.333 {context}\n")
            continue
        actions = [
            (f"0:{cost}:0.333 " if action == logged else "") + f"|Act p{action}" for action in range(3)
        ]
        events.append("\n".join([f"shared {context}", *actions]) + "\n\n")
    return events
