"""The budget of a study: the expected resource of all its trials together."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from onlineauto.tune.searchers import SEARCHERS

if TYPE_CHECKING:
    from onlineauto.tune.settings import StudySettings
    from onlineauto.tune.study import Study

_MOST: Final = 10_000
"""Maximum number of simulated jobs."""


def expected_budget(settings: StudySettings, *, rounds: int | None = None) -> int:
    """Return the total units of resource that the scheduler of a study will allocate.

    The scheduler is simulated with random losses, which takes milliseconds. The answer is exact for
    Hyperband, whose allocations do not depend on losses. It is too high for schedulers that end trials early.

    >>> from onlineauto.tune import Float, Study
    >>> expected_budget(Study({"x": Float(0, 1)}, "fifo", max_resource=9, max_trials=5).settings)
    45
    """
    scheduler = settings.scheduler[2]()
    # A searcher that learns would be slow, and the number of configs depends only on the space.
    searcher = settings.searcher[2]() if settings.searcher[0] == "grid" else SEARCHERS["random"]()
    searcher.begin(settings.setting.space, seed=0)
    searcher.limit = settings.max_trials
    scheduler.begin(settings.setting)
    draw, reached, units = random.Random(0), dict[int, int](), 0
    for _ in range(_MOST):
        if scheduler.is_done or (rounds is not None and (scheduler.rounds or 0) >= rounds):
            break
        job = scheduler.suggest(searcher)
        if job is None:
            break
        number, resource = job.trial, job.resource
        before = reached.get(number, 0 if job.resume_from is None else job.resume_from.resource)
        units += max(resource - before, 0)
        reached[number] = resource
        scheduler.on_result(number, resource, draw.random())
    return units


def used_resource(study: Study) -> int:
    """Return the units of resource of all trials of a study so far, without those of copied checkpoints."""
    units = 0
    for trial in study.trials:
        came_from = trial.resume_from
        copied = came_from.resource if came_from is not None and came_from.trial != trial.number else 0
        units += max(trial.step - copied, 0)
    return units
