"""The space of the flags of a learner, and the options of each config in this space."""

from __future__ import annotations

from itertools import chain, combinations, combinations_with_replacement
from typing import TYPE_CHECKING, Any, Final

from onlineauto.engine.options.registry import RunOptions, refuse_command_line
from onlineauto.errors import OptionError
from onlineauto.tune.spaces import Categorical, Float, Int, Space, space_of_options
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from onlineauto.options import Configuration
    from onlineauto.tune.live.live_learner import Events

INTERACTIONS: Final = "interactions"
"""Name for all useful interactions, each of which is a separate parameter: used or not used."""
_SPECIAL: Final = frozenset(b"*:")
"""Bytes with a special meaning in interactions; namespaces that contain them are not crossed."""
_FLAG: Final = "experimental_full_name_interactions"


def base_of(base: str | Mapping[str, Any]) -> Configuration:
    """Return the options that all trials share."""
    configuration = REGISTRY.parse(base) if isinstance(base, str) else REGISTRY.from_keywords(**base)
    refuse_command_line(configuration)
    if configuration[RunOptions].passes > 1:
        raise OptionError("passes: a trial reads its stream once; leave it out")
    if configuration.get("automl"):
        raise OptionError("automl: a trial is one config, without a search; leave it out")
    return configuration


def space_of_flags(names: Sequence[str], events: Events) -> Space:
    """Return the space of named options and, if named, of ``interactions``.

    Interactions are all pairs of namespaces of the stream. If events have actions, each interaction is one or
    two namespaces of the context crossed with one namespace of the actions, because no other interaction
    distinguishes actions.
    """
    if not names:
        raise OptionError(f"search names nothing: name options, or {INTERACTIONS}")
    options = [name for name in names if name != INTERACTIONS]
    parameters = dict(space_of_options(REGISTRY, options).parameters) if options else {}
    if INTERACTIONS in names:
        parameters |= {name: Categorical([False, True]) for name in _searched_interactions(events)}
    return Space(parameters)


def _searched_interactions(events: Events) -> Iterator[str]:
    """Yield the interactions that are searched, as ``a*b``."""
    namespaces = [name for name in events.namespaces if not _SPECIAL.intersection(name)]
    actions = [name for name in namespaces if name in events.of_actions]
    context = [name for name in namespaces if name not in actions]
    interactions: Iterable[tuple[bytes, ...]] = combinations_with_replacement(namespaces, 2)
    if actions:
        crossed = chain(combinations(context, 1), combinations(context, 2))
        interactions = ((*names, action) for names in crossed for action in actions)
    for names in interactions:
        yield "*".join(name.decode("utf-8", "surrogateescape") for name in names)


def config_of(base: Configuration, space: Space, *, crossed: bool = False) -> dict[str, Any]:
    """Return the config of a space that is nearest to the options `base`, with all interactions or none."""
    config: dict[str, Any] = {}
    for name, parameter in space.parameters.items():
        if _is_crossed(name):
            config[name] = crossed
            continue
        value: Any = base.get(name)
        if isinstance(parameter, Float | Int):
            value = min(max(value, parameter.low), parameter.high)
        config[name] = value
    return config


def configure(base: Configuration, config: Mapping[str, Any]) -> Configuration:
    """Return the options of a trial: the base options with those of its config.

    >>> configure(base_of("--quadratic ab"), {"power_t": 0.2, "b*c": True, "a*c": False}).command()
    "--quadratic ab --experimental_full_name_interactions 'b|c' --power_t 0.2"
    """
    options: dict[str, Any] = {option: base.get(option) for option in base.supplied}
    options |= {name: value for name, value in config.items() if not _is_crossed(name)}
    pairs = [name.replace("*", "|") for name, value in config.items() if value is True and _is_crossed(name)]
    if pairs:
        options[_FLAG] = (*options.get(_FLAG, ()), *pairs)
    return REGISTRY.from_keywords(**options)


def _is_crossed(name: str) -> bool:
    return "*" in name
