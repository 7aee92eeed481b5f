"""``VwFile``: the content of a Vowpal Wabbit model file as a value, and its layout.

::

    file = head  options  checksum  indexed  decay  explorer  search  averages  descent  cell ...

The options determine which of the parts after the checksum exist: whether slots of ``--ccb_explore_adf`` are
distinguished; the state of ``--epsilon_decay``; an explorer's counter; the state of ``--automl``; the sums of
``--cb_type mtr``; those of gradient descent. The nonzero cells follow, each with its number, up to the end of
the file. They have neither a count nor a checksum. So a file that is cut off between two cells is read as a
valid file with fewer cells, and altered weights are not detected.

Source: VW 9.11.9 ``parse_regressor.cc``, ``gd.cc``, ``cb_adf.cc``, ``cb_explore_adf_*.cc``,
``automl_iomodel.cc``, ``confidence_sequence_robust.cc``, ``epsilon_decay.cc``,
``conditional_contextual_bandit.cc``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.interop.vw.fields import FieldReader, Fields, FieldWriter
from onlineauto.interop.vw.search import NO_SEARCH, VwDecay, VwSearch, decay_fields, search_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

VERSION = b"9.11.9"
"""The version of all files that are read or written."""

_BEGIN = re.compile(rb"(?s)[\x06-\x0c]\0\0\0(\d+\.\d+\.\d+)\0")
_WIDE_BITS = 31
"""Number of bits from which the number of a cell is a uint64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VwHead:
    """The first part of every file."""

    version: bytes = VERSION  # VW's version, and the name from ``--id``.
    identity: bytes = b""
    low: float = 0.0  # Smallest and largest label.
    high: float = 0.0
    bits: int = 18  # Base-2 logarithm of the number of cells.
    ngram: tuple[bytes, ...] = ()  # The words of these options, of three bytes at most.
    skips: tuple[bytes, ...] = ()
    options: bytes = b""  # A command line, with a blank before each word.


@dataclass(frozen=True, slots=True, kw_only=True)
class VwDescent:
    """Sums of gradient descent, and the counters of the run."""

    initial_t: float = 0.0  # ``--initial_t``, and the weight of the events since.
    t: float = 0.0
    # Σ weight · Σ (x/n)² and Σ weight, of each model, or of the first one only.
    norms: tuple[float, ...] = (0.0,)
    weights: tuple[float, ...] = (0.0,)
    # Sum of all losses, and of those since the last row of progress.
    losses: tuple[float, float] = (0.0, 0.0)
    interval: float = 1.0  # Weight at which the next row of progress is due.
    low: float = 0.0  # Smallest and largest label, as in the head.
    high: float = 0.0
    # Weight of the labelled events; sum of their labels; weight of the unlabelled events; weight of the
    # labelled events at the last row.
    labelled: float = 0.0
    labels: float = 0.0
    unlabelled: float = 0.0
    before: float = 0.0
    events: int = 0  # Their numbers.
    features: int = 0
    passes: int = 0
    # The amount that penalties subtract from the size of every weight, and the factor for the rest.
    gravity: float = 0.0
    contraction: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VwShape:
    """The parts that follow the options of a file, as determined by these options."""

    slots: bool = False  # True with ``--ccb_explore_adf``.
    decaying: int = 0  # Number of models of ``--epsilon_decay``, or 0.
    explorer: str = ""  # Types of the numbers that the explorer saves: ``Q`` is a uint64, ``f`` a float32.
    search: bool = False  # True with ``--automl``.
    # Numbers of models whose sums are saved: of ``--cb_type mtr``, and of gradient descent.
    averages: int = 0
    models: int = 1
    fields: int = 3  # Number of saved floats of a cell.


@dataclass(frozen=True, slots=True, kw_only=True)
class VwFile:
    """The content of a file."""

    head: VwHead = field(default_factory=VwHead)  # The first part.
    # True if slots are distinguished: the model has seen an event of several slots, or a slot with features.
    indexed: bool = False
    decay: VwDecay = field(default_factory=VwDecay)  # The state of ``--epsilon_decay``.
    explorer: tuple[float, ...] = ()  # The numbers that the explorer saves.
    search: VwSearch = NO_SEARCH  # The state of ``--automl``.
    # Numbers of events and actions over which ``--cb_type mtr`` has averaged, of each model or of the first.
    averages: tuple[tuple[int, int], ...] = ()
    descent: VwDescent | None = None  # None in a model that only predicts.
    cell: NDArray[np.uint64]  # uint64[n]: numbers of the nonzero cells, in ascending order.
    # float32[n, fields]: their values: the weight, and the other numbers of the cell.
    value: NDArray[np.float32]


def begins_as_vw(data: bytes) -> bool:
    """Return whether `data` begins like a model file of VW, version 7 or later."""
    return _BEGIN.match(data) is not None


def read_vw_file(data: bytes, *, name: str, shape: Callable[[VwHead], VwShape]) -> VwFile:
    """Return the content of a file.

    Parameters
    ----------
    data : bytes
        The whole file.
    name : str
        Name of the file in messages.
    shape : callable
        Returns the parts that follow the options of a head.
    """
    reader = FieldReader(data, name=name)
    begin = _BEGIN.match(data)
    if begin is None:
        raise reader.fail("it begins with something else")
    if begin[1] != VERSION:
        raise reader.fail(
            f"it is of version {begin[1].decode()}, but only version {VERSION.decode()} can be read"
        )
    head = _head(reader, VwHead())
    expected = shape(head)
    indexed = bool(reader.number("B", 0)) if expected.slots else False
    decay = decay_fields(reader, VwDecay.of(expected.decaying)) if expected.decaying else VwDecay()
    explorer = tuple([reader.number(kind, 0) for kind in expected.explorer])
    search = search_fields(reader, NO_SEARCH) if expected.search else NO_SEARCH
    averages = _averages(reader, ((0, 0),) * expected.averages)
    descent, fields = None, 1
    if reader.number("B", 0):
        zeros = (0.0,) * expected.models
        descent, fields = _descent(reader, VwDescent(norms=zeros, weights=zeros)), expected.fields
    cells = np.dtype([("cell", _kind_of_cell(head.bits)), ("value", "<f4", (fields,))])
    remaining = len(data) - reader.at
    if remaining % cells.itemsize:
        raise reader.fail(f"{remaining} bytes are not a whole number of cells of {cells.itemsize} bytes")
    records = np.frombuffer(data, cells, offset=reader.at)
    cell = records["cell"].astype(np.uint64)
    if (cell[1:] <= cell[:-1]).any():
        raise reader.fail("its cells are out of order")
    if len(cell) and int(cell[-1]) >= 1 << head.bits:
        raise reader.fail(
            f"it has cell {cell[-1]} of 2^{head.bits}; Vowpal Wabbit cannot load such a file either"
        )
    return VwFile(
        head=head,
        indexed=indexed,
        decay=decay,
        explorer=explorer,
        search=search,
        averages=averages,
        descent=descent,
        cell=cell,
        value=records["value"].astype(np.float32),
    )


def vw_file_bytes(file: VwFile, *, shape: VwShape) -> bytes:
    """Return the bytes of a file whose options have the given shape."""
    writer = FieldWriter()
    _head(writer, file.head)
    if shape.slots:
        writer.number("B", file.indexed)
    if shape.decaying:
        decay_fields(writer, file.decay)
    for kind, number in zip(shape.explorer, file.explorer, strict=True):
        writer.number(kind, number)
    if shape.search:
        search_fields(writer, file.search)
    _averages(writer, file.averages)
    writer.number("B", file.descent is not None)
    if file.descent is not None:
        _descent(writer, file.descent)
    fields = file.value.shape[1]
    cells = np.zeros(len(file.cell), [("cell", _kind_of_cell(file.head.bits)), ("value", "<f4", (fields,))])
    cells["cell"], cells["value"] = file.cell, file.value
    return b"".join([*writer.parts, cells.tobytes()])


def _kind_of_cell(bits: int) -> str:
    return "<u4" if bits < _WIDE_BITS else "<u8"


def _text(fields: Fields, text: bytes) -> bytes:
    return fields.bytes_(text + b"\0").partition(b"\0")[0]


def _head(fields: Fields, head: VwHead) -> VwHead:
    version = _text(fields, head.version)
    fields.begin_checksum()
    identity = _text(fields, head.identity)
    fields.constant("B", ord("m"))
    low, high = fields.number("f", head.low), fields.number("f", head.high)
    bits = fields.number("I", head.bits)
    fields.constant("I", 0)  # lda
    ngram, skips = (
        fields.items(words, partial(_word, fields), empty=b"") for words in (head.ngram, head.skips)
    )
    options = _text(fields, head.options)
    fields.checksum()
    return VwHead(
        version=version,
        identity=identity,
        low=low,
        high=high,
        bits=bits,
        ngram=ngram,
        skips=skips,
        options=options,
    )


def _word(fields: Fields, word: bytes) -> bytes:
    """Read or write a word of three bytes."""
    return fields.number("3s", word).rstrip(b"\0")


def _averages(fields: Fields, averages: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    return tuple([(fields.number("Q", events), fields.number("Q", actions)) for events, actions in averages])


def _descent(fields: Fields, descent: VwDescent) -> VwDescent:
    number = fields.number
    return VwDescent(
        initial_t=number("f", descent.initial_t),
        norms=tuple([number("d", norm) for norm in descent.norms]),
        t=number("d", descent.t),
        losses=(number("d", descent.losses[0]), number("d", descent.losses[1])),
        interval=number("f", descent.interval),
        low=number("f", descent.low),
        high=number("f", descent.high),
        labelled=number("d", descent.labelled),
        labels=number("d", descent.labels),
        unlabelled=number("d", descent.unlabelled),
        events=number("Q", descent.events),
        features=number("Q", descent.features),
        weights=tuple([number("d", weight) for weight in descent.weights]),
        before=number("d", descent.before),
        passes=number("Q", descent.passes),
        gravity=number("d", descent.gravity),
        contraction=number("d", descent.contraction),
    )
