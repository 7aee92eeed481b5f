"""Report places that need a reader's judgement; no gate runs this.

    python -m tests.house

A large file or folder is a symptom: look for two concepts in it. A long function or a kernel with many
arguments may be plain as it is. Shortening any of them only to leave this list makes the code worse.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.house.code import (
    FILES,
    KERNEL_FILES,
    KERNELS,
    TEST_FILES,
    Function,
    decorators,
    functions,
    named,
    parsed,
)

MOST_FILES, MOST_LINES, MOST_ARGUMENTS = 20, 550, 7
MOST_LINES_OF_KERNEL, MOST_LINES_OF_FUNCTION = 120, 80
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}
"""Words that say nothing about the content of a file."""
RIDDLES = {"What", "Whether", "How", "Where", "Who", "When", "Which"}
"""Words with which a summary asks, where it should say what a thing is or does."""


def lines_of_code(node: Function) -> int:
    """Return the number of lines of a function without its docstring."""
    docstring = node.body[0] if ast.get_docstring(node) else None
    return sum((each.end_lineno or 0) - each.lineno + 1 for each in node.body if each is not docstring) + (
        node.body[0].lineno - node.lineno
    )


def _long_files() -> Iterator[str]:
    for path in FILES:
        lines = len(path.read_text("utf-8").splitlines())
        if lines > MOST_LINES:
            yield f"{named(path)}: {lines}"


def _large_folders() -> Iterator[str]:
    for folder, count in sorted(Counter(path.parent for path in FILES).items()):
        if count > MOST_FILES:
            yield f"{named(folder)}: {count}"


def _long_functions() -> Iterator[str]:
    for path in FILES:
        most = MOST_LINES_OF_KERNEL if path in KERNEL_FILES else MOST_LINES_OF_FUNCTION
        for node in functions(path):
            if lines_of_code(node) > most:
                yield f"{named(path)}:{node.lineno} {node.name}: {lines_of_code(node)}"


def _many_arguments() -> Iterator[str]:
    for path in FILES:
        for node in functions(path):
            if not KERNELS.isdisjoint(decorators(node)) and len(node.args.args) > MOST_ARGUMENTS:
                yield f"{named(path)}:{node.lineno} {node.name}: {len(node.args.args)}"


def _vague_names() -> Iterator[str]:
    for path in FILES:
        if VAGUE & {word for part in Path(named(path)).with_suffix("").parts for word in part.split("_")}:
            yield named(path)


def _riddles(files: list[Path]) -> Iterator[str]:
    for path in files:
        for node in ast.walk(parsed(path)):
            if isinstance(node, Function | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node)
                if text and text.split()[0] in RIDDLES:
                    yield f"{named(path)}:{getattr(node, 'lineno', 1)} {text.splitlines()[0]}"


def _class_names_defined_twice() -> Iterator[str]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in FILES:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(named(path))
    for name, files in sorted(places.items()):
        if len(files) > 1:
            yield f"{name}: {', '.join(files)}"


def report() -> dict[str, list[str]]:
    """Return the finds under the title of each rule."""
    return {
        f"Files of more than {MOST_LINES} lines": list(_long_files()),
        f"Folders of more than {MOST_FILES} files": list(_large_folders()),
        f"Functions of more than {MOST_LINES_OF_FUNCTION} lines, kernels of {MOST_LINES_OF_KERNEL}": list(
            _long_functions()
        ),
        f"Kernels of more than {MOST_ARGUMENTS} arguments": list(_many_arguments()),
        "Files whose names do not say what is in them": list(_vague_names()),
        "Docstrings that begin with a question": list(_riddles(FILES)),
        "Docstrings of tests and benches that begin with a question": list(_riddles(TEST_FILES)),
        "Public class names defined more than once": list(_class_names_defined_twice()),
    }


def main() -> int:
    """Print the report."""
    for title, finds in report().items():
        print(f"{title}: {len(finds)}", *finds, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
