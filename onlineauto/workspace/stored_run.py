"""What a model file says of the run that it was saved in, taken only if it is what it has to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from msgspec import Meta

from onlineauto.engine.loop.holdout import Holdout
from onlineauto.engine.options.registry import RunOptions
from onlineauto.engine.report.metrics import Metrics
from onlineauto.engine.report.progress import Progress
from onlineauto.features.stored import MOST

if TYPE_CHECKING:
    from onlineauto.features.stored import Stored
    from onlineauto.workspace.workspace import Workspace

__all__ = ["OUTPUTS", "stored_run"]

OUTPUTS = ("predictions", "raw_predictions", "journal")
"""Options that name files which a run writes to as it goes, and of which it keeps how much it has written."""

_Count = Annotated[int, Meta(ge=0, le=MOST)]
_Counts = dict[str, bool | int | float | None]


class _Output(NamedTuple):
    """What a run has written to a file."""

    path: Annotated[str, Meta(min_length=1)]
    size: _Count


def stored_run(stored: Stored, workspace: Workspace) -> dict[str, Any]:
    """Return what a run of a workspace goes on from: all or some of position, counters, outputs and names.

    Of its outputs there are the paths, and how many bytes it had written. They are for comparison: what is
    cut off there, and goes on, is what the command line of the run at hand names, and the same path.

    Raises
    ------
    ValueError
        Something of it is of another type, or out of range.
    """
    run: dict[str, Any] = {}
    configuration, kind = workspace.configuration, workspace.kind
    if "position" in stored:
        position = stored["position"]
        run["position"] = {name: position[name].count() for name in ("passes", "events")} | {"held_out": None}
        if not position["held_out"].is_none():
            run["position"]["held_out"] = held_out = position["held_out"].of(_Counts)
            Holdout(configuration[RunOptions]).recount(held_out)
    if "progress" in stored:
        run["progress"] = stored["progress"].of(_Counts)
        Progress(configuration, kind=kind).recount(run["progress"])
    if "metrics" in stored:
        run["metrics"] = stored["metrics"].of(_Counts)
        Metrics(configuration, kind=kind, semantics=workspace.semantics).recount(run["metrics"])
    if "outputs" in stored:
        outputs = stored["outputs"]
        run["outputs"] = {name: outputs[name].of(_Output) for name in OUTPUTS if name in outputs}
    if "names" in stored:
        run["names"] = stored["names"].of(list[tuple[_Count, str]])
    return run
