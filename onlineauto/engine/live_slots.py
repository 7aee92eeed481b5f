"""Live slots: the arrays behind the champion and its challengers, and what a decision does to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.automl.decisions import Rotate, Swap, Widen
from onlineauto.engine.live_kernels import copy_lane, swap_lanes
from onlineauto.engine.state import CHAMPION, MARK, SELF, Live
from onlineauto.estimators.paired_kernels import SIZE as PAIR_SIZE
from onlineauto.estimators.paired_kernels import level
from onlineauto.estimators.robust_kernels import SIZE, Test

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.automl.config import Config, Interaction
    from onlineauto.automl.decisions import Decision
    from onlineauto.automl.options import AutomlOptions
    from onlineauto.features.layout import Layout
    from onlineauto.learners._kernels import Model

__all__ = ["LiveSlots"]

_NEVER = 2**62


class LiveSlots:
    """What is live: a config, estimators and a lane of weights for each slot; slot 0 is the champion.

    Parameters
    ----------
    options : AutomlOptions
        How many slots there are, and how sure a test has to be.
    layout : Layout
        Told what the slots cross.
    exact : bool
        Move weights as VW does; otherwise the sums that go with them move too.
    width : int
        Lanes of the model that a slot uses.
    first : Config
        The first champion.
    interactions : callable
        Gives the interactions of a config when so many namespaces have been met.

    Attributes
    ----------
    configs : list of Config
        Of each live slot.
    indices : list of int
        Number of each config among those under consideration.
    namespaces : list of bytes
        Met so far, in ascending order.
    live : Live
        The arrays, as the loop takes them.
    """

    def __init__(
        self,
        options: AutomlOptions,
        layout: Layout,
        *,
        exact: bool,
        width: int,
        first: Config,
        interactions: Callable[[Config, Sequence[bytes]], Sequence[Interaction]],
    ) -> None:
        slots = options.automl or 1
        self._layout, self._interactions = layout, interactions
        self._exact, self._width = exact, width
        self.configs = [first]
        self.indices = [0]
        self.namespaces: list[bytes] = []
        self._counts: dict[bytes, int] = {}
        self._keys: dict[bytes, int] = {}
        self._version = -1
        self._n_tests = 0
        self._alpha = float(np.float32(options.automl_significance_level))
        share = 1 if options.fixed_significance_level else slots
        self.live = Live(
            n=1,
            width=width,
            searching=options.automl is not None,
            fill=False,
            test=Test(
                alpha=np.float64(np.float32(np.float32(self._alpha) / np.float32(share))),
                tol_x=np.float64(np.float32(options.tol_x)),
                brentq=options.opt_func == "brentq",
            ),
            cost_is_reward=options.reward_as_cost,
            reversed=options.debug_reversed_learn,
            lease=np.full(slots, _NEVER, np.int64),
            updates=np.zeros(slots, np.int64),
            evidence=np.zeros((slots, 2, 2, SIZE)),
            paired=options.is_paired(exact=exact),
            replaceable=False,
            pairs=np.zeros((slots, PAIR_SIZE)),
            levels=np.zeros(slots),
            scale=np.array([0.0, 1.0, options.min_prob, 0.0]),
            last=np.zeros((slots, 2, 2)),
            settled=np.zeros(slots, bool),
            tally=np.zeros(3, np.int64),
            counts=np.zeros(0, np.int64),
            met=np.zeros(0, bool),
            marks=np.zeros(0, np.int64),
        )

    @property
    def n_slots(self) -> int:
        """Most slots that can be live."""
        return len(self.live.lease)

    def open_block(self) -> None:
        """Number the namespaces as the layout does, if that has changed since the last block."""
        layout, live = self._layout, self.live
        if layout.version == self._version:
            return
        self._counts |= {name: int(live.counts[key]) for name, key in self._keys.items()}
        keys = layout.n_keys
        self._version, self._keys = layout.version, layout.keys()
        live = live._replace(
            counts=np.zeros(keys, np.int64), met=~layout.crossable(), marks=np.zeros(keys, np.int64)
        )
        for name, key in self._keys.items():
            live.counts[key] = self._counts.get(name, 0)
            live.met[key] |= name in self.namespaces
        live.tally[MARK] = 0
        self.live = live
        self.cross()

    def count(self, name: bytes) -> int:
        """Count the actions so far that had features in a namespace."""
        key = self._keys.get(name)
        return self._counts.get(name, 0) if key is None else int(self.live.counts[key])

    def new_names(self) -> tuple[bytes, ...]:
        """Namespaces that were counted and are new, in ascending order; they are known from here on."""
        new = np.flatnonzero((self.live.counts > 0) & ~self.live.met)
        self.live.met[new] = True
        return tuple(sorted(self._layout.name_of(int(key)) for key in new))

    def cross(self) -> None:
        """Tell the layout what each slot crosses; places that are not live cross nothing."""
        crossed = [self._interactions(config, self.namespaces) for config in self.configs]
        self._layout.cross([*crossed, *[()] * (self.n_slots - len(crossed))])

    def lease(self, leases: Sequence[int], *, fill: bool, replaceable: bool) -> None:
        """Set the lease of each live slot, in learnt events, and whether a config waits for a place.

        `fill` says so of an empty one, `replaceable` of that of a challenger that is worse.
        """
        self.live.lease[: len(leases)] = np.minimum(leases, _NEVER)
        self.live = self.live._replace(fill=fill, replaceable=replaceable)

    def apply(self, decision: Decision, model: Model) -> None:
        """Carry a decision out."""
        self.live.settled[:] = False
        if isinstance(decision, Widen):
            self.namespaces = sorted({*self.namespaces, *decision.names})
        elif isinstance(decision, Rotate):
            self._rotate(decision, model)
        elif isinstance(decision, Swap):
            self._swap(decision.slot, decision.config, model)

    def _rotate(self, decision: Rotate, model: Model) -> None:
        slot = decision.slot
        self.configs[slot:] = [decision.config, *self.configs[slot + 1 :]]
        self.indices[slot:] = [decision.index, *self.indices[slot + 1 :]]
        self.live = self.live._replace(n=len(self.configs))
        self._reset(slot)
        if slot > 0:
            self._test_anew(slot)
            self._copy(0, slot, model)

    def _swap(self, slot: int, config: Config, model: Model) -> None:
        """Champion to slot 1, challenger to slot 0; the places behind fall empty."""
        live, cells = self.live, np.flatnonzero(model.touched)
        for one, other in zip(self._lanes(0, model), self._lanes(slot, model), strict=True):
            swap_lanes(model.weights, cells, one, other)
            if not self._exact:
                model.lanes[[one, other]] = model.lanes[[other, one]]
        if not self._exact:
            model.sums[[0, slot]] = model.sums[[slot, 0]]
        if slot != 1:
            self._copy(slot, 1, model)
        for column in (live.evidence, live.last):
            column[0] = column[slot]
            column[1] = column[0][[CHAMPION, SELF]]
        live.updates[:2] = live.updates[slot]
        self._reset(slice(2, None))
        self._test_anew(1)
        self.configs, self.indices = [config, self.configs[0]], [0, 1]
        self.live = live._replace(n=2)

    def _test_anew(self, slot: int) -> None:
        """Begin another test of a challenger: all that were ever begun share the level."""
        self._n_tests += 1
        self.live.pairs[slot] = 0
        self.live.levels[slot] = level(self._alpha, self._n_tests)

    def _reset(self, slot: int | slice) -> None:
        self.live.evidence[slot] = 0
        self.live.last[slot] = 0
        self.live.updates[slot] = 0

    def _copy(self, source: int, target: int, model: Model) -> None:
        cells = np.flatnonzero(model.touched)
        for one, other in zip(self._lanes(source, model), self._lanes(target, model), strict=True):
            copy_lane(model.weights, cells, one, other)
            if not self._exact:
                model.lanes[other] = model.lanes[one]
        if not self._exact:
            model.sums[target] = model.sums[source]

    def _lanes(self, slot: int, model: Model) -> list[int]:
        """Lanes that are moved for a slot; with ``--cb_type dr`` VW takes the wrong ones."""
        if not self._exact:
            return [slot * self._width + part for part in range(self._width)]
        return [part * self.n_slots + slot for part in range(model.weights.shape[2] // self.n_slots)]
