"""Deferred control: what a worker that learns a part of a stream knows of a search that others decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray  # noqa: TC002

from onlineauto.automl.config import Config, Interaction
from onlineauto.engine.records.search import GROUP, NEVER
from onlineauto.engine.search.drift import LOOK
from onlineauto.state.stored import Stored

if TYPE_CHECKING:
    from onlineauto.engine.search.search_engine import Searching
    from onlineauto.features.layout import StreamLayout


class SearchChoices(msgspec.Struct, frozen=True, array_like=True):
    """The choices of a coordinator that its workers follow."""

    configs: list[Config]
    namespaces: list[bytes]
    serves: bool  # the ensemble predicts
    pool: list[Interaction]  # the screened interactions
    of_champion: list[Interaction]
    known: list[bytes]  # namespaces that wildcards match
    left_out: list[bytes]


class Findings(NamedTuple):
    """Results of a part of a stream for the search, besides the arrays of evidence."""

    counts: list[tuple[bytes, int, int]]  # actions and features of each namespace, since the base
    losses: NDArray[np.float64]  # the champion's mean losses, over `GROUP` events each
    rest: tuple[float, int]  # sum and number of the losses after the last of these
    gains: NDArray[np.float64]  # of the screened interactions, in the order of the pool


def control_of_search(searching: Searching, layout: StreamLayout) -> SearchChoices:
    """Return the choices that workers follow."""
    configs, screening, names = searching.live_configs, searching.screening, layout.state()
    return SearchChoices(
        configs=list(configs.configs),
        namespaces=list(configs.namespaces),
        serves=bool(configs.arrays.ensemble.serves),
        pool=list(screening.gains()),
        of_champion=sorted(screening.of_champion),
        known=names["known"],
        left_out=names["left_out"],
    )


class Deferred:
    """Follows a coordinator's choices with the search of a worker, and collects what it finds."""

    def __init__(self, searching: Searching, layout: StreamLayout) -> None:
        self._searching, self._layout = searching, layout
        self._control: SearchChoices | None = None
        self._losses: list[NDArray[np.float64]] = []
        self._before: dict[bytes, tuple[int, int]] = {}
        searching.deferred = self

    def follow(self, control: SearchChoices, gains: NDArray[np.float64]) -> None:
        """Adopt the choices and the `gains` of the screened interactions, and begin to collect."""
        configs, screening, last = self._searching.live_configs, self._searching.screening, self._control
        if last is None or (control.known, control.left_out) != (last.known, last.left_out):
            self._layout.restore(Stored({"known": control.known, "left_out": control.left_out}))
        if last is None or control != last:
            configs.follow(control.configs, control.namespaces, serves=control.serves)
        screening.follow(control.pool, control.of_champion, gains)
        self._control = control
        configs.arrays.schedule.lease[:] = NEVER
        configs.review(NEVER, stop=LOOK)
        configs.arrays.tests.levels[:] = 0.0  # no evidence is enough
        configs.arrays.ensemble.test.level[:] = 0.0
        configs.arrays.namespaces.marks[:] = 0  # no mark of an earlier chunk may look like one of this chunk
        configs.take_losses()
        configs.arrays.statistics.fresh[0] = 0
        configs.arrays.statistics.recent[:] = 0.0
        self._losses = []
        self._before = configs.counts()

    def take(self) -> None:
        """Answer a signal of the loop: keep the losses so far, and mark new namespaces as seen."""
        configs = self._searching.live_configs
        configs.new_names()
        if configs.arrays.statistics.fresh[0] >= LOOK:
            self._losses.append(configs.take_losses())

    def findings(self) -> Findings:
        """Return what was found since `follow`."""
        configs, screening = self._searching.live_configs, self._searching.screening
        losses = np.concatenate([*self._losses, configs.take_losses()])
        counts = []
        for name, (n, size) in configs.counts().items():
            before, size_before = self._before.get(name, (0, 0))
            if n > before:
                counts.append((name, n - before, size - size_before))
        statistics = configs.arrays.statistics
        rest = float(statistics.recent[0]), int(statistics.fresh[0] % GROUP)
        return Findings(
            counts,
            losses,
            rest,
            np.array(list(screening.gains().values()), np.float64),
        )
