"""Declare options: a flag is a field of a frozen dataclass, made with ``option``; check its value."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field, fields, replace
from functools import partial
from keyword import iskeyword
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin, get_type_hints

from onlineauto.errors import OptionError, short_repr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


Group = type[Any]
"""A frozen dataclass whose fields are options."""

TUNABLE: Final = "{tunable}"
"""Placeholder in the help of an option for the names of all options that can be searched."""

Scalar = bool | int | float | str
T = TypeVar("T")

_KEY: Final = "option"
_READ: Final[dict[Group, tuple[Option, ...]]] = {}
_KINDS: Final[tuple[type[Scalar], ...]] = (bool, int, float, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    # Called as ``write(record, value, default)``: writes a value into the record of a live config's settings;
    # the default is the value of the command line.
    write: Callable[[Any, Any, Any], object]


@dataclass(frozen=True, slots=True)
class Log(_Written):
    """A positive number that is searched on a logarithmic scale."""

    low: float  # Bounds of the space of an outer tuner. The streaming search may step beyond them.
    high: float
    factors: tuple[float, ...] = (4.0, 0.25)  # A step multiplies the value by one of these, in this order.
    first: float = 0.0  # The first value tried if the option is 0; 0: such an option is not searched.
    # Returns whether a value is valid for the option, whose declaration sets it. Other values are not tried.
    valid: Callable[[float], bool] = field(default=math.isfinite, compare=False, repr=False)

    def neighbours(self, value: float) -> Sequence[float]:
        """Return the values one step away from `value`, in the order in which they are tried.

        >>> Log(1e-3, 1, factors=(10.0, 0.1), first=0.5, write=print).neighbours(0.0)
        [0.5]
        """
        if value == 0.0:
            steps = [self.first] if self.first else []
        else:
            steps = [value * factor for factor in self.factors]
        return [each for each in steps if self.valid(each)]


@dataclass(frozen=True, slots=True)
class OneOf(_Written):
    """One of several words."""

    values: tuple[str, ...]  # The words to try, in this order.

    def neighbours(self, value: str) -> Sequence[str]:
        """Return all other words.

        >>> OneOf(("mtr", "dr"), write=print).neighbours("dr")
        ['mtr']
        """
        return [each for each in self.values if each != value]


Tunable = Log | OneOf
"""How an option is searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """The declaration of one flag."""

    # The flag's name without ``--``; also the name of the field and of the Python keyword, see `field`.
    name: str = ""
    kind: type[Scalar] = str  # ``bool`` (a switch), ``int``, ``float`` or ``str``: the type of one value.
    repeatable: bool = False  # The flag can be given several times; its value is then a tuple of `kind`.
    optional: bool = False  # "Not supplied" is a separate value (None).
    default: object = None  # The value when the flag is not supplied.
    help: str  # One or two sentences for ``--help`` and the option table.
    short: str | None = None  # The one-letter name without ``-``.
    # Vowpal Wabbit 9.11.9 has this option under the same name. The group may have another default, `vw`.
    vw: bool = True
    keep: bool = False  # A model file stores the option, because learning or prediction depends on it.
    override: bool = False  # A stored option can have another value when a model is loaded.
    minimum: float | None = None  # Inclusive bounds of a number.
    maximum: float | None = None
    above: float | None = None  # Exclusive bounds of a number.
    below: float | None = None
    choices: tuple[str, ...] = ()  # The valid words; empty if any word is valid.
    metavar: str = ""  # The name of the value in the help.
    positional: bool = False  # Words on the command line that belong to no flag are values of this option.
    needs: tuple[str, ...] = ()  # Options; this one has no effect without at least one of them.
    because: str = ""  # The reason for the bounds, for the message about an invalid value.
    aliases: tuple[str, ...] = ()  # Other names of the option.
    keyword: str = ""  # The name in Python, if it is not the flag's; the flag's name is then an alias.
    synonyms: tuple[tuple[str, str], ...] = ()  # Pairs of a word and the choice that replaces it.
    listed: bool = False  # The word has parts, separated by commas. In Python it may be a list or tuple.
    const: Scalar | None = None  # The value of a flag that is passed without one; None if it needs a value.
    tunable: Tunable | None = None  # How the value is searched; None if it is not searched.

    @property
    def flag(self) -> str:
        """The flag as it is typed, for example ``--quadratic``."""
        return "--" + self.name

    @property
    def field(self) -> str:
        """The name of the field and of the keyword, with an underscore after a reserved word of Python."""
        return self.name + "_" if iskeyword(self.name) else self.name

    @property
    def switch(self) -> bool:
        """True if the flag takes no value."""
        return self.kind is bool


def option(default: T, help: str, **declared: Any) -> T:  # noqa: A002  (the word every reader knows)
    """Declare an option as a field of a frozen dataclass; the parameters are the fields of `Option`.

    The field's annotation determines the values of the flag: ``bool`` is a switch, ``int``, ``float`` and
    ``str`` take one value, ``X | None`` is None if not supplied, and ``tuple[str, ...]`` can be repeated.
    Static types see the field's value, as with `dataclasses.field`.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True, kw_only=True)
    ... class StepOptions:
    ...     title = "Step size"
    ...     learning_rate: float = option(0.5, "Step size.", short="l", minimum=0)
    >>> [declared.flag for declared in options_of(StepOptions)]
    ['--learning_rate']
    """
    result: T = field(default=default, metadata={_KEY: {"default": default, "help": help, **declared}})
    return result


def options_of(group: Group) -> tuple[Option, ...]:
    """Return the options that a dataclass declares, in the order of its fields."""
    if group not in _READ:
        _READ[group] = tuple(_declarations(group))
    return _READ[group]


def title_of(group: Group) -> str:
    """Return the heading of a group of options."""
    return str(group.title)


def _declarations(group: Group) -> Iterator[Option]:
    hints, own = get_type_hints(group), vars(group).get("__annotations__", {})
    for declared in sorted(fields(group), key=lambda each: each.name not in own):  # inherited options last
        metadata: Mapping[str, Any] = declared.metadata
        if _KEY not in metadata:
            raise TypeError(f"{group.__name__}.{declared.name} is not declared with option()")
        name = declared.name.rstrip("_")  # for example lambda_, since lambda is a reserved word
        settings = {"vw": getattr(group, "vw", True)} | metadata[_KEY]
        yield _complete(Option(**settings), name=name, annotation=hints[declared.name])


def _complete(declared: Option, *, name: str, annotation: Any) -> Option:
    """Return `declared`, completed from the field's name and annotation."""
    repeatable = annotation == tuple[str, ...]
    optional = get_origin(annotation) is UnionType and NoneType in get_args(annotation)
    kind = str if repeatable else annotation
    if optional:
        kind = next(each for each in get_args(annotation) if each is not NoneType)
    if kind not in _KINDS:
        raise TypeError(f"--{name}: an option cannot be annotated {annotation}")
    metavar = declared.metavar or ("" if kind is bool else kind.__name__.upper())
    tunable = declared.tunable
    if isinstance(tunable, Log):
        tunable = replace(tunable, valid=partial(is_within, declared))
    return replace(
        declared,
        name=name,
        kind=kind,
        repeatable=repeatable,
        optional=optional,
        metavar=metavar,
        tunable=tunable,
    )


_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,999}")  # Python reads a few thousand digits
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def from_text(option: Option, text: str) -> Scalar:
    """Return the value of `text` on the command line."""
    if option.kind is int and _INTEGER.fullmatch(text):
        return _check_value(option, int(text), text)
    if option.kind is float and _NUMBER.fullmatch(text):
        return _check_value(option, float(text), text)
    if option.kind is str and text:
        return _check_value(option, text, text)
    raise _invalid(option, repr(text))


def from_python(option: Option, value: object) -> Scalar:
    """Return the value of a Python argument: a number of any library, a path or a word.

    Instead of a word, a number is accepted, too: ``progress=1000`` is ``progress="1000"``. For a list, a list
    or tuple is accepted: ``cost_range=(0, 1)`` is ``cost_range="0,1"``. True is the flag without a number:
    ``automl=True`` is ``automl=4``.
    """
    if option.kind is bool or isinstance(value, bool):
        if option.kind is bool and isinstance(value, bool):
            return value
        if value is True and option.const is not None:
            return option.const
    elif isinstance(value, os.PathLike) and option.kind is str:
        return from_text(option, os.fsdecode(value))
    elif isinstance(value, str) and option.kind is str:
        return from_text(option, value)
    elif (text := _text(option, value)) is not None:
        return from_text(option, text)
    raise _invalid(option, short_repr(value))


def _text(option: Option, value: object) -> str | None:
    """Return numbers as on the command line; None for other values, and for numbers with too many digits."""
    try:
        if isinstance(value, list | tuple) and option.listed:
            return ",".join(map(str, value))
        if isinstance(value, Integral):
            return str(int(value))
        if isinstance(value, Real) and option.kind is not int:
            return repr(float(value))
    except (ValueError, OverflowError):
        pass
    return None


def to_text(value: Scalar) -> str:
    """Return a value as text that `from_text` reads back as the same value."""
    return repr(value) if isinstance(value, float) else str(value)


def is_within(option: Option, value: float) -> bool:
    """Return whether a number is finite and within the bounds of an option."""
    return (
        math.isfinite(value)
        and (option.minimum is None or value >= option.minimum)
        and (option.maximum is None or value <= option.maximum)
        and (option.above is None or value > option.above)
        and (option.below is None or value < option.below)
    )


def valid_values(option: Option) -> str:
    """Return a description of an option's valid values, such as ``a number from 0 to 1``."""
    if option.choices:
        return "one of " + ", ".join(option.choices)
    if option.listed:
        return f"{option.metavar}, separated by commas"
    if option.kind is str:
        return "a word that is not empty"
    if option.kind is bool:
        return "True or False"
    noun = "a whole number" if option.kind is int else "a number"
    low, high = option.minimum, option.maximum
    if low is not None and high is not None:
        return f"{noun} from {_limit(low)} to {_limit(high)}"
    limits = [("of at least", low), ("above", option.above), ("of at most", high), ("below", option.below)]
    return " ".join(
        [noun, " and ".join(f"{word} {_limit(limit)}" for word, limit in limits if limit is not None)]
    ).strip()


def _check_value(option: Option, value: Scalar, text: str) -> Scalar:
    """Return a value after checking choices and bounds; a synonym is replaced by its choice."""
    value = dict(option.synonyms).get(text, value)
    chosen = not option.choices or value in option.choices
    if not chosen or not (isinstance(value, str) or is_within(option, value)):
        raise _invalid(option, text if len(text) <= 80 else f"{text[:77]}...")
    return value


def _limit(limit: float) -> str:
    """Return a bound as text; a bound 2^n - 1 of many bits is written like ``2^63 - 1``."""
    bits = int(limit).bit_length()
    return f"2^{bits} - 1" if bits > 30 and limit == 2**bits - 1 else str(limit)


def _invalid(option: Option, text: str) -> OptionError:
    reason = f" ({option.because})" if option.because else ""
    return OptionError(f"{option.flag} cannot be {text}; it takes {valid_values(option)}{reason}")
