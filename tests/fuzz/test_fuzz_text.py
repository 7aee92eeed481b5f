"""Mutated lines by the million through the reader, with every array access checked."""

from __future__ import annotations

import os
import subprocess
import sys
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from onlineauto.errors import ParseError
from tests.formats.odd_lines import KINDS, odd_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.block import Block

CHUNK = 10_000
SAMPLE = 150
SPECIAL = np.frombuffer(b" |:\t\r\n'0123456789.eE-+naifxs\0\v\x7f\xff\xc3\xef\xbb\xbf", np.uint8)


def mutated(text: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """A text with one byte in thirty flipped, overwritten, deleted or inserted, and pieces moved about."""
    text = text.copy()
    share = len(text) // 120
    text[rng.integers(0, len(text), share)] ^= (1 << rng.integers(0, 8, share)).astype(np.uint8)
    text[rng.integers(0, len(text), share)] = rng.choice(SPECIAL, share)
    text = np.delete(text, rng.integers(0, len(text), share))
    text = np.insert(text, rng.integers(0, len(text), share), rng.choice(SPECIAL, share))
    cuts = np.sort(rng.integers(0, len(text), 40))
    pieces = np.split(text, cuts)
    text = np.concatenate([pieces[i] for i in rng.permutation(len(pieces))])
    return text[: len(text) - int(rng.integers(0, 50))]


def check_offsets(start: NDArray[np.int64], end: int) -> None:
    assert start[0] == 0
    assert start[-1] == end
    assert (np.diff(start) >= 0).all()


def check_block(block: Block, *, exact: bool) -> None:
    check_offsets(block.event_start, block.n_lines)
    assert (np.diff(block.event_start) > 0).all()
    check_offsets(block.line_start, len(block.span_namespace))
    check_offsets(block.span_start, block.n_features)
    assert (np.diff(block.span_start) > 0).all()
    check_offsets(block.cost_start, len(block.cost))
    check_offsets(block.tag_start, len(block.tag))
    assert (np.diff(block.line_number) > 0).all()
    assert ((block.span_namespace >= 0) & (block.span_namespace < len(block.namespaces))).all()
    assert (block.value != 0).all()
    if not exact:
        for column in (block.value, block.label, block.weight, block.initial, block.cost):
            assert np.isfinite(column).all()
        assert (block.weight >= 0).all()
        assert ((block.probability >= 0) & (block.probability <= 1)).all()


def read_all(text: bytes, kind: str, *, exact: bool, block_bytes: int) -> int:
    """Read a text and check all of its blocks; how many lines it has."""
    from onlineauto.formats.text import TextReader

    label = "simple" if kind == "simple" else "cb"
    total = 0
    while text:
        reader = TextReader(
            text,
            label="simple" if label == "simple" else "cb",
            multiline=kind == "cb_adf",
            exact=exact,
            block_bytes=block_bytes,
        )
        try:
            for block in reader:
                check_block(block, exact=exact)
            text = b""
        except ParseError as stop:  # what is fatal to VW; go on behind it
            lines = text.split(b"\n")
            total += stop.line
            text = b"\n".join(lines[stop.line :])
        assert reader.diagnostics.total == sum(reader.diagnostics.counts.values())
    return total


def fuzz(lines: int, seed: int) -> None:
    """Read at least so many mutated lines in both modes; compare a sample with the naive twin."""
    from numba.core import config

    from tests.formats.test_text_twin import same
    from tests.naive.lines import Settings

    assert vars(config)["BOUNDSCHECK"] == 1
    rng = np.random.default_rng(seed)
    corpus = {
        kind: np.frombuffer(odd_text(Random(seed + i), kind, lines=3000), np.uint8)
        for i, kind in enumerate(KINDS)
    }
    done = 0
    while done < lines:
        kind = KINDS[int(rng.integers(len(KINDS)))]
        repeats = -(-CHUNK // 3000)
        text = np.concatenate([mutated(corpus[kind], rng) for _ in range(repeats)]).tobytes()
        block_bytes = int(rng.choice([256, 4096, 1 << 20]))
        for exact in (False, True):
            read_all(text, kind, exact=exact, block_bytes=block_bytes)
            sample = b"\n".join(text.split(b"\n")[:SAMPLE])
            how = Settings(
                label="simple" if kind == "simple" else "cb", multiline=kind == "cb_adf", exact=exact
            )
            assert same(sample, how, block_bytes=64), (kind, exact, sample)
        done += text.count(b"\n")
    print(f"{done} lines")  # noqa: T201


def run_checked(lines: int, *, seed: int) -> int:
    """Run `fuzz` in a process whose kernels check every index; how many lines it read."""
    program = f"from tests.fuzz.test_fuzz_text import fuzz; fuzz({lines}, {seed})"
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
