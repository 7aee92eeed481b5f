r"""Layout of a file of blocks: what `writer` writes and `reader` reads.

::

    file   = MAGIC  FILE_HEAD  header  frame ...  last frame
    frame  = FRAME  events  lines  spans  features  costs  tag  names   each section padded to 64 bytes
    names  = (hash uint32, length uint32, bytes) ...    those that no frame before has

The header is JSON, with blanks up to a multiple of 64 bytes: the rules by which the events were read, the
byte order, the layout of the records. A frame is one `Block`, and its sections are the block's own arrays: a
mapped frame is a block without any copying. The last frame has no events; each says how many there were up to
its end. Checksums (XXH3, 64 bits) are those of the header, of each frame's head, and of the rest of it. They
tell damage, not malice; `onlineauto.formats.blocks.checks` finds what a forged file could do to kernels.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from onlineauto.errors import InputError
from onlineauto.features.records import COST, FEATURE, LINE, SPAN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from onlineauto.features.records import Records

__all__ = [
    "BLOCK",
    "FILE_HEAD",
    "FRAME",
    "LAST",
    "MAGIC",
    "MOST",
    "SECTIONS",
    "VERSION",
    "checksum",
    "header_checksum",
    "padded",
    "record_layout",
    "section_sizes",
]

MAGIC = b"\x89oab\r\n\x1a\n"
"""No text begins so; like PNG's, it shows when a file was transferred as if it were text."""
VERSION = 1
"""Of this layout; grows with every change of it."""
BLOCK, LAST = 0x4B434C42, 0x5453414C
"""Kinds of frames: ``BLCK`` and ``LAST`` as bytes."""

FILE_HEAD = np.dtype([("version", "<u4"), ("header_bytes", "<u4"), ("checksum", "<u8")])
"""What follows the magic; the checksum is `header_checksum`."""
FRAME = np.dtype(
    [
        ("kind", "<u4"),
        ("number", "<u4"),  # of the frame, from 0
        ("events", "<i8"),
        ("lines", "<i8"),
        ("spans", "<i8"),
        ("features", "<i8"),
        ("costs", "<i8"),
        ("tag_bytes", "<i8"),
        ("names_bytes", "<i8"),
        ("all_events", "<i8"),  # up to and including this frame
        ("reserved", "<u8", (5,)),
        ("body_checksum", "<u8"),
        ("checksum", "<u8"),  # of all of the head before it
    ]
)
"""Head of a frame: 128 bytes."""

SECTIONS: tuple[tuple[str, np.dtype[Any], int], ...] = (
    ("events", np.dtype(np.int64), 1),
    ("lines", LINE, 1),
    ("spans", SPAN, 1),
    ("features", FEATURE, 0),
    ("costs", COST, 0),
    ("tag_bytes", np.dtype(np.uint8), 0),
    ("names_bytes", np.dtype(np.uint8), 0),
)
"""Sections of a frame: the count in its head, the records, and how many records there are more than that."""

MOST = 1 << 48
"""Most records of a kind that a frame can have."""

_PADDING = 64


def padded(size: int) -> int:
    """Bytes up to where the next section begins."""
    return -(-size // _PADDING) * _PADDING


def section_sizes(head: Records) -> list[int]:
    """Bytes of each section of a frame, without padding; no section if its head has impossible counts."""
    counts = [int(head[count]) for count, _, _ in SECTIONS]
    if min(counts) < 0 or max(counts) > MOST:
        return []
    return [(n + more) * kind.itemsize for n, (_, kind, more) in zip(counts, SECTIONS, strict=True)]


def checksum(data: NDArray[np.uint8] | bytes) -> int:
    """64-bit checksum of bytes.

    Raises
    ------
    InputError
        The package that makes them is not installed.
    """
    try:
        from xxhash import xxh3_64_intdigest
    except ImportError:
        raise InputError("files of blocks need a package: pip install 'onlineauto[blocks]'") from None
    return xxh3_64_intdigest(cast("Any", data))  # an array is a buffer, which older stubs do not know


def header_checksum(version: int, header: bytes) -> int:
    """Checksum of the file's header and of what its head says of it."""
    return checksum(np.array([version, len(header)], "<u4").tobytes() + header)


def record_layout() -> Mapping[str, str]:
    """Describe the records as they lie in memory here, so that a file of others is not taken for ours."""
    records = {"line": LINE, "span": SPAN, "feature": FEATURE, "cost": COST}
    return {name: _layout(kind) for name, kind in records.items()} | {"byte_order": sys.byteorder}


def _layout(kind: np.dtype[np.void]) -> str:
    assert kind.names is not None
    assert kind.fields is not None
    fields = [f"{name} {kind.fields[name][0].str}@{kind.fields[name][1]}" for name in kind.names]
    return f"{', '.join(fields)}; {kind.itemsize}"
