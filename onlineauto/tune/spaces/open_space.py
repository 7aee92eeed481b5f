"""``OpenSpace``: a space whose parameters are declared by trials while they run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from onlineauto.errors import OptionError
from onlineauto.tune.plain import as_json
from onlineauto.tune.spaces.space import Space

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.tune.spaces.parameter import Parameter
    from onlineauto.tune.spaces.space import Config

_FEW = 20
"""Maximum number of values of a parameter on which others may depend: more tell configs apart by chance."""


class OpenSpace(Space):
    """A space that is not declared: a config may have any names, and any plain values."""

    def __init__(self) -> None:
        self.parameters, self.blocks, self.width = {}, {}, 0
        self._ordered, self._plain = (), True

    @property
    def size(self) -> float:  # noqa: D102
        return math.inf

    def check(self, config: Mapping[str, Any]) -> Config:  # noqa: D102
        if not isinstance(config, Mapping):
            raise OptionError(f"config = {config!r}: give values by names")
        plain: Config = as_json(config, "a config")
        return plain


def space_of_configs(parameters: Mapping[str, Parameter], configs: Sequence[Mapping[str, Any]]) -> Space:
    """Return a space with the conditions under which its parameters exist, as far as configs show them.

    A parameter that some configs do not have depends on the parameters that were suggested before it: it
    exists for the values that they had in the configs with the parameter, if no other config has these
    values. If no values tell the configs apart, the parameter has no condition.

    Examples
    --------
    >>> from onlineauto.tune.spaces import Categorical, Float
    >>> declared = {"loss": Categorical(["a", "b"]), "margin": Float(0, 1)}
    >>> space = space_of_configs(declared, [{"loss": "a"}, {"loss": "b", "margin": 0.5}])
    >>> space.parameters["margin"].when
    {'loss': ('b',)}
    """
    return Space(
        {
            name: each.described() | {"when": _conditions(name, parameters, configs)}
            for name, each in parameters.items()
        }
    )


def _conditions(
    name: str, parameters: Mapping[str, Parameter], configs: Sequence[Mapping[str, Any]]
) -> dict[str, list[Any]]:
    when: dict[str, list[Any]] = {}
    having = [config for config in configs if name in config]
    others = [config for config in configs if name not in config]
    earlier = [_before(name, config) for config in having]
    parents = [
        parent
        for parent, parameter in parameters.items()
        if parameter.size <= _FEW and having and all(parent in each for each in earlier)
    ]
    while others:
        left = {}
        for parent in parents:
            values = {_key(config[parent]) for config in having}
            left[parent] = [each for each in others if parent in each and _key(each[parent]) in values]
        best = min(left, key=lambda parent: (len(left[parent]), parameters[parent].size), default=None)
        if best is None or len(left[best]) == len(others):
            break
        when[best] = list({_key(config[best]): config[best] for config in having}.values())
        others = left[best]
    return when if not others else {}


def _before(name: str, config: Mapping[str, Any]) -> set[str]:
    names = list(config)
    return set(names[: names.index(name)])


def _key(value: Any) -> tuple[bool, Any]:
    return isinstance(value, bool), value
