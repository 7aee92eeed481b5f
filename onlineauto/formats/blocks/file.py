r"""Define the layout of a file of blocks, which `writer` writes and `reader` reads.

::

    file   = MAGIC  FILE_HEAD  header  frame ...  last frame
    frame  = FRAME  events  lines  spans  features  costs  tag  names   each section padded to 64 bytes
    names  = (hash uint32, length uint32, bytes) ...    only names that no earlier frame has
    rules  = FRAME  JSON        by which the names of the frames after it were made, if a rule was used

The header is JSON, with blanks up to a multiple of 64 bytes: the rules by which the events were read, the
byte order, the layout of the records. A frame is one `Block`, and its sections are the block's arrays, so a
mapped frame becomes a block without copying. The last frame has no events. Each frame records the number of
events up to its end. The header, each frame's head and each frame's body have checksums (XXH3, 64 bits). They
detect damage, not forgery; `onlineauto.formats.blocks.reader` rejects forged blocks that could make kernels
fail.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from onlineauto.errors import InputError, install_hint
from onlineauto.features.records import COST, FEATURE, LINE, SPAN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from onlineauto.features.records import Records

MAGIC = b"\x89oab\r\n\x1a\n"
"""First bytes of the file. No text begins with them; as in PNG, a transfer as text changes them."""
VERSION = 1
"""Version of this layout, raised with every change."""
BLOCK, LAST, RULES = 0x4B434C42, 0x5453414C, 0x454C5552
"""Kinds of frames: ``BLCK``, ``LAST`` and ``RULE`` as bytes."""

FILE_HEAD = np.dtype([("version", "<u4"), ("header_bytes", "<u4"), ("checksum", "<u8")])
"""Record after the magic; its checksum is `header_checksum`."""
FRAME = np.dtype(
    [
        ("kind", "<u4"),
        ("number", "<u4"),  # index of the frame
        ("events", "<i8"),
        ("lines", "<i8"),
        ("spans", "<i8"),
        ("features", "<i8"),
        ("costs", "<i8"),
        ("tag_bytes", "<i8"),
        ("names_bytes", "<i8"),
        ("all_events", "<i8"),  # events up to and including this frame
        ("reserved", "<u8", (5,)),
        ("body_checksum", "<u8"),
        ("checksum", "<u8"),  # checksum of the head before this field
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
"""Sections of a frame: field of the head with the count, type of record, records in addition to the count."""

MOST = 1 << 48
"""Largest number of records of a kind in a frame."""

_PADDING = 64


def pad_size(size: int) -> int:
    """Return `size` rounded up to the beginning of the next section."""
    return -(-size // _PADDING) * _PADDING


def section_sizes(head: Records) -> list[int]:
    """Return the bytes of each section of a frame, without padding; [] if the head has impossible counts."""
    counts = [int(head[count]) for count, _, _ in SECTIONS]
    if min(counts) < 0 or max(counts) > MOST:
        return []
    return [(n + more) * kind.itemsize for n, (_, kind, more) in zip(counts, SECTIONS, strict=True)]


def checksum(data: NDArray[np.uint8] | bytes) -> int:
    """Return the 64-bit checksum of bytes."""
    try:
        from xxhash import xxh3_64_intdigest
    except ImportError:
        raise InputError(f"files of blocks need a package: {install_hint('blocks')}") from None
    return xxh3_64_intdigest(cast("Any", data))  # older stubs do not know that an array is a buffer


def header_checksum(version: int, header: bytes) -> int:
    """Return the checksum of the file's header, its length and the version."""
    return checksum(np.array([version, len(header)], "<u4").tobytes() + header)


def record_layout() -> Mapping[str, str]:
    """Return the memory layout of the records on this machine, by which other layouts are detected."""
    records = {"line": LINE, "span": SPAN, "feature": FEATURE, "cost": COST}
    return {name: _layout(kind) for name, kind in records.items()} | {"byte_order": sys.byteorder}


def _layout(kind: np.dtype[np.void]) -> str:
    """Return the layout of a record as text: each field's name, type and offset, and the record's size."""
    assert kind.names is not None
    assert kind.fields is not None
    fields = [f"{name} {kind.fields[name][0].str}@{kind.fields[name][1]}" for name in kind.names]
    return f"{', '.join(fields)}; {kind.itemsize}"
