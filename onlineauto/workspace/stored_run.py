"""The state of the run that saved a model file, checked before use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from onlineauto.engine.loop.holdout import Holdout
from onlineauto.engine.options.registry import RunOptions
from onlineauto.engine.report.metrics import Metrics
from onlineauto.engine.report.progress import ProgressTable
from onlineauto.state.stored import MOST

if TYPE_CHECKING:
    from onlineauto.state.stored import Stored
    from onlineauto.workspace.workspace import Workspace

OUTPUTS = ("predictions", "raw_predictions", "journal")
"""Options that name files to which a run appends; a model file stores the length of each file."""

_Count = Annotated[int, Meta(ge=0, le=MOST)]
_Counts = dict[str, bool | int | float | None]


class _Output(NamedTuple):
    """A file to which a run appends, and the number of bytes written so far."""

    path: Annotated[str, Meta(min_length=1)]
    size: _Count


def stored_run(stored: Stored, workspace: Workspace) -> dict[str, Any]:
    """Return the stored state of a run: its position, counters, outputs and names, as far as present.

    Outputs are paths and the number of bytes written to each. The paths are only compared: a resumed run
    truncates and continues files on its own command line, if the path is the same.
    """
    run: dict[str, Any] = {}
    configuration, kind = workspace.configuration, workspace.kind
    if "position" in stored:
        position = stored["position"]
        run["position"] = {name: position[name].count() for name in ("passes", "events")} | {"held_out": None}
        if "at" in position and not position["at"].is_none():
            run["position"]["at"] = position["at"].convert(dict[str, Any])  # the source checks the values
        if not position["held_out"].is_none():
            run["position"]["held_out"] = held_out = position["held_out"].convert(_Counts)
            Holdout(configuration[RunOptions]).recount(held_out)
    if "rest_of_round" in stored:
        run["rest_of_round"] = stored["rest_of_round"].count()
    if "change" in stored:
        run["change"] = stored["change"].convert(tuple[_Count, list[tuple[float, float, float]]])
    if "progress" in stored:
        run["progress"] = stored["progress"].convert(_Counts)
        ProgressTable(configuration, kind=kind).recount(run["progress"])
    if "metrics" in stored:
        run["metrics"] = stored["metrics"].convert(_Counts)
        Metrics(configuration, kind=kind, semantics=workspace.semantics).recount(run["metrics"])
    if "outputs" in stored:
        outputs = stored["outputs"]
        run["outputs"] = {name: outputs[name].convert(_Output) for name in OUTPUTS if name in outputs}
    if "names" in stored:
        run["names"] = stored["names"].convert(list[tuple[_Count, str]])
    for name in ("api", "service"):
        if name in stored:
            run[name] = stored[name].convert(dict[str, Any])  # the class of the value checks it
    if "dataset" in stored:
        run["dataset"] = stored["dataset"].convert(dict[Literal["columns", "types"], dict[str, Any]])
    return run
