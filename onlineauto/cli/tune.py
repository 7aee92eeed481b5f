"""The verb ``tune``: search for the best config of a function, or continue an interrupted search."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from onlineauto.cli.study_progress import resource_text, return_jobs_on_exit, show_progress
from onlineauto.cli.verb import Verb
from onlineauto.engine.options.registry import ModelOptions, OutputOptions, PartitionOptions
from onlineauto.errors import OptionError
from onlineauto.formats.options import InputOptions
from onlineauto.options import Registry, option, options_of
from onlineauto.tune.live.live_learner import MISSED, model_of
from onlineauto.tune.live.tuning import flags_of, tune_stream
from onlineauto.tune.schedulers import SCHEDULERS, Scheduler
from onlineauto.tune.searchers import SEARCHERS
from onlineauto.tune.spaces import Space
from onlineauto.tune.store.open_store import without_password
from onlineauto.tune.study import Study
from onlineauto.tune.workers.hooks import Callback
from onlineauto.tune.workers.running import EXECUTORS
from onlineauto.workspace.model_file import check_target
from onlineauto.workspace.options import REGISTRY as OF_MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onlineauto.options import Configuration
    from onlineauto.options.registry import Group

_INTERRUPTED: Final = 130
_WITHOUT_VALUE: Final = 1

_OF_A_SCHEDULER: Final = ("variant", "strategy", "brackets")
_OF_A_NEW_STUDY: Final = (
    *("scheduler", *_OF_A_SCHEDULER, "searcher", "eta", "seed", "min_resource", "mode", "retries"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions:
    """Options of the verb ``tune``."""

    title: ClassVar[str] = "Options"
    vw: ClassVar[bool] = False

    scheduler: str | None = option(
        None,
        "How resources are shared. Not supplied: race for a stream, hyperband for a function.",
        choices=SCHEDULERS,
        metavar="NAME",
    )
    variant: str | None = option(
        None,
        "Kind of the scheduler: population or slots (dehb), promotion or stopping (asha).",
        metavar="NAME",
    )
    strategy: str | None = option(
        None, "Mutation and crossover of dehb, such as rand1_bin or best1_exp.", metavar="NAME"
    )
    brackets: int | None = option(
        None,
        "Number of different brackets of hyperband, race and dehb. Not supplied: as many as there are.",
        minimum=1,
        metavar="N",
    )
    searcher: str | None = option(
        None,
        "The source of new configs. Not supplied: auto; for streams tpe; for dehb random: uniform vectors.",
        choices=SEARCHERS,
        metavar="NAME",
    )
    eta: int = option(3, "The factor between one rung and the next.", minimum=2, metavar="N")
    seed: int = option(0, "The same seed and the same values give the same study.", metavar="N")
    max_trials: int | None = option(
        None,
        "Maximum number of trials; a larger number than before extends a study. Not supplied: as many as "
        "--rounds needs.",
        minimum=1,
        metavar="N",
    )
    rounds: int = option(1, "Number of rounds through all brackets of the scheduler.", minimum=1, metavar="N")
    workers: int = option(0, "Processes; 0 runs jobs in this one.", metavar="N", minimum=0)
    study: str = option(
        "",
        "The store of the study: sqlite:///FILE or postgresql://USER@HOST/DATABASE. Not supplied: memory, "
        "until the process ends.",
        metavar="URL",
    )
    name: str = option("study", "Name of the study in its store.", metavar="NAME")
    checkpoints: str = option(
        "",
        "Folder of checkpoints, which all workers need; by default beside SQLite's file, or in PostgreSQL.",
        metavar="FOLDER",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """Options of the verb ``tune`` for trials that learn a stream."""

    title: ClassVar[str] = (
        "The flags of a stream, beside --data, --search, and the options that all trials have"
    )
    vw: ClassVar[bool] = False

    max_examples: int | None = option(
        None, "Maximum number of events of a trial. Not supplied: all.", minimum=1, metavar="N"
    )
    min_examples: int | None = option(
        None,
        "Minimum number of events of a trial. Not supplied: a 27th of the maximum.",
        minimum=1,
        metavar="N",
    )
    window: int | None = option(
        None,
        "Compare trials on this number of events before each rung. Not supplied: on all events.",
        minimum=1,
        metavar="N",
    )
    budget: int | None = option(
        None,
        "Maximum number of events of all trials together. Not supplied: as many as --rounds needs.",
        minimum=1,
        metavar="N",
    )
    missed: str = option(
        "catch_up",
        "What a trial does about events between its checkpoint and the window: learn them, or not.",
        choices=MISSED,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionOptions:
    """Options of the verb ``tune`` for trials that run a function."""

    title: ClassVar[str] = "The config of a function"
    vw: ClassVar[bool] = False

    trainable: str = option(
        "", "The function or class that trials run: loss(config, resource).", metavar="MODULE:NAME"
    )
    space: str = option("", "The search space, as TOML.", metavar="FILE")
    min_resource: int = option(1, "Smallest resource of a trial.", minimum=1, metavar="N")
    max_resource: int = option(81, "Largest resource of a trial.", minimum=1, metavar="N")
    mode: str = option(
        "min",
        "Whether low or high values are good: min or max; for several objectives one of these each, as in "
        "min,max or loss:min,size:max.",
        metavar="MODES",
    )
    retries: int = option(0, "Maximum number of retries of a failed trial.", minimum=0, metavar="N")
    checkpoint_every: int = option(1, "Steps between two checkpoints.", metavar="N", minimum=1)
    executor: str = option(
        "processes", "What workers are: processes, or actors of a Ray cluster.", choices=EXECUTORS
    )


OWN: Final = (TuneOptions, StreamOptions, FunctionOptions)
"""The options of this verb only."""
LEARNERS: Final = Registry([group for group in OF_MODELS.groups if group is not PartitionOptions])
"""The options of the models that are tuned; a trial is learnt by one process."""
REGISTRY: Final = Registry((*OWN, *LEARNERS.groups))
"""The flags of this verb: its options, and those of learners."""


class TunedStream:
    """A study of flags on a stream."""

    def __init__(self, configuration: Configuration) -> None:
        _refuse(
            configuration, FunctionOptions, "a function: for a stream, use --max_examples and --min_examples"
        )
        self._options, self._stream = configuration[TuneOptions], configuration[StreamOptions]
        self._data = list(configuration[InputOptions].data)
        self._model = configuration[ModelOptions].final_regressor
        self._rounds = "rounds" in configuration.supplied
        own = {option.name for group in OWN for option in options_of(group)}
        supplied = configuration.supplied - own - {"data", "quiet", "search", "final_regressor"}
        self._base = {name: configuration.get(name) for name in supplied}
        named = str(configuration.get("search")).split(",")
        self._search = [name.strip() for name in named] if "search" in configuration.supplied else None

    def run(self, callbacks: Sequence[Callback]) -> None:
        """Run the study, in this process or in others."""
        options, stream = self._options, self._stream
        if self._model is not None:
            check_target(self._model)
        tune_stream(
            [sys.stdin.buffer.read() if path == "-" else Path(path) for path in self._data],
            self._base,
            self._search,
            scheduler=_scheduler_of(options, "race") or "race",
            searcher=options.searcher or "tpe",
            max_examples=stream.max_examples,
            min_examples=stream.min_examples,
            eta=options.eta,
            window=stream.window,
            missed=stream.missed,
            max_trials=options.max_trials,
            budget=stream.budget,
            rounds=options.rounds if stream.budget is None or self._rounds else None,
            workers=options.workers,
            seed=options.seed,
            name=options.name,
            storage=options.study or None,
            checkpoints=options.checkpoints or None,
            callbacks=callbacks,
        )

    def result_lines(self, study: Study) -> Iterator[str]:
        """Yield the command that learns with the best flags; save the best trial's model if requested."""
        yield _best_of(study)
        best = study.best
        if best is None:
            return
        data = shlex.join(["-d", *self._data])
        yield f"onlineauto {data} {flags_of(best.config, self._base)}".rstrip()
        if self._model is not None:
            saved = study.saved(best.number, checkpoints=self._options.checkpoints or None)
            workspace, events = model_of(saved)
            workspace.save(self._model)
            yield f"the model of trial {best.number}, after {events} events, is in {self._model}"


def _scheduler_of(options: TuneOptions, default: str) -> str | Scheduler | None:
    """Return the scheduler if it has options, or else its name; None if neither was supplied.

    Raises
    ------
    OptionError
        The scheduler does not have one of the options, or not this value.
    """
    name = options.scheduler or default
    values = {key: getattr(options, key) for key in _OF_A_SCHEDULER if getattr(options, key) is not None}
    valid = [key for key in _OF_A_SCHEDULER if key in signature(SCHEDULERS[name]).parameters]
    for key in values:
        if key not in valid:
            has = ", ".join(f"--{option_name}" for option_name in valid) or "none of these options"
            raise OptionError(f"--{key} is no option of the scheduler {name}, which has {has}")
    return SCHEDULERS[name](**values) if values else options.scheduler


class TunedFunction:
    """A study of the config of a function."""

    def __init__(self, configuration: Configuration) -> None:
        _refuse(configuration, StreamOptions, "a stream: add -d FILE")
        learners = [
            declared
            for declared in LEARNERS.options
            if declared.name in configuration.supplied and declared.name != "quiet"
        ]
        if learners:
            raise OptionError(f"{learners[0].flag} applies only to a stream: add -d FILE")
        self._options, self._function = configuration[TuneOptions], configuration[FunctionOptions]
        self._supplied = configuration.supplied

    def run(self, callbacks: Sequence[Callback]) -> None:
        """Run the study, in this process or in others."""
        self._study().run(
            self._function.trainable or None,
            workers=self._options.workers,
            executor=self._function.executor,
            rounds=self._options.rounds,
            checkpoint_every=self._function.checkpoint_every,
            checkpoints=self._options.checkpoints or None,
            callbacks=callbacks,
        )

    def result_lines(self, study: Study) -> Iterator[str]:
        """Yield the best config, one parameter per line; with several objectives, the best trials."""
        if len(study.objectives) > 1:
            yield f"{len(study.best_trials)} of {len(study.trials)} trials are dominated by no other"
            for trial in study.best_trials:
                yield f"  trial {trial.number}: {json.dumps(trial.objectives)} {json.dumps(trial.config)}"
            return
        yield _best_of(study)
        best = {} if study.best is None else study.best.config
        wide = max(map(len, best), default=0)
        for name, value in best.items():
            yield f"  {name:{wide}}  {value if isinstance(value, str) else json.dumps(value)}"

    def _study(self) -> Study:
        """Create the study that the options describe, or open it if it exists."""
        options, function = self._options, self._function
        storage = options.study or None
        if function.space:
            if not function.trainable:
                raise OptionError(
                    "tune needs a function to run: --trainable train:loss, for loss in train.py"
                )
            return Study(
                Space.from_toml(function.space),
                _scheduler_of(options, "hyperband"),
                options.searcher,
                min_resource=function.min_resource,
                max_resource=function.max_resource if "max_resource" in self._supplied else None,
                eta=options.eta,
                mode=_mode(function.mode),
                seed=options.seed,
                max_trials=options.max_trials,
                retries=function.retries,
                name=options.name,
                storage=storage,
            )
        if storage is None:
            raise OptionError(
                "tune takes a stream: onlineauto tune -d train.txt --search learning_rate,interactions; or a "
                "trainable and its space: onlineauto tune --trainable train:loss --space space.toml"
            )
        if new := [name for name in _OF_A_NEW_STUDY if name in self._supplied]:
            raise OptionError(
                f"--{new[0]} applies only to a new study, which needs --space: the stored study has a space"
            )
        study = Study.load(options.name, storage=storage)
        largest = function.max_resource if "max_resource" in self._supplied else None
        study.extend(max_trials=options.max_trials, max_resource=largest)
        return study


def _mode(text: str) -> Any:
    """Return the mode of a study from ``min``, ``min,max`` or ``loss:min,size:max``."""
    parts = text.split(",")
    if all(":" in part for part in parts):
        return {name: value for name, _, value in (part.partition(":") for part in parts)}
    return parts if len(parts) > 1 else text


def _refuse(configuration: Configuration, group: Group, subject: str) -> None:
    if wrong := [option for option in options_of(group) if option.name in configuration.supplied]:
        raise OptionError(f"{wrong[0].flag} applies only to {subject}")


def _best_of(study: Study) -> str:
    """Return a description of the best trial, or the reason why there is none."""
    best = study.best
    if best is not None:
        text = f"{best.value:.6g}, of trial {best.number} at {resource_text(best.resource)}"
        return f"best of {len(study.trials)} trials: {text}"
    failed = [trial for trial in study.trials if trial.error]
    failure = f"; trial {failed[-1].number} failed: {failed[-1].error}" if failed else ""
    return f"no trial of {study.name} has a value{failure}"


def run(configuration: Configuration) -> int:
    """Run a study and print its best config; return 0, 1 if no trial has a value, or 130 if interrupted."""
    options, output = configuration[TuneOptions], configuration[OutputOptions]
    recorder = _StudyRecorder()
    task = TunedStream(configuration) if configuration[InputOptions].data else TunedFunction(configuration)
    code = 0
    try:
        with return_jobs_on_exit(), show_progress(quiet=output.quiet) as callbacks:
            task.run([recorder, *callbacks])
    except KeyboardInterrupt:
        url = without_password(options.study)
        hint = f"; the same command continues the study in {url}" if url else ""
        print(f"onlineauto: interrupted{hint}", file=sys.stderr)
        code = _INTERRUPTED
    if recorder.study is not None:
        recorder.study.refresh()
        print("\n".join(task.result_lines(recorder.study)))
        if code == 0 and recorder.study.best is None:
            code = _WITHOUT_VALUE
    return code


class _StudyRecorder(Callback):
    """Stores the running study."""

    study: Study | None = None

    def on_begin(self, study: Study) -> None:
        self.study = study


VERB: Final = Verb(
    REGISTRY,
    run,
    "Usage: onlineauto tune -d FILE --search NAMES [options] [options of learn]\n"
    "       onlineauto tune --trainable MODULE:NAME --space FILE [options]",
    "Search for the best flags on a stream, or for the best config of a function or class: short trials for "
    "many configs, long ones for the best. A study in a store is shared with workers on other machines, "
    "which run the same command; after an interruption, the same command continues. --quiet displays no "
    "progress; in a pipe there is never any.",
    """\
Examples:
  onlineauto tune -d train.txt --search learning_rate,power_t,interactions --max_examples 100000
  onlineauto tune -d log.txt --cb_explore_adf --search interactions --study sqlite:///study.db --workers 2
  onlineauto tune --trainable train:loss --space space.toml --max_resource 27
  onlineauto tune --study sqlite:///study.db""",
)
