"""``Space``: the configs that a tuner may try, and their code as numbers between 0 and 1."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import OptionError
from onlineauto.options import Log
from onlineauto.options.registry import read_settings
from onlineauto.tune.plain import as_json
from onlineauto.tune.spaces.parameter import Categorical, Float, Int, Parameter, Value

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from onlineauto.options import Option, Registry

Config = dict[str, Value]
"""Values by the names of parameters; a parameter that does not exist in this config is absent."""

_KINDS = {kind.kind: kind for kind in (Float, Int, Categorical)}


class Space:
    """The configs that a tuner may try.

    Parameters
    ----------
    parameters : mapping of str to Parameter or mapping
        The parameters by name, as objects or as in TOML: ``{"type": "float", "low": 0, "high": 1}``.

    Attributes
    ----------
    parameters : dict of str to Parameter
    blocks : dict of str to slice
        The position of each parameter in the code.
    width : int
        Length of the code of a config.

    >>> space = Space({"rate": Float(1e-4, 1, log=True), "loss": Categorical(["squared", "logistic"])})
    >>> space.decode([0.5, 0.9])
    {'rate': 0.01, 'loss': 'logistic'}
    >>> space.encode({"rate": 0.01, "loss": "logistic"}).tolist()
    [0.5, 0.75]
    """

    def __init__(self, parameters: Mapping[str, Parameter | Mapping[str, Any]]) -> None:
        if not isinstance(parameters, Mapping):
            raise OptionError(f"space = {parameters!r}: give parameters by their names")
        names: list[Any] = list(parameters)
        if odd := [name for name in names if not isinstance(name, str)]:
            raise OptionError(f"{odd[0]!r} is not a name of a parameter: give a text")
        self.parameters = {
            name: declared if isinstance(declared, Parameter) else _read(name, declared)
            for name, declared in parameters.items()
        }
        if not self.parameters:
            raise OptionError("the space has no parameters: name at least one")
        self.blocks: dict[str, slice] = {}
        self.width = 0
        for name, parameter in self.parameters.items():
            self.blocks[name] = slice(self.width, self.width + parameter.width)
            self.width += parameter.width
            self._check_conditions(name, parameter)
        self._ordered = self._in_order()
        self._plain = not any(parameter.when for parameter in self.parameters.values())

    @classmethod
    def from_toml(cls, source: str | Path) -> Space:
        """Read a space from TOML text, or from a file if `source` is a path or ends in ``.toml``.

        >>> Space.from_toml("rate = {type = 'float', low = 0, high = 1}").width
        1
        """
        path = Path(source) if isinstance(source, Path) or source.endswith(".toml") else None
        try:
            text = read_settings(path) if path else str(source)
            return cls(tomllib.loads(text))
        except OSError as error:
            raise OptionError(f"{path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OptionError) as error:
            raise OptionError(f"{path or 'the space'}: {error}") from error

    def described(self) -> dict[str, Any]:
        """Return the declaration as plain JSON, which `Space` accepts."""
        return {
            name: parameter.described()
            | (
                {"when": {key: list(values) for key, values in parameter.when.items()}}
                if parameter.when
                else {}
            )
            for name, parameter in self.parameters.items()
        }

    def decode(self, code: Sequence[float] | np.ndarray) -> Config:
        """Return the config of `width` numbers in [0, 1]."""
        numbers = code.tolist() if isinstance(code, np.ndarray) else code
        config: Config = {}
        for name, parameter in self._ordered:
            if self._plain or self.exists(name, config):
                config[name] = parameter.decode(numbers[self.blocks[name]])
        return config

    def encode(self, config: Mapping[str, Any]) -> np.ndarray:
        """Return the code of a config, float64[width]; parameters that do not exist are coded as 0.5."""
        code = [0.5] * self.width
        for name, value in config.items():
            code[self.blocks[name]] = self.parameters[name].encode(value)
        return np.array(code)

    def encode_within(self, config: Mapping[str, Any], rng: np.random.Generator) -> np.ndarray:
        """Return a random code, uniform among all codes that decode to a config: float64[width].

        `encode`, in contrast, maps all codes of a word or a whole number to one point. Random numbers are
        drawn for each parameter, whether or not it exists.
        """
        code = rng.random(self.width)
        for name, value in config.items():
            block = self.blocks[name]
            code[block] = self.parameters[name].encode_within(value, code[block].tolist())
        return code

    @property
    def size(self) -> float:
        """The number of combinations of values; infinite if a parameter is continuous."""
        return math.prod(parameter.size for parameter in self.parameters.values())

    @property
    def has_prior(self) -> bool:
        """True if a parameter has a prior."""
        return any(parameter.prior is not None for parameter in self.parameters.values())

    def draw(self, rng: np.random.Generator, *, centre: bool = False) -> Config:
        """Return a random config of the prior; with `centre`, parameters with a prior have its value."""
        config: Config = {}
        for name, parameter in self._ordered:
            value = parameter.draw(rng)
            if self.exists(name, config):
                config[name] = parameter.prior if centre and parameter.prior is not None else value
        return config

    def log_prior(self, config: Mapping[str, Any]) -> float:
        """Return the logarithm of the prior density of a config, relative to its maximum."""
        return sum(self.parameters[name].log_prior(value) for name, value in config.items())

    @property
    def ordered(self) -> tuple[str, ...]:
        """The names of the parameters, each after its parents."""
        return tuple(name for name, _ in self._ordered)

    def exists(self, name: str, config: Mapping[str, Any]) -> bool:
        """Return whether a parameter exists if the other parameters have these values."""
        return all(
            parent in config and config[parent] in values
            for parent, values in self.parameters[name].when.items()
        )

    def check(self, config: Mapping[str, Any]) -> Config:
        """Return a config as a dict, if it is in the space."""
        if not isinstance(config, Mapping):
            raise OptionError(
                f"config = {config!r}: give values by names; the space has {', '.join(self.parameters)}"
            )
        if unknown := [name for name in config if name not in self.parameters]:
            raise OptionError(f"{unknown[0]!r} is not in the space; it has {', '.join(self.parameters)}")
        config = {name: self.parameters[name].plain(value) for name, value in config.items()}
        for name, parameter in self._ordered:
            exists = self.exists(name, config)
            if exists and name not in config:
                raise OptionError(f"the config has no {name!r}; valid is {parameter}")
            if exists:
                parameter.check(name, config[name])
            if not exists and name in config:
                raise OptionError(f"{name!r} does not exist in this config: it needs {dict(parameter.when)}")
        return {name: config[name] for name, _ in self._ordered if name in config}

    def _check_conditions(self, name: str, parameter: Parameter) -> None:
        for parent, values in parameter.when.items():
            if parent not in self.parameters:
                raise OptionError(f"{name} depends on {parent!r}, which is not in the space")
            other = self.parameters[parent]
            if wrong := [value for value in values if not other.holds(other.plain(value))]:
                raise OptionError(f"{name} depends on {parent} = {wrong[0]!r}, which is outside {other}")

    def _in_order(self) -> tuple[tuple[str, Parameter], ...]:
        """Return the parameters in an order in which each is after its parents."""
        ordered: dict[str, Parameter] = {}
        while len(ordered) < len(self.parameters):
            ready = {
                name: parameter
                for name, parameter in self.parameters.items()
                if name not in ordered and all(parent in ordered for parent in parameter.when)
            }
            if not ready:
                circle = ", ".join(name for name in self.parameters if name not in ordered)
                raise OptionError(f"these parameters depend on each other in a circle: {circle}")
            ordered |= ready
        return tuple(ordered.items())


def _read(name: str, declared: object) -> Parameter:
    """Return a parameter from its declaration in TOML or JSON."""
    if not isinstance(declared, dict) or declared.get("type") not in _KINDS:
        raise OptionError(
            f"{name}: give a Float, Int or Categorical, or a table with type = {' | '.join(_KINDS)}"
        )
    try:
        return _KINDS[declared["type"]](**{key: value for key, value in declared.items() if key != "type"})
    except OptionError as error:
        raise OptionError(f"{name}: {error}") from error
    except TypeError:
        keys = ", ".join(entry.name for entry in fields(_KINDS[declared["type"]]))
        raise OptionError(
            f"{name}: the type {declared['type']} has {keys}; the table has {', '.join(declared)}"
        ) from None


def space_of_options(registry: Registry, names: Sequence[str] | None = None) -> Space:
    """Return the space of a registry's tunable options, or of the named ones.

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


class SpaceInference:
    """The conditions under which parameters exist, as far as configs show them.

    A parameter that some configs do not have depends on the parameters that were suggested before it: it
    exists for the values that they had in the configs with the parameter, if no other config has these
    values. If no values tell the configs apart, the parameter has no condition.

    >>> from onlineauto.tune.spaces import Categorical, Float
    >>> inference = SpaceInference({"loss": Categorical(["a", "b"]), "margin": Float(0, 1)})
    >>> inference.add({"loss": "a"})
    >>> inference.add({"loss": "b", "margin": 0.5})
    >>> inference.conditions()
    {'loss': {}, 'margin': {'loss': ['b']}}
    """

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self._parameters = parameters
        self._parents = {name for name, parameter in parameters.items() if parameter.size <= _FEW}
        # Configs that differ only in values on which nothing depends count once.
        self._patterns: dict[tuple[Any, ...], Config] = {}
        self._n_having = dict.fromkeys(parameters, 0)
        self._free: set[str] = set()
        self._conditions: tuple[int, dict[str, dict[str, list[Any]]]] = -1, {}

    def add(self, config: Mapping[str, Any]) -> None:
        """Add a config."""
        values = {name: config[name] if name in self._parents else None for name in config}
        pattern = tuple((name, _key(value)) for name, value in values.items())
        if pattern not in self._patterns:
            self._patterns[pattern] = values
            for name in self._parameters.keys() & values.keys():
                self._n_having[name] += 1

    def conditions(self) -> dict[str, dict[str, list[Any]]]:
        """Return the conditions of each parameter: values by the parameter on which it depends."""
        n_patterns = len(self._patterns)
        if self._conditions[0] != n_patterns:
            configs = list(self._patterns.values())
            found = {name: dict[str, list[Any]]() for name in self._parameters}
            for name, n_having in self._n_having.items():
                if 0 < n_having < n_patterns and name not in self._free:
                    found[name] = _conditions(name, self._parameters, self._parents, configs)
                    if not found[name]:
                        self._free.add(name)  # further configs cannot tell these apart
            self._conditions = n_patterns, found
        return self._conditions[1]

    def space(self) -> Space:
        """Return the space of the parameters with these conditions."""
        conditions = self.conditions()
        return Space(
            {
                name: parameter.described() | {"when": conditions[name]}
                for name, parameter in self._parameters.items()
            }
        )


def _conditions(
    name: str,
    parameters: Mapping[str, Parameter],
    candidates: Collection[str],
    configs: Sequence[Mapping[str, Any]],
) -> dict[str, list[Any]]:
    when: dict[str, list[Any]] = {}
    having = [config for config in configs if name in config]
    others = [config for config in configs if name not in config]
    earlier = [set(takewhile(lambda other: other != name, config)) for config in having]
    parents = [
        parent for parent in parameters if parent in candidates and all(parent in names for names in earlier)
    ]
    while others:
        left = {}
        for parent in parents:
            values = {_key(config[parent]) for config in having}
            left[parent] = [
                config for config in others if parent in config and _key(config[parent]) in values
            ]
        best = min(left, key=lambda parent: (len(left[parent]), parameters[parent].size), default=None)
        if best is None or len(left[best]) == len(others):
            break
        when[best] = list({_key(config[best]): config[best] for config in having}.values())
        others = left[best]
    return when if not others else {}


def _key(value: Any) -> tuple[bool, Any]:
    return isinstance(value, bool), value
