"""The verb ``merge``: combine models that were learnt separately."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from onlineauto.engine.options.registry import ModelOptions, OutputOptions
from onlineauto.engine.report.progress import ProgressTable
from onlineauto.errors import OptionError
from onlineauto.formats.options import InputOptions
from onlineauto.workspace.merge import labelled_weight, merge_workspaces
from onlineauto.workspace.save_load import load_model, save_model
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.engine.stream.counters import Count
    from onlineauto.options import Configuration

_SUMS = (
    *("example_number", "total_features", "weighted_labelled", "weighted_unlabelled", "weighted_labels"),
    "sum_loss",
)


def run(configuration: Configuration) -> int:
    """Merge the models into the file of ``-f``; return 0."""
    paths, options = configuration[InputOptions].data, configuration[ModelOptions]
    if len(paths) < 2 or options.final_regressor is None:
        raise OptionError("merge takes two models or more, and -f: onlineauto merge A B --base BASE -f OUT")
    based = [] if options.base is None else [options.base]
    loaded = [load_model(Workspace, path, configuration) for path in (*paths, *based)]
    models = [model for model, _ in loaded]
    runs = [its_run.get("progress") for _, its_run in loaded]
    learnt = [_labelled_weight(model, counts) for model, counts in zip(models, runs, strict=True)]
    base = models.pop() if based else None
    merged_model = merge_workspaces(models, base=base, learnt=learnt)
    counted = [counts for counts in runs if counts is not None]
    its_run = {}
    if len(counted) == len(runs):
        its_run["progress"] = _counts(merged_model, counted, learnt, has_base=base is not None)
    save_model(merged_model.state(copy=False), options.final_regressor, run=its_run)
    if not configuration[OutputOptions].quiet:
        size = Path(options.final_regressor).stat().st_size
        print(
            f"{len(models)} models are merged into {options.final_regressor}, of {size} bytes",
            file=sys.stderr,
        )
    return 0


def _labelled_weight(model: Workspace, counts: Mapping[str, Count] | None) -> float:
    """Return the weight of a model's labelled events; in exact mode, of those that its run counted."""
    if counts is None or not model.semantics.merges_as_vw:
        return labelled_weight(model)
    return float(counts["weighted_labelled"] or 0)


def _counts(
    model: Workspace, counted: Sequence[Mapping[str, Count]], learnt: Sequence[float], *, has_base: bool
) -> dict[str, Count]:
    """Return the counters of all runs together; a model from which all of them continued counts once.

    A run's counters include that base model if its labels weigh as much as everything that its model has
    learnt.
    """
    progress = ProgressTable(model.configuration, kind=model.kind)
    progress.min_label, progress.max_label = model.label_range
    last = len(counted) - 1
    totals = [
        float(counts["weighted_labelled"] or 0) >= all_ for counts, all_ in zip(counted, learnt, strict=True)
    ]
    for name in _SUMS:
        numbers = [counts[name] or 0 for counts in counted]
        base = numbers[last] if has_base else 0
        new_numbers = zip(numbers[:last] if has_base else numbers, totals, strict=False)
        setattr(progress, name, base + sum(number - (base if too else 0) for number, too in new_numbers))
    return progress.counts()
