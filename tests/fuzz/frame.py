"""Shared by the fuzzers: mutated texts, laws of every block, runs that check every index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineauto.errors import ParseError
from onlineauto.features.block import Block
from onlineauto.formats.json_reader import JsonReader
from onlineauto.formats.text_reader import TextReader
from tests.bounds_checked import run


def mutated(
    text: NDArray[np.uint8], rng: np.random.Generator, *, special: NDArray[np.uint8], each: int, pieces: int
) -> NDArray[np.uint8]:
    """Return a text with moved pieces, and one of `each` bytes flipped, overwritten, deleted and inserted."""
    text = text.copy()
    share = len(text) // each
    text[rng.integers(0, len(text), share)] ^= (1 << rng.integers(0, 8, share)).astype(np.uint8)
    text[rng.integers(0, len(text), share)] = rng.choice(special, share)
    text = np.delete(text, rng.integers(0, len(text), share))
    text = np.insert(text, rng.integers(0, len(text), share), rng.choice(special, share))
    cut = np.split(text, np.sort(rng.integers(0, len(text), pieces)))
    text = np.concatenate([cut[i] for i in rng.permutation(len(cut))])
    return text[: len(text) - int(rng.integers(0, 50))]


def _check_offsets(start: NDArray[np.int64], end: int) -> None:
    assert start[0] == 0
    assert start[-1] == end
    assert (np.diff(start) >= 0).all()


def _check_block(block: Block, *, exact: bool) -> None:
    _check_offsets(block.event_start, block.n_lines)
    assert (np.diff(block.event_start) > 0).all()
    _check_offsets(block.line_start, len(block.span_namespace))
    _check_offsets(block.span_start, block.n_features)
    assert (np.diff(block.span_start) > 0).all()
    _check_offsets(block.cost_start, len(block.cost))
    _check_offsets(block.tag_start, len(block.tag))
    assert (np.diff(block.line_number) >= 0).all()
    assert ((block.span_namespace >= 0) & (block.span_namespace < len(block.namespaces))).all()
    assert (block.value != 0).all()
    assert all(block.namespaces.names)
    if not exact:
        for column in (block.value, block.label, block.weight, block.initial, block.cost):
            assert np.isfinite(column).all()
        assert (block.weight >= 0).all()
        confined = block.probability == -np.inf
        assert (confined | ((block.probability >= 0) & (block.probability <= 1))).all()
        assert block.slot.any() or not confined.any()


def read_all(
    text: bytes, kind: Callable[..., TextReader | JsonReader], *, exact: bool, block_bytes: int, **how: Any
) -> None:
    """Read a text and check all of its blocks; go on behind what is fatal to VW."""
    while text:
        reader = kind(text, exact=exact, block_bytes=block_bytes, **how)
        try:
            for block in reader:
                _check_block(block, exact=exact)
            text = b""
        except ParseError as stop:
            text = b"\n".join(text.split(b"\n")[stop.line :])
        assert reader.diagnostics.total == sum(reader.diagnostics.counts.values())


def run_checked(module: str, lines: int, *, seed: int) -> int:
    """Run the `fuzz` of a module in a process whose kernels check every index; how many lines it read."""
    done = run("-c", f"from tests.fuzz.{module} import fuzz; print(fuzz({lines}, {seed}))")
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout.split()[0])
