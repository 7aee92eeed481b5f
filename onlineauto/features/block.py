"""Block: many events in columns, the only form in which events pass through the library.

The columns are views of records, which kernels read: compiling and calling a kernel is slow with forty
columns as arguments, and fast with a few arrays of records.

::

    event ──event_start──▶ lines ──line_start──▶ spans ──span_start──▶ features
                             │ label, weight, initial, shared, tag
                             └─cost_start──▶ (cost_action, cost, probability)

A *span* is a run of features of one namespace, in file order; a namespace that a line opens twice has two
spans. Empty spans are not stored. A span of 16 features or more with consecutive hashes is a *vector*: the
numbers of an array by position, zeros included. Each offset column has one entry more than the column that it
divides, as in CSR.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np

from onlineauto.errors import InputError
from onlineauto.features.records import COST, FEATURE, LINE, SPAN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records

Rules = Mapping[str, str | int | bool | tuple[str, ...]]
"""The options by which events were read, by name.

"names" is the rule by which values became names, if one was used. "name_columns" are the columns whose
numbers are names, and "number_columns" those with other numbers, as far as they are known.
"""

NAMES: Final = frozenset(("names", "name_columns", "number_columns"))
"""Rules of a block by which names were made; they may change within a stream."""

UNLABELLED = np.float32(np.finfo(np.float32).max)
"""The label or cost of a line that has none (VW's FLT_MAX)."""

_ARRAYS = (
    ("event_start", np.dtype(np.int64)),
    ("lines", LINE),
    ("costs", COST),
    ("spans", SPAN),
    ("features", FEATURE),
)
"""Arrays of a block that kernels read."""

DEFAULT = b" "
"""Name of the default namespace, as in ``| feature``."""


@dataclass(slots=True)
class Namespaces:
    """Names of namespaces, by number."""

    # Full name of each; the default namespace is called ``b" "``.
    names: list[bytes] = field(default_factory=list)
    # Hash (uint32) of each full name, the seed of its features' hashes; 0 for the default namespace.
    hashes: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of namespaces."""
        return len(self.names)

    def add(self, name: bytes, hash_: int) -> int:
        """Append a new name and return its number."""
        self.names.append(name)
        self.hashes.append(hash_)
        return len(self.names) - 1


_Scalar = TypeVar("_Scalar", bound=np.generic)


class _Column(Generic[_Scalar]):
    """A column of a block: a field of its records, without that of the sentinel if there is one."""

    def __init__(self, records: str, field: str, *, has_sentinel: bool = False) -> None:
        self._records, self._field, self._has_sentinel = records, field, has_sentinel

    def __get__(self, block: Block, _: type[Block]) -> NDArray[_Scalar]:
        column = getattr(block, self._records)[self._field]
        return column[:-1] if self._has_sentinel else column  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Consecutive events of a stream.

    An array that is not contiguous, aligned and writeable is copied. Offsets are trusted: `of_columns` checks
    them, and any other caller must pass valid ones.

    Attributes
    ----------
    event_start : int64[n_events + 1]
        First line of each event.
    lines : LINE[n_lines + 1]
        Records of lines, with a sentinel that ends the last one, as for spans.
    costs : COST[n_costs]
        Records of costs.
    spans : SPAN[n_spans + 1]
        Records of spans.
    features : FEATURE[n_features]
        Records of features.
    tag : uint8[]
        Bytes of the tags.
    namespaces : Namespaces
        Names of the namespaces by number; shared by the blocks of a stream and growing with it.
    rules : mapping
        The known options by which the events were read, by name. A workspace with other options refuses the
        block.
    objects : {"", "event", "row"}
        The kind of Python objects, if the events are not lines of a file: ``"event"`` for mappings, ``"row"``
        for rows of a frame or an array.
    line_number : int64[n_lines]
        1-based line number in the file; for Python objects, the 1-based number of the event or row.
    line_start : int64[n_lines + 1]
        First span of each line.
    shared : bool[n_lines]
        Whether the line is a ``shared`` header.
    slot : bool[n_lines]
        Whether the line is a slot of ``--ccb_explore_adf``. Its costs are its outcome, then its allowed
        actions with a probability of -infinity.
    label, weight, initial : float32[n_lines]
        Simple label (`UNLABELLED` if none), importance weight, initial prediction.
    cost_start : int64[n_lines + 1]
        First cost of each line; at most one a line in ADF input.
    cost_action : uint32[n_costs]
        Action as written before the first colon.
    cost, probability : float32[n_costs]
        Cost (`UNLABELLED` if none), logged probability (0 if none).
    action_costs : float32[n_lines], optional
        What an action declares to cost, NaN for none, if a column says so; a file of blocks has none.
    tag_start : int64[n_lines + 1]
        First byte of each tag.
    span_namespace : int32[n_spans]
        Namespace of each span, an index into `namespaces`.
    span_start : int64[n_spans + 1]
        First feature of each span.
    hash : uint32[n_features]
        Feature hashes, before any table size is known.
    value : float32[n_features]
        Feature values, namespace weight included; 0 only in a vector.
    """

    event_start: NDArray[np.int64]
    lines: Records
    costs: Records
    spans: Records
    features: Records
    tag: NDArray[np.uint8]
    namespaces: Namespaces
    rules: Rules = field(default_factory=dict)
    objects: str = ""
    action_costs: NDArray[np.float32] | None = None

    line_number = _Column[np.int64]("lines", "number", has_sentinel=True)
    line_start = _Column[np.int64]("lines", "start")
    shared = _Column[np.bool_]("lines", "shared", has_sentinel=True)
    slot = _Column[np.bool_]("lines", "slot", has_sentinel=True)
    label = _Column[np.float32]("lines", "label", has_sentinel=True)
    weight = _Column[np.float32]("lines", "weight", has_sentinel=True)
    initial = _Column[np.float32]("lines", "initial", has_sentinel=True)
    cost_start = _Column[np.int64]("lines", "cost")
    tag_start = _Column[np.int64]("lines", "tag")
    cost_action = _Column[np.uint32]("costs", "action")
    cost = _Column[np.float32]("costs", "cost")
    probability = _Column[np.float32]("costs", "probability")
    span_namespace = _Column[np.int32]("spans", "namespace", has_sentinel=True)
    span_start = _Column[np.int64]("spans", "start")
    hash = _Column[np.uint32]("features", "hash")
    value = _Column[np.float32]("features", "value")

    @classmethod
    def of_columns(
        cls,
        *,
        event_start: NDArray[np.int64],
        tag: NDArray[np.uint8],
        namespaces: Namespaces,
        rules: Rules | None = None,
        objects: str = "",
        **columns: Any,
    ) -> Block:
        """Return a Block with copies of columns, with checked offsets; all but `slot` are required."""
        lines = np.zeros(len(columns["line_start"]), LINE)
        for name, column in (("start", "line_start"), ("cost", "cost_start"), ("tag", "tag_start")):
            lines[name] = columns[column]
        lines["number"][:-1] = columns["line_number"]
        for name in ("label", "weight", "initial", "shared"):
            lines[name][:-1] = columns[name]
        lines["slot"][:-1] = columns.get("slot", False)
        costs = np.zeros(len(columns["cost"]), COST)
        for name, column in (("action", "cost_action"), ("cost", "cost"), ("probability", "probability")):
            costs[name] = columns[column]
        spans = np.zeros(len(columns["span_start"]), SPAN)
        spans["start"] = columns["span_start"]
        spans["namespace"][:-1] = columns["span_namespace"]
        features = np.zeros(len(columns["hash"]), FEATURE)
        features["hash"], features["value"] = columns["hash"], columns["value"]
        block = cls(
            event_start=np.array(event_start, np.int64),
            lines=lines,
            costs=costs,
            spans=spans,
            features=features,
            tag=tag,
            namespaces=namespaces,
            rules=rules or {},
            objects=objects,
        )
        block._check_offsets()
        return block

    def __post_init__(self) -> None:
        """Check the arrays, and copy those that kernels cannot read."""
        for name, dtype in _ARRAYS:
            array = getattr(self, name)
            known = type(array) is np.ndarray and array.dtype is dtype and array.ndim == 1
            if not (known and array.flags.carray):
                object.__setattr__(self, name, _kernel_array(name, array, dtype))

    def _check_offsets(self) -> None:
        ends = (
            ("event_start", self.n_lines),
            ("line_start", len(self.spans) - 1),
            ("cost_start", len(self.costs)),
            ("tag_start", len(self.tag)),
            ("span_start", self.n_features),
        )
        for name, end in ends:
            starts = getattr(self, name)
            if not len(starts) or starts[0] < 0 or starts[-1] > end or (starts[1:] < starts[:-1]).any():
                raise InputError(f"a block cannot be made: {name} must ascend and end at or below {end}")
        numbers = self.span_namespace
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(self.namespaces):
            raise InputError("a block cannot be made: span_namespace has a number without a namespace")

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.event_start) - 1

    @property
    def n_lines(self) -> int:
        """Number of lines, including shared lines."""
        return len(self.lines) - 1

    @property
    def n_features(self) -> int:
        """Number of features as read, without the constant and interactions."""
        return len(self.features)

    def head(self, n: int) -> Block:
        """Return the first `n` events, over the same records."""
        return replace(self, event_start=self.event_start[: n + 1])

    def tail(self, n: int) -> Block:
        """Return all events except the first `n`, over the same records."""
        return replace(self, event_start=self.event_start[n:])

    def place_of(self, line: int) -> str:
        """Return the position of a line for messages: ``line 5``, or ``event 4`` or ``row 4`` for objects."""
        number = int(self.line_number[line])
        return f"{self.objects} {number - 1}" if self.objects else f"line {number}"

    def tag_of(self, line: int) -> str:
        """Return the tag of a line, empty if it has none."""
        return self.tag[self.tag_start[line] : self.tag_start[line + 1]].tobytes().decode("utf-8", "replace")


def _kernel_array(name: str, value: object, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array that kernels can read, copied if necessary."""
    array: NDArray[Any] = np.asarray(value)
    if array.ndim != 1 or array.dtype != dtype:
        raise InputError(
            f"a block cannot be made: {name} has the type {array.dtype} and {array.ndim} axes, not the "
            f"type {dtype} and one axis"
        )
    return np.require(array, requirements=["C", "A", "W"])
