"""``tune_stream``: search the flags of a learner on a stream."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from onlineauto.tune.live.budget import Budget
from onlineauto.tune.live.flags import base_of, config_of, configured, space_of_flags
from onlineauto.tune.live.live_learner import LiveLearner
from onlineauto.tune.study import Study

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.engine.stream.source import Sources
    from onlineauto.tune.schedulers import Scheduler
    from onlineauto.tune.searchers import Searcher
    from onlineauto.tune.workers.callbacks import Callback
    from onlineauto.tune.workers.stoppers import Stopper

SEARCHED: Final = ("learning_rate", "power_t", "interactions")
"""What is searched if nothing else is named."""
_RUNGS: Final = 3


def tune_stream(
    events: Sources,
    base: str | Mapping[str, Any] = "",
    search: Sequence[str] = SEARCHED,
    *,
    scheduler: str | Scheduler = "race",
    searcher: str | Searcher = "tpe",
    max_examples: int | None = None,
    min_examples: int | None = None,
    eta: int = 3,
    window: int | None = None,
    missed: str = "catch_up",
    budget: int | None = None,
    max_trials: int | None = None,
    jobs: int | None = None,
    rounds: int | None = None,
    workers: int = 0,
    seed: int = 0,
    name: str = "stream",
    storage: str | None = None,
    checkpoints: str | Path | None = None,
    stoppers: Sequence[Stopper] = (),
    callbacks: Sequence[Callback] = (),
) -> Study:
    """Search the flags of a learner on a stream, and return the study.

    Its trials learn the stream from the beginning, each with flags of its own, and are compared by the mean
    progressive loss of the same events. The first two have the flags of the base, without interactions, and
    with all that are searched. Whoever gives the same
    `name` and `storage` works on the same study; a study that was interrupted goes on.

    Parameters
    ----------
    events : Sources
        The stream; a path, bytes, or a list of these.
    base : str or mapping
        The options that all trials have in common, as on the command line or by name.
    search : sequence of str
        What is searched: names of tunable options, and ``interactions`` for pairs of namespaces.
    scheduler, searcher
        As for `Study`.
    max_examples, min_examples : int, optional
        The most and the least events that a trial learns. By default all, and a 27th of them.
    eta : int
        The factor between one rung and the next.
    window : int, optional
        Compare by so many events before each rung; None for all from the beginning.
    missed : {"catch_up", "match"}
        What a trial does about events between its checkpoint and the window: learn them, or leave them out.
    budget : int, optional
        The events that all trials together may learn; the jobs that run when it is spent come to their end.
    max_trials, jobs, rounds, workers, seed, name, storage, checkpoints, stoppers, callbacks
        As for `Study` and `Study.run`. Without `budget` and the first three, the scheduler goes once more
        through all it does.

    Raises
    ------
    OptionError
        A name is not that of a tunable option, or a number is out of range.
    InputError
        The stream cannot be read, or has fewer events than a rung.

    Examples
    --------
    >>> events = [f"{i % 2} |a x{i % 2} |b y{i % 3}" for i in range(270)]
    >>> study = tune_stream(events, search=["learning_rate", "interactions"], max_trials=12)
    >>> study.best.resource, study.best.value < study.trials[0].value
    (270, True)
    >>> "--learning_rate" in flags_of(study.best.config)
    True
    """
    learner = LiveLearner(events, base, window=window, missed=missed, most=max_examples)
    most = len(learner.events)
    least = -(-most // eta**_RUNGS) if min_examples is None else min_examples
    space = space_of_flags(search, learner.events)
    study = Study(
        space,
        scheduler,
        searcher,
        min_resource=least,
        max_resource=most,
        eta=eta,
        max_trials=max_trials,
        seed=seed,
        name=name,
        storage=storage,
    )
    if not study.trials:
        first = config_of(learner.base, space), config_of(learner.base, space, crossed=True)
        for config in first if first[0] != first[1] else first[:1]:
            study.enqueue(config)
    with ExitStack() as stack:
        if workers:  # they need not parse the stream again
            path = Path(stack.enter_context(TemporaryDirectory())) / "events.blocks"
            learner.events.write(path)
            learner = LiveLearner(path, base, window=window, missed=missed)
        study.run(
            learner,
            workers=workers,
            jobs=jobs,
            rounds=rounds,
            checkpoint_every=1 if _copies(scheduler) else most,
            checkpoints=checkpoints,
            stoppers=[*stoppers, *([] if budget is None else [Budget(study, budget)])],
            callbacks=callbacks,
        )
    return study


def _copies(scheduler: str | Scheduler) -> bool:
    """Return whether trials begin as copies of others, so that each report needs a checkpoint."""
    return (scheduler if isinstance(scheduler, str) else scheduler.name) == "pbt"


def flags_of(config: Mapping[str, Any], base: str | Mapping[str, Any] = "") -> str:
    """Return a config of `tune_stream`, with its base, as words of the command line.

    >>> flags_of({"learning_rate": 0.1, "a*b": True, "a*c": False}, "--l2 0.001")
    "--experimental_full_name_interactions 'a|b' --learning_rate 0.1 --l2 0.001"
    """
    return configured(base_of(base), config).command()
