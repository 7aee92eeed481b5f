"""Keeps the benchmark table of a Markdown file in step with the JSON of ``bench.speed``.

``python -m bench.speed.readme_table speed.json README.md`` rewrites what lies between
``<!-- benchmark:begin -->`` and ``<!-- benchmark:end -->``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench import kit
from tools.generate import between

BEGIN: Final = "<!-- benchmark:begin -->"
"""Where the table begins in a text."""
END: Final = "<!-- benchmark:end -->"
"""And where it ends."""


def benchmark_table(document: Mapping[str, Any]) -> str:
    """Return the table of a JSON document, and below it the machine, the versions and the command."""
    return "\n".join([*_table(document["rows"]), "", *_origin(document)])


def update(text: str, *, document: Mapping[str, Any]) -> str:
    """Return a Markdown text with a new table between its two markers."""
    return between(text, benchmark_table(document), name="benchmark")


def main(argv: Sequence[str] | None = None) -> None:
    """Update the file that is named."""
    parser = kit.parser(__doc__)
    parser.add_argument("json", type=Path, help="what bench.speed --json wrote")
    parser.add_argument("markdown", type=Path)
    options = parser.parse_args(argv)
    document = json.loads(options.json.read_text(encoding="utf-8"))
    text = update(options.markdown.read_text(encoding="utf-8"), document=document)
    options.markdown.write_text(text, encoding="utf-8")


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "| what | medians | figure | target | met |"
    yield "| --- | --- | --- | --- | --- |"
    for row in rows:
        target = f"{row['sign']} {row['target']:g} {row['unit']}"
        met = "yes" if row["met"] else "**no**"
        figure = f"{_number(row['figure'])} {row['unit']}"
        yield f"| {row['what']} | {_medians(row)} | {figure} | {target} | {met} |"


def _medians(row: Mapping[str, Any]) -> str:
    """Return the two medians of a ratio; a figure that is no ratio has none."""
    if row["under_median"] is None:
        return ""
    unit = "MB" if row["over"].endswith("/peak_mb") else "s"
    return f"{_number(row['over_median'])} {unit} / {_number(row['under_median'])} {unit}"


def _number(value: float) -> str:
    """Three digits that mean something."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def _origin(document: Mapping[str, Any]) -> Iterator[str]:
    machine = document["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    start_up = "; ".join(f"{name} {_number(seconds)} s" for name, seconds in document["start_up"].items())
    yield f"Medians of {document['rounds']} alternating runs on {machine['cores']} cores of {machine['cpu']},"
    commit = f"; commit {document['commit']}" if document["commit"] else ""
    yield f"{machine['system']}; {versions}{commit}."
    if start_up:
        yield f"Start-up is not part of the ratios: {start_up}."
    yield f"Made by `{document['command']}`."


if __name__ == "__main__":
    main()
