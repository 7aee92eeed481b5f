"""``space_of_options``: the space of all options that declare a range for a search (``tunable=``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.errors import OptionError
from onlineauto.options import Log
from onlineauto.tune.spaces.parameter import Categorical, Float, Int, Parameter
from onlineauto.tune.spaces.space import Space

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.options import Option, Registry


def space_of_options(registry: Registry, names: Sequence[str] | None = None) -> Space:
    """Return the space of a registry's tunable options, or of the named ones.

    Examples
    --------
    >>> from onlineauto.workspace.options import REGISTRY
    >>> space_of_options(REGISTRY, ["learning_rate"]).parameters
    {'learning_rate': Float(low=0.0001, high=10.0, log=True, when={})}
    """
    tunable = {option.name: option for option in registry.options if option.tunable is not None}
    if unknown := [name for name in names or () if name not in tunable]:
        raise OptionError(f"{unknown[0]!r} cannot be searched; these can: {', '.join(tunable)}")
    return Space({name: _parameter(tunable[name]) for name in (tunable if names is None else names)})


def _parameter(option: Option) -> Parameter:
    tunable = option.tunable
    assert tunable is not None
    if not isinstance(tunable, Log):
        return Categorical(tunable.values)
    if option.kind is int:
        return Int(int(tunable.low), int(tunable.high), log=True)
    return Float(tunable.low, tunable.high, log=True)
