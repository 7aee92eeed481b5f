"""Semantics: everything that a mode decides once, for all that stands on the loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Protocol

from onlineauto.engine.event.quirks import NO_QUIRKS
from onlineauto.engine.loop.run_kernels import run_events
from onlineauto.explorers.quirks import NO_EXPLORING_QUIRKS
from onlineauto.learners.table import lanes_side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.engine.event.quirks import Quirks
    from onlineauto.engine.event.state import Context, Results
    from onlineauto.explorers.quirks import ExploringQuirks
    from onlineauto.features.records import Stream
    from onlineauto.jit import Sealed
    from onlineauto.learners.table import TableShape

    Loop = Callable[[Sealed[Context], Stream, Results, NDArray[np.int64], int, int], None]
    """Predicts, learns and accounts for events, as `run_events` does."""

__all__ = ["NATIVE", "Semantics"]


class MakesTable(Protocol):
    """Lays out the weights of the live configs, as `lanes_side_by_side` does."""

    def __call__(self, bits: int, *, configs: int, parts: int, policies: int) -> TableShape:
        """Return the shape of the table for ``--bit_precision`` bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantics:
    """What native mode does, or Vowpal Wabbit in its place.

    The defaults are those of native mode. Whoever stands above the engine asks for one of these by its name,
    and never which mode it is.

    Attributes
    ----------
    place : str
        Where this object is, as ``module:variable``.
    flags : mapping of str to object
        Options that make a workspace of these semantics.
    quirks : Quirks
        Oddities that the kernels of an event follow.
    run_events : callable
        The loop over the events of a block.
    table : MakesTable
        Lays out the weights of the live configs.
    guarded : bool
        Nothing that is not finite gets into weights and sums.
    exploring : ExploringQuirks
        Oddities that explorers follow.
    fills_in_probabilities : bool
        ``--missing_probability uniform`` gives a label without a probability that of a uniform choice.
    bounds_by_rates : bool
        Plausible costs go by adapted rates in a model that only predicts too. VW asks for them there as if no
        rate were adapted, and keeps none in a model that is to predict only.
    penalises_on_load : bool
        A model that is loaded to predict has its penalties applied to the weights at once, which rounds them.
    notices_predicted : bool
        Events that are only predicted leave traces: a search meets their namespaces, and slots are told apart
        from then on.
    holds_out_by_line : bool
        Single lines are held out by their number in the file, empty lines counted, and ``--holdout_after``
        counts events of several lines from 0.
    search_draws_with_explorer : bool
        The oracles that draw take numbers from the same generator as the explorer.
    replaced_options : tuple of str
        Options that models keep, and that VW lets a loaded one be given anew. Native oracles could not make
        sense of the configs of another one's.
    reports_as_vw : bool
        Texts and counts for people are VW's to the letter: readable model, audit, summary and metrics.
    predicts_as_vw : bool
        VW predicts the same from a model, but for nothing.
    spins_off_weights : bool
        A model saved to predict only is VW's: no search, the champion's interactions as if given by hand, and
        nothing but weights, from which it can go on learning.
    merges_as_vw : bool
        Merging forgets what VW forgets: costs and events of the explorer, the extent of penalties, that slots
        are told apart; and counts labels as VW's run did.
    """

    place: str = "onlineauto.engine.loop.semantics:NATIVE"
    flags: Mapping[str, Any] = field(default_factory=dict)
    quirks: Quirks = NO_QUIRKS
    run_events: Loop = run_events
    table: MakesTable = lanes_side_by_side
    guarded: bool = True
    exploring: ExploringQuirks = NO_EXPLORING_QUIRKS
    fills_in_probabilities: bool = True
    bounds_by_rates: bool = True
    penalises_on_load: bool = False
    notices_predicted: bool = False
    holds_out_by_line: bool = False
    search_draws_with_explorer: bool = False
    replaced_options: tuple[str, ...] = ()
    reports_as_vw: bool = False
    predicts_as_vw: bool = False
    spins_off_weights: bool = False
    merges_as_vw: bool = False

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Let copies be this very object: it never changes, and kernels cannot be copied."""
        return resolve_name, (self.place,)


NATIVE = Semantics()
"""The semantics of native mode."""
