"""``AutoVW``: the interface of FLAML's class of this name, with the search of onlineauto.

A script for FLAML needs one changed import: ``from onlineauto.autovw import AutoVW``. FLAML and Vowpal Wabbit
need not be installed, but FLAML's domains are accepted in a search space.

>>> auto = AutoVW(max_live_model_num=5, search_space={"interactions": AutoVW.AUTOMATIC, "quiet": ""})
>>> for _ in range(100):
...     before = auto.predict("3 |a x|b y")
...     auto.learn("3 |a x|b y")
>>> round(before, 2)
3.0
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from onlineauto.errors import OptionError
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AutoVW"]

_SEARCHED = ("interactions", "namespaces", "learning_rate", "power_t", "l1", "l2")
_METRICS = ("mae_clipped", "mae", "mse", "absolute_clipped", "absolute", "squared")
_FIXED = (str, bytes, int, float, list, tuple, set, frozenset, type(None))
"""Types of fixed values in a search space; values of other types are FLAML's domains, which are searched."""
_IDLE = ("quiet", "alg")
"""Fixed values without effect: ``alg`` is about boosting, which is not supported."""
_NAN = re.compile(r"[^\s|]+:nan(?![^\s|])")


class AutoVW:
    """A regression or binary classification on VW text, which searches interactions and rates on the way.

    Configs are compared by the loss that they minimise (``loss_function`` in the search space), and the
    search decides when a challenger is better. So the arguments with which FLAML tunes its tests are
    accepted, and have no effect.

    Parameters
    ----------
    max_live_model_num : int
        Number of models that learn at the same time.
    search_space : dict
        By name of an option: its value, such as ``"loss_function": "logistic"``, or a domain of FLAML, such
        as ``loguniform(1e-10, 1)``, to search it. The interactions (`AutoVW.AUTOMATIC`), learning_rate,
        power_t, l1 and l2 can be searched. A flag has the value ``""``. The limits of a domain are not used:
        the search takes steps from the first value while they help.
    init_config : dict, optional
        First values of the searched options.
    min_resource_lease : int or "auto"
        First lease of a challenger, in events.
    random_seed : int, optional
        Seed of all random numbers.
    automl_runner_args, scheduler_args, model_select_policy, metric, cb_coef
        No effect.
    model_selection_mode : {"min"}
        Losses are minimised.

    Attributes
    ----------
    workspace : Workspace
        The learning workspace: its search, estimates and weights.

    Raises
    ------
    OptionError
        An option is unknown, cannot be searched, or has an invalid value.
    """

    AUTOMATIC: ClassVar[str] = "_auto"
    VW_INTERACTION_ARG_NAME: ClassVar[str] = "interactions"
    WARMSTART_NUM: ClassVar[int] = 100

    def __init__(
        self,
        max_live_model_num: int,
        search_space: Mapping[str, Any],
        init_config: Mapping[str, Any] | None = None,
        min_resource_lease: str | float | None = "auto",
        automl_runner_args: Mapping[str, Any] | None = None,  # noqa: ARG002 - an argument of FLAML
        scheduler_args: Mapping[str, Any] | None = None,  # noqa: ARG002
        model_select_policy: str | None = "threshold_loss_ucb",  # noqa: ARG002
        metric: str | None = "mae_clipped",
        random_seed: int | None = None,
        model_selection_mode: str | None = "min",
        cb_coef: float | None = None,  # noqa: ARG002
    ) -> None:
        if model_selection_mode != "min":
            raise OptionError(f"model_selection_mode cannot be {model_selection_mode!r}; it takes 'min'")
        if metric is not None and metric not in _METRICS:
            raise OptionError(f"metric cannot be {metric!r}; it takes one of {', '.join(_METRICS)}")
        tuned = [name for name, value in search_space.items() if _is_domain(value)]
        for name in tuned:
            if name not in _SEARCHED:
                raise OptionError(f"{name} cannot be searched; these can: {', '.join(_SEARCHED)}")
        fixed = {name: value for name, value in search_space.items() if name not in (*tuned, *_IDLE)}
        fixed |= {name: value for name, value in (init_config or {}).items() if name not in fixed}
        options: dict[str, Any] = {name: _value(value) for name, value in fixed.items()}
        if tuned:
            options |= {"automl": max_live_model_num, "search": ",".join(tuned)}
            if min_resource_lease not in ("auto", None):
                options["lease"] = int(min_resource_lease)
        self.workspace = Workspace(random_seed=random_seed or None, **options)

    def predict(self, data_sample: str) -> float:
        """Return the prediction for a line of VW text; its label is ignored."""
        return float(self.workspace.predict(_without_nan(data_sample))[0])

    def learn(self, data_sample: str) -> None:
        """Learn a line of VW text."""
        self.workspace.learn(_without_nan(data_sample))


def _without_nan(text: str) -> str:
    """Return a line without its features of value NaN, which FLAML's script writes for missing numbers."""
    return _NAN.sub("", text) if ":nan" in text else text


def _is_domain(value: object) -> bool:
    return value == AutoVW.AUTOMATIC if isinstance(value, str) else not isinstance(value, _FIXED)


def _value(value: Any) -> Any:
    """Return a value of a search space as an option; an empty set of interactions means no option."""
    if isinstance(value, set | frozenset | list | tuple):
        return sorted(value) or None
    return True if value == "" else value
