"""Files of blocks: the same blocks are read back, and damaged files are rejected."""

from __future__ import annotations

import gzip
import io
import sys
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import Workspace, convert
from onlineauto.errors import InputError
from onlineauto.features.block import Block
from onlineauto.features.records import COST, FEATURE, LINE, SPAN
from onlineauto.formats.blocks.file import (
    FILE_HEAD,
    FRAME,
    MAGIC,
    BlockReader,
    checksum,
    header_checksum,
    write_blocks,
)
from onlineauto.formats.sources.replaced_file import replacing
from onlineauto.formats.text_reader import TextReader
from onlineauto.interop import from_frame
from tests.features.test_block import COLUMNS
from tests.forging import blocks_bytes, blocks_parts
from tests.formats.odd_lines import KINDS, odd_text
from tests.formats.reading import SHAPES, text_reader
from tests.naive.lines import unpack

pytestmark = pytest.mark.lane("sampled")

TEXT = b"shared 't1|s a |u b:2\n0:-1:0.5 |a x\n|a y:0.25\n\n|b z\n1:2:0.25 'tag|a x |b\n\n" * 8


def read_text(text: bytes = TEXT, kind: str = "cb_adf", **options: Any) -> TextReader:
    return text_reader(text, **SHAPES[kind], **{"block_bytes": 100} | options)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "events.blocks"
    write_blocks(path, read_text(), rules={"events": "cb_adf"}, frame_bytes=0)
    return path


def same_block(one: Block, other: Block) -> bool:
    names = ("event_start", "tag", *COLUMNS)
    return all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in names)


def test_the_same_blocks_are_read_back(path: Path) -> None:
    reader = BlockReader(path)
    back, blocks = list(reader), list(read_text())
    assert len(back) > 3
    assert all(map(same_block, back, blocks))
    assert reader.namespaces.names == blocks[-1].namespaces.names
    assert reader.namespaces.hashes == blocks[-1].namespaces.hashes
    assert reader.rules == {"events": "cb_adf"}
    assert reader.name == str(path)


def test_zeros_of_vectors_are_read_back(path: Path) -> None:
    log = io.BytesIO(b'{"v":[0,1,0,2,0,1,0,2,0,1,0,2,0,1,0,2,0],"_label":1}\n')
    convert(log, path, json=True)
    (block,) = BlockReader(path)
    assert block.features["value"].tolist()[:17] == [0, 1, 0, 2] * 4 + [0]


@settings(max_examples=40)
@given(
    draw=st.randoms(use_true_random=False),
    kind=st.sampled_from(KINDS),
    exact=st.booleans(),
    size=st.sampled_from([16, 64, 4096]),
    stream=st.booleans(),
    frame=st.sampled_from([0, 600, 1 << 18]),
)
def test_any_text_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    draw: Random,
    kind: str,
    exact: bool,
    size: int,
    stream: bool,
    frame: int,
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "b"
    text = odd_text(draw, kind, lines=8)
    blocks: list[Block] = []
    with suppress(InputError):  # a label that is fatal to VW
        blocks.extend(read_text(text, kind, exact=exact, block_bytes=size))
    assert write_blocks(path, blocks, rules={}, frame_bytes=frame) == sum(map(len, blocks))
    back = list(BlockReader(path.read_bytes() if stream else path))
    assert repr(unpack(back)) == repr(unpack(blocks))
    if frame == 0:
        assert all(map(same_block, back, blocks))
    assert len(back) == 0 if not blocks else 1 <= len(back) <= len(blocks)


def test_a_reader_is_read_once(path: Path) -> None:
    reader = BlockReader(path)
    assert len(list(reader)) > 1
    assert list(reader) == []
    begun = BlockReader(path)
    next(iter(begun))
    assert list(begun) == [], "an abandoned reader is closed"


def test_arrays_have_the_types_of_kernels(path: Path) -> None:
    for source in (path, path.read_bytes(), gzip.compress(path.read_bytes())):
        block = next(iter(BlockReader(source)))
        kinds = ((block.lines, LINE), (block.spans, SPAN), (block.features, FEATURE), (block.costs, COST))
        for array, kind in kinds:
            assert array.dtype == kind
            assert array.flags.c_contiguous
            assert array.flags.aligned
            assert array.flags.writeable


def test_writing_to_a_mapped_block_does_not_reach_the_file(path: Path) -> None:
    before = path.read_bytes()
    for block in BlockReader(path):
        block.features["value"] = 7
    assert path.read_bytes() == before


def test_the_same_events_make_the_same_bytes(path: Path, tmp_path: Path) -> None:
    write_blocks(tmp_path / "again", read_text(), rules={"events": "cb_adf"}, frame_bytes=0)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_namespaces_of_several_streams_are_numbered_as_one(tmp_path: Path) -> None:
    one, other = b"|b x |a y\n\n", b"|a y |c z |b x\n\n"
    blocks = [*read_text(one), *read_text(other), *read_text(one)]
    for frame_bytes, frames in ((0, 3), (1 << 20, 1)):
        write_blocks(tmp_path / "b", blocks, rules={}, frame_bytes=frame_bytes)
        assert unpack(BlockReader(tmp_path / "b")) == unpack(blocks)
        reader = BlockReader(tmp_path / "b")
        assert len(list(reader)) == frames
    assert reader.namespaces.names == [b"b", b"a", b"c"]


def test_small_blocks_are_joined(tmp_path: Path) -> None:
    [whole] = read_text(block_bytes=1 << 16)
    write_blocks(tmp_path / "b", read_text(block_bytes=20), rules={})
    [back] = BlockReader(tmp_path / "b")
    assert same_block(back, whole)
    for records, used in ((back.lines, 45), (back.spans, 12)):
        padding = records.view(np.uint8).reshape(-1, records.itemsize)[:, used:]
        assert padding.size
        assert not padding.any()  # or the file would have what was in memory before


def test_part_of_a_block_is_written_alone(tmp_path: Path) -> None:
    [block] = read_text(block_bytes=1 << 16)
    write_blocks(tmp_path / "b", [block.head(3), block.head(0)], rules={})
    [back] = BlockReader(tmp_path / "b")
    assert unpack([back]) == unpack([block])[:3]
    assert back.n_features < block.n_features


def test_a_file_without_events_is_read_back(tmp_path: Path) -> None:
    assert write_blocks(tmp_path / "b", [], rules={}) == 0
    assert list(BlockReader(tmp_path / "b")) == []


# -- what is refused ---------------------------------------------------------------------------------------


def reading(data: bytes) -> tuple[int, str]:
    """Return the number of events read, and the error after them."""
    blocks: list[Block] = []
    with pytest.raises(InputError) as caught:
        blocks.extend(BlockReader(data, name="events.blocks"))
    assert str(caught.value).startswith("events.blocks: ")
    return sum(map(len, blocks)), str(caught.value).removeprefix("events.blocks: ")


def test_a_file_cut_anywhere_is_truncated(path: Path) -> None:
    data = path.read_bytes()
    whole = sum(map(len, BlockReader(data)))
    step = max(1, len(data) // 300)
    for end in {*range(0, len(data), step), *range(len(data) - 200, len(data)), *range(100)}:
        n, message = reading(data[:end])
        assert "it is truncated" in message
        assert n <= whole
        assert n == 0 or f"the {n} events before that were used" in message


def test_a_truncated_mapped_file_is_rejected(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(InputError, match="it is truncated; the 16 events before that were used"):
        list(BlockReader(path))
    path.write_bytes(data[:4])
    with pytest.raises(InputError, match=r"events\.blocks: .* it ends within its magic at byte 4"):
        BlockReader(path)


def test_any_flipped_bit_is_found(path: Path) -> None:
    data = path.read_bytes()
    for place in range(0, 8 * len(data), 37):
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << place % 8
        reading(bytes(flipped))


@pytest.mark.parametrize("place", ["header", "frame", "body"])
def test_damage_is_located(path: Path, place: str) -> None:
    data = bytearray(path.read_bytes())
    first = data.index(b"BLCK")
    second = data.index(b"BLCK", first + 1)
    data[{"header": 40, "frame": second + 9, "body": second + FRAME.itemsize + 3}[place]] ^= 4
    n, message = reading(bytes(data))
    which = {
        "header": "its header",
        "frame": f"the head of block 2, at byte {second},",
        "body": f"block 2, at byte {second},",
    }
    assert message.startswith(f"this file of blocks is damaged: {which[place]} does not have its checksum")
    assert (n > 0) == (place != "header")


def test_frames_in_another_order_are_found(path: Path) -> None:
    data = path.read_bytes()
    starts = [i for i in range(0, len(data), 64) if data[i : i + 4] in (b"BLCK", b"LAST")]
    frames = [data[i:j] for i, j in zip(starts, [*starts[1:], len(data)], strict=True)]
    assert len(frames) > 4
    head = data[: starts[0]]
    for others in (
        frames[1:],
        [frames[1], frames[0], *frames[2:]],
        [frames[0], *frames[2:]],
        [frames[0]] * 2,
    ):
        assert "is out of order" in reading(head + b"".join(others))[1]
    assert "it is truncated" in reading(head + b"".join(frames[:-1]))[1]
    n, message = reading(data + b"\0")
    assert f"there are bytes after its end, at byte {len(data)}; the {n} events before" in message


def test_a_newer_file_is_rejected(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8] = 9
    n, message = reading(bytes(data))
    assert n == 0
    assert message.startswith(
        "these blocks have format 9 of a newer onlineauto, but this one reads format 1:"
    )


def test_a_file_of_other_records_is_rejected() -> None:
    header = b'{"rules":{},"records":{"byte_order":"middle"}}'
    head = np.array((1, len(header), header_checksum(1, header)), FILE_HEAD).tobytes()
    assert (
        "for another kind of machine, or of another version"
        in reading((MAGIC + head + header).ljust(128, b"\0"))[1]
    )


def test_a_transfer_as_text_is_found(path: Path) -> None:
    data = path.read_bytes().replace(b"\r\n", b"\n")
    assert "its first bytes were changed, for example by" in reading(data)[1]


def test_packed_blocks_are_read_and_their_damage_is_found(path: Path) -> None:
    packed = gzip.compress(path.read_bytes())
    assert unpack(BlockReader(packed)) == unpack(BlockReader(path))
    assert "the gzip data end too early" in reading(packed[:-300])[1]
    with io.BytesIO(packed) as file:
        assert unpack(BlockReader(file)) == unpack(BlockReader(path))


# -- all or nothing ----------------------------------------------------------------------------------------


def test_a_failure_leaves_the_old_file(path: Path) -> None:
    before = path.read_bytes()

    def failing() -> Any:
        yield from read_text()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_blocks(path, failing(), rules={})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_open_readers_keep_a_replaced_file(path: Path) -> None:
    blocks = iter(BlockReader(path))
    first = next(blocks)
    write_blocks(path, [], rules={})
    assert unpack([first, *blocks]) == unpack(read_text())
    assert list(BlockReader(path)) == []


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match=r"cannot write .*nowhere/b: No such file"),
        replacing(tmp_path / "nowhere/b"),
    ):
        pass


def test_a_file_of_blocks_without_its_package_explains_the_installation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "xxhash", None)
    with pytest.raises(InputError, match=r"pip install '\.\[blocks\]'"):
        checksum(b"")


def forged(path: Path, section: str, field: str | None, at: int, value: Any) -> bytes:
    """Return a file with another value in its first frame, and valid checksums."""
    header, frames = blocks_parts(path.read_bytes())
    records = frames[0].sections[section]
    (records if field is None else records[field])[at] = value
    return blocks_bytes(header, frames)


def test_parts_of_a_file_are_joined_to_the_same_file(path: Path) -> None:
    assert blocks_bytes(*blocks_parts(path.read_bytes())) == path.read_bytes()


@pytest.mark.parametrize(
    ("section", "field", "at", "value", "message"),
    [
        ("events", None, -1, 1000, "has an offset out of range"),
        ("events", None, 1, -1, "has an offset out of range"),
        ("events", None, 1, 0, "has an offset out of range"),
        ("lines", "start", -1, 1000, "has an offset out of range"),
        ("lines", "cost", 2, 1000, "has an offset out of range"),
        ("lines", "tag", -1, 1 << 40, "has an offset out of range"),
        ("lines", "slot", 0, 1, "has lines that do not form an event"),
        ("lines", "weight", 0, -1, "has an invalid number"),
        ("lines", "label", 1, np.nan, "has an invalid number"),
        ("spans", "start", 1, -5, "has an offset out of range"),
        ("spans", "start", -1, 1 << 40, "has an offset out of range"),
        ("spans", "namespace", 0, 1000, "has an offset out of range"),
        ("spans", "namespace", 0, -1, "has an offset out of range"),
        ("features", "value", 2, np.inf, "has an invalid number"),
        ("costs", "probability", 0, 1.5, "has an invalid number"),
        ("costs", "cost", 0, np.nan, "has an invalid number"),
        ("names_bytes", None, 4, 200, "has truncated, empty or duplicate names"),
        ("names_bytes", None, 4, 0, "has truncated, empty or duplicate names"),
    ],
)
def test_forged_values_with_valid_checksums_are_rejected(
    path: Path, section: str, field: str | None, at: int, value: Any, message: str
) -> None:
    write_blocks(path, read_text(), rules={"events": "cb_adf", "vw_exact": False}, frame_bytes=0)
    assert message in reading(forged(path, section, field, at, value))[1]


def test_a_truth_value_above_1_is_rejected(path: Path) -> None:
    header, frames = blocks_parts(path.read_bytes())
    frames[0].sections["lines"]["shared"].view(np.uint8)[0] = 7
    assert "has an invalid number" in reading(blocks_bytes(header, frames))[1]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("events", -1, "is out of order"),
        ("lines", -1, "has an invalid kind or invalid counts"),
        ("spans", 2**62, "has an invalid kind or invalid counts"),
        ("features", 2**45, "it is truncated"),
        ("kind", 7, "has an invalid kind or invalid counts"),
        ("kind", 0x5453414C, "has an invalid kind or invalid counts"),
    ],
)
@pytest.mark.parametrize("mapped", [False, True])
def test_impossible_counts_are_rejected(
    path: Path, field: str, value: int, message: str, mapped: bool
) -> None:
    header, frames = blocks_parts(path.read_bytes())
    frames[0].head[field] = value
    path.write_bytes(blocks_bytes(header, frames))
    with pytest.raises(InputError, match=message):
        list(BlockReader(path if mapped else path.read_bytes()))


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"7",
        b"[" * 5000,
        b"{}",
        b'{"rules":[],"records":{}}',
        b'{"rules":{"events":[]},"records":{}}',
    ],
)
def test_a_malformed_header_is_rejected(path: Path, header: bytes) -> None:
    _, frames = blocks_parts(path.read_bytes())
    assert "its header cannot be understood" in reading(blocks_bytes(header, frames))[1]


@pytest.mark.parametrize("rules", [{"events": "lda"}, {"events": 7}, {"events": True}])
def test_unknown_rules_are_rejected(path: Path, rules: dict[str, Any]) -> None:
    header, frames = blocks_parts(path.read_bytes())
    assert "unknown kind of events" in reading(blocks_bytes(header | {"rules": rules}, frames))[1]


def test_blocks_keep_the_rule_and_the_identities_of_their_names(tmp_path: Path) -> None:
    names: dict[str, Any] = {"names": "columns", "name_columns": ("arm^arm",), "number_columns": ("age^age",)}
    of_text, of_json = read_text(TEXT[:80]), read_text(TEXT[:80])
    of_text.read_by = {"events": "cb_adf"}
    of_json.read_by = {"events": "cb_adf", "names": "vw"}
    of_columns = read_text()
    of_columns.read_by = {"events": "cb_adf", **names}
    path = tmp_path / "events.blocks"
    n = write_blocks(path, [*of_text, *of_json, *of_columns, *read_text()], rules={"events": "cb_adf"})
    blocks = list(BlockReader(path))
    assert [block.rules for block in blocks] == [
        {"events": "cb_adf"},
        {"events": "cb_adf", "names": "vw"},
        {"events": "cb_adf", **names},
        {"events": "cb_adf"},
    ]
    assert sum(map(len, blocks)) == n


def test_a_frame_has_the_same_identities_as_blocks(tmp_path: Path) -> None:
    rows = {"user": ["x", "y"] * 20, "arm": [5, 9] * 20, "cost": [-1.0, 0.0] * 20, "p": [0.5] * 40}
    frame = from_frame(pandas.DataFrame(rows), actions="arm", cost="cost", probability="p")
    convert(frame, tmp_path / "events.blocks", cb_explore_adf=True)
    workspace = Workspace(cb_explore_adf=True).fit(tmp_path / "events.blocks")
    assert workspace.identities == {"arm^arm"}
    with pytest.raises(InputError, match="Vowpal Wabbit"):
        workspace.fit(from_json(tmp_path))


def from_json(folder: Path) -> Path:
    """Return blocks of JSON with the names of Vowpal Wabbit."""
    line = b'{"_label_cost":1,"_label_probability":0.5,"_labelIndex":0,"_multi":[{"arm":"a"},{"arm":"b"}]}\n'
    convert(line, folder / "json.blocks", cb_explore_adf=True, json=True)
    return folder / "json.blocks"
