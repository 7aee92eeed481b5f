"""Mutated lines by the million through the reader, with every array access checked."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.formats.odd_lines import KINDS, odd_text
from tests.fuzz.frame import mutated, read_all, run_checked

pytestmark = pytest.mark.lane("ci")

CORPUS = 3_000
REPEATS = 4
SAMPLE = 150
SPECIAL = np.frombuffer(b" |:\t\r\n'0123456789.eE-+naifxs\0\v\x7f\xff\xc3\xef\xbb\xbf", np.uint8)


def fuzz(lines: int, seed: int) -> int:
    """Read at least `lines` mutated lines in both modes; compare a sample with the reference."""
    from numba.core import config

    from tests.formats.reading import SHAPES, text_reader
    from tests.formats.test_text_twin import check
    from tests.naive.lines import Settings

    assert vars(config)["BOUNDSCHECK"] == 1
    rng = np.random.default_rng(seed)
    corpus = {
        kind: np.frombuffer(odd_text(Random(seed + i), kind, lines=CORPUS), np.uint8)
        for i, kind in enumerate(KINDS)
    }
    done = 0
    while done < lines:
        kind = KINDS[int(rng.integers(len(KINDS)))]
        odd = [mutated(corpus[kind], rng, special=SPECIAL, each=120, pieces=40) for _ in range(REPEATS)]
        text = np.concatenate(odd).tobytes()
        block_bytes = int(rng.choice([256, 4096, 1 << 20]))
        for exact in (False, True):
            how = SHAPES[kind] | {"exact": exact}
            read_all(text, text_reader, block_bytes=block_bytes, **how)
            sample = b"\n".join(text.split(b"\n")[:SAMPLE])
            check(sample, Settings(**how), block_bytes=64)
        done += text.count(b"\n")
    return done


@pytest.mark.bounds
def test_twenty_thousand_mutated_lines() -> None:
    assert run_checked("test_fuzz_text", 20_000, seed=1) >= 20_000


@pytest.mark.fuzz
def test_a_million_mutated_lines() -> None:
    assert run_checked("test_fuzz_text", 1_000_000, seed=2) >= 1_000_000
