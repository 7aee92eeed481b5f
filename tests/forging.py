"""Model files and files of blocks taken apart, and put together again with right checksums."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from onlineauto.formats.blocks.file import (
    FILE_HEAD,
    FRAME,
    MAGIC,
    SECTIONS,
    VERSION,
    checksum,
    header_checksum,
    pad_size,
    section_sizes,
)
from onlineauto.interop.vw.file import VwHead, VwShape, read_vw_file, vw_file_bytes
from onlineauto.interop.vw.options import configuration_of, shape_of
from onlineauto.workspace import model_file
from onlineauto.workspace.options import REGISTRY

_HEAD = len(MAGIC) + FILE_HEAD.itemsize
_BEGIN = len(model_file.MAGIC) + model_file.HEAD.itemsize
_DIGEST = hashlib.sha256().digest_size


@dataclass
class Frame:
    """A frame of a file of blocks: its head, and the arrays of its sections by their names."""

    head: Any
    sections: dict[str, Any]


def blocks_parts(data: bytes) -> tuple[dict[str, Any], list[Frame]]:
    """Return the header of a file of blocks, and its frames, whose arrays can be written to."""
    size = int(np.frombuffer(data, FILE_HEAD, 1, len(MAGIC))[0]["header_bytes"])
    at, frames = _HEAD + size, []
    while at < len(data):
        head = np.frombuffer(data, FRAME, 1, at)[0].copy()
        at += FRAME.itemsize
        sections = {}
        for (name, kind, _), length in zip(SECTIONS, section_sizes(head), strict=True):
            if at < len(data):
                sections[name] = np.frombuffer(data, np.uint8, length, at).copy().view(kind)
                at += pad_size(length)
        frames.append(Frame(head, sections))
    return msgspec.json.decode(data[_HEAD : _HEAD + size]), frames


def blocks_bytes(header: object, frames: Sequence[Frame]) -> bytes:
    """Return a file of blocks with this header, as bytes or as what JSON has, and these frames, sealed."""
    text = header if isinstance(header, bytes) else msgspec.json.encode(header)
    text = text.ljust(pad_size(_HEAD + len(text)) - _HEAD)
    head = np.array((VERSION, len(text), header_checksum(VERSION, text)), FILE_HEAD)
    parts = [MAGIC, head.tobytes(), text]
    for frame in frames:
        body = b"".join(
            section.tobytes().ljust(pad_size(section.nbytes), b"\0") for section in frame.sections.values()
        )
        sealed = frame.head.copy()
        sealed["body_checksum"] = checksum(body)
        sealed["checksum"] = checksum(sealed.tobytes()[:-8])
        parts += [sealed.tobytes(), body]
    return b"".join(parts)


def model_parts(data: bytes) -> tuple[Any, bytearray]:
    """Return the description of a model file, with a map of three for each array, and the arrays' bytes."""
    size = int(np.frombuffer(data, model_file.HEAD, 1, len(model_file.MAGIC))[0]["description_bytes"])
    first = -(-(_BEGIN + size) // 64) * 64
    return msgspec.msgpack.decode(data[_BEGIN : _BEGIN + size]), bytearray(data[first:-_DIGEST])


def model_bytes(description: object, arrays: bytes | bytearray) -> bytes:
    """Return the model file with this description, as bytes or as what MessagePack has, and these arrays."""
    text = description if isinstance(description, bytes) else msgspec.msgpack.encode(description)
    whole = text.ljust(-(-(_BEGIN + len(text)) // 64) * 64 - _BEGIN, b"\0") + arrays
    head = np.zeros((), model_file.HEAD)
    head["version"], head["description_bytes"] = model_file.VERSION, len(text)
    head["file_bytes"] = _BEGIN + len(whole) + _DIGEST
    data = model_file.MAGIC + head.tobytes() + whole
    return data + hashlib.sha256(data).digest()


def vw_model_bytes(data: bytes, options: Callable[[str], str]) -> bytes:
    """Return a model file of Vowpal Wabbit with other options, and the checksum that they then have."""

    def shape(head: VwHead) -> VwShape:
        return shape_of(head, configuration_of(head, REGISTRY.from_keywords(), name="it"))

    file = read_vw_file(data, name="it", shape=shape)
    head = replace(file.head, options=options(file.head.options.decode()).encode())
    return vw_file_bytes(replace(file, head=head), shape=shape(file.head))
