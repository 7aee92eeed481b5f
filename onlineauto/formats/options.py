"""Options of the input: where events come from and how they are read; the formats of lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from onlineauto.errors import OptionError
from onlineauto.options import Configuration, option

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


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


class LineFormat(NamedTuple):
    """A format of lines; code that depends on the format of its input asks for these fields."""

    name: str  # The option that selects the format; "text" has none.
    title: str  # The name in messages.
    opener: str  # Module and function that open a reader, see `open_json`; "" is the dialect's reader.
    # Return whether the first line of a source that is not blank has this format.
    looks_like: Callable[[bytes], bool]
    example: bytes = b""  # A source with one event, to compile the kernel of the reader.
    log: bool = False  # Lines are a log of decisions, whose rewards may come later.


_OF_LOG: Final = re.compile(
    rb'"(?:EventId|Timestamp|_outcomes)"\s*:|"c"\s*:\s*{.*"[ap]"\s*:|"[ap]"\s*:.*"c"\s*:\s*{'
)
"""Members of a log's line. Other JSON may have them, too, but has its actions beside them."""


def _is_log(line: bytes) -> bool:
    outer = _outer(line)
    return _OF_LOG.search(outer) is not None and b'"_multi"' not in outer


def _outer(line: bytes) -> bytes:
    """Return a JSON object without the content of nested objects and arrays; the line may be cut off."""
    result, depth, quoted, begin = bytearray(), 0, False, 0
    for token in re.finditer(rb'\\.|["{}\[\]]', line):
        sign, at = token[0], token.start()
        if sign == b'"':
            quoted = not quoted
        elif not quoted and len(sign) == 1:
            if sign in b"{[":
                if depth == 1:
                    result += line[begin : at + 1]
                depth += 1
            else:
                depth -= 1
                begin = at if depth == 1 else begin
    return bytes(result + line[begin:]) if depth <= 1 else bytes(result)


TEXT: Final = LineFormat("text", "VW text", "", lambda _: True)
"""VW's text, where an empty line ends an event of several lines; elsewhere each line is an event."""
FORMATS: Final[Mapping[str, LineFormat]] = {
    form.name: form
    for form in (
        LineFormat(
            "json",
            "json",
            "onlineauto.formats.explicit_json:open_json",
            lambda line: line.startswith(b"{") and not _is_log(line),
            b'{"a":{"b":1}}\n',
        ),
        LineFormat(
            "dsjson",
            "dsjson",
            "onlineauto.formats.explicit_json:open_json",
            lambda line: line.startswith(b"{") and _is_log(line),
            b'{"c":{"a":1}}\n',
            log=True,
        ),
    )
}
"""The formats of lines with an option, by its name."""


def format_of(configuration: Configuration) -> LineFormat:
    """Return the format of lines that the options select."""
    return next((FORMATS[name] for name in FORMATS if configuration.get(name)), TEXT)


def format_of_lines(head: bytes) -> LineFormat:
    r"""Return the format of a source that begins with these bytes.

    >>> format_of_lines(b"shared |u tom\n").name
    'text'
    >>> format_of_lines(b'{"_label_cost": 0, "_label_probability": 1, "a": [1], "c": {"u": {"tom": 1}}}').name
    'dsjson'
    >>> format_of_lines(b'\n{"_label": 1, "u": {"tom": 1}}').name
    'json'
    """
    lines = map(bytes.strip, head.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
    line = next((line for line in lines if line.startswith(b"{") or b"|" in line), b"")  # skip damaged lines
    return next((form for form in FORMATS.values() if form.looks_like(line)), TEXT)


def check_format(configuration: Configuration) -> None:
    """Refuse a combination of two formats, such as ``--json`` and ``--dsjson``."""
    named = [name for name in FORMATS if configuration.get(name)]
    if len(named) > 1:
        raise OptionError(f"--{named[0]} and --{named[1]} are two formats: give the one that the input has")
