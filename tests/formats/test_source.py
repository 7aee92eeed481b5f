"""Sources of bytes: paths, pipes, standard input, gzip, zstd."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
import zlib
from contextlib import closing
from typing import IO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.errors import InputError
from onlineauto.formats.sources.source import ByteSource, Source

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from collections.abc import Callable
from pathlib import Path

from onlineauto.features.block import Block
from tests.formats.reading import text_reader

pytestmark = pytest.mark.lane("quick")

TEXT = b"".join(b"%d |a x:%d\n" % (i % 2, i) for i in range(1000))


def everything(source: Source, size: int = 100) -> bytes:
    with closing(ByteSource(source)) as opened:
        return b"".join(iter(lambda: opened.read(size), b""))


def test_a_path_bytes_and_an_open_file_give_the_same(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    path.write_bytes(TEXT)
    with path.open("rb") as file, path.open("rb", buffering=0) as raw:
        for source in (path, str(path), TEXT, file, raw, io.BytesIO(TEXT)):
            assert everything(source) == TEXT
        assert not file.closed


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
@pytest.mark.parametrize("size", [1, 2, 100, 1 << 20])
def test_packed_files_are_detected(tmp_path: Path, pack: Callable[[bytes], bytes], size: int) -> None:
    path = tmp_path / "events"
    path.write_bytes(pack(TEXT))
    assert everything(path, size) == TEXT
    assert everything(path.read_bytes(), size) == TEXT


def test_gzip_of_several_members_and_padding() -> None:
    packed = gzip.compress(TEXT[:5000]) + gzip.compress(b"") + gzip.compress(TEXT[5000:]) + b"\0" * 100
    assert everything(packed) == TEXT


def test_other_bytes_after_gzip_are_rejected() -> None:
    with pytest.raises(InputError, match="the gzip data are damaged"):
        everything(gzip.compress(TEXT) + b"garbage", 1 << 20)


def test_damaged_gzip_is_unpacked_up_to_the_damage() -> None:
    packer = zlib.compressobj(wbits=31)
    no_block = b"\x07" * 10
    packed = packer.compress(TEXT) + packer.flush(zlib.Z_FULL_FLUSH) + no_block
    source = ByteSource(packed)
    parts: list[bytes] = []
    while sum(map(len, parts)) < len(TEXT):
        parts.append(source.read(1000))
    assert max(map(len, parts)) <= 1000
    assert b"".join(parts) == TEXT
    with pytest.raises(InputError, match=r"the gzip data are damaged \(.*invalid block type\)"):
        source.read(1000)


def test_zstd_of_several_frames_some_without_data() -> None:
    skippable = b"\x5a\x2a\x4d\x18\x04\x00\x00\x00none"
    frames = [
        skippable,
        zstd.compress(TEXT[:5000]),
        zstd.compress(b""),
        skippable,
        zstd.compress(TEXT[5000:]),
    ]
    assert everything(b"".join(frames)) == TEXT


@pytest.mark.parametrize("left", [3, 4, 9, 200, -1])
def test_truncated_zstd_is_reported(left: int) -> None:
    packed = zstd.compress(TEXT)[:left]
    if left == 3:
        assert everything(packed) == packed  # no magic, no zstd
        return
    with pytest.raises(InputError, match="the zstd data end too early"):
        everything(packed)


def test_damaged_zstd_is_reported() -> None:
    packed = bytearray(zstd.compress(TEXT, options={zstd.CompressionParameter.checksum_flag: 1}))
    packed[-1] ^= 1
    with pytest.raises(InputError, match=r"the zstd data are damaged \(.*checksum"):
        everything(bytes(packed), 1 << 20)
    with pytest.raises(InputError, match="the zstd data are damaged"):
        everything(zstd.compress(TEXT) + b"garbage")


class Dribbling(io.RawIOBase):
    """A file that returns the next of `sizes` bytes at a time."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._data, self._sizes, self._n = data, sizes, 0

    def read(self, size: int = -1, /) -> bytes:
        self._n += 1
        n = min(size, self._sizes[self._n % len(self._sizes)])
        data, self._data = self._data[:n], self._data[n:]
        return data


@given(
    pack=st.sampled_from([bytes, gzip.compress, zstd.compress]),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    size=st.integers(1, 300),
    magic=st.sampled_from([b"0 |a", b"0 |b", b"\x89", TEXT[:100]]),
)
def test_bytes_in_chunks_of_any_size(
    pack: Callable[[bytes], bytes], sizes: list[int], size: int, magic: bytes
) -> None:
    with closing(ByteSource(cast("IO[bytes]", Dribbling(pack(TEXT), sizes)))) as source:
        assert source.begins_with(magic) == TEXT.startswith(magic)
        assert b"".join(iter(lambda: source.read(size), b"")) == TEXT


def test_a_failure_while_peeking_is_raised_by_reading() -> None:
    source = ByteSource(gzip.compress(TEXT)[:12])
    assert not source.begins_with(b"magic")
    with pytest.raises(InputError, match="the gzip data end too early"):
        source.read(1)


@pytest.mark.parametrize("data", [b"", b"\x1f", b"1", b"ab", b"\x28\xb5", b"P", b"P*"])
def test_short_input(data: bytes) -> None:
    assert everything(data) == data


def test_names(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    path.write_bytes(TEXT)
    with closing(ByteSource(path)) as source:
        assert source.name == str(path)
    assert ByteSource(TEXT).name == "<bytes>"
    assert ByteSource(io.BytesIO(TEXT)).name == "<file>"
    assert ByteSource(TEXT, name="mine").name == "mine"
    with path.open("rb") as file:
        assert ByteSource(file).name == str(path)


@pytest.mark.parametrize(
    ("name", "reason"), [("nowhere.txt", "no such file"), (".", "is a directory, not a file of events")]
)
def test_paths_that_are_no_files_are_rejected(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        text_reader(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}: {reason}"


class Failing(io.BytesIO):
    """A file whose disk fails."""

    def read1(self, size: int | None = -1, /) -> bytes:
        data = super().read1(size)
        if not data:
            raise OSError(5, "Input/output error")
        return data


def test_bytes_before_a_failure_are_delivered() -> None:
    reader = text_reader(Failing(TEXT), name="file")
    blocks: list[Block] = []
    with pytest.raises(InputError) as caught:
        blocks.extend(reader)
    assert sum(map(len, blocks)) == 1000
    assert str(caught.value) == "file:1001: Input/output error; everything before this line was used"


def packers() -> list[Callable[[bytes], bytes]]:
    """Return functions that pack and flush a part of a stream."""
    gz, zst = zlib.compressobj(wbits=31), zstd.ZstdCompressor()
    return [
        bytes,
        lambda event: gz.compress(event) + gz.flush(zlib.Z_SYNC_FLUSH),
        lambda event: zst.compress(event, zst.FLUSH_BLOCK),
    ]


@pytest.mark.parametrize("pack", packers(), ids=["text", "gzip", "zstd"])
def test_a_pipe_gives_events_as_soon_as_they_are_complete(pack: Callable[[bytes], bytes]) -> None:
    out, into = os.pipe()
    with os.fdopen(out, "rb", buffering=0) as pipe, os.fdopen(into, "wb", buffering=0) as writer:
        blocks = iter(text_reader(pipe, label="cb", multiline=True))
        watchdog = threading.Timer(60, writer.close)
        watchdog.start()
        for i in range(3):
            writer.write(pack(b"|a x\n0:1:%g |a y\n\n" % (0.5 + i / 10)))
            assert len(next(blocks)) == 1
        watchdog.cancel()


def test_the_last_event_of_a_pipe_needs_no_empty_line() -> None:
    out, into = os.pipe()
    with os.fdopen(out, "rb", buffering=0) as pipe, os.fdopen(into, "wb", buffering=0) as writer:
        writer.write(b"|a x\n0:1:0.5 |a y\n\n|a z")
        writer.close()
        assert [len(block) for block in text_reader(pipe, label="cb", multiline=True)] == [1, 1]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("source", ["None", "'-'"])
def test_standard_input(packed: bool, source: str) -> None:
    program = f"""if True:
        from onlineauto.formats.sources.source import ByteSource
        source = ByteSource({source})
        print(source.name, sum(len(part) for part in iter(lambda: source.read(99), b"")))
    """
    data = gzip.compress(TEXT) if packed else TEXT
    done = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, check=True)
    assert done.stdout.decode() == f"<stdin> {len(TEXT)}\n"


def test_zstd_without_its_package_explains_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onlineauto.formats.sources.unzstd", None)
    with pytest.raises(InputError, match=r"pip install '\.\[zstd\]'"):
        ByteSource(b"\x28\xb5\x2f\xfd rest").read(10)
