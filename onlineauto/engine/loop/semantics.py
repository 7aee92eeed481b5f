"""Semantics: all choices in which native and exact mode differ, in a single object."""

from __future__ import annotations

from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Protocol

from onlineauto.engine.loop.run_kernels import run_events
from onlineauto.engine.records.quirks import NO_QUIRKS
from onlineauto.explorers.quirks import NO_EXPLORING_QUIRKS
from onlineauto.learners.model import lanes_side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Context, Results
    from onlineauto.engine.records.quirks import Quirks
    from onlineauto.explorers.quirks import ExploringQuirks
    from onlineauto.features.records import Stream
    from onlineauto.learners.model import TableShape
    from onlineauto.options import Configuration

    Loop = Callable[[Context, Stream, Results, NDArray[np.int64], int, int], None]
    """Predicts, learns and accounts for events, like `run_events`."""


class MakesTable(Protocol):
    """Lays out the weights of the live configs, like `lanes_side_by_side`."""

    def __call__(self, bits: int, *, configs: int, parts: int, policies: int) -> TableShape:
        """Return the shape of the table for ``--bit_precision`` bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantics:
    """The choices in which native mode and Vowpal Wabbit differ; the defaults are native mode."""

    # Name of the variable that contains this object, as ``module:variable``.
    variable: str = "onlineauto.engine.loop.semantics:NATIVE"
    # Options that make a workspace of these semantics.
    flags: Mapping[str, Any] = field(default_factory=dict)
    quirks: Quirks = NO_QUIRKS  # Oddities that the kernels of an event follow.
    run_events: Loop = run_events  # The loop over the events of a block.
    table: MakesTable = lanes_side_by_side  # Lays out the weights of the live configs.
    guarded: bool = True  # Numbers that are not finite never enter weights and sums.
    exploring: ExploringQuirks = NO_EXPLORING_QUIRKS  # Oddities that explorers follow.
    # ``--missing_probability uniform`` gives a label without a probability the one of a uniform choice.
    fills_in_probabilities: bool = True
    # Plausible costs use adapted rates even in a model that only predicts. VW computes them there as if no
    # rate were adapted, and stores no rates in a predict-only model.
    bounds_by_rates: bool = True
    # A model loaded for prediction applies its penalties to the weights at once, which rounds the weights.
    penalises_on_load: bool = False
    # Events that are only predicted change the model. The search counts their namespaces, and after an event
    # of several slots, slots have an index feature.
    notices_predicted: bool = False
    # An event whose interactions make more crossed features than ``--max_crossed`` loses the widest
    # interactions. Otherwise the run ends at an event that does not fit into memory.
    leaves_out_widest: bool = True
    # Single lines are held out by their line number in the file, empty lines included, and
    # ``--holdout_after`` counts events of several lines from 0.
    holds_out_by_line: bool = False
    # The oracles that draw use the same random generator as the explorer.
    search_draws_with_explorer: bool = False
    # Options in a model file that VW allows to change on load. Native oracles cannot use the configs of
    # another oracle, so native mode has no such options.
    replaced_options: tuple[str, ...] = ()
    # Readable model, audit, summary and metrics have exactly VW's texts and counts.
    reports_as_vw: bool = False
    # Every model predicts like VW with the same weights and options. Native models of some explorers do not.
    predicts_as_vw: bool = False
    # A predict-only model is VW's: it has no search, the champion's interactions as fixed options, and only
    # weights, from which it can continue to learn.
    spins_off_weights: bool = False
    # Merging drops what VW drops: costs and events of the explorer, the extent of penalties, and the fact
    # that slots have an index feature. It counts labels like VW's run.
    merges_as_vw: bool = False

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Return the recipe of a copy: this very object, because it is immutable and contains kernels."""
        return resolve_name, (self.variable,)


NATIVE = Semantics()
"""The semantics of native mode."""


def semantics_of(configuration: Configuration) -> Semantics:
    """Return the semantics for some options: those of Vowpal Wabbit with ``--vw_exact``, else native."""
    semantics: Semantics | None = configuration.first_result("semantics")
    return semantics or NATIVE
