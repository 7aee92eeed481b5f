"""Mutated lines of JSON by the million through the reader, with every array access checked."""

from __future__ import annotations

import os
import subprocess
import sys
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from onlineauto.errors import ParseError
from tests.formats.odd_json import JSON_KINDS, odd_json
from tests.fuzz.test_fuzz_text import check_offsets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.block import Block

CORPUS = 2_000
SAMPLE = 60
SPECIAL = np.frombuffer(b'{}[]",:\\\\u0123456789.eE-+ \t\r\n_truefalsn\0\x7f\xff\xc3\xef\xbb\xbf', np.uint8)
MARKS = np.frombuffer(b'{}[]{}[]"",:: \n01_\\', np.uint8)


def mutated(text: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """A text with one byte in a hundred flipped, overwritten, deleted or inserted, and pieces moved about."""
    text = text.copy()
    share = len(text) // 400
    text[rng.integers(0, len(text), share)] ^= (1 << rng.integers(0, 8, share)).astype(np.uint8)
    text[rng.integers(0, len(text), share)] = rng.choice(SPECIAL, share)
    text = np.delete(text, rng.integers(0, len(text), share))
    text = np.insert(text, rng.integers(0, len(text), share), rng.choice(SPECIAL, share))
    pieces = np.split(text, np.sort(rng.integers(0, len(text), 20)))
    text = np.concatenate([pieces[i] for i in rng.permutation(len(pieces))])
    return text[: len(text) - int(rng.integers(0, 50))]


def marks(rng: np.random.Generator) -> NDArray[np.uint8]:
    """Nothing but marks, and here and there the beginning of something."""
    text = rng.choice(MARKS, 4000)
    starts = [b'\n{"c":{"_multi":[', b'\n{"a":{', b'"_label":', b'\n{"_labelIndex":', b'"_text":"']
    for _ in range(60):
        piece = np.frombuffer(starts[int(rng.integers(len(starts)))], np.uint8)
        at = int(rng.integers(len(text) - len(piece)))
        text[at : at + len(piece)] = piece
    return text


def check_block(block: Block, *, exact: bool) -> None:
    check_offsets(block.event_start, block.n_lines)
    assert (np.diff(block.event_start) > 0).all()
    check_offsets(block.line_start, len(block.span_namespace))
    check_offsets(block.span_start, block.n_features)
    assert (np.diff(block.span_start) > 0).all()
    check_offsets(block.cost_start, len(block.cost))
    check_offsets(block.tag_start, len(block.tag))
    assert (np.diff(block.line_number) >= 0).all()
    assert ((block.span_namespace >= 0) & (block.span_namespace < len(block.namespaces))).all()
    assert (block.value != 0).all()
    assert all(block.namespaces.names)
    if not exact:
        for column in (block.value, block.label, block.weight, block.initial, block.cost):
            assert np.isfinite(column).all()
        assert (block.weight >= 0).all()
        assert ((block.probability >= 0) & (block.probability <= 1)).all()


def read_all(text: bytes, *, block_bytes: int, **how: Any) -> None:
    """Read a text and check all of its blocks."""
    from onlineauto.formats.json import JsonReader

    while text:
        reader = JsonReader(text, **({"log": False} | how | {"block_bytes": block_bytes}))
        try:
            for block in reader:
                check_block(block, exact=how["exact"])
            text = b""
        except ParseError as stop:  # go on behind it
            text = b"\n".join(text.split(b"\n")[stop.line :])
        assert reader.diagnostics.total == sum(reader.diagnostics.counts.values())


def fuzz(lines: int, seed: int) -> None:
    """Read at least so many mutated lines in both modes; compare a sample with the naive twin."""
    from numba.core import config

    from tests.formats.test_json_twin import same
    from tests.naive.json_text import JsonSettings

    assert vars(config)["BOUNDSCHECK"] == 1
    rng = np.random.default_rng(seed)
    corpus = {
        kind: np.frombuffer(odd_json(Random(seed + i), kind, lines=CORPUS), np.uint8)
        for i, kind in enumerate(JSON_KINDS)
    }
    done = 0
    while done < lines:
        kind = list(JSON_KINDS)[int(rng.integers(len(JSON_KINDS)))]
        text = (marks(rng) if rng.random() < 0.2 else mutated(corpus[kind], rng)).tobytes()
        block_bytes = int(rng.choice([256, 4096, 1 << 20]))
        for exact in (False, True):
            how = JSON_KINDS[kind] | {"exact": exact, "chain_hash": bool(rng.integers(2))}
            if not exact or how.get("log"):
                read_all(text, block_bytes=block_bytes, **how)
            sample = b"\n".join(text.split(b"\n")[:SAMPLE])
            assert same(sample, JsonSettings(**how), block_bytes=64), (how, sample)
        done += text.count(b"\n")
    print(f"{done} lines")  # noqa: T201


def run_checked(lines: int, *, seed: int) -> int:
    """Run `fuzz` in a process whose kernels check every index; how many lines it read."""
    program = f"from tests.fuzz.test_fuzz_json import fuzz; fuzz({lines}, {seed})"
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout.split()[0])


def test_twenty_thousand_mutated_lines() -> None:
    assert run_checked(20_000, seed=1) >= 20_000


@pytest.mark.fuzz
def test_a_million_mutated_lines() -> None:
    assert run_checked(1_000_000, seed=2) >= 1_000_000
