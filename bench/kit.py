"""What benches share: options of the command line, turns of the sides, verdicts, tables, JSON."""

from __future__ import annotations

import json
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

Side = TypeVar("Side")


class Option(NamedTuple):
    """An option of a bench; `default` is a type if there is none."""

    default: Any
    help: str = ""
    choices: Iterable[str] | None = None


def parser(doc: str | None, **options: Any) -> ArgumentParser:
    """Return a parser with the docstring of a bench as description.

    An option is its default, or a type if it has none, or an `Option`. False is a flag.
    """
    result = ArgumentParser(description=doc, formatter_class=RawDescriptionHelpFormatter)
    for name, value in options.items():
        default, text, choices = value if isinstance(value, Option) else Option(value)
        flag = "--" + name.replace("_", "-")
        if default is False:
            result.add_argument(flag, action="store_true", help=text)
            continue
        keywords: dict[str, Any] = {"choices": choices and list(choices), "metavar": name.upper()}
        if isinstance(default, type):
            result.add_argument(flag, type=default, help=text, **keywords)
            continue
        several = isinstance(default, list | tuple)
        keywords |= {"nargs": "*", "type": type(default[0])} if several else {"type": type(default)}
        text = f"{text} (default: %(default)s)".strip()
        result.add_argument(flag, default=default, help=text, **keywords)
    return result


def turns(sides: Iterable[Side], rounds: int) -> Iterator[tuple[int, Side]]:
    """Yield the number of a round and a side, for all sides in each round; sides take turns in going first.

    Round 0 is one more than asked for: it compiles and fills caches, and its figures do not count.
    """
    order = list(sides)
    for number in range(rounds + 1):
        for side in order if number % 2 else reversed(order):
            yield number, side


def print_verdicts(verdicts: Mapping[str, bool]) -> int:
    """Print whether each target is met; return the exit code, which is 0 if all are."""
    for name, holds in verdicts.items():
        print(f"{'yes' if holds else 'NO':4}{name}")
    return 0 if all(verdicts.values()) else 1


def table(titles: Sequence[str], rows: Iterable[Sequence[object]] = ()) -> str:
    """Return a table of Markdown."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (titles, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(titles)}", *lines[1:]])


def write_json(path: str | Path | None, document: object) -> None:
    """Write a document of plain values and dataclasses to a file, if there is one."""
    if path:
        Path(path).write_text(json.dumps(document, indent=1, default=_plain) + "\n", encoding="utf-8")


def _plain(value: Any) -> dict[str, Any]:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} is no value of JSON")
