"""Exploration: the record that the kernels go by, from the options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers._kernels import Exploration
from onlineauto.explorers.choice import chosen_explorer
from onlineauto.explorers.explore_kernels import (
    BAG,
    COVER,
    EPSILON_DECAY,
    FIRST,
    GREEDY,
    REGCB,
    RND,
    SOFTMAX,
    SQUARECB,
    SYNTHCOVER,
)
from onlineauto.explorers.options import ExplorerOptions
from onlineauto.explorers.sampling import SampleOptions

if TYPE_CHECKING:
    from onlineauto.options import Configuration

__all__ = ["CODES", "EXPLORER_STATE", "make_exploration"]

CODES = {
    "greedy": GREEDY,
    "first": FIRST,
    "softmax": SOFTMAX,
    "squarecb": SQUARECB,
    "regcb": REGCB,
    "synthcover": SYNTHCOVER,
    "bag": BAG,
    "cover": COVER,
    "rnd": RND,
    "epsilon_decay": EPSILON_DECAY,
}
"""Codes by the names of the explorers."""


EXPLORER_STATE = ("counts", "costs", "random")
"""Arrays of `Exploration` that last from event to event."""


def make_exploration(
    configuration: Configuration,
    *,
    exact: bool = False,
    seed: int = 0,
    active: bool = True,
    samples: bool = False,
) -> Exploration:
    """How to explore before the first event, as options have it; what `samples` does so unasked."""
    options, explorer = configuration[ExplorerOptions], chosen_explorer(configuration)
    given = {
        "tau": 0,
        "lambda_": 0.0,
        "gamma_scale": 0.0,
        "gamma_exponent": 0.0,
        "elim": False,
        "optimistic": False,
        "mellowness": 0.0,
        "low": 0.0,
        "high": 0.0,
        "psi": 0.0,
        "size": 0,
        "policies": 0,
        "greedify": False,
        "nounif": False,
        "decays": False,
        "noise": 0.0,
        "variance": 0.0,
        **explorer.parameters(configuration, exact=exact),
    }
    return Exploration(
        code=CODES[explorer.name],
        exact=exact,
        active=active,
        bounds=explorer.bounds(configuration),
        regresses=explorer.cb_types == ("mtr",),
        samples=active and (samples or configuration[SampleOptions].cb_sample),
        epsilon=np.float32(options.epsilon if "epsilon" in configuration.supplied else explorer.epsilon),
        first_only=options.first_only,
        tau=int(given["tau"]),
        lambda_=np.float32(given["lambda_"]),
        gamma_scale=np.float32(given["gamma_scale"]),
        gamma_exponent=np.float32(given["gamma_exponent"]),
        elim=bool(given["elim"]),
        optimistic=bool(given["optimistic"]),
        mellowness=np.float32(given["mellowness"]),
        low=np.float32(given["low"]),
        high=np.float32(given["high"]),
        psi=np.float32(given["psi"]),
        size=int(given["size"]),
        policies=int(given["policies"]),
        greedify=bool(given["greedify"]),
        nounif=bool(given["nounif"]),
        decays=bool(given["decays"]),
        noise=np.float32(given["noise"]),
        spread=np.sqrt(np.float32(given["variance"])),
        counts=np.zeros(2, np.int64),
        costs=np.zeros(2, np.float32),
        random=np.array([seed], np.uint64),
        times=np.zeros(int(given["policies"]), np.int64),
        guesses=np.zeros(int(given["policies"]), np.float32),
    )
