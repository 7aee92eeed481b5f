"""The space of the flags of a learner, and the options that a config of it stands for."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from onlineauto.engine.options.registry import RunOptions, refuse_command_line
from onlineauto.errors import OptionError
from onlineauto.tune.spaces import Choice, Float, Int, Space, space_of_options
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from onlineauto.options import Configuration
    from onlineauto.tune.live.events import Events

__all__ = ["base_of", "config_of", "configured", "space_of_flags"]

INTERACTIONS: Final = "interactions"
"""Names all pairs of namespaces, each a parameter of its own: used or not."""
_SPECIAL: Final = frozenset(b"*:")
"""Bytes that mean something where interactions are written; a namespace with one is not crossed."""
_CROSSED: Final = "experimental_full_name_interactions"


def base_of(base: str | Mapping[str, Any]) -> Configuration:
    """Return the options that all trials have in common.

    Raises
    ------
    OptionError
        An option is unknown, or none that a trial could have.
    """
    configuration = REGISTRY.parse(base) if isinstance(base, str) else REGISTRY.from_keywords(**base)
    refuse_command_line(configuration)
    if configuration[RunOptions].passes > 1:
        raise OptionError("passes: a trial reads its stream once; leave it out")
    if configuration.get("automl"):
        raise OptionError("automl: a trial is one config, which does not search by itself; leave it out")
    return configuration


def space_of_flags(names: Sequence[str], events: Events) -> Space:
    """Return the space of options, by their names, and of ``interactions``.

    Pairs of namespaces are those that the stream has. If events have actions, one of the two is of actions:
    no other pair distinguishes them.

    Raises
    ------
    OptionError
        If there are no names, or a name is not that of a tunable option.
    """
    if not names:
        raise OptionError(f"search names nothing: name options, or {INTERACTIONS}")
    options = [name for name in names if name != INTERACTIONS]
    parameters = dict(space_of_options(REGISTRY, options).parameters) if options else {}
    if INTERACTIONS in names:
        parameters |= {pair: Choice([False, True]) for pair in _pairs(events)}
    return Space(parameters)


def _pairs(events: Events) -> Iterator[str]:
    """Yield the pairs of namespaces that are searched, as ``a*b``."""
    actions = events.of_actions
    names = [name for name in events.namespaces if not _SPECIAL.intersection(name)]
    for pair in combinations(names, 2):
        if not actions or actions.intersection(pair):
            yield "*".join(name.decode("utf-8", "surrogateescape") for name in pair)


def config_of(base: Configuration, space: Space) -> dict[str, Any]:
    """Return the config of a space that is nearest to some options: usually theirs."""
    config: dict[str, Any] = {}
    for name, parameter in space.parameters.items():
        if _is_pair(name):
            config[name] = False
            continue
        value: Any = base.get(name)
        if isinstance(parameter, Float | Int):
            value = min(max(value, parameter.low), parameter.high)
        config[name] = value
    return config


def configured(base: Configuration, config: Mapping[str, Any]) -> Configuration:
    """Return the options of a trial: those of the base, and those of its config.

    >>> configured(base_of("--quadratic ab"), {"power_t": 0.2, "b*c": True, "a*c": False}).command()
    "--quadratic ab --experimental_full_name_interactions 'b|c' --power_t 0.2"
    """
    given: dict[str, Any] = {option: base.get(option) for option in base.supplied}
    given |= {name: value for name, value in config.items() if not _is_pair(name)}
    pairs = [name.replace("*", "|") for name in _used(config)]
    if pairs:
        given[_CROSSED] = (*given.get(_CROSSED, ()), *pairs)
    return REGISTRY.from_keywords(**given)


def _used(config: Mapping[str, Any]) -> Iterable[str]:
    return (name for name, value in config.items() if value is True and _is_pair(name))


def _is_pair(name: str) -> bool:
    return "*" in name
