"""The space of the flags of a learner, and the options of each config in this space."""

from __future__ import annotations

from itertools import chain, combinations, combinations_with_replacement
from typing import TYPE_CHECKING, Any, Final

from onlineauto.automl.options import AutomlOptions
from onlineauto.engine.ensemble.registry import DEFAULT
from onlineauto.engine.options.registry import RunOptions, refuse_command_line
from onlineauto.errors import OptionError
from onlineauto.explorers import EXPLORERS, explorer_keywords
from onlineauto.explorers.options import choose_explorer
from onlineauto.options import options_of
from onlineauto.tune.spaces import Categorical, Float, Int, Space, space_of_options
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from onlineauto.options import Configuration
    from onlineauto.tune.live.live_learner import Events
    from onlineauto.tune.spaces import Parameter

INTERACTIONS: Final = "interactions"
"""Name for all useful interactions, each of which is a separate parameter: used or not used."""
_SPECIAL: Final = frozenset(b"*:")
"""Bytes with a special meaning in interactions; namespaces that contain them are not crossed."""
_FLAG: Final = "experimental_full_name_interactions"
SEARCHED: Final = ("learning_rate", "power_t", INTERACTIONS)
"""What is searched by default if trials are single configs."""
OF_SEARCH: Final = ("automl", "default_lease", "learning_rate")
"""What is searched by default if trials are searches, with ``--automl``."""
EXPLORER: Final = "explorer"
"""Name for the explorer, which is a flag of its own on the command line."""
_DEFAULTS: Final = {"automl": 4, "default_lease": 2000, "oracle_type": "stepwise", "estimator": "paired"}


def base_of(base: str | Mapping[str, Any]) -> Configuration:
    """Return the options that all trials share."""
    configuration = REGISTRY.parse(base) if isinstance(base, str) else REGISTRY.from_keywords(**base)
    refuse_command_line(configuration)
    if configuration[RunOptions].passes > 1:
        raise OptionError("passes: a trial reads its stream once; leave it out")
    return configuration


def default_search(base: Configuration) -> tuple[str, ...]:
    """Return the names that are searched by default: flags of a config, or those of a search."""
    return SEARCHED if base.get("automl") is None else OF_SEARCH


def space_of_flags(names: Sequence[str], events: Events) -> Space:
    """Return the space of named options and, if named, of ``interactions``.

    An option may have its name, its alias or its keyword: ``lease``, ``live_configs``. Interactions are all
    pairs of namespaces of the stream. If events have actions, each interaction is one or two namespaces of
    the context crossed with one namespace of the actions, because no other interaction distinguishes actions.
    """
    if not names:
        raise OptionError(f"search names nothing: name options, or {INTERACTIONS}")
    searched = _search_parameters()
    known = {
        other: option.name
        for option in REGISTRY.options
        for other in (option.name, option.keyword, *option.aliases)
    }
    options = [known.get(name, name) for name in names if name != INTERACTIONS]
    plain = [name for name in options if name not in searched]
    try:
        parameters = dict(space_of_options(REGISTRY, plain).parameters) if plain else {}
    except OptionError as error:
        raise OptionError(f"{error}; and of a search (--automl): {', '.join(searched)}") from None
    parameters = {name: searched.get(name) or parameters[name] for name in options}
    if INTERACTIONS in names:
        parameters |= {name: Categorical([False, True]) for name in _searched_interactions(events)}
    return Space(parameters)


def _search_parameters() -> dict[str, Parameter]:
    """Return the parameters of a streaming search that an outer tuner may search."""
    choices = {option.name: option.words for option in options_of(AutomlOptions) if option.choices}
    members = [DEFAULT, *(",".join(kept) for kept in (("features", "waves"), ("features",), ("none",)))]
    explorers = [name for name in ("greedy", "softmax", "squarecb", "synthcover") if name in EXPLORERS]
    return {
        "automl": Int(1, 16, log=True),
        "default_lease": Int(125, 16_000, log=True),
        "feature_cost": Float(1e-6, 1e-2, log=True),
        "automl_significance_level": Float(0.005, 0.5, log=True),
        "member_budget": Float(10, 1000, log=True),
        "members": Categorical(members),
        EXPLORER: Categorical(explorers),
        **{name: Categorical(words) for name, words in choices.items()},
    }


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
        value: Any = choose_explorer(base).name if name == EXPLORER else base.get(name)
        if value is None:  # the option's default depends on others
            value = _DEFAULTS.get(name)
        if isinstance(parameter, Categorical) and value not in parameter.values:
            value = parameter.values[0]
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
    if EXPLORER in options:  # in place of that of the base
        flags = {flag for explorer in EXPLORERS.values() for flag in explorer.flags}
        chosen = explorer_keywords(options.pop(EXPLORER))
        options = {name: value for name, value in options.items() if name not in flags} | chosen
    pairs = [name.replace("*", "|") for name, value in config.items() if value is True and _is_crossed(name)]
    if pairs:
        options[_FLAG] = (*options.get(_FLAG, ()), *pairs)
    return REGISTRY.from_keywords(**options)


def _is_crossed(name: str) -> bool:
    return "*" in name
