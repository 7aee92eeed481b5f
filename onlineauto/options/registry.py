"""``Registry``: all options of a program; it reads command lines and keywords into a `Configuration`."""

from __future__ import annotations

import difflib
import math
import os
import re
import shlex
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from inspect import Parameter, Signature, get_annotations
from keyword import iskeyword
from numbers import Integral, Real
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_args, get_origin, get_type_hints

from onlineauto.errors import OptionError, short_repr
from onlineauto.options.parts import Parts
from onlineauto.options.vw_names import INSTEAD, NAMES, SHORT_NAMES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


G = TypeVar("G")

Group = type[Any]
"""A frozen dataclass whose fields are options."""
TUNABLE: Final = "{tunable}"
"""Placeholder in the help of an option for the names of all options that can be searched."""
Scalar = bool | int | float | str
T = TypeVar("T")
_KEY: Final = "option"
_KINDS: Final[tuple[type[Scalar], ...]] = (bool, int, float, str)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,999}")  # Python reads a few thousand digits
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

_READ: Final[dict[Group, tuple[Option, ...]]] = {}


def read_settings(path: str | os.PathLike[str]) -> str:
    """Return the text of a file of settings, without the byte order mark that some editors write."""
    return Path(path).read_text("utf-8-sig")


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
        return [step for step in steps if self.valid(step)]


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
    minimum: float | None = None  # The inclusive lower bound of a number.
    maximum: float | None = None  # The inclusive upper bound of a number.
    above: float | None = None  # The exclusive lower bound of a number.
    below: float | None = None  # The exclusive upper bound of a number.
    # The valid words, empty if any word is valid; or parts, whose names are the valid words at any time.
    choices: tuple[str, ...] | Parts[Any] = ()
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
    def words(self) -> tuple[str, ...]:
        """The valid words now, including those of installed packages; empty if any word is valid."""
        return self.choices.names() if isinstance(self.choices, Parts) else self.choices

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
    hints, own = get_type_hints(group), get_annotations(group)
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
        kind = next(argument for argument in get_args(annotation) if argument is not NoneType)
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
        more = ", or your own (--import, or register)" if isinstance(option.choices, Parts) else ""
        return f"one of {', '.join(option.words)}{more}"
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
    for word in several:
        text = to_text(word)
        words += [f"{option.flag}={text}"] if text.startswith("-") else [option.flag, text]
    return words


Check = Callable[[Configuration], None]
"""A function that raises `OptionError` if options contradict each other."""

_NEGATIVE: Final = re.compile(r"-(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)", re.IGNORECASE)


def _split(
    words: Sequence[str], *, options: Mapping[str, Option], positional: Option | None
) -> list[tuple[Option, list[str]]]:
    """Split a command line into options and their words, by Vowpal Wabbit's rules.

    `argparse` cannot follow these rules. On Python 3.11 it takes ``-1e-3`` for a flag, it reads ``-tq ab`` as
    two flags, and after ``--quadratic=ab cd`` it takes ``cd`` for the data file. The rules are shorter than
    the exceptions would be:

    * A flag of one value takes the next word, regardless of its form, or the text after ``=`` or the letter:
      ``--passes 3``, ``--passes=3``, ``-b18``.
    * A flag that can be repeated takes every word up to the next flag: ``-q ab cd``.
    * A switch takes no value; ``-tq`` is an error.
    * ``-`` and negative numbers are not flags. After ``--`` there are no flags.
    * A word that no flag takes names the data file.

    There is one deviation. A value that is also a known flag is rejected, as in ``-p --quiet``, since most
    likely a file name is missing. Write ``--predictions=--quiet`` to use such a value.

    Source: Vowpal Wabbit, vowpalwabbit/config/src/options_cli.cc.
    """
    left = deque(words)
    result = []
    unknown: list[str] = []
    while left:
        word = left.popleft()
        if word == "--":
            result += [(_positional(positional, rest), [rest]) for rest in left]
            break
        if not _is_flag(word):
            if not unknown:  # a word after an unknown flag may be its value
                result.append((_positional(positional, word), [word]))
            continue
        flag, attached = _split_word(word)
        if flag not in options:
            unknown.append(flag)
            continue
        result.append((options[flag], _take_words(options[flag], flag, attached, left=left, options=options)))
    if unknown:
        raise _unknown_options(unknown, known=options)
    return result


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and not _NEGATIVE.fullmatch(word)


def _split_word(word: str) -> tuple[str, str | None]:
    """Split ``--name=value`` or ``-nvalue`` into the flag and the value, None if there is none."""
    if not word.startswith("--"):
        return word[:2], word[2:] or None
    flag, sign, value = word.partition("=")
    if sign and not value:
        raise OptionError(f"{flag}= has nothing after the =")
    return flag, value or None


def _take_words(
    option: Option, flag: str, attached: str | None, *, left: deque[str], options: Mapping[str, Option]
) -> list[str]:
    """Remove the words of `option` from the front of `left` and return them."""
    if option.switch:
        if attached is not None:
            raise OptionError(f"{flag} is a switch and takes no value, but {attached!r} is attached to it")
        return []
    if attached is not None:
        words = [attached]
    elif left and not (_is_flag(left[0]) and _split_word(left[0])[0] in options):
        words = [left.popleft()]
    elif option.const is not None:
        words = [str(option.const)]
    else:
        problem = f"but the option {left[0]} follows it" if left else "but it is the last word"
        raise OptionError(f"{flag} takes a value, {problem}")
    while option.repeatable and left and not _is_flag(left[0]):
        words.append(left.popleft())
    return words


def _positional(option: Option | None, word: str) -> Option:
    if option is None:
        raise OptionError(f"unexpected word {word!r}: this command takes options only")
    return option


class Registry:
    """The options of several groups, as one set of flags."""

    def __init__(self, groups: Sequence[Group], *, checks: Sequence[Check] = ()) -> None:
        self.groups: tuple[Group, ...] = ()
        self.options: tuple[Option, ...] = ()
        self._checks = tuple(checks)
        self._by_flag: Mapping[str, Option] = {}
        self.on_unknown: list[Callable[[], None]] = []  # Functions that may add groups for an unknown flag.
        self.add(*groups)

    def add(self, *groups: Group) -> None:
        """Append groups of options; the command line, keywords and help include them from then on.

        A package that adds an explorer or a hyperparameter adds its options before it makes or loads a model.
        An existing configuration does not get them.
        """
        self._by_flag = MappingProxyType(self.check_addition(*groups))
        together = (*self.groups, *groups)
        options = tuple(option for group in together for option in options_of(group))
        self._by_keyword = {option.keyword: option for option in options if option.keyword}
        self._positional = next((option for option in options if option.positional), None)
        self.groups, self.options = together, options

    def check_addition(self, *groups: Group) -> dict[str, Option]:
        """Return all options by flag as after `add`; raise `ValueError` if a flag is declared twice."""
        return _by_flag(option for group in (*self.groups, *groups) for option in options_of(group))

    def __getitem__(self, name: str) -> Option:
        """Return an option by its name, for example ``registry["epsilon"]``."""
        return self._by_flag["--" + name]

    def meaning(self, option: Option) -> str:
        """Return the description of an option for users: its help, its choices and its other names."""
        tunable = (declared.name for declared in self.options if declared.tunable)
        parts = [option.help.replace(TUNABLE, ", ".join(tunable))]
        if option.choices:
            parts.append(f"One of {', '.join(option.words)}.")
        parts += [f"{word} is {choice}." for word, choice in option.synonyms]
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
            words = _shell_words(words)
        supplied: dict[str, Any] = {}
        for option, texts in self._split(words):
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

    def _split(self, words: Sequence[str]) -> list[tuple[Option, list[str]]]:
        """Split a command line into options and their words, again if its error has made options known."""
        try:
            return _split(words, options=self._by_flag, positional=self._positional)
        except OptionError:
            if not self._has_grown():
                raise
        return _split(words, options=self._by_flag, positional=self._positional)

    def _has_grown(self) -> bool:
        """Call `on_unknown`, and return whether there are more options than before."""
        before = len(self.options)
        for function in self.on_unknown:
            function()
        return len(self.options) > before

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
        if option is None and self._has_grown():
            return self._find_option(keyword)
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


def _shell_words(line: str) -> list[str]:
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
        return tuple(from_python(option, item) for item in value)
    return (from_python(option, value),)


def _parameter(option: Option) -> Parameter:
    """Return the keyword parameter of an option, annotated with the types that `from_keywords` accepts."""
    annotation: Any = option.kind | None if option.optional else option.kind
    if option.repeatable:
        annotation = str | Sequence[str]
    return Parameter(
        option.keyword or option.field, Parameter.KEYWORD_ONLY, default=option.default, annotation=annotation
    )


_REMOVED: Final = {
    "threads": "large files are always read ahead, and --workers N learns with N threads",
}
_NEAR: Final = 0.75
"""Minimum similarity, from 0 to 1, of a known flag that the message suggests."""


def unknown_option(flag: str, *, known: Collection[str]) -> OptionError:
    """Return the error for a flag that is not in `known`.

    Examples
    --------
    >>> print(unknown_option("--epsilom", known=["--epsilon", "--passes"]))
    unknown option --epsilom; did you mean --epsilon?
    """
    name = _long_name(flag)
    if name in _REMOVED:
        return OptionError(f"{flag} is no option any more: {_REMOVED[name]}")
    if name == "budget":
        return OptionError(f"{flag} is an option of `onlineauto serve`, `route` and policies of `evaluate`")
    if name in NAMES:
        hint = f": {_instead(name)}" if name in INSTEAD else ""
        return OptionError(f"{flag} is an option of Vowpal Wabbit that onlineauto does not have{hint}")
    near = difflib.get_close_matches("--" + name.replace("-", "_"), known, n=1, cutoff=_NEAR)
    if near:
        return OptionError(f"unknown option {flag}; did you mean {near[0]}?")
    return OptionError(f"unknown option {flag}; `onlineauto --help` lists them all")


def _unknown_options(flags: Sequence[str], *, known: Collection[str]) -> OptionError:
    """Return the error for flags that are not in `known`; if the first is one of VW's, with all of these."""
    of_vw = [flag for flag in dict.fromkeys(flags) if _long_name(flag) in NAMES]
    if len(of_vw) < 2 or of_vw[0] != flags[0]:
        return unknown_option(flags[0], known=known)
    others = "".join(
        f"; for {flag}: {_instead(name)}" for flag in of_vw if (name := _long_name(flag)) in INSTEAD
    )
    names = f"{', '.join(of_vw[:-1])} and {of_vw[-1]}"
    return OptionError(f"{names} are options of Vowpal Wabbit that onlineauto does not have{others}")


def _long_name(flag: str) -> str:
    return flag.removeprefix("--") if flag.startswith("--") else SHORT_NAMES.get(flag[1:], flag[1:])


def _instead(name: str) -> str:
    """Return what does the work of a flag of Vowpal Wabbit, with quotes around several words only."""
    return re.sub(r"`([^` ]+)`", r"\1", INSTEAD[name])
