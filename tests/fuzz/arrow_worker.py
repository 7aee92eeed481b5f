"""Read files of Parquet and Arrow with flipped bits, one for each line of standard input.

A line has the kind of file and a seed. The answer is ``learnt N``, ``refused TEXT`` for an `OnlineautoError`,
or ``bare TYPE: TEXT`` for any other exception. The test restarts this process if it dies.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from onlineauto import Workspace
from onlineauto.errors import OnlineautoError
from onlineauto.formats.datasets.dataset_source import DatasetSource
from onlineauto.interop import from_frame

KINDS = ("parquet", "ipc", "stream", "frame", "csv")
FLAT = ["user", "word", "price", "new"]
COLUMNS: dict[str, Any] = {
    "rows": "events",
    "action": "arm",
    "choices": ["art", "news", "sport"],
    "reward": "click",
    "probability": "p",
    "tag": "id",
    "context": [
        "user",
        "word",
        "large",
        "view",
        "tags",
        "vector",
        "fixed",
        "geo.city",
        "price",
        "new",
        "none",
    ],
}


def table(n: int = 60, seed: int = 0) -> pa.Table:
    """Return rows with columns of many types."""
    random = np.random.default_rng(seed)
    arm = pa.array(["art", "news", "sport"]).take(pa.array(random.integers(0, 3, n)))
    words = [f"w{number}é" for number in random.integers(0, 20, n)]
    lists = [words[: number % 4] for number in range(n)]
    user = pa.array(["tom", None, "ann"] * (n // 3))
    return pa.table(
        {
            "id": [f"q{number}" for number in range(n)],
            "user": user.dictionary_encode(),
            "word": words,
            "large": pa.array(words, pa.large_string()),
            "view": pa.array([word * 9 for word in words], pa.string_view()),
            "tags": pa.array(lists, pa.large_list(pa.string())),
            "vector": pa.array([[0.5] * (number % 5) for number in range(n)], pa.list_(pa.float32())),
            "fixed": pa.array([[1.0, None]] * n, pa.list_(pa.float64(), 2)),
            "geo": [{"city": word, "lat": 0.5} for word in words],
            "price": pa.array(np.arange(n)).cast(pa.decimal128(30, 2)),
            "new": [True, None, False] * (n // 3),
            "none": pa.nulls(n),
            "arm": arm.dictionary_encode(),
            "click": random.random(n),
            "p": np.full(n, 1 / 3),
        }
    )


def flipped(data: bytes, seed: int) -> bytes:
    """Return a file with one to eight flipped bits, or, with every eighth seed, without its end."""
    random, changed = np.random.default_rng(seed), bytearray(data)
    for _ in range(int(random.integers(1, 9))):
        changed[int(random.integers(len(changed)))] ^= 1 << int(random.integers(8))
    return bytes(changed[: int(random.integers(len(changed)))] if seed % 8 == 7 else changed)


def written(kind: str, folder: Path) -> bytes:
    """Return the bytes of an undamaged file."""
    path, rows = folder / "whole", table()
    if kind == "parquet":
        pq.write_table(rows, path, row_group_size=20)
    elif kind == "csv":
        flat = rows.select(["id", "word", "price", "new", "arm", "click", "p"])
        ds.write_dataset(flat.append_column("user", flat["word"]), folder / "csv", format="csv")
        return (folder / "csv" / "part-0.csv").read_bytes()
    else:
        write = pa.ipc.new_file if kind == "ipc" else pa.ipc.new_stream
        with write(path, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=20)
    return path.read_bytes()


def blocks_of(kind: str, path: Path, schema: pa.Schema) -> Any:
    """Return a source of the events in a file, as a user would write it."""
    if kind == "parquet":
        return DatasetSource(path, COLUMNS)
    if kind == "ipc":
        return DatasetSource(ds.dataset(path, schema=schema, format="ipc"), COLUMNS)
    try:
        if kind == "csv":
            return DatasetSource(ds.dataset(path, format="csv"), {**COLUMNS, "context": FLAT})
        reader = pa.ipc.open_stream(path)
        rows = reader.read_all() if kind == "frame" else None
    except OnlineautoError:
        raise
    except Exception as error:  # of Arrow, before the door
        raise OnlineautoError(str(error)) from error
    if kind == "stream":
        return DatasetSource(reader, COLUMNS)
    choices = {"choices": COLUMNS["choices"], "context": [*FLAT, "tags", "vector", "large"]}
    return from_frame(rows, actions="arm", reward="click", probability="p", **choices)


def answer(kind: str, path: Path, schema: pa.Schema) -> str:
    """Read and learn a file; return what became of it."""
    workspace, events = Workspace(cb_explore_adf=True), 0
    try:
        for block, _ in workspace.stream(blocks_of(kind, path, schema)):
            events += len(block)
    except OnlineautoError as error:
        return f"refused {error}"
    except Exception as error:  # which the test reports
        return f"bare {type(error).__name__}: {error}"
    return f"learnt {events}"


def main() -> None:
    """Answer each line of standard input."""
    warnings.simplefilter("ignore")
    schema = table().schema
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = {kind: written(kind, folder) for kind in KINDS}
        for line in sys.stdin:
            kind, seed = line.split()
            path = folder / "damaged"
            path.write_bytes(flipped(whole[kind], int(seed)))
            text = answer(kind, path, schema).encode("utf-8", "backslashreplace").decode()
            sys.stdout.write(" ".join(text.split()) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
