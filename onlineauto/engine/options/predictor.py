"""The predictor of a search: the champion, a mix of the live configs, or the ensemble."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.automl.control import control_of
from onlineauto.automl.options import AutomlOptions
from onlineauto.explorers.options import choose_explorer
from onlineauto.learners.options import CbOptions, LossOptions, UpdateOptions

if TYPE_CHECKING:
    from onlineauto.options import Configuration


def predicts_with(configuration: Configuration, *, simple: bool) -> str:
    """Return what predicts events in a search: "champion", "mix" or "ensemble"."""
    predictor: str | None = configuration[AutomlOptions].predict_with
    if predictor in ("champion", "mix"):
        return predictor
    if excludes_ensemble(configuration):
        return "mix" if simple else "champion"
    return "ensemble"


def excludes_ensemble(configuration: Configuration) -> str:
    """Return the option that makes an ensemble impossible, "" if there is no such option."""
    automl, explorer = configuration[AutomlOptions], choose_explorer(configuration)
    searched, update = automl.searched(), configuration[UpdateOptions]
    reasons = (
        (automl.automl is None, "no --automl"),
        (not automl.is_paired(control_of(configuration).paired), "--estimator robust"),
        (configuration[CbOptions].cb_type != "mtr", f"--cb_type {configuration[CbOptions].cb_type}"),
        (configuration[LossOptions].loss_function != "squared", "a --loss_function other than squared"),
        (bool(update.l1 or update.l2), "--l1 or --l2"),
        (not searched.isdisjoint(("cb_type", "l1", "l2")), "--search of cb_type, l1 or l2"),
        (bool(explorer.models(configuration) or explorer.bounds(configuration)), f"--{explorer.name}"),
        ("epsilon_decay" in configuration.supplied, "--epsilon_decay"),
    )
    return next((name for holds, name in reasons if holds), "")
