"""``tune_stream``: search the flags of a learner on a stream."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OptionError
from onlineauto.tune.live.flags import EXPLORER, base_of, config_of, configure, default_search, space_of_flags
from onlineauto.tune.live.live_learner import LiveLearner
from onlineauto.tune.study import Study
from onlineauto.tune.workers.hooks import Stopper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.engine.stream.source import Sources
    from onlineauto.tune.schedulers import Scheduler
    from onlineauto.tune.searchers import Searcher
    from onlineauto.tune.trial import Trial
    from onlineauto.tune.workers.hooks import Callback

_RUNGS: Final = 3


class Budget(Stopper):
    """Ends a run once a budget is spent; running jobs continue to their end."""

    def __init__(self, study: Study, events: int) -> None:
        if events < 1:
            raise OptionError(f"budget = {events}: give a positive number of events, for all trials together")
        self._study, self._events = study, events

    def ends_run(self) -> bool:
        """Return whether the budget is spent."""
        return used_resource(self._study) >= self._events


def used_resource(study: Study) -> int:
    """Return the number of events that all trials of a study have learned together."""
    return sum(trial.step - _copied_events(trial) for trial in study.trials)


def _copied_events(trial: Trial) -> int:
    """Return the number of events that a trial has not learned itself, because it began as a copy."""
    origin = trial.resume_from
    return min(origin.resource, trial.step) if origin is not None and origin.trial != trial.number else 0


def tune_stream(
    events: Sources,
    base: str | Mapping[str, Any] = "",
    search: Sequence[str] | None = None,
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

    Trials learn the stream from the beginning, each with its own flags, and are compared by the mean
    progressive loss of the same events. With ``automl`` in the base, each trial is a search of its own, whose
    live configs, lease, members and explorer can be searched. The first two trials have the flags of the
    base: one without interactions, one with all of them. All processes that pass the same `name` and
    `storage` work on the same study; an interrupted study continues.

    Parameters
    ----------
    events : Sources
        The stream; a path, bytes, or a list of these.
    base : str or mapping
        The options that all trials share, as on the command line or by name.
    search : sequence of str
        Names of tunable options, and ``interactions`` for pairs of namespaces. By default the learning rate
        with ``power_t`` and ``interactions``, or with ``automl`` and ``default_lease``.
    scheduler, searcher
        As for `Study`.
    max_examples, min_examples : int, optional
        Maximum and minimum number of events of a trial. By default all events, and a 27th of them.
    eta : int
        The factor between one rung and the next.
    window : int, optional
        Number of events before each rung by which trials are compared; None for all from the beginning.
    missed : {"catch_up", "match"}
        Whether a trial learns the events between its checkpoint and the window, or leaves them out.
    budget : int, optional
        Number of events that all trials together may learn; running jobs continue to their end.
    max_trials, jobs, rounds, workers, seed, name, storage, checkpoints, stoppers, callbacks
        As for `Study` and `Study.run`. Without `budget` and the first three, the scheduler runs one more
        round.

    Raises
    ------
    OptionError
        A name is not the name of a tunable option, or a number is out of range.
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
    space = space_of_flags(default_search(learner.base) if search is None else search, learner.events)
    configure(learner.base, config_of(learner.base, space, crossed=True))  # raises if flags contradict
    scheduler_name = scheduler if isinstance(scheduler, str) else scheduler.name
    if scheduler_name == "pbt" and not {"automl", "members", EXPLORER}.isdisjoint(space.parameters):
        raise OptionError("pbt copies weights between trials: it cannot search automl, members or explorer")
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
        if workers:  # worker processes then need not parse the stream
            path = Path(stack.enter_context(TemporaryDirectory())) / "events.blocks"
            learner.events.write(path)
            learner = LiveLearner(path, base, window=window, missed=missed)
        study.run(
            learner,
            workers=workers,
            jobs=jobs,
            rounds=rounds,
            checkpoint_every=1 if scheduler_name == "pbt" else most,  # copies begin from any report
            checkpoints=checkpoints,
            stoppers=[*stoppers, *([] if budget is None else [Budget(study, budget)])],
            callbacks=callbacks,
        )
    return study


def flags_of(config: Mapping[str, Any], base: str | Mapping[str, Any] = "") -> str:
    """Return a config of `tune_stream` together with its base as command-line flags.

    >>> flags_of({"learning_rate": 0.1, "a*b": True, "a*c": False}, "--l2 0.001")
    "--experimental_full_name_interactions 'a|b' --learning_rate 0.1 --l2 0.001"
    """
    return configure(base_of(base), config).command()
