"""Check, score and time bundles that jobs ask for, where a job gets no more than these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.cluster.policies.actions import NEVER, bundles
from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from onlineauto.cluster.policies.situation import Floats, Situation
    from onlineauto.cluster.policies.speeds import Speeds


def check_asked(asked: int) -> int:
    """Return how many bundles a job asks for, or refuse it.

    Raises
    ------
    OptionError
        It is not positive.
    """
    if asked < 1:
        raise OptionError(f"asked = {asked}: a job asks for one bundle at least")
    return asked


def score_asked(situation: Situation, score: Floats, asked: int) -> Floats:
    """Return the scores of all actions: that of its job, until the job has what it asked for."""
    return bundles(situation, np.where(situation.workers < asked, score, NEVER))


def time_asked(situation: Situation, speeds: Speeds, asked: int) -> Floats:
    """Return the remaining time of each job, served as it asked."""
    workers = np.full_like(situation.workers, asked)
    servers = np.where(situation.takes_servers, workers, 0)
    return situation.remaining * speeds.times(situation, workers, servers)
