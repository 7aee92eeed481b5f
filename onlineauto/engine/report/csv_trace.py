"""Trace: the CSV files of ``--csv_trace``, with Vowpal Wabbit's names and columns.

``*.automl.cs.csv`` has the bounds of every challenger after every event learnt, ``*.champ_change.csv`` every
config that was put into a slot and every change of champion (whose columns are other than its header says,
as in VW), ``*input_examples.csv`` what was learnt.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

import numpy as np

from onlineauto.automl.config import Kind
from onlineauto.automl.decisions import Rotate
from onlineauto.automl.text import elements_text
from onlineauto.features.block import UNLABELLED

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path
    from typing import TextIO

    from numpy.typing import NDArray

    from onlineauto.automl.decisions import Swap
    from onlineauto.engine.search.estimates import Estimates
    from onlineauto.features.block import Block

__all__ = ["Trace"]

_BOUNDS = (
    "example_count, slot_id, champ_switch_count, "
    "lower_bound, upper_bound, champ_lower_bound, champ_upper_bound"
)
_CHANGES = "state, example_count, slot_id, config_type, ns_elements"
_INPUT = "example_count, logged_action, logged_probability, weight, reward"
_KINDS = {Kind.EXCLUSION: "Exclusion", Kind.INCLUSION: "Interaction"}


class Trace:
    """Writes the trace of a run.

    Parameters
    ----------
    directory : Path
        Where the files go.
    files : ExitStack
        Closes them.
    exact : bool
        Call them just as VW does, and write over those of the same second.
    kind : Kind
        What the oracle's configs are.
    cost_is_reward : bool
        Whether rewards are costs as they are.
    regresses : bool
        Whether the search is told that the logged action was sure, unless it is the last, as VW has it.
    n_actions : int
        Actions of ``--cb N``, which are counted from 0 here as VW does; 0 if they have lines of their own.

    Raises
    ------
    OSError
        A file cannot be made.
    """

    def __init__(
        self,
        directory: Path,
        files: ExitStack,
        *,
        exact: bool,
        kind: Kind,
        cost_is_reward: bool,
        regresses: bool,
        n_actions: int = 0,
    ) -> None:
        prefix, dot = time.strftime("%d%m.%H%M%S"), "" if exact else "."
        paths = [
            directory / f"{prefix}{name}"
            for name in (".automl.cs.csv", ".champ_change.csv", f"{dot}input_examples.csv")
        ]
        mode = "w" if exact else "x"
        opened = [
            cast("TextIO", files.enter_context(path.open(mode, encoding="utf-8", newline="\n")))
            for path in paths
        ]
        self._bounds, self._changes, self._input = opened
        self._kind = _KINDS[kind]
        self._cost_is_reward, self._regresses, self._n_actions = cost_is_reward, regresses, n_actions
        for file, header in zip(opened, (_BOUNDS, _CHANGES, _INPUT), strict=True):
            _write(file, header)

    def decided(self, decision: Rotate | Swap, *, n_learnt: int, n_switches: int) -> None:
        """Write down a config put into a slot before the next event is learnt, or a new champion."""
        if isinstance(decision, Rotate):
            head = f"APPLY_CONFIG,{n_learnt + 1},{decision.slot}"
        else:
            head = f"CHAMP_SWITCH,{n_learnt},{n_switches}"
        _write(self._changes, f"{head},{self._kind},{elements_text(decision.config, ' ')}")

    def learnt(
        self,
        block: Block,
        event: int,
        *,
        n_learnt: int,
        n_switches: int,
        estimates: Estimates,
        told: NDArray[np.float32],
    ) -> None:
        """Write down an event of a block that was learnt, and the bounds after it.

        Its cost and probability are as `told` (float32[2]), where that is not NaN.
        """
        action, cost, probability = self._logged(block, event)
        if not np.isnan(told[1]):
            cost, probability = told
        weight = np.float32(1) / probability if probability > 0 else np.float32(0)
        reward = cost if self._cost_is_reward else -cost
        numbers = ",".join(f"{float(x):.6g}" for x in (probability, weight, reward))
        _write(self._input, f"{n_learnt},{action},{numbers}")
        for slot in range(1, len(estimates)):
            bounds = (
                estimates.lower(slot),
                estimates.upper(slot),
                estimates.champion_lower(slot),
                estimates.champion_upper(slot),
            )
            shown = ",".join(f"{bound:.6g}" for bound in bounds)
            _write(self._bounds, f"{n_learnt},{slot},{n_switches},{shown}")

    def _logged(self, block: Block, event: int) -> tuple[int, np.float32, np.float32]:
        """Action, cost and probability that the search is told of."""
        first, end = block.event_start[event : event + 2]
        costs = list(range(block.cost_start[first + block.shared[first]], block.cost_start[end]))
        if self._n_actions:
            costs = [at for at in costs if block.cost[at] != UNLABELLED and block.probability[at] > 0]
        if not costs:
            return 0, UNLABELLED, np.float32(-1)
        at = costs[0]
        action, cost, probability = int(block.cost_action[at]), block.cost[at], block.probability[at]
        last = at >= block.cost_start[end - 1]
        if self._n_actions:
            action, last = action - 1, action == self._n_actions
        return action, cost, np.float32(1) if self._regresses and not last else probability


def _write(file: TextIO, line: str) -> None:
    file.write(line + "\n")
