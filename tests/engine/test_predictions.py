"""Prediction files against the bytes that VW 9.11.9 wrote."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from onlineauto.engine.report import predictions as predictions_module
from onlineauto.engine.report.predictions import Predictions, open_sink
from onlineauto.features.block import Block
from tests.engine import bandit, simple
from tests.formats.reading import text_reader

LINES = b"1 |a b\n1 'tagged |a b\n1 1 0.25 t2|a b\n|a b\n|a b\n1 \xc3\xa9\xff|a b\n"
EVENTS = b"shared tag1|s a\n0:-1:0.1 |x\n|x\n|x\n\nshared |s\n|x\n1:1:1 'no|x\n\nt3|x\n\n"
CLASSIC = b"1:-1:0.1 |a b\n2:1:1 tg|a\n|a\n"


def block_of(text: bytes, *, label: str = "simple", multiline: bool = False) -> Block:
    reader = text_reader(text, label="cb" if label == "cb" else "simple", multiline=multiline, exact=True)
    (block,) = reader
    return block


def test_single_line() -> None:
    outcomes = simple(
        loss=[0] * 6, label=[1] * 6, prediction=[0, 0.57938, -0.0454, 2, -0.0, 123456.789], weight=[1] * 6
    )
    writer = Predictions(io.BytesIO(), kind="simple")
    assert writer.spell(block_of(LINES), outcomes) == (
        b"0\n0.579380 tagged\n-0.045400 t2\n2\n-0\n123456.789062 \xc3\xa9\xff\n"
    )


def test_raw_scores() -> None:
    outcomes = simple(loss=[0] * 6, label=[1] * 6, prediction=[0.5] * 6)
    writer = Predictions(io.BytesIO(), kind="simple", raw=True)
    assert writer.spell(block_of(LINES), outcomes).startswith(b"1\n1 tagged\n")


def test_numbers_are_printed_like_vw() -> None:
    outcomes = simple(loss=[0] * 3, label=[1] * 3, prediction=[np.inf, -np.inf, np.nan])
    writer = Predictions(io.BytesIO(), kind="simple")
    assert writer.spell(block_of(b"|a\n|a\n|a\n"), outcomes) == b"inf\n-inf\nnan\n"


@pytest.mark.parametrize(
    ("kind", "rank_all", "expected"),
    [
        ("cb_explore_adf", False, b"0:0.333333,1:0.333333,2:0.333333 tag1\n\n1:0.975,0:0.025\n\n0:1 t3\n\n"),
        ("cb_adf", True, b"0:0.333333,1:0.333333,2:0.333333 tag1\n\n1:0.975,0:0.025\n\n0:1 t3\n\n"),
        ("cb_adf", False, b"0 tag1\n\n1\n\n0 t3\n\n"),
    ],
)
def test_events(kind: str, rank_all: bool, expected: bytes) -> None:
    block = block_of(EVENTS, label="cb", multiline=True)
    outcomes = bandit(
        loss=[0, 0, 0],
        known=[None, None, None],
        scores=[[(0, 1 / 3), (1, 1 / 3), (2, 1 / 3)], [(1, 0.97499996), (0, 0.025)], [(0, 1.0)]],
    )
    outcomes.line[:] = block.event_start[:-1]
    assert Predictions(io.BytesIO(), kind=kind, rank_all=rank_all).spell(block, outcomes) == expected


@pytest.mark.parametrize(
    ("kind", "rank_all", "expected"),
    [
        ("cb", False, b"2\n\n0 tg\n\n1\n\n"),
        ("cb", True, b"2:-0.5,0:1\n\n0:0 tg\n\n1:0.000001\n\n"),
        ("cb_explore", False, b"2:-0.5,0:1\n\n0:0 tg\n\n1:0.000001\n\n"),
    ],
)
def test_classic_lines(kind: str, rank_all: bool, expected: bytes) -> None:
    outcomes = bandit(
        loss=[0, 0, 0], known=[None, None, None], scores=[[(2, -0.5), (0, 1.0)], [(0, 0.0)], [(1, 1e-6)]]
    )
    writer = Predictions(io.BytesIO(), kind=kind, rank_all=rank_all)
    assert writer.spell(block_of(CLASSIC, label="cb"), outcomes) == expected


@pytest.mark.parametrize("kind", ["cb_explore_adf", "cb_adf"])
def test_an_event_without_actions_keeps_its_tag(kind: str) -> None:
    block = block_of(b"shared tg|s a\n\n|x\n\n", label="cb", multiline=True)
    outcomes = bandit(loss=[0, 0], known=[None, None], scores=[[], [(0, 1.0)]])
    outcomes.line[:] = block.event_start[:-1]
    last = b"0:1" if kind == "cb_explore_adf" else b"0"
    assert Predictions(io.BytesIO(), kind=kind).spell(block, outcomes) == b" tg\n\n" + last + b"\n\n"


def test_cache_of_printed_numbers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions_module, "_REMEMBERED", 8)
    values = np.arange(100, dtype=np.float32) / 3
    values = np.concatenate([values, values])
    outcomes = simple(loss=[0] * 200, label=[1] * 200, prediction=values.tolist())
    writer = Predictions(io.BytesIO(), kind="simple")
    lines = writer.spell(block_of(b"|a\n" * 200), outcomes).decode().splitlines()
    assert lines == [f"{v:.0f}" if v == int(v) else f"{v:.6f}" for v in values.astype(float)]
    assert len(writer._numbers) <= 8


def test_each_block_is_one_write() -> None:
    class Calls(io.BytesIO):
        calls = 0

        def write(self, data: object, /) -> int:
            self.calls += 1
            return super().write(data)  # type: ignore[arg-type]

    sink = Calls()
    writer = Predictions(sink, kind="simple")
    writer.write(block_of(LINES), simple(loss=[0] * 6, label=[1] * 6))
    writer.write(block_of(LINES), simple(loss=[], label=[]))
    assert sink.calls == 1
    assert sink.getvalue().count(b"\n") == 6


def test_a_file(tmp_path: Path) -> None:
    with open_sink(str(tmp_path / "p")) as sink:
        sink.write(b"1\n")
    assert (tmp_path / "p").read_bytes() == b"1\n"


@pytest.mark.parametrize("name", ["stdout", "/dev/stdout"])
def test_standard_output_stays_open(name: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for text in (b"1\n", b"2\n"):
        with open_sink(name) as sink:
            sink.write(text)
            sink.flush()
    assert capfdbinary.readouterr().out == b"1\n2\n"


def test_standard_output_of_text_only(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    with open_sink("stdout") as sink:
        sink.write("0 é\n".encode())
        sink.flush()
    assert out.getvalue() == "0 é\n"


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "p"
    with (
        pytest.raises(OSError, match=r"^cannot write .*/missing/p: No such file or directory$"),
        open_sink(str(path)),
    ):
        pass
