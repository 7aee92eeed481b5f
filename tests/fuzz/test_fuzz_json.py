"""Mutated lines of JSON by the million through the reader, with every array access checked."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.formats.odd_json import JSON_KINDS, odd_json
from tests.fuzz.frame import mutated, read_all, run_checked

pytestmark = pytest.mark.lane("ci")

CORPUS = 2_000
SAMPLE = 60
SPECIAL = np.frombuffer(b'{}[]",:\\\\u0123456789.eE-+ \t\r\n_truefalsn\0\x7f\xff\xc3\xef\xbb\xbf', np.uint8)
MARKS = np.frombuffer(b'{}[]{}[]"",:: \n01_\\', np.uint8)
STARTS = (
    *(b'\n{"c":{"_multi":[', b'\n{"a":{', b'"_label":', b'\n{"_labelIndex":', b'"_text":"'),
    *(b'"_slots":[', b'\n{"_outcomes":[', b'{"_inc":[', b'{"_a":[0],"_p":['),
)


def marks(rng: np.random.Generator) -> NDArray[np.uint8]:
    """Nothing but marks, and here and there the beginning of something."""
    text = rng.choice(MARKS, 4000)
    for _ in range(60):
        piece = np.frombuffer(STARTS[int(rng.integers(len(STARTS)))], np.uint8)
        at = int(rng.integers(len(text) - len(piece)))
        text[at : at + len(piece)] = piece
    return text


def fuzz(lines: int, seed: int) -> int:
    """Read at least `lines` mutated lines in both modes; check the laws of the reader on a sample."""
    from numba.core import config

    from tests.formats.reading import json_reader
    from tests.formats.test_json_laws import check, read
    from tests.naive.json_events import JsonSettings

    assert vars(config)["BOUNDSCHECK"] == 1
    rng = np.random.default_rng(seed)
    corpus = {
        kind: np.frombuffer(odd_json(Random(seed + i), kind, lines=CORPUS), np.uint8)
        for i, kind in enumerate(JSON_KINDS)
    }
    done = 0
    while done < lines:
        kind = list(JSON_KINDS)[int(rng.integers(len(JSON_KINDS)))]
        odd = mutated(corpus[kind], rng, special=SPECIAL, each=400, pieces=20)
        text = (marks(rng) if rng.random() < 0.2 else odd).tobytes()
        block_bytes = int(rng.choice([256, 4096, 1 << 20]))
        for exact in (False, True):
            how = {"log": False} | JSON_KINDS[kind] | {"exact": exact, "chain_hash": bool(rng.integers(2))}
            read_all(text, json_reader, block_bytes=block_bytes, **how)
            sample = b"\n".join(text.split(b"\n")[:SAMPLE])
            settings = JsonSettings(**how)
            if exact:
                assert repr(read(sample, settings, 64)) == repr(read(sample, settings, 1 << 16))
            else:
                check(sample, settings, block_bytes=64)
        done += text.count(b"\n")
    return done


@pytest.mark.bounds
def test_twenty_thousand_mutated_lines() -> None:
    assert run_checked("test_fuzz_json", 20_000, seed=1) >= 20_000


@pytest.mark.fuzz
def test_a_million_mutated_lines() -> None:
    assert run_checked("test_fuzz_json", 1_000_000, seed=2) >= 1_000_000
