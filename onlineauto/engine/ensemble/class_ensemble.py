"""``ClassEnsemble``: the probabilities of classes, by an ensemble that learns all of them at once."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np

from onlineauto.engine.ensemble.class_kernels import (
    PRIOR,
    Classes,
    ClassEvent,
    ClassRows,
    ClassUnits,
    Lately,
    Targets,
    run_classes,
)
from onlineauto.engine.ensemble.inputs import make_inputs
from onlineauto.engine.ensemble.member import Lesson, Sizes
from onlineauto.engine.ensemble.registry import MEMBERS, member_of
from onlineauto.engine.ensemble.regression import make_regression
from onlineauto.engine.ensemble.regression_kernels import learn_regression
from onlineauto.engine.ensemble.states import MemberStates
from onlineauto.engine.records.ensemble import MOST_FEATURES, MOST_NUMBERS, InputKind, Known, Taken
from onlineauto.features.layout import BINS
from onlineauto.features.table_kernels import insert
from onlineauto.formats.lines.reader_state_kernels import FEATURES, SPANS
from onlineauto.jit import Bound, Sealed, SealedRecords
from onlineauto.state.schema import make, read, save, widen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.member import ClassMember
    from onlineauto.features.block import Block
    from onlineauto.formats.lines.line_reader import RecordReader
    from onlineauto.state.stored import Stored

VERSION: Final = 2
"""Version of the section of a model file."""
_FEW = 2
_NONE = np.zeros(0, np.int64)
_COLLAPSED = (
    "predictions collapsed: of the last 64 events far fewer were predicted right than before; the ensemble "
    "forgets what it has learnt and begins again"
)
_LESSON = Lesson(0, 0, 0.0, 0.0, 0, 0, True, 1.0, 1.0)


class _OneEvent(NamedTuple):
    """The kernel, bound to memory for one event."""

    rows: ClassRows
    targets: Targets
    searched: NDArray[np.float64]
    result: NDArray[np.float64]
    run: Bound


class ClassEnsemble:
    """An ensemble that predicts and learns the classes of events; see `class_kernels`."""

    def __init__(self, members: Sequence[ClassMember], sizes: Sizes, *, searched: bool) -> None:
        self.members = tuple(members)
        self.n_classes = 0
        self._n_features = 128  # of an event: capacity of the memory for one
        self._sizes = sizes._replace(classes=_FEW)
        self._classes = self._make_classes()
        self._classes.inputs.tally[Known.FEATURES] = 1  # the constant
        self._sealed: tuple[Sealed[Classes], Sealed[ClassEvent]] | None = None
        self._one: _OneEvent | None = None
        self._bins_of: tuple[list[bytes], NDArray[np.bool_]] = [], np.zeros(0, bool)
        self._classes.mix[-1] = 1.0
        if not searched:
            self.end_search()

    @property
    def _first_weights(self) -> list[float]:
        return [weight for member in self.members for weight in member.class_scores.values()]

    def _make_classes(self) -> Classes:
        """Return the ensemble before the first event."""
        n = len(self._first_weights) + 2
        return make(
            Classes,
            {"classes": self._sizes.classes, "scores": n},
            fisher=np.eye(n) * PRIOR,
            inputs=make_inputs(on=True),
            begins=np.cumsum([0, *(len(member.class_scores) for member in self.members)], dtype=np.int64),
            states=MemberStates(
                self.members, (member.make_state(self._sizes) for member in self.members)
            ).array,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes of a copy, without addresses."""
        return vars(self) | {"_sealed": None, "_one": None}

    @property
    def _states(self) -> tuple[Any, ...]:
        return cast("MemberStates", self._classes.states).records

    def end_search(self) -> None:
        """Let members replace the search in predictions."""
        mix = self._classes.mix
        mix[:-2] += mix[-1] * np.array(self._first_weights)
        mix[-1] = 0.0

    def begin_again(self) -> None:
        """Forget everything but the classes."""
        searched, k = bool(self._classes.mix[-1]), self.n_classes
        vars(self).update(vars(ClassEnsemble(self.members, self._sizes, searched=searched)))
        for _ in range(k):
            self.add_class()

    def add_class(self) -> None:
        """Add a class; its initial probability is about that of one event among all so far."""
        if self.n_classes == self._sizes.classes:
            self._sizes = self._sizes._replace(classes=2 * self.n_classes)
            narrow, narrow_states = self._classes, self._states
            self._classes = self._make_classes()._replace(inputs=narrow.inputs)
            widen(narrow, self._classes)
            for member, state, wider in zip(self.members, narrow_states, self._states, strict=True):
                member.widen(state, wider)
            self._sealed = None
        self._one = None
        self.n_classes += 1
        self._classes.inputs.tally[Known.ACTIONS] = self.n_classes
        for member, state in zip(self.members, self._states, strict=True):
            member.add_class(state, self._classes.inputs)

    def run(
        self,
        block: Block,
        codes: Sequence[int] | NDArray[np.int64] | None = None,
        searched: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Return float64[n_events, n_classes]: the probabilities of events of one line each.

        Events whose class is in `codes`, and not -1, are learnt. `searched` has the search's probabilities.
        """
        n, k = len(block), self.n_classes
        rows = rows_of(block)
        self._make_room(int(np.diff(rows.start).max(initial=0)))
        code = np.full(n, -1, np.int64) if codes is None else np.array(codes, np.int64)
        weight = block.lines["weight"][block.event_start[:-1]].astype(np.float64)
        logs = np.zeros((n, k)) if searched is None else np.log(np.maximum(searched, 1e-9))
        result = np.empty((n, k))
        begin = 0
        while begin < n:
            classes, event = self._seal()
            part = rows._replace(start=rows.start[begin:])
            targets = Targets(code[begin:], weight[begin:])
            run_classes(classes.record, event.record, part, targets, logs[begin:], result[begin:])
            begin += self._forget_collapsed() or n
        return result

    def _forget_collapsed(self) -> int:
        """Begin again if predictions have collapsed; return the number of events of the call so far, or 0."""
        collapsed = int(self._classes.lately[Lately.COLLAPSED])
        if collapsed:
            warnings.warn(_COLLAPSED, UserWarning, stacklevel=4)
            self.begin_again()
        return collapsed

    def run_one(
        self, reader: RecordReader, code: int, searched: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Run the event of one line that a reader has read last, faster than `run` a block of it."""
        records, names, n = reader.records, reader.namespaces.names, int(reader.sizes[FEATURES])
        self._make_room(n)
        if self._one is None or n > len(self._one.rows.hash):
            self._one = self._bind(2 * n + 8)
        one = self._one
        if self._bins_of[0] is not names or len(self._bins_of[1]) != len(names):
            self._bins_of = names, np.array([name.endswith(BINS) for name in names], bool)
        one.rows.start[1] = n
        one.rows.hash[:n] = records.features["hash"][:n]
        one.rows.value[:n] = records.features["value"][:n]
        one.rows.crossed[:n] = True
        starts = records.spans["start"]
        are_bins = self._bins_of[1][records.spans["namespace"][: reader.sizes[SPANS]]].tolist()
        for span, is_bin in enumerate(are_bins):
            if is_bin:
                one.rows.crossed[starts[span] : starts[span + 1]] = False
        one.targets.code[0], one.targets.weight[0] = code, records.lines["weight"][0]
        one.searched[0] = 0.0 if searched is None else np.log(np.maximum(searched[0], 1e-9))
        one.run()
        self._forget_collapsed()
        return one.result.copy()

    def _bind(self, capacity: int) -> _OneEvent:
        """Return memory for an event with up to `capacity` features."""
        rows = ClassRows(
            start=np.zeros(2, np.int64),
            hash=np.zeros(capacity, np.uint32),
            value=np.zeros(capacity, np.float32),
            crossed=np.zeros(capacity, bool),
        )
        targets, (classes, event) = Targets(np.zeros(1, np.int64), np.zeros(1)), self._seal()
        searched, result = np.zeros((1, self.n_classes)), np.zeros((1, self.n_classes))
        run = Bound(run_classes, classes.record, event.record, rows, targets, searched, result)
        return _OneEvent(rows, targets, searched, result, run)

    def _make_room(self, features: int) -> None:
        """Let an event have so many features."""
        if features > self._n_features:
            self._n_features, self._sealed, self._one = 2 * features, None, None

    def _seal(self) -> tuple[Sealed[Classes], Sealed[ClassEvent]]:
        """Return the packed records; packing them for each call would take longer than the kernel."""
        if self._sealed is None:
            scratch = SealedRecords(member.class_scratch(self._n_features) for member in self.members)
            event = self._make_event(scratch)
            sealed = Sealed(self._classes), Sealed(event)
            kernels = [
                (member.class_kernels, Sealed(state), Sealed(own))
                for member, state, own in zip(self.members, self._states, scratch.records, strict=True)
            ]
            regression = Sealed(make_regression(0, 0))
            units = ClassUnits(
                np.array([kernel.score.address(*sealed, 0, 0, *own) for kernel, *own in kernels], np.int64),
                np.array(
                    [kernel.learn.address(*sealed, _LESSON, 0, *own) for kernel, *own in kernels], np.int64
                ),
                cast("Any", learn_regression).address(
                    regression, _LESSON, np.zeros(1, np.float32), 0, 0.0, 0.0
                ),
            )
            self._sealed = sealed[0], Sealed(event._replace(units=units))
        return self._sealed

    def _make_event(self, scratch: SealedRecords) -> ClassEvent:
        """Return memory for one event."""
        features, classes, n = self._n_features, self._sizes.classes, len(self._classes.mix)
        taken = Taken(
            np.zeros(MOST_FEATURES, np.float32),
            np.zeros(MOST_NUMBERS),
            np.zeros(MOST_FEATURES, np.uint32),
            np.zeros(1, np.int64),
            np.zeros((2, 0), np.float32),
        )
        return ClassEvent(
            taken=taken,
            key=np.zeros(features, np.uint64),
            value=np.zeros(features),
            n_features=np.zeros(1, np.int64),
            renewed=np.zeros(1, np.int64),
            score=np.zeros((n, classes)),
            chance=np.zeros(classes),
            error=np.zeros(classes),
            matrix=np.zeros((n, n)),
            step=np.zeros(n),
            scratch=scratch.array,
            units=ClassUnits(_NONE, _NONE, 0),
        )

    def state(self) -> dict[str, Any]:
        """Return the state, for `restored`."""
        inputs = self._classes.inputs
        used = np.flatnonzero(inputs.feature)
        return save(self._classes, {"classes": self.n_classes}) | {
            "version": VERSION,
            "events": int(inputs.seen[-1]),
            "keys": inputs.feature[used][np.argsort(inputs.input[used])],
            "number": inputs.number[: inputs.tally[Known.FEATURES]],
            "members": {
                member.name: {"version": member.version}
                | member.state(state, inputs, working=[True] * len(member.class_scores))
                for member, state in zip(self.members, self._states, strict=True)
            },
        }

    @classmethod
    def restored(cls, stored: Stored, n_classes: int, sizes: Sizes) -> ClassEnsemble:
        """Return the ensemble of a state."""
        if stored["version"].count() > VERSION:
            raise stored["version"].fail(f"at most {VERSION}: load the model with a later onlineauto")
        names = [name for name, entry in MEMBERS.items() if entry.classes and name in stored["members"]]
        self = cls([member_of(name) for name in names], sizes, searched=False)
        for _ in range(n_classes):
            self.add_class()
        self._restore_inputs(stored)
        read(stored, self._classes, {"classes": n_classes})
        if (np.linalg.eigvalsh(self._classes.fisher) <= 0).any():
            raise stored["fisher"].fail("an information, which is positive definite")
        for member, state in zip(self.members, self._states, strict=True):
            section = stored["members"][member.name]
            if section["version"].count() > member.version:
                raise section["version"].fail(
                    f"at most {member.version}: load the model with a later onlineauto"
                )
            member.restore(section, state, self._classes.inputs)
        return self

    def _restore_inputs(self, stored: Stored) -> None:
        """Restore the table of features."""
        inputs, keys = self._classes.inputs, stored["keys"].array(np.uint64, (-1,))
        n = len(keys) + 1
        if n > MOST_FEATURES:
            raise stored["keys"].fail(f"at most {MOST_FEATURES - 1} features")
        number = stored["number"].array_between(inputs.number[:n], InputKind.BIN, MOST_NUMBERS - 1)
        of_number = np.flatnonzero(number >= 0)
        order = number[of_number]
        if sorted(order.tolist()) != list(range(len(order))):
            raise stored["number"].fail("the numbers of inputs")
        if len(np.unique(keys)) != len(keys) or (keys == 0).any() or (keys > 1 << 32).any():
            raise stored["keys"].fail("different features")
        for at, key in enumerate(keys.tolist(), 1):
            insert(inputs.feature, inputs.input, key, at)
        inputs.number[:n], inputs.numbers.of_number[order] = number, of_number
        inputs.tally[Known.FEATURES], inputs.tally[Known.NUMBERS] = n, len(order)
        inputs.seen[-1] = stored["events"].count()


def rows_of(block: Block) -> ClassRows:
    """Return the features of a block's events of one line each."""
    span_start, features = block.spans["start"], block.features
    start = span_start[block.lines["start"][block.event_start]]
    name_bins = [name.endswith(BINS) for name in block.namespaces.names]
    crossed = np.zeros(len(features), bool)
    of_spans = ~np.array([*name_bins, False], bool)[block.spans["namespace"][:-1]]
    crossed[span_start[0] : span_start[-1]] = np.repeat(of_spans, np.diff(span_start))
    return ClassRows(
        start=np.ascontiguousarray(start, np.int64),
        hash=np.ascontiguousarray(features["hash"]),
        value=np.ascontiguousarray(features["value"]),
        crossed=crossed,
    )
