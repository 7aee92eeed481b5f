"""``Configuration``: the options of one run, as a frozen value for each group."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from onlineauto.options.option import Option, Scalar, options_of
from onlineauto.options.value import to_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.options.tunable import Tunable

G = TypeVar("G")


@dataclass(frozen=True, slots=True)
class Configuration:
    """The values of all options of a registry, made by `Registry.parse` and `Registry.from_keywords`.

    Examples
    --------
    >>> from onlineauto.engine.options.registry import RunOptions
    >>> from onlineauto.workspace.options import REGISTRY
    >>> configuration = REGISTRY.parse("-d surveys.txt --passes 3 -q ab")
    >>> configuration[RunOptions].passes, configuration.get("quadratic")
    (3, ('ab',))
    >>> configuration.command()
    '--data surveys.txt --passes 3 --quadratic ab'
    """

    groups: tuple[object, ...]  # One instance of each option class, in the registry's order.
    # Names of the options that were supplied explicitly, even with the default value.
    supplied: frozenset[str]

    def __getitem__(self, group: type[G]) -> G:
        """Return the values of one group of options."""
        for values in self.groups:
            if type(values) is group:
                return values
        raise KeyError(group.__name__)

    def get(self, name: str) -> object:
        """Return the value of one option by its name."""
        group, field = _places(tuple(map(type, self.groups)))[name]
        return getattr(self.groups[group], field)

    def tunable(self) -> dict[str, tuple[Tunable, Scalar]]:
        """Return for every option that can be searched how it is searched, and its value."""
        return {
            option.name: (option.tunable, cast("Scalar", value))
            for option, value in self._items()
            if option.tunable is not None
        }

    def first_result(self, name: str) -> Any:
        """Return the first result other than None of the groups' methods `name`; None if there is none.

        So a group of a higher layer can pass the meaning of its options to the code of a lower layer.
        """
        brings = (getattr(group, name)() for group in self.groups if hasattr(group, name))
        return next((value for value in brings if value is not None), None)

    def command(self, *, kept: bool = False) -> str:
        """Return the supplied options as a command line, which `Registry.parse` reads as an equal value.

        If `kept`, the command line has only the options that a model keeps.
        """
        words = []
        for option, value in self._items():
            if option.name in self.supplied and (option.keep or not kept):
                words += _words(option, value)
        return shlex.join(words)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return a sentence about each supplied option that has no effect without another option."""
        return tuple(
            f"{option.flag} has no effect without {' or '.join('--' + name for name in option.needs)}"
            for option, _ in self._items()
            if option.name in self.supplied and option.needs and self.supplied.isdisjoint(option.needs)
        )

    def _items(self) -> Iterator[tuple[Option, object]]:
        for values in self.groups:
            for option in options_of(type(values)):
                yield option, getattr(values, option.field)


@lru_cache(maxsize=8)  # a model asks for dozens of options when it is made
def _places(groups: tuple[type, ...]) -> dict[str, tuple[int, str]]:
    """Return the index of the group and the field of each option of these groups, by its name."""
    return {option.name: (at, option.field) for at, kind in enumerate(groups) for option in options_of(kind)}


def _words(option: Option, value: object) -> list[str]:
    """Return the words of the command line that set `option` to `value`."""
    if option.switch:
        return [option.flag]
    several = cast("tuple[Scalar, ...]", value) if option.repeatable else (cast("Scalar", value),)
    words = []
    for each in several:
        text = to_text(each)
        words += [f"{option.flag}={text}"] if text.startswith("-") else [option.flag, text]
    return words
