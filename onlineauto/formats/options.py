"""Options of the input: where events come from and how they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from onlineauto.errors import OptionError
from onlineauto.options import Configuration, option

FORMATS: Final = ("json", "dsjson")
"""Options that name a format of lines; the default is VW's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """Options of the input: its files, their format, and what happens to malformed lines."""

    title: ClassVar[str] = "Input"

    data: tuple[str, ...] = option(
        (),
        "File of events, or a file, folder, pattern or address of Parquet; several are read one after the "
        "other; '-' or none is standard input. The flag may be left out: a word without a flag is a file.",
        short="d",
        metavar="FILE",
        positional=True,
    )
    no_stdin: bool = option(False, "Has no effect: standard input is read only where no file is named.")
    compressed: bool = option(False, "The input is gzip or zstd. Without this flag, that is detected too.")
    json: bool = option(
        False,
        "The input is VW's JSON, one event on each line: an object of features, or of namespaces of "
        "features.",
    )
    dsjson: bool = option(
        False,
        "The input is the log of a decision service: JSON with the event's context in 'c', one event on "
        "each line.",
    )
    chain_hash: bool = option(
        False,
        "In JSON, hash a string with the hash of its key as the seed, as in VW's text. Without it, key and "
        "string are hashed as one name.",
        keep=True,
    )
    columns: str | None = option(
        None,
        "TOML file that says what the columns of Parquet are. Without it, their names and types do; "
        "`onlineauto columns FILE` prints what they say.",
        vw=False,
        metavar="TOML",
    )
    strict_parse: bool = option(
        False,
        "Stop at the first malformed line. Without it, what is malformed is dropped, counted and reported.",
    )
    missing_probability: str = option(
        "refuse",
        "How to read a logged action without a probability: as malformed (refuse), or as drawn uniformly "
        "from all actions (uniform); both are reported.",
        vw=False,
        choices=("refuse", "uniform"),
        keep=True,
        override=True,
    )
    examples: int = option(
        -1, "Stop after this many events; -1 is no limit.", minimum=-1, maximum=2**63 - 1, metavar="N"
    )


def format_of(configuration: Configuration) -> str:
    """Return the format of lines: the supplied option of `FORMATS`, or ``"text"``."""
    return next((name for name in FORMATS if configuration.get(name)), "text")


def check_format(configuration: Configuration) -> None:
    """Refuse a combination of two formats, such as ``--json`` and ``--dsjson``."""
    named = [name for name in FORMATS if configuration.get(name)]
    if len(named) > 1:
        raise OptionError(f"--{named[0]} and --{named[1]} are two formats: give the one that the input has")
