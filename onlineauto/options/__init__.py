"""Declare, read, check and describe options. The packages that use options declare them.

A group of options is a frozen dataclass whose fields are made with `option`. A `Registry` of groups reads
command lines and keyword arguments into a `Configuration`.
"""

from onlineauto.options.parts import Parts
from onlineauto.options.registry import (
    TUNABLE,
    Check,
    Configuration,
    Group,
    Log,
    OneOf,
    Option,
    Registry,
    Tunable,
    option,
    options_of,
    title_of,
)

__all__ = [
    "TUNABLE",
    "Check",
    "Configuration",
    "Group",
    "Log",
    "OneOf",
    "Option",
    "Parts",
    "Registry",
    "Tunable",
    "option",
    "options_of",
    "title_of",
]
