"""Declare options: a flag is a field of a frozen dataclass, made with ``option``."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import partial
from keyword import iskeyword
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin, get_type_hints

from onlineauto.options.tunable import Log
from onlineauto.options.value import is_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onlineauto.options.tunable import Tunable

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
class Option:
    """The declaration of one flag.

    Attributes
    ----------
    name : str
        The flag's name without ``--``; also the name of the field and of the Python keyword, see `field`.
    kind : type
        ``bool`` (a switch), ``int``, ``float`` or ``str``; the type of one value.
    repeatable : bool
        True if the flag can be given several times; its value is then a tuple of ``kind``.
    optional : bool
        True if "not supplied" is a separate value (``None``).
    default : object
        The value when the flag is not supplied.
    help : str
        One or two sentences for ``--help`` and the option table.
    short : str or None
        The one-letter name without ``-``.
    vw : bool
        True if Vowpal Wabbit 9.11.9 has this option under the same name.
    keep : bool
        True if a model file stores the option, because learning or prediction depends on it.
    override : bool
        True if a stored option can have another value when a model is loaded.
    minimum, maximum : float or None
        Inclusive bounds of a number.
    above, below : float or None
        Exclusive bounds of a number.
    choices : tuple of str
        The valid words; empty if any word is valid.
    metavar : str
        The name of the value in the help.
    positional : bool
        True if words on the command line that belong to no flag are values of this option.
    needs : tuple of str
        Names of options; this option has no effect without at least one of them.
    because : str
        The reason for the bounds, if it is not obvious; part of the message about an invalid value.
    aliases : tuple of str
        Other names of the option.
    keyword : str
        The name in Python, if it is not the flag's; the flag's name is then an alias.
    synonyms : tuple of (str, str)
        Pairs of a word and the choice that replaces it.
    listed : bool
        True if the word is a list of parts, separated by commas. In Python it may be a list or tuple.
    const : object
        The value of a flag that is passed without one, as in argparse; None if the flag requires a value.
    tunable : Log, OneOf or None
        How the value is searched; None if it is not searched.
    """

    name: str = ""
    kind: type[Scalar] = str
    repeatable: bool = False
    optional: bool = False
    default: object = None
    help: str
    short: str | None = None
    vw: bool = True
    keep: bool = False
    override: bool = False
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    metavar: str = ""
    positional: bool = False
    needs: tuple[str, ...] = ()
    because: str = ""
    aliases: tuple[str, ...] = ()
    keyword: str = ""
    synonyms: tuple[tuple[str, str], ...] = ()
    listed: bool = False
    const: Scalar | None = None
    tunable: Tunable | None = None

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


def option(
    default: T,
    help: str,  # noqa: A002  (the word every reader knows)
    *,
    short: str | None = None,
    vw: bool = True,
    keep: bool = False,
    override: bool = False,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    choices: tuple[str, ...] = (),
    metavar: str = "",
    positional: bool = False,
    needs: tuple[str, ...] = (),
    because: str = "",
    aliases: tuple[str, ...] = (),
    keyword: str = "",
    synonyms: tuple[tuple[str, str], ...] = (),
    listed: bool = False,
    const: Scalar | None = None,
    tunable: Tunable | None = None,
) -> T:
    """Declare an option as a field of a frozen dataclass; the parameters are those of `Option`.

    The field's annotation determines the values of the flag: ``bool`` is a switch, ``int``, ``float`` and
    ``str`` take one value, ``X | None`` is None if not supplied, and ``tuple[str, ...]`` can be repeated.

    Returns
    -------
    dataclasses.Field
        Typed as the field's value, as `dataclasses.field` is.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True, kw_only=True)
    ... class StepOptions:
    ...     title = "Step size"
    ...     learning_rate: float = option(0.5, "Step size.", short="l", minimum=0)
    >>> [declared.flag for declared in options_of(StepOptions)]
    ['--learning_rate']
    """
    declared = Option(
        default=default,
        help=help,
        short=short,
        vw=vw,
        keep=keep,
        override=override,
        minimum=minimum,
        maximum=maximum,
        above=above,
        below=below,
        choices=choices,
        metavar=metavar,
        positional=positional,
        needs=needs,
        because=because,
        aliases=aliases,
        keyword=keyword,
        synonyms=synonyms,
        listed=listed,
        const=const,
        tunable=tunable,
    )
    return field(default=default, metadata={_KEY: declared})


def options_of(group: Group) -> tuple[Option, ...]:
    """Return the options that a dataclass declares, in the order of its fields."""
    if group not in _READ:
        _READ[group] = tuple(_declarations(group))
    return _READ[group]


def title_of(group: Group) -> str:
    """Return the heading of a group of options."""
    return str(group.title)


def _declarations(group: Group) -> Iterator[Option]:
    hints = get_type_hints(group)
    for declared in fields(group):
        metadata: Mapping[str, Any] = declared.metadata
        if _KEY not in metadata:
            raise TypeError(f"{group.__name__}.{declared.name} is not declared with option()")
        name = declared.name.rstrip("_")  # for example lambda_, since lambda is a reserved word
        yield _complete(metadata[_KEY], name=name, annotation=hints[declared.name])


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
