"""The exception of objectives under the name of its module in Optuna."""

from onlineauto.tune.active_trial import TrialPruned

__all__ = ["TrialPruned"]
