"""Screening: the interactions that are screened, and their estimated gains; see `screen_kernels`."""

from __future__ import annotations

from itertools import accumulate, chain, compress
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.automl.config import Interaction
from onlineauto.engine.records.search import Screen
from onlineauto.state.schema import read, save

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.features.layout import StreamLayout
    from onlineauto.state.stored import Stored

_FADING = 0.3
"""Factor by which gains shrink when the champion changes."""


_MEMORY = 0.95
"""Factor by which gains shrink at each review."""


class Screening:
    """Screens interactions of the events of a stream."""

    def __init__(self, layout: StreamLayout, *, cells: int) -> None:
        self._layout, self._cells = layout, cells
        self._gains: dict[Interaction, float] = {}  # of all screened interactions, in their order
        self._compiled: tuple[Interaction, ...] = ()
        self._held: frozenset[Interaction] = frozenset()
        self._version = -1
        nothing, _ = layout.compile(())
        self.screen = Screen(
            many=0,
            interactions=nothing,
            inside=np.zeros(0, bool),
            gains=np.zeros(0),
            ends=np.zeros(0, np.int64),
            seen=np.zeros(1, np.int64),
            table=np.zeros((0, 3), np.float32),
        )

    def gains(self) -> Mapping[Interaction, float]:
        """Return the estimated gain of each screened interaction, until the next event."""
        self._gains.update(zip(self._compiled, self.screen.gains.tolist(), strict=True))
        return self._gains

    def choose(self, pool: Sequence[Interaction], held: Collection[Interaction]) -> None:
        """Screen the interactions `pool` from now on; the champion has those in `held`."""
        gains, held = self.gains(), frozenset(held)
        self._gains = {interaction: _MEMORY * gains.get(interaction, 0.0) for interaction in pool}
        for interaction in (self._held ^ held) & self._gains.keys():
            self._gains[interaction] = 0.0
        self._held = held
        if self._gains.keys() == gains.keys() and self._version == self._layout.version:
            self._reorder()
        else:
            self._compile()

    @property
    def of_champion(self) -> frozenset[Interaction]:
        """The interactions that the champion has."""
        return self._held

    def set_gains(self, gains: NDArray[np.float64]) -> None:
        """Set the estimated gain of each screened interaction, in their order."""
        self._gains = dict(zip(self._gains, gains.tolist(), strict=True))
        self.screen.gains[:] = [self._gains[interaction] for interaction in self._compiled]

    def follow(
        self, pool: Sequence[Interaction], held: Collection[Interaction], gains: NDArray[np.float64]
    ) -> None:
        """Screen the same interactions as another screening, with its gains."""
        if [*pool] != [*self._gains] or frozenset(held) != self._held:
            self._gains, self._held = dict.fromkeys(pool, 0.0), frozenset(held)
            self._compile()
        self.set_gains(gains)

    def fade(self) -> None:
        """Shrink all gains, so that gains over a new champion soon outweigh the old ones."""
        self.gains()
        self._gains = {interaction: _FADING * gain for interaction, gain in self._gains.items()}
        self.screen.gains[:] *= _FADING
        self.screen.seen[:] = 0

    def begin_again(self) -> None:
        """Reset all measurements."""
        self._gains = dict.fromkeys(self._gains, 0.0)
        for array in (self.screen.gains, self.screen.table, self.screen.seen):
            array[:] = 0

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        screen, gains = self.screen, list(self.gains().items())
        section = save(screen, {"cells": np.flatnonzero(screen.table.any(axis=1))})
        return {"gains": gains, "held": self._held} | section

    def restore(self, stored: Stored, is_possible: Callable[[Interaction], bool]) -> None:
        """Restore a stored state; `is_possible` returns whether an interaction can be searched."""
        self._gains = dict(stored["gains"].convert(list[tuple[Interaction, float]]))
        held = stored["held"].convert(set[Interaction])
        if not all(map(is_possible, (*held, *self._gains))):
            raise stored["gains"].fail("gains of interactions that can be searched")
        self._held = frozenset(held)
        table = np.zeros((self._cells if "table" in stored else 0, 3), np.float32)
        self.screen = self.screen._replace(table=table)
        read(stored, self.screen)
        self._compile()

    def open_block(self) -> None:
        """Adopt the layout's numbers of namespaces, if they have changed since the last block."""
        if self._layout.version != self._version:
            self.gains()
            self._compile()

    def _reorder(self) -> None:
        """Write the compiled interactions in another order into the same arrays; the loop's context stays."""
        screen, interactions = self.screen, self.screen.interactions
        start, factor = interactions.start.tolist(), interactions.factor.tolist()
        bounds = zip(self._compiled, start, start[1:], strict=False)
        factors = {interaction: factor[begin:end] for interaction, begin, end in bounds}
        self._compiled = tuple([interaction for interaction in self._gains if interaction in factors])
        ordered = [factors[interaction] for interaction in self._compiled]
        interactions.start[1:] = list(accumulate(map(len, ordered)))
        interactions.factor[:] = list(chain.from_iterable(ordered))
        screen.inside[:] = [interaction in self._held for interaction in self._compiled]
        screen.gains[:] = [self._gains[interaction] for interaction in self._compiled]

    def _compile(self) -> None:
        """Make the arrays of the screened interactions whose namespaces the layout has."""
        if self._gains and not len(self.screen.table):
            self.screen = self.screen._replace(table=np.zeros((self._cells, 3), np.float32))
        pool = tuple(self._gains)
        interactions, present = self._layout.compile(pool)
        self._version = self._layout.version
        self._compiled = pool if all(present) else tuple(compress(pool, present))
        self.screen = self.screen._replace(
            many=len(pool),
            interactions=interactions,
            inside=np.array([interaction in self._held for interaction in self._compiled], bool),
            gains=np.array([self._gains[interaction] for interaction in self._compiled], float),
            ends=np.zeros(len(self._compiled), np.int64),
        )
