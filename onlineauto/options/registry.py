"""``Registry``: all options of a program; it reads command lines and keyword arguments."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, Signature
from types import MappingProxyType
from typing import Any

from onlineauto.errors import OptionError
from onlineauto.options.command_line import split
from onlineauto.options.configuration import Configuration
from onlineauto.options.option import TUNABLE, Group, Option, options_of
from onlineauto.options.unknown import unknown_option
from onlineauto.options.value import from_python, from_text

Check = Callable[[Configuration], None]
"""A function that raises `OptionError` if options contradict each other."""


class Registry:
    """The options of several groups, as one set of flags."""

    def __init__(self, groups: Sequence[Group], *, checks: Sequence[Check] = ()) -> None:
        self.groups: tuple[Group, ...] = ()
        self.options: tuple[Option, ...] = ()
        self._checks = tuple(checks)
        self._by_flag: Mapping[str, Option] = {}
        self.add(*groups)

    def add(self, *groups: Group) -> None:
        """Append groups of options; the command line, keywords and help include them from then on.

        A package that adds an explorer or a hyperparameter adds its options before it makes or loads a model.
        An existing configuration does not get them.
        """
        together = (*self.groups, *groups)
        options = tuple(option for group in together for option in options_of(group))
        self._by_flag = MappingProxyType(_by_flag(options))
        self._by_keyword = {option.keyword: option for option in options if option.keyword}
        self._positional = next((option for option in options if option.positional), None)
        self.groups, self.options = together, options

    def __getitem__(self, name: str) -> Option:
        """Return an option by its name, for example ``registry["epsilon"]``."""
        return self._by_flag["--" + name]

    def meaning(self, option: Option) -> str:
        """Return the description of an option for users: its help, its choices and its other names."""
        tunable = (each.name for each in self.options if each.tunable)
        parts = [option.help.replace(TUNABLE, ", ".join(tunable))]
        if option.choices:
            parts.append(f"One of {', '.join(option.choices)}.")
        if option.repeatable:
            parts.append("Repeatable.")
        if option.const is not None:
            parts.append(f"Without a number: {option.const}.")
        if option.aliases:
            parts.append(f"Also {', '.join('--' + alias for alias in option.aliases)}.")
        return " ".join(parts)

    def parse(self, words: str | Sequence[str]) -> Configuration:
        """Return the configuration of a command line, which is a list of words or one string for a shell."""
        if isinstance(words, str):
            words = _split(words)
        supplied: dict[str, Any] = {}
        for option, texts in split(words, options=self._by_flag, positional=self._positional):
            if option.switch:
                supplied[option.name] = True
            elif option.repeatable:
                values = tuple(from_text(option, text) for text in texts)
                supplied[option.name] = supplied.get(option.name, ()) + values
            else:
                value = from_text(option, texts[0])
                if supplied.setdefault(option.name, value) != value:
                    raise OptionError(f"{option.flag} is given as {supplied[option.name]!r} and as {value!r}")
        return self._configuration(supplied)

    def parse_kept(self, words: str | Sequence[str]) -> Configuration:
        """Return the configuration of a command line in a file, which may only have options of models.

        All other options must come from the user of the program, since some of them name files to write.
        """
        configuration = self.parse(words)
        for option in self.options:
            if option.name in configuration.supplied and not option.keep:
                raise OptionError(
                    f"{option.flag} applies only to the command line and is not stored in models"
                )
        return configuration

    def from_keywords(self, **keywords: object) -> Configuration:
        """Return the configuration of keywords such as ``cb_explore_adf=True, quadratic=["ab", "ac"]``.

        Names may be long or short, with underscores or dashes, or the `keyword` of an option. A repeatable
        option takes one value or several. ``None`` means "not supplied" for every option, and so does
        ``False`` for a switch.
        """
        supplied: dict[str, Any] = {}
        for keyword, value in keywords.items():
            option = self._find_option(keyword)
            if value is None:
                continue
            if option.name in supplied:
                raise OptionError(f"{option.flag} is given twice")
            setting = _values_of(option, value) if option.repeatable else from_python(option, value)
            if setting or not (option.switch or option.repeatable):
                supplied[option.name] = setting
        return self._configuration(supplied)

    def signature(self) -> Signature:
        """Return the keyword-only signature of a callable that takes every option."""
        return Signature([_parameter(option) for option in self.options])

    def _find_option(self, keyword: str) -> Option:
        flag = "-" + keyword if len(keyword) == 1 else "--" + keyword.replace("-", "_").rstrip("_")
        option = self._by_flag.get(flag) or self._by_keyword.get(keyword)
        if option is None:
            raise unknown_option(flag, known=self._by_flag)
        return option

    def _configuration(self, supplied: dict[str, Any]) -> Configuration:
        """Return the configuration of the supplied values after all checks."""
        groups = []
        for group in self.groups:
            options = [option for option in options_of(group) if option.name in supplied]
            groups.append(group(**{option.field: supplied[option.name] for option in options}))
        configuration = Configuration(groups=tuple(groups), supplied=frozenset(supplied))
        for check in self._checks:
            check(configuration)
        return configuration


def _split(line: str) -> list[str]:
    """Split a command line into words by the rules of a shell."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise OptionError(f"{line!r} is not a command line: {error}") from None


def _by_flag(options: Iterable[Option]) -> dict[str, Option]:
    flags: dict[str, Option] = {}
    for option in options:
        short = [f"-{option.short}"] if option.short else []
        for flag in (option.flag, *short, *("--" + alias for alias in option.aliases)):
            if flag in flags:
                raise ValueError(f"{flag} is declared twice")
            flags[flag] = option
    return flags


def _values_of(option: Option, value: object) -> tuple[Any, ...]:
    """Return the values of a repeatable option from one value or several."""
    if isinstance(value, list | tuple):
        return tuple(from_python(option, each) for each in value)
    return (from_python(option, value),)


def _parameter(option: Option) -> Parameter:
    """Return the keyword parameter of an option, annotated with the types that `from_keywords` accepts."""
    annotation: Any = option.kind | None if option.optional else option.kind
    if option.repeatable:
        annotation = str | Sequence[str]
    return Parameter(
        option.keyword or option.field, Parameter.KEYWORD_ONLY, default=option.default, annotation=annotation
    )
