"""A driver that a test stops or kills: ``python -m tests.tune.on_ray.driver ADDRESS STORE NOTES LEASE``."""

from __future__ import annotations

import logging
import sys

from onlineauto.tune import Categorical, Float, RayWorkers, Study
from tests.tune.on_ray.trainables_on_ray import Placed

STEPS = 12


def new_study(storage: str, notes: str, *, lease: float = 60, trials: int = 2, seconds: float = 0.3) -> Study:
    """Return a study whose trials take some steps each."""
    space = {"rate": Float(0, 1), "notes": Categorical([notes]), "seconds": Categorical([seconds])}
    return Study(space, "fifo", "random", max_resource=STEPS, max_trials=trials, storage=storage, lease=lease)


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    address, storage, notes, lease = sys.argv[1:]
    study = new_study(storage, notes, lease=float(lease))
    study.run(Placed, workers=RayWorkers(2, address=address), executor="ray", checkpoint_every=2)
