"""Options of a sharded learner: those of a model whose state consists of weights only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.engine.options.registry import RunOptions
from onlineauto.engine.stream.dialect import NATIVE, dialect_of
from onlineauto.errors import OptionError
from onlineauto.explorers.choice import choose_explorer
from onlineauto.formats.options import InputOptions
from onlineauto.learners.options import UpdateOptions

if TYPE_CHECKING:
    from onlineauto.options import Configuration

_STATEFUL = {"first", "bag", "cover", "rnd", "epsilon_decay", "synthcover"}
"""Explorers with several models, or with a state other than weights."""


def check_shardable(configuration: Configuration) -> None:
    """Reject options that a sharded learner does not support.

    Raises
    ------
    OptionError
        An option requires a search, several models, several passes, or sums over all weights.
    """
    run, update = configuration[RunOptions], configuration[UpdateOptions]
    if run.passes > 1:
        _refuse("--passes", "a stream is learned once")
    if run.testonly:
        _refuse("--testonly", "it learns")
    if update.l1 or update.l2:
        _refuse("--l1 and --l2", "they change all weights at every event")
    if configuration[InputOptions].examples >= 0:
        _refuse("--examples", "give it as many events as it is to learn")
    if dialect_of(configuration) is not NATIVE:
        _refuse("--vw_exact", "Vowpal Wabbit learns one event after the other")
    for name in ("automl", "ccb_explore_adf"):
        if configuration.get(name):
            _refuse(f"--{name}", "its state is more than weights")
    for name in _STATEFUL & set(choose_explorer(configuration).flags):
        _refuse(f"--{name}", "its state is more than weights")


def _refuse(what: str, reason: str) -> None:
    raise OptionError(f"a sharded learner has no {what}: {reason}")
