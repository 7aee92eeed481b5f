"""Conversion: blocks are learnt like their text, and converted to text with the same events."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, BinaryIO, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import InputError, OptionError, Workspace, convert
from onlineauto.engine.stream import read_ahead
from onlineauto.engine.stream.source import Sources
from onlineauto.formats.blocks.file import BlockReader, write_blocks
from onlineauto.formats.text.writer import block_text, number_word
from tests.formats.odd_lines import KINDS, odd_text
from tests.formats.reading import SHAPES, text_reader
from tests.naive.lines import unpack

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


FLAGS: dict[str, dict[str, Any]] = {
    "simple": {},
    "cb": {"cb_explore": 3},
    "cb_adf": {"cb_explore_adf": True},
    "ccb": {"ccb_explore_adf": True},
}
ADF = (
    b"shared |u tom age:0.3\n0:-1:0.5 |a politics\n|a sports\n\n"
    b"shared |u ann\n|a politics\n1:-1:0.5 |a sports\n\n"
)
CCB = (
    b"ccb shared |u tom age:0.3\nccb action |a politics\nccb action |a sports\n"
    b"ccb slot 1:-1:0.5 0,1 |s top\nccb slot |\n\n"
)


def learnt(source: Sources, **options: Any) -> tuple[list[bytes], bytes]:
    workspace = Workspace(bit_precision=8, **options)
    outcomes = [result for _, result in workspace.stream(source)]
    scores = [b"".join(each.score.tobytes() for each in outcomes)]
    return [*scores, b"".join(each.prediction.tobytes() for each in outcomes)], workspace.weights.tobytes()


@settings(max_examples=30)
@given(
    draw=st.randoms(use_true_random=False),
    kind=st.sampled_from(KINDS),
    exact=st.booleans(),
    block_bytes=st.sampled_from([16, 100, 1 << 18]),
    passes=st.sampled_from([1, 2]),
)
def test_blocks_of_any_size_are_learnt_as_the_text(
    tmp_path_factory: pytest.TempPathFactory,
    draw: Random,
    kind: str,
    exact: bool,
    block_bytes: int,
    passes: int,
) -> None:
    text = b"".join(odd_text(draw, kind, lines=6) + b"\n\n" for _ in range(3))
    directory = tmp_path_factory.mktemp("blocks")
    (directory / "text").write_bytes(text)
    options = {**FLAGS[kind], "vw_exact": exact, "quadratic": "::", "passes": passes}
    try:
        from_text = learnt(directory / "text", **options)
        convert(directory / "text", directory / "converted", **FLAGS[kind], vw_exact=exact)
    except InputError:
        return  # a label that is fatal to VW, or costs on two lines
    rules = BlockReader((directory / "converted").read_bytes()).rules
    write_blocks(
        directory / "blocks",
        text_reader(text, **SHAPES[kind], exact=exact, block_bytes=block_bytes),
        rules=rules,
        frame_bytes=draw.choice([0, 500, 1 << 18]),
    )
    assert learnt(directory / "converted", **options) == from_text
    assert learnt(directory / "blocks", **options) == from_text


def test_blocks_that_are_read_ahead_or_not_are_learnt_as_the_text_by_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b"
    assert convert(500 * ADF, path, cb_explore_adf=True) == 1000
    options = {"cb_explore_adf": True, "automl": 2, "lease": 50}
    for small in (0, 1 << 30):
        monkeypatch.setattr(read_ahead, "_SMALL", small)
        assert learnt(path, **options) == learnt(500 * ADF, **options)


def test_blocks_are_read_from_every_type_of_source(tmp_path: Path) -> None:
    path = tmp_path / "b"
    convert(ADF, path, cb_adf=True)
    options = {"cb_adf": True, "quadratic": "ua"}
    data = path.read_bytes()
    sources: list[Sources] = [path, str(path), data, io.BytesIO(data), gzip.compress(data), [path], (path,)]
    for source in sources:
        assert learnt(source, **options) == learnt(ADF, **options)
    assert learnt([path, ADF.split(b"\n\n")[0]], **options) == learnt(ADF + ADF.split(b"\n\n")[0], **options)


class Dribbling(io.RawIOBase):
    """A file that gives one byte at a time, as a slow pipe."""

    def __init__(self, data: bytes) -> None:
        self._left = memoryview(data)

    def read(self, size: int = -1, /) -> bytes:
        data, self._left = bytes(self._left[: min(size, 1)]), self._left[1:]
        return data


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress])
@pytest.mark.parametrize("options", [{"quadratic": "::"}, {"vw_exact": True}, {"automl": 2, "lease": 20}])
def test_one_byte_at_a_time(tmp_path: Path, pack: Callable[[bytes], bytes], options: dict[str, Any]) -> None:
    options = options | {"cb_explore_adf": True}
    convert(30 * ADF, tmp_path / "b", cb_explore_adf=True, vw_exact=options.get("vw_exact", False))
    expected = learnt(30 * ADF, **options)
    for data in (30 * ADF, (tmp_path / "b").read_bytes()):
        assert learnt(cast("BinaryIO", Dribbling(pack(data))), **options) == expected


def test_examples_limits_the_number_of_events_of_blocks(tmp_path: Path) -> None:
    assert convert(3 * ADF, tmp_path / "b", cb_adf=True) == 6
    assert learnt(tmp_path / "b", cb_adf=True, examples=3) == learnt(3 * ADF, cb_adf=True, examples=3)
    assert convert(3 * ADF, tmp_path / "c", cb_adf=True, examples=3) == 3
    assert learnt(tmp_path / "c", cb_adf=True) == learnt(3 * ADF, cb_adf=True, examples=3)


def test_exact_mode_rejects_examples_with_blocks(tmp_path: Path) -> None:
    convert(ADF, tmp_path / "b", cb_adf=True, vw_exact=True)
    with pytest.raises(OptionError, match="--examples"):
        learnt(tmp_path / "b", cb_adf=True, vw_exact=True, examples=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "converted with events = cb_adf, but this run has events = simple: give the same options"),
        ({"cb": 2}, "converted with events = cb_adf, but this run has events = cb"),
        ({"cb_adf": True, "hash": "all"}, "with hash = strings, but this run has hash = all"),
        ({"cb_adf": True, "hash_seed": 7}, "with hash_seed = 0, but this run has hash_seed = 7"),
        ({"cb_adf": True, "vw_exact": True}, "with vw_exact = False, but this run has vw_exact = True"),
        ({"cb_adf": True, "missing_probability": "uniform"}, "with missing_probability = refuse, but"),
    ],
)
def test_blocks_converted_with_other_options_are_rejected(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    convert(ADF, tmp_path / "b", cb_adf=True)
    with pytest.raises(InputError) as caught:
        learnt(tmp_path / "b", **options)
    assert str(caught.value).startswith(f"{tmp_path / 'b'}: these blocks were converted ")
    assert message in str(caught.value)


# -- and back ----------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(
    draw=st.randoms(use_true_random=False),
    kind=st.sampled_from(KINDS),
    hash_seed=st.sampled_from([0, 7]),
    uniform=st.booleans(),
)
def test_text_of_blocks_is_read_as_the_same_blocks(
    draw: Random, kind: str, hash_seed: int, uniform: bool
) -> None:
    shape: dict[str, Any] = {**SHAPES[kind], "hash_seed": hash_seed, "uniform": uniform}
    blocks = list(text_reader(odd_text(draw, kind, lines=8), **shape))
    text = b"".join(
        block_text(block, multiline=kind.endswith("adf") or kind == "ccb", slots=kind == "ccb")
        for block in blocks
    )
    reader = text_reader(text, **shape)
    back = unpack(reader)
    assert [[_but_number(line) for line in event] for event in back] == [
        [_but_number(line) for line in event] for event in unpack(blocks)
    ]
    assert {code.name for code in reader.diagnostics.counts} <= {"TAKEN_AS_UNIFORM"}


def _but_number(line: Any) -> str:
    return repr({**vars(line), "number": 0})


@given(value=st.floats(width=32, allow_nan=False, allow_infinity=False).filter(bool))
def test_numbers_are_read_back(value: float) -> None:
    text = b"|a x:" + number_word(value).encode() + b"\n"
    [block] = text_reader(text, multiline=False)
    assert block.value.tolist() == [value]


def test_files_are_converted_to_blocks_and_back(tmp_path: Path) -> None:
    for name, flags in FLAGS.items():
        blocks, text, again = (tmp_path / f"{name}{i}" for i in range(3))
        source = {"simple": b"1 |a x\n", "cb": b"1:2:0.5 3 |a x\n", "cb_adf": ADF, "ccb": CCB}[name]
        convert(source, blocks, **flags)
        assert convert(blocks, text, **flags) == convert(text, again, **flags)
        assert learnt(text, **flags) == learnt(again, **flags) == learnt(source, **flags)


def test_events_that_text_cannot_express_are_rejected(tmp_path: Path) -> None:
    convert(b"|a 1\n", tmp_path / "all", hash="all")
    with pytest.raises(OptionError, match="--hash all"):
        convert(tmp_path / "all", tmp_path / "text", hash="all")
    convert(b"1 |a x:inf\n", tmp_path / "exact", vw_exact=True)
    with pytest.raises(InputError, match="NaN"):
        convert(tmp_path / "exact", tmp_path / "text", vw_exact=True)
    convert(b"1 |a\x01b x\n", tmp_path / "exact", vw_exact=True)
    with pytest.raises(
        InputError, match=r"namespace 'a\\x01b' has a blank, a colon, a bar or a control byte"
    ):
        convert(tmp_path / "exact", tmp_path / "text", vw_exact=True)
    assert not (tmp_path / "text").exists()


def test_mixed_blocks_and_texts_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"1 |a x\n")
    convert(tmp_path / "text", tmp_path / "blocks")
    with pytest.raises(OptionError, match="some of the files"):
        convert([tmp_path / "text", tmp_path / "blocks"], tmp_path / "c")
    assert convert([tmp_path / "text", tmp_path / "text"], tmp_path / "c") == 2
