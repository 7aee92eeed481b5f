"""The registry of all options, and the conversion of a caller's options."""

from __future__ import annotations

from typing import Any, Final

from onlineauto.engine.ensemble.options import EnsembleOptions, check_members
from onlineauto.engine.ensemble.registry import extend as extend_by_members
from onlineauto.engine.options.registry import CHECKS, GROUPS, refuse_command_line
from onlineauto.errors import OptionError
from onlineauto.exact.options import ExactOptions, check_exact
from onlineauto.explorers import extend
from onlineauto.explorers.options import check_effects
from onlineauto.options import Configuration, Registry


def _check_effects(configuration: Configuration) -> None:
    """Reject options that the chosen explorer does not use; exact mode accepts them, like Vowpal Wabbit."""
    if not configuration[ExactOptions].vw_exact:
        check_effects(configuration)


REGISTRY: Final = Registry(
    (*GROUPS, EnsembleOptions, ExactOptions), checks=(check_exact, *CHECKS, check_members, _check_effects)
)
"""The source of the command line, the Python API, the help and the documentation."""

extend(REGISTRY)
extend_by_members(REGISTRY)


def parse_given_options(configuration: Configuration | str | None, **keywords: Any) -> Configuration:
    """Return the options of a caller: parsed ones, a text as on a command line, or keywords."""
    if configuration is not None and keywords:
        raise OptionError("options go either into the configuration or into keywords, not into both")
    if isinstance(configuration, Configuration):
        return configuration
    if configuration is None:
        options = REGISTRY.from_keywords(**keywords)
    elif isinstance(configuration, str):
        options = REGISTRY.parse(configuration)
    else:
        raise OptionError(
            f"{configuration!r} has no options; give keywords, or a text such as '-q ua --automl 4'"
        )
    refuse_command_line(options)
    return options
