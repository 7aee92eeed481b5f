"""The options of the verb ``tune``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from onlineauto.engine.options.registry import PartitionOptions
from onlineauto.options import Registry, option
from onlineauto.tune.live.live_learner import MISSED
from onlineauto.tune.schedulers import SCHEDULERS
from onlineauto.tune.searchers import SEARCHERS
from onlineauto.tune.workers.running import EXECUTORS
from onlineauto.workspace.options import REGISTRY as OF_MODELS

__all__ = ["LEARNERS", "OWN", "REGISTRY", "FunctionOptions", "StreamOptions", "TuneOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions:
    """Options of the verb ``tune``."""

    title: ClassVar[str] = "Options"

    scheduler: str | None = option(
        None,
        "How resources are shared. Not supplied: race for a stream, hyperband for a function.",
        vw=False,
        choices=tuple(SCHEDULERS),
        metavar="NAME",
    )
    searcher: str | None = option(
        None,
        "The source of new configs. Not supplied: tpe; for dehb random, whose configs are uniform vectors.",
        vw=False,
        choices=tuple(SEARCHERS),
        metavar="NAME",
    )
    eta: int = option(3, "The factor between one rung and the next.", vw=False, minimum=2, metavar="N")
    seed: int = option(0, "The same seed and the same values give the same study.", vw=False, metavar="N")
    max_trials: int | None = option(
        None,
        "Maximum number of trials; a larger number than before extends a study. Not supplied: as many as "
        "--rounds needs.",
        vw=False,
        minimum=1,
        metavar="N",
    )
    rounds: int = option(
        1, "Number of rounds through all brackets of the scheduler.", vw=False, minimum=1, metavar="N"
    )
    workers: int = option(0, "Processes; 0 runs jobs in this one.", vw=False, metavar="N", minimum=0)
    study: str = option(
        "",
        "The store of the study: sqlite:///FILE or postgresql://USER@HOST/DATABASE. Not supplied: memory, "
        "until the process ends.",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """Options of the verb ``tune`` for trials that learn a stream."""

    title: ClassVar[str] = (
        "The flags of a stream, beside --data, --search, and the options that all trials have"
    )

    max_examples: int | None = option(
        None, "Maximum number of events of a trial. Not supplied: all.", vw=False, minimum=1, metavar="N"
    )
    min_examples: int | None = option(
        None,
        "Minimum number of events of a trial. Not supplied: a 27th of the maximum.",
        vw=False,
        minimum=1,
        metavar="N",
    )
    window: int | None = option(
        None,
        "Compare trials on this number of events before each rung. Not supplied: on all events.",
        vw=False,
        minimum=1,
        metavar="N",
    )
    budget: int | None = option(
        None,
        "Maximum number of events of all trials together. Not supplied: as many as --rounds needs.",
        vw=False,
        minimum=1,
        metavar="N",
    )
    missed: str = option(
        "catch_up",
        "What a trial does about events between its checkpoint and the window: learn them, or not.",
        vw=False,
        choices=MISSED,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionOptions:
    """Options of the verb ``tune`` for trials that run a function."""

    title: ClassVar[str] = "The config of a function"

    trainable: str = option(
        "", "The function or class that trials run: loss(config, resource).", vw=False, metavar="MODULE:NAME"
    )
    space: str = option("", "The search space, as TOML.", vw=False, metavar="FILE")
    min_resource: int = option(1, "Smallest resource of a trial.", vw=False, minimum=1, metavar="N")
    max_resource: int = option(81, "Largest resource of a trial.", vw=False, minimum=1, metavar="N")
    mode: str = option(
        "min",
        "Whether low or high values are good: min or max; for several objectives one of these each, as in "
        "min,max or loss:min,size:max.",
        vw=False,
        metavar="MODES",
    )
    retries: int = option(0, "Maximum number of retries of a failed trial.", vw=False, minimum=0, metavar="N")
    checkpoint_every: int = option(1, "Steps between two checkpoints.", vw=False, metavar="N", minimum=1)
    executor: str = option(
        "processes", "What workers are: processes, or actors of a Ray cluster.", vw=False, choices=EXECUTORS
    )


OWN: Final = (TuneOptions, StreamOptions, FunctionOptions)
"""The options of this verb only."""
LEARNERS: Final = Registry([group for group in OF_MODELS.groups if group is not PartitionOptions])
"""The options of the models that are tuned; a trial is learnt by one process."""
REGISTRY: Final = Registry((*OWN, *LEARNERS.groups))
"""The flags of this verb: its options, and those of learners."""
