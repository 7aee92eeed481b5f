"""One run of the catalogue, and the bytes that it reads."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

from datasets.generate import text
from tests.parity.json_streams import JSON_STREAMS
from tests.parity.odd_text import ODD_BANDIT, ODD_CLASSIC, ODD_SIMPLE
from tests.parity.streams import STREAMS

_DATASETS = Path(__file__).resolve().parents[2] / "datasets"

EVENTS = 300
"""Events of a generated stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run."""

    # A key of `STREAMS`; or ``json/`` and one of `JSON_STREAMS`; or ``odd/``, ``odd_bandit/`` or
    # ``odd_classic/`` and a key of that table; or ``generated/`` and a stream of `datasets.generate`; or
    # ``dataset/`` and a file in ``datasets``
    stream: str
    flags: str  # VW's options, blanks between them

    @property
    def id(self) -> str:
        """Name of the case: the stream and the flags."""
        return f"{self.stream} {self.flags}".strip()

    @property
    def argv(self) -> list[str]:
        """Return the flags as a command line has them."""
        return self.flags.split()


def dataset_names() -> list[str]:
    """Names of the packed files of the repository's ``datasets``."""
    return sorted(path.name for path in _DATASETS.glob("*.txt.gz"))


def content(stream: str, *, events: int = EVENTS) -> bytes:
    """Bytes of the stream of a case; `events` is how many, where there are more (a fifth of it if wide)."""
    table, _, name = stream.rpartition("/")
    if table == "generated":
        return text(name, events=events // 5 if name == "wide" else events, seed=5)
    if table == "dataset":
        return _first_events(_DATASETS / name, events)
    if table == "json":
        return JSON_STREAMS[name](events, sum(name.encode()))
    odd = {"odd": ODD_SIMPLE, "odd_bandit": ODD_BANDIT, "odd_classic": ODD_CLASSIC}
    return odd[table][name] if table else STREAMS[name](events, sum(name.encode()))


def _first_events(path: Path, events: int) -> bytes:
    """Bytes of the first events of a file: its first lines, or what ends with its first empty lines."""
    with gzip.open(path) as file:
        text = file.read()
    end = b"\n\n" if text.startswith(b"shared") else b"\n"
    return end.join(text.split(end, events)[:events]) + end


def cases(stream: str, *flag_sets: str) -> list[Case]:
    return [Case(stream=stream, flags=flags) for flags in flag_sets]
