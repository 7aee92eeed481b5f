"""Decompress gzip and zstd streams; the format is detected from the first bytes."""

from __future__ import annotations

import zlib
from typing import Protocol

from onlineauto.errors import InputError, install_hint

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE_MAGICS = tuple(bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60))
"""A zstd file may begin with a skippable frame: ``pzstd`` writes one."""

_GZIP = 31  # zlib's `wbits` for the gzip container


class Unpacker(Protocol):
    """A consumer of packed bytes that produces unpacked ones."""

    def give(self, packed: bytes) -> None:
        """Append packed bytes to the input."""

    def take(self, size: int) -> bytes:
        """Return at most `size` unpacked bytes; none if more packed bytes are needed first."""

    def end(self) -> None:
        """End the input; raise an error if it is incomplete."""


def may_be_packed(begin: bytes) -> bool:
    """Return whether bytes are an incomplete prefix of a format's magic."""
    magics = (_GZIP_MAGIC, _ZSTD_MAGIC, *_SKIPPABLE_MAGICS)
    return any(magic.startswith(begin) and magic != begin for magic in magics)


def unpacker_for(begin: bytes) -> Unpacker | None:
    """Return the unpacker for a source with these first bytes, None if it is not packed.

    >>> unpacker_for(b"1 |a x") is None
    True
    """
    if begin.startswith(_GZIP_MAGIC):
        return _Gunzip()
    if begin.startswith((_ZSTD_MAGIC, *_SKIPPABLE_MAGICS)):
        try:
            from onlineauto.formats.sources.unzstd import Unzstd
        except ImportError:
            raise InputError(f"zstd needs a package: {install_hint('zstd')}") from None
        return Unzstd()
    return None


class _Gunzip:
    """An unpacker of gzip streams, which consist of one or more members."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._packed = b""
        self._begun = False
        self._error: InputError | None = None
        self._salvaged = b""  # the bytes before the error

    def give(self, packed: bytes) -> None:
        self._packed += packed

    def take(self, size: int) -> bytes:
        while self._packed and self._error is None:
            if not self._begun and not self._skip_padding():
                break
            data = self._unpack(size)
            if data:
                return data
        if self._begun and self._error is None and (rest := self._member.decompress(b"", size)):
            return rest  # output of the decompressor from an earlier call that exceeded `size`
        data, self._salvaged = self._salvaged[:size], self._salvaged[size:]
        if not data and self._error is not None:
            raise self._error
        return data

    def _unpack(self, size: int) -> bytes:
        """Return at most `size` bytes of the current member; store an error to raise it later."""
        before = self._member.copy()
        try:
            data = self._member.decompress(self._packed, size)
        except zlib.error as error:
            self._error = InputError(f"the gzip data are damaged ({error})")
            self._salvaged = _salvage(before, self._packed)
            return b""
        self._begun = True
        self._packed = self._member.unconsumed_tail
        if self._member.eof:
            self._packed = self._member.unused_data
            self._member = zlib.decompressobj(_GZIP)
            self._begun = False
        return data

    def _skip_padding(self) -> bool:
        """Drop zeros between members; return whether any bytes are left."""
        self._packed = self._packed.lstrip(b"\0")
        return bool(self._packed)

    def end(self) -> None:
        if self._begun:
            raise InputError("the gzip data end too early: the file is truncated")


def _salvage(member: zlib._Decompress, packed: bytes) -> bytes:
    """Return the unpacked bytes before the first damaged byte."""
    data = b""
    try:
        for i in range(len(packed)):
            data += member.decompress(packed[i : i + 1])
    except zlib.error:
        pass
    return data
