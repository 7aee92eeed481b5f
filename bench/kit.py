"""Shared parts of benches: options of the command line, turns of the sides, verdicts, tables, JSON."""

from __future__ import annotations

import json
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

Side = TypeVar("Side")
Result = TypeVar("Result")


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


def samples(sides: Iterable[Side], rounds: int, run: Callable[[Side], Result]) -> dict[Side, list[Result]]:
    """Return the results of `run` for each side in each counted round; sides alternate in going first."""
    order = list(sides)
    results: dict[Side, list[Result]] = {side: [] for side in order}
    for number, side in turns(order, rounds):
        result = run(side)
        if number:
            results[side].append(result)
    return results


def printed(rows: Iterable[Result]) -> list[Result]:
    """Print dataclasses or mappings as a table while they are made; return them.

    A column is a field or a property of a row, and a field with a mapping has a column for each key. Fields
    with ``repr=False`` are left out.
    """
    results: list[Result] = []
    for row in rows:
        cells = _cells(row)
        if not results or list(cells) != list(_cells(results[-1])):
            print("\n" + table(list(cells)))
        print("| " + " | ".join(map(_cell, cells.values())) + " |", flush=True)
        results.append(row)
    return results


def _cells(row: Any) -> dict[str, object]:
    if isinstance(row, Mapping):
        return dict(row)
    properties = [name for name, value in vars(type(row)).items() if isinstance(value, property)]
    cells: dict[str, object] = {}
    for name in (*(field.name for field in fields(row) if field.repr), *properties):
        value = getattr(row, name)
        if isinstance(value, Mapping):
            cells |= {f"{name}: {key}": entry for key, entry in value.items()}
        else:
            cells[name] = value
    return cells


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if is_dataclass(value):
        return " ".join(map(_cell, (getattr(value, field.name) for field in fields(value))))
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    return "-" if value is None else f"{value:,}" if type(value) is int else str(value)


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
