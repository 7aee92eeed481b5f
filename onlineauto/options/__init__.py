"""Declare, read, check and describe options. The packages that use options declare them.

A group of options is a frozen dataclass whose fields are made with `option`. A `Registry` of groups reads
command lines and keyword arguments into a `Configuration`.
"""

from onlineauto.options.option import (
    TUNABLE,
    Group,
    Log,
    OneOf,
    Option,
    Tunable,
    option,
    options_of,
    title_of,
)
from onlineauto.options.registry import Check, Configuration, Registry

__all__ = [
    "TUNABLE",
    "Check",
    "Configuration",
    "Group",
    "Log",
    "OneOf",
    "Option",
    "Registry",
    "Tunable",
    "option",
    "options_of",
    "title_of",
]
