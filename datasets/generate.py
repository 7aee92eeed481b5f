r"""Seeded streams of any length in VW's text format, with the truth behind them.

From the command line (a name that ends in ``.gz`` is compressed, ``-`` is standard output)::

    python -m datasets.generate narrow --events 100000 --seed 1 -o narrow.txt.gz

From Python:

>>> from datasets.generate import stream, text
>>> print(text("planted", events=1, seed=1).decode().rstrip())
shared |a 5 |b 5 |c 0 |d 3 |e 4 |f 3 |g 2 |h 1
|Z 0
|Z 1
|Z 2
0:-0.291:0.125 |Z 3
|Z 4
|Z 5
|Z 6
|Z 7
>>> [chunk.truth.shape for chunk in stream("narrow", events=3000, seed=1)]
[(2048, 8), (952, 8)]

The same seed gives the same bytes on every machine, and the first n events of a stream do not depend on how
many follow. Memory does not grow with the length.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from datasets.bandit_streams import Heavy, Narrow, Null, Planted, Wide
from datasets.chunks import BLOCK, Chunk, Stream
from datasets.line_streams import Classification, Regression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["STREAMS", "main", "stream", "text", "write"]

STREAMS: dict[str, Callable[[int], Stream]] = {
    "narrow": Narrow,
    "wide": Wide,
    "planted": Planted,
    "null": Null,
    "heavy": Heavy,
    "regression": Regression,
    "classification": Classification,
}
"""The kinds of stream by name; each is made from a seed."""


def stream(kind: str, *, events: int, seed: int = 1) -> Iterator[Chunk]:
    """Yield a stream in chunks of at most 2048 events.

    Parameters
    ----------
    kind : str
        A name of `STREAMS`.
    events : int
        How many events; at least 0.
    seed : int, default=1
        0 to 2**64 - 1; it decides both the truth (what pays) and the events.

    Raises
    ------
    ValueError
        If there is no such kind, or `events` or `seed` is out of range.

    Examples
    --------
    >>> first = next(stream("heavy", events=4, seed=1))
    >>> first.actions.tolist(), first.probabilities.tolist()
    ([0, 6, 7, 0], [0.965, 0.93, 0.1, 0.93])
    """
    if kind not in STREAMS:
        raise ValueError(f"no stream is called {kind!r}: choose one of {', '.join(STREAMS)}")
    if events < 0:
        raise ValueError(f"events={events} is out of range: give 0 or more")
    source = STREAMS[kind](seed)
    return (source.block(start // BLOCK, min(BLOCK, events - start)) for start in range(0, events, BLOCK))


def text(kind: str, *, events: int, seed: int = 1) -> bytes:
    """Return a whole stream as one bytes string; for `kind`, `events`, `seed` and errors see `stream`."""
    return b"".join(chunk.text for chunk in stream(kind, events=events, seed=seed))


def write(path: str | Path, *, kind: str, events: int, seed: int = 1) -> None:
    """Write a stream to a file, compressed if its name ends in ``.gz``; `-` is standard output.

    The compressed file carries neither time nor name. For `kind`, `events`, `seed` and errors see `stream`.
    """
    chunks = stream(kind, events=events, seed=seed)
    with _opened(path) as sink:
        for chunk in chunks:
            sink.write(chunk.text)


class _Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...


@contextmanager
def _opened(path: str | Path) -> Iterator[_Sink]:
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with Path(path).open("wb") as file:
        if str(path).endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as packed:
                yield packed
        else:
            yield file


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0."""
    parser = argparse.ArgumentParser(
        prog="python -m datasets.generate", description="Write a synthetic VW stream."
    )
    parser.add_argument("kind", choices=STREAMS)
    parser.add_argument("--events", type=int, default=10_000, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="0 to 2**64 - 1 (default: %(default)s)")
    parser.add_argument("-o", "--output", default="-", help="file, or - for standard output (default: -)")
    options = parser.parse_args(arguments)
    try:
        write(options.output, kind=options.kind, events=options.events, seed=options.seed)
    except BrokenPipeError:  # the reader has seen enough; keep the interpreter from flushing into the void
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
