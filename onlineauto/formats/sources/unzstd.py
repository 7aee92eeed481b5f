"""Decompress zstd streams."""

from __future__ import annotations

import sys

from onlineauto.errors import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


class Unzstd:
    """An unpacker of zstd streams, which consist of one or more frames."""

    def __init__(self) -> None:
        self._frame: zstd.ZstdDecompressor | None = None
        self._packed = b""

    def give(self, packed: bytes) -> None:
        """Append packed bytes to the input."""
        self._packed += packed

    def take(self, size: int) -> bytes:
        """Return at most `size` unpacked bytes; none if more packed bytes are needed first."""
        while self._packed or self._frame is not None:
            frame = self._frame = self._frame or zstd.ZstdDecompressor()
            try:
                data = frame.decompress(self._packed, size)
            except zstd.ZstdError as error:
                raise InputError(f"the zstd data are damaged ({error})") from None
            self._packed = b""
            if frame.eof:
                self._packed, self._frame = frame.unused_data, None
            if data:
                return data
            if self._frame is not None and frame.needs_input:
                break
        return b""

    def end(self) -> None:
        """End the input; raise an error if a frame is not complete."""
        if self._frame is not None:
            raise InputError("the zstd data end too early: the file is truncated")
