r"""Streaming online AutoML for contextual bandits: one pass, without manual tuning.

>>> import onlineauto
>>> model = onlineauto.Workspace(cb_explore_adf=True, quadratic="ua")
>>> model.predict("shared |u tom\n|a politics\n|a sports\n")
array([0.5, 0.5], dtype=float32)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from onlineauto.errors import CompilerError, InputError, OnlineautoError, OptionError, ParseError

if TYPE_CHECKING:
    from onlineauto.api.bandit import AutoML
    from onlineauto.api.classifier import AutoMLClassifier
    from onlineauto.api.decisions.choice import Choice
    from onlineauto.api.regressor import AutoMLRegressor
    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.evaluation.evaluation import Evaluation
    from onlineauto.features.block import Block
    from onlineauto.features.event import Event
    from onlineauto.workspace.conversion import convert, read
    from onlineauto.workspace.predictor import Predictor
    from onlineauto.workspace.run import Run
    from onlineauto.workspace.workspace import Workspace

__all__ = [
    "AutoML",
    "AutoMLClassifier",
    "AutoMLRegressor",
    "Block",
    "Choice",
    "CompilerError",
    "Evaluation",
    "Event",
    "InputError",
    "OnlineautoError",
    "OptionError",
    "Outcomes",
    "ParseError",
    "Predictor",
    "Run",
    "Workspace",
    "__version__",
    "convert",
    "read",
]

_LAZY = {
    "AutoML": "onlineauto.api.bandit",
    "AutoMLClassifier": "onlineauto.api.classifier",
    "AutoMLRegressor": "onlineauto.api.regressor",
    "Block": "onlineauto.features.block",
    "Choice": "onlineauto.api.decisions.choice",
    "Evaluation": "onlineauto.evaluation.evaluation",
    "Event": "onlineauto.features.event",
    "Outcomes": "onlineauto.engine.event.outcomes",
    "Predictor": "onlineauto.workspace.predictor",
    "Run": "onlineauto.workspace.run",
    "Workspace": "onlineauto.workspace.workspace",
    "convert": "onlineauto.workspace.conversion",
    "read": "onlineauto.workspace.conversion",
}
"""Modules of the names, which are imported on first use, since they import NumPy and Numba."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("onlineauto")
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'onlineauto' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
