"""The verb ``tune``: search for the best config of a function, and go on if that was interrupted."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from onlineauto.cli.help import Page, help_text
from onlineauto.cli.tuning.progress import shown_progress
from onlineauto.cli.tuning.running import ending_well
from onlineauto.errors import OptionError
from onlineauto.options import Registry, option
from onlineauto.tune.schedulers import SCHEDULERS
from onlineauto.tune.searchers import SEARCHERS
from onlineauto.tune.spaces import Space
from onlineauto.tune.study import Study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.options import Configuration
    from onlineauto.tune.trial import Trial

__all__ = ["REGISTRY", "TuneOptions", "run"]

_INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions:
    """Options of the verb ``tune``."""

    title: ClassVar[str] = "Options"

    trainable: str = option(
        "", "The function or class that trials run: loss(config, resource).", vw=False, metavar="MODULE:NAME"
    )
    space: str = option("", "What is searched, as TOML.", vw=False, metavar="FILE")
    scheduler: str = option(
        "hyperband", "Who is given how much.", vw=False, choices=tuple(SCHEDULERS), metavar="NAME"
    )
    searcher: str = option(
        "tpe", "Where new configs come from.", vw=False, choices=tuple(SEARCHERS), metavar="NAME"
    )
    min_resource: int = option(1, "The least that a trial is given.", vw=False, minimum=1, metavar="N")
    max_resource: int = option(81, "The most that a trial is given.", vw=False, minimum=1, metavar="N")
    eta: int = option(3, "The factor between one rung and the next.", vw=False, minimum=2, metavar="N")
    mode: str = option("min", "Whether low or high values are good.", vw=False, choices=("min", "max"))
    seed: int = option(0, "The same seed and the same values give the same study.", vw=False, metavar="N")
    max_trials: int | None = option(
        None, "The most trials. Not supplied: as many as --rounds takes.", vw=False, minimum=1, metavar="N"
    )
    rounds: int = option(
        1, "How often the scheduler goes through all it does.", vw=False, minimum=1, metavar="N"
    )
    retries: int = option(
        0, "How often a trial that failed is tried again.", vw=False, minimum=0, metavar="N"
    )
    workers: int = option(0, "Processes; 0 runs jobs in this one.", vw=False, metavar="N", minimum=0)
    study: str = option(
        "",
        "Where the study is kept: sqlite:///FILE or postgresql://USER@HOST/DATABASE. Not supplied: in "
        "memory, and gone at the end.",
        vw=False,
        metavar="URL",
    )
    name: str = option("study", "Name of the study in its store.", vw=False, metavar="NAME")
    checkpoints: str = option(
        "",
        "Folder of checkpoints, which all workers need; by default beside SQLite's file, or in PostgreSQL.",
        vw=False,
        metavar="FOLDER",
    )
    checkpoint_every: int = option(1, "Steps between two checkpoints.", vw=False, metavar="N", minimum=1)
    quiet: bool = option(False, "Show no progress. In a pipe none is shown anyway.")
    help: bool = option(False, "Print this help and stop.", short="h")


REGISTRY: Final = Registry((TuneOptions,))
"""The flags of this verb."""

_OF_A_NEW_STUDY: Final = (
    *(
        "scheduler",
        "searcher",
        "min_resource",
        "max_resource",
        "eta",
        "mode",
        "seed",
        "max_trials",
        "retries",
    ),
)
_PAGE: Final = Page(
    "Usage: onlineauto tune --trainable MODULE:NAME --space FILE [options]",
    "Search for the best config of a function or class: short trials for many configs, long ones for the "
    "best. A study in a store is shared with workers on other machines; if this is interrupted, the same "
    "command goes on.",
    """\
Examples:
  onlineauto tune --trainable train:loss --space space.toml --max_resource 27
  onlineauto tune --trainable train:loss --space space.toml --study sqlite:///study.db --workers 2
  onlineauto tune --study sqlite:///study.db""",
)


def run(words: Sequence[str]) -> int:
    """Run a study and print its best config; return 0, or 130 if it was interrupted.

    Raises
    ------
    OptionError
        If the space, the trainable or another option is wrong.
    StoreError
        If the store cannot be reached or read.
    """
    configuration = REGISTRY.parse(words)
    options = configuration[TuneOptions]
    if options.help:
        print(help_text(REGISTRY, width=shutil.get_terminal_size().columns, page=_PAGE))
        return 0
    study = _study(options, configuration)
    code = 0
    try:
        with ending_well(), shown_progress(study, quiet=options.quiet) as callbacks:
            study.run(
                options.trainable or None,
                workers=options.workers,
                rounds=options.rounds,
                checkpoint_every=options.checkpoint_every,
                checkpoints=options.checkpoints or None,
                callbacks=callbacks,
            )
    except KeyboardInterrupt:
        kept = f"; the same command goes on with what is in {options.study}" if options.study else ""
        print(f"onlineauto: interrupted{kept}", file=sys.stderr)
        code = _INTERRUPTED
    study.refresh()
    print("\n".join(_summary(study, study.best)))
    return code


def _study(options: TuneOptions, configuration: Configuration) -> Study:
    """Return the study that the options describe, begun now or before."""
    storage = options.study or None
    if options.space:
        if not options.trainable:
            raise OptionError("tune takes what trials run: --trainable train:loss, for loss in train.py")
        return Study(
            Space.from_toml(options.space),
            options.scheduler,
            options.searcher,
            min_resource=options.min_resource,
            max_resource=options.max_resource,
            eta=options.eta,
            mode=options.mode,
            seed=options.seed,
            max_trials=options.max_trials,
            retries=options.retries,
            name=options.name,
            storage=storage,
        )
    if storage is None:
        raise OptionError(
            "tune takes a space and a trainable: onlineauto tune --trainable train:loss --space space.toml; "
            "or the --study that it goes on with"
        )
    if new := [name for name in _OF_A_NEW_STUDY if name in configuration.supplied]:
        raise OptionError(f"--{new[0]} is of a new study, which takes --space too; this one has its own")
    return Study.load(options.name, storage=storage)


def _summary(study: Study, best: Trial | None) -> list[str]:
    """Return the best trial and its config, as lines."""
    if best is None:
        failed = [trial for trial in study.trials if trial.error]
        why = f"; trial {failed[-1].number} failed: {failed[-1].error}" if failed else ""
        return [f"no trial of {study.name} has a value{why}"]
    wide = max(map(len, best.config), default=0)
    return [
        f"best of {len(study.trials)} trials: {best.value:.6g}, of trial {best.number} at {best.resource}",
        *(f"  {name:{wide}}  {_text(value)}" for name, value in best.config.items()),
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
