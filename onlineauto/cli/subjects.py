"""The two subjects of the verb ``tune``: the flags of a stream, and the config of a function."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onlineauto.cli.study_progress import resource_text
from onlineauto.cli.tune_options import LEARNERS, OWN, FunctionOptions, StreamOptions, TuneOptions
from onlineauto.engine.options.registry import ModelOptions
from onlineauto.errors import OptionError
from onlineauto.formats.options import InputOptions
from onlineauto.options import options_of
from onlineauto.tune.live.live_learner import model_of
from onlineauto.tune.live.tuning import SEARCHED, flags_of, tune_stream
from onlineauto.tune.spaces import Space
from onlineauto.tune.study import Study
from onlineauto.workspace.model_file import check_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onlineauto.options import Configuration
    from onlineauto.options.option import Group
    from onlineauto.tune.workers.callbacks import Callback

_OF_A_NEW_STUDY: Final = (
    *(
        "scheduler",
        "searcher",
        "eta",
        "seed",
        "min_resource",
        "mode",
        "retries",
    ),
)


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
        self._search = [name.strip() for name in named] if "search" in configuration.supplied else SEARCHED

    def run(self, callbacks: Sequence[Callback]) -> None:
        """Run the study, in this process or in others."""
        options, stream = self._options, self._stream
        if self._model is not None:
            check_target(self._model)
        tune_stream(
            [sys.stdin.buffer.read() if path == "-" else Path(path) for path in self._data],
            self._base,
            self._search,
            scheduler=options.scheduler or "race",
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


class TunedFunction:
    """A study of the config of a function."""

    def __init__(self, configuration: Configuration) -> None:
        _refuse(configuration, StreamOptions, "a stream: add -d FILE")
        learners = [
            each for each in LEARNERS.options if each.name in configuration.supplied and each.name != "quiet"
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
                options.scheduler,
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
        return {name: each for name, _, each in (part.partition(":") for part in parts)}
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
