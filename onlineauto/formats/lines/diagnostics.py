"""Diagnostics: the problems of the input, with positions, counts and the reader's reaction."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onlineauto.formats.lines.problem_code_kernels import ProblemCode

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = [
    "MOST_TEXT",
    "OBJECTS",
    "Diagnostic",
    "Diagnostics",
    "ProblemCode",
    "make_diagnostic",
    "summary_of",
]

OBJECTS = ("event", "row")
"""Names of the source if events are Python objects: events of an iterable, or rows of a frame."""

_ZERO = "0 used instead"
_REST = "rest of the line dropped"
_STOPPED = "reading stopped"
_KEPT = "used as it is"
_UNUSED = "label not used"
_NOT_LEARNT = "event not learnt"
_SKIPPED = "{unit} skipped"

_TEXTS: dict[ProblemCode, str | tuple[str, str]] = {
    ProblemCode.CONTROL_BYTE: "not text (control byte {text})",
    ProblemCode.NO_BAR: "no '|' in {text}",
    ProblemCode.LABEL_NOT_A_NUMBER: "label {text} is not a number",
    ProblemCode.LABEL_NOT_FINITE: ("label {text} is infinite, NaN or too large", _UNUSED),
    ProblemCode.WEIGHT_NOT_A_NUMBER: "importance weight {text} is not a number",
    ProblemCode.WEIGHT_NOT_FINITE: ("importance weight {text} is infinite, NaN or too large", _UNUSED),
    ProblemCode.WEIGHT_NEGATIVE: "importance weight {text} is negative",
    ProblemCode.INITIAL_NOT_A_NUMBER: "initial prediction {text} is not a number",
    ProblemCode.INITIAL_NOT_FINITE: "initial prediction {text} is infinite, NaN or too large",
    ProblemCode.TOO_MANY_NUMBERS: "{text} after label, weight and initial prediction",
    ProblemCode.ACTION_NOT_A_NUMBER: "action of label {text} is not a number",
    ProblemCode.NO_ACTION_NAME: "no action before ':' in label {text}",
    ProblemCode.NO_COST: "label {text} has no cost and no probability",
    ProblemCode.COST_NOT_A_NUMBER: "cost {text} is not a number",
    ProblemCode.COST_NOT_FINITE: ("cost {text} is infinite, NaN or too large", _UNUSED),
    ProblemCode.NO_PROBABILITY: "label {text} has no probability, see --missing_probability",
    ProblemCode.PROBABILITY_NOT_A_NUMBER: "probability {text} is not a number",
    ProblemCode.PROBABILITY_NOT_FINITE: ("probability {text} is infinite, NaN or too large", _UNUSED),
    ProblemCode.PROBABILITY_NEGATIVE: "probability {text} is negative",
    ProblemCode.PROBABILITY_ZERO: "probability {text} is 0: the logged action cannot have been chosen",
    ProblemCode.PROBABILITY_ABOVE_ONE: "probability {text} is above 1",
    ProblemCode.TOO_MANY_PARTS: "label {text} has more parts than action:cost:probability",
    ProblemCode.SECOND_COST: "second label {text} on a line that is one action",
    ProblemCode.SECOND_LABEL: "label {text} on a second line of the event",
    ProblemCode.LATE_SHARED: "'shared' not on the first line of the event",
    ProblemCode.SHARED_WITH_MORE: "label {text} on a shared line",
    ProblemCode.NO_ACTIONS: "event has a shared line and no action",
    ProblemCode.NO_NAMESPACE_NAME: "':' after '|', where a name or a blank belongs",
    ProblemCode.NO_NAMESPACE_WEIGHT: "no weight after the ':' of a namespace",
    ProblemCode.NAMESPACE_WEIGHT_NOT_A_NUMBER: "weight {text} of a namespace is not a number",
    ProblemCode.NAMESPACE_WEIGHT_NOT_FINITE: "weight {text} of a namespace is infinite, NaN or too large",
    ProblemCode.NO_VALUE: "no value after the ':' of feature {text}",
    ProblemCode.VALUE_NOT_FINITE: "value {text} of a feature is infinite, NaN or too large",
    ProblemCode.BAR_IN_VALUE: "'|' right after the string {text}, without a blank between",
    ProblemCode.VALUE_PARTLY_A_NUMBER: ("value {text} begins like a number and is none", "used as a string"),
    ProblemCode.TAG_LIKE_LABEL: ("{text} touches '|', which makes a label a tag", "used as the tag"),
    ProblemCode.TAKEN_AS_UNIFORM: ("label {text} has no probability", "taken as logged uniformly"),
    ProblemCode.VW_NAMESPACE: ("malformed example! '|',String,space, or EOL expected after : {text}", _REST),
    ProblemCode.VW_NAMESPACE_FLOAT: ("malformed example! Float expected after : {text}", _KEPT),
    ProblemCode.VW_NAMESPACE_NAN: ("Invalid namespace value:{text} read as NaN", "1 used instead"),
    ProblemCode.VW_VALUE_NAN: ("Invalid feature value:{text} read as NaN", _ZERO),
    ProblemCode.VW_FEATURES: ("malformed example! '|',space, or EOL expected after : {text}", _REST),
    ProblemCode.VW_END: ("malformed example! '|' or EOL expected after : {text}", _REST),
    ProblemCode.VW_FLOAT: ("{text} is not a good float", _ZERO),
    ProblemCode.VW_TOO_MANY_TOKENS: ("too many tokens for a simple label: {text}", "label dropped"),
    ProblemCode.VW_WEIGHT: (
        "invalid importance weight ({text}); importance weights must be non-negative",
        "not trained",
    ),
    ProblemCode.VW_PROBABILITY_ABOVE_ONE: (
        "invalid probability {text} > 1 specified for an action",
        "1 used instead",
    ),
    ProblemCode.VW_PROBABILITY_NEGATIVE: ("invalid probability {text} < 0 specified for an action", _ZERO),
    ProblemCode.VW_SHARED_WITH_COST: (
        "shared feature vectors should not have costs: {text}",
        "used as an action",
    ),
    ProblemCode.VW_MALFORMED_COST: ("malformed cost specification: {text}", _STOPPED),
    ProblemCode.VW_GRAPH: ("malformed example, graph feedback is not supported: {text}", _STOPPED),
    ProblemCode.VW_SAVE: (
        "{text} is a command to save the model, which the text cannot give",
        "line skipped",
    ),
    ProblemCode.JSON_VALUE: "{text} where a JSON value belongs",
    ProblemCode.JSON_STRING: "string {text} has no end, a control byte or an unknown escape",
    ProblemCode.JSON_MEMBER: "{text} where '}}', or ',' and a name in quotes belong",
    ProblemCode.JSON_ELEMENT: "{text} where ',' or ']' belongs",
    ProblemCode.JSON_COLON: "{text} where the ':' after a name belongs",
    ProblemCode.JSON_END: "{text} after the end of the JSON object",
    ProblemCode.JSON_NO_OBJECT: "line is no JSON object: {text}",
    ProblemCode.JSON_TOO_DEEP: "too many nested objects and arrays: 256 are allowed",
    ProblemCode.JSON_UNEXPECTED: "{text} is of a type that does not belong there",
    ProblemCode.JSON_KEY: "key {text} does not belong there, or not to this kind of learning",
    ProblemCode.JSON_LABEL_INDEX: "{text} labels an action that the event does not have",
    ProblemCode.JSON_NO_LABEL_INDEX: "label {text} does not say of which action: neither '_labelIndex' nor "
    "'_label_Action'",
    ProblemCode.JSON_NO_MULTI: "the event has no actions: '_multi' is missing or empty",
    ProblemCode.JSON_SINGLE_LINE: "'_multi' in an event that is to be a single line",
    ProblemCode.JSON_DROP_ONE: "pdrop {text} is not a probability below 1",
    ProblemCode.JSON_LABEL: "label {text} is malformed",
    ProblemCode.JSON_TWO_CONTEXTS: "second context {text}",
    ProblemCode.SLOT_LABEL: "label {text} is not that of a 'ccb shared', 'ccb action' or 'ccb slot'",
    ProblemCode.SLOT_OUTCOME: "outcome {text} of a slot is not action:cost:probability[,action:probability]",
    ProblemCode.SLOT_SUM: "probabilities of outcome {text} do not sum up to 1",
    ProblemCode.SLOT_ORDER: "an event is a 'ccb shared' line, actions and slots, in this order, and not this",
    ProblemCode.TOO_MANY_SLOTS: "event has more slots than actions",
    ProblemCode.SLOT_ACTION: "slot has an action that it cannot have",
    ProblemCode.JSON_OUTCOMES: "outcomes are more than the slots, or there are two lists of them",
    ProblemCode.SLOT_LISTS: "'_a' and '_p' of a slot are missing, or not equally many",
    ProblemCode.SLOT_LABELLED: "{text} labels a slot that has a label",
    ProblemCode.LABEL_FAR_OUT: (
        "label or cost {text} is thousands of times beyond those before",
        _NOT_LEARNT,
    ),
    ProblemCode.WEIGHT_FAR_OUT: ("weight {text} is thousands of times beyond those before", _NOT_LEARNT),
    ProblemCode.PROBABILITY_FAR_OUT: (
        "probability {text} is thousands of times below those before",
        _NOT_LEARNT,
    ),
    ProblemCode.VALUE_FAR_OUT: ("value {text} of a feature is far beyond those before", _NOT_LEARNT),
    ProblemCode.BEGAN_AGAIN: (
        "numbers of the first events are thousands of times beyond those since",
        "learning and averages began again with this event",
    ),
    ProblemCode.ACTION_OUT_OF_RANGE: ("action {text} is out of range, which begins at 1", _UNUSED),
    ProblemCode.NO_LABEL: ("the label is missing: {text}", "not learnt"),
    ProblemCode.BARE_ACTION: (
        "action {text} has no cost and no probability, and does not limit the choice",
        _UNUSED,
    ),
    ProblemCode.LOG_REWARD: (
        "reward {text} is not a finite number that a float32 can have",
        "reward not used",
    ),
    ProblemCode.LOG_MEMBER: ("'EventId', 'a' or 'p' is missing or malformed: {text}", "no reward is joined"),
    ProblemCode.TOO_WIDE: (
        "the interactions of the event make {text} crossed features, more than --max_crossed",
        "learnt without the widest ones",
    ),
    ProblemCode.VW_INT: ("{text} is not a valid int", _ZERO),
    ProblemCode.NOT_PARQUET: ("the file cannot be opened: {text}", "file skipped"),
    ProblemCode.OTHER_COLUMNS: ("the columns are not those of the dataset: {text}", "file skipped"),
    ProblemCode.ROW_GROUP: ("row group cannot be read: {text}", "its other rows skipped"),
    ProblemCode.COLUMN_LEFT_OUT: ("column {text} cannot be a feature", "column left out"),
    ProblemCode.EVENT_MISSING: ("the column {text} of events is null", "its rows skipped"),
    ProblemCode.EVENT_AGAIN: "event of column {text} occurs again after another event",
    ProblemCode.LIST_TOO_LONG: "a list of {text} has more than 65,536 elements",
    ProblemCode.MESSAGE: ("message cannot be used: {text}", "message skipped"),
    ProblemCode.OFFSETS_LOST: ("the topic no longer has {text}", "they are skipped"),
}
"""Message of each problem, and the reaction of the reader, which by default skips the line or event."""

_VALUES = (ProblemCode.JSON_VALUE, ProblemCode.JSON_UNEXPECTED)
_NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_KINDS = 5
"""Maximum number of kinds of problems in a summary."""
_SHOWN = 60
_KEEP = 100

MOST_TEXT = _SHOWN + 1
"""Number of bytes of the offending text in a message."""


@dataclass(slots=True, kw_only=True)
class LogCounts:
    """Counts of a log's lines, and its first and last event, named as in VW's metrics."""

    line_parse_error: int = 0  # Lines that were skipped because they are malformed.
    number_events_zero_actions: int = 0  # Lines without a ranking, such as late rewards.
    number_skipped_events: int = 0  # Events marked ``_skipLearn``.
    # Sum of ``_original_label_cost`` of all events, and of those whose ranking begins with the first action;
    # float32.
    dsjson_sum_cost_original: float = 0.0
    dsjson_sum_cost_original_baseline: float = 0.0
    first_event_id: str = ""  # ``EventId`` and ``Timestamp`` of the first event that has one.
    first_event_time: str = ""
    last_event_id: str = ""  # ``EventId`` and ``Timestamp`` of the last event, if there are several events.
    last_event_time: str = ""


@dataclass(slots=True, kw_only=True)
class SlotLogCounts:
    """Counts of a log of events with slots, which VW counts by their first slot."""

    # Events with ``_ba`` whose first slot got the first action of ``_ba``, and those whose first slot did
    # not.
    dsjson_number_label_equal_baseline_first_slot: int = 0
    dsjson_number_label_not_equal_baseline_first_slot: int = 0
    line_parse_error: int = 0  # As in `LogCounts`.
    number_events_zero_actions: int = 0
    number_skipped_events: int = 0
    # Sum of ``_original_label_cost`` of all slots, and of the first slots; float32.
    dsjson_sum_cost_original: float = 0.0
    dsjson_sum_cost_original_first_slot: float = 0.0
    # The latter sum, over events whose first slot got the first action of ``_ba``.
    dsjson_sum_cost_original_label_equal_baseline_first_slot: float = 0.0
    first_event_id: str = ""  # As in `LogCounts`.
    first_event_time: str = ""
    last_event_id: str = ""
    last_event_time: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """A problem of the input."""

    file: str  # Name of the file, ``<stdin>`` or ``<bytes>``; one of `OBJECTS` for Python objects.
    line: int  # 1-based line, or number of the event or row of Python objects.
    column: int  # 1-based byte in the line.
    code: ProblemCode
    message: str
    done: str  # Reaction of the reader.

    def __str__(self) -> str:
        """Return ``FILE:LINE:COLUMN: what was wrong; what was done``, or ``event N: …`` or ``row N: …``."""
        if self.file in OBJECTS:
            return f"{self.file} {self.line - 1}: {self.message}; {self.done}"
        return f"{self.file}:{self.line}:{self.column}: {self.message}; {self.done}"


@dataclass(slots=True)
class Diagnostics:
    r"""The problems of a stream: all are counted, the first hundred are stored.

    >>> from onlineauto.formats.lines.reader_state_kernels import ReaderRules
    >>> from onlineauto.formats.text_reader import TextReader
    >>> reader = TextReader(b"1 |a x\nx |a y\n", ReaderRules())
    >>> [len(block) for block in reader]
    [1]
    >>> print(*reader.diagnostics.kept)
    <bytes>:2:1: label 'x' is not a number; line skipped
    """

    listener: Callable[[Diagnostic], None] | None = None  # Called with each stored problem.
    counts: Counter[ProblemCode] = field(default_factory=Counter)
    kept: list[Diagnostic] = field(default_factory=list)  # The first hundred problems.
    of_file: str = ""  # Name of the file being read and a colon, if there are several.
    reading: str = "<blocks>"  # Name of the file being read, or one of `OBJECTS`.
    log: LogCounts | SlotLogCounts | None = None

    @property
    def total(self) -> int:
        """Number of problems found."""
        return self.counts.total()

    def count(self, code: ProblemCode, n: int) -> None:
        """Add `n` problems of one kind to the counts."""
        self.counts[code] += n

    def add(self, others: Diagnostics) -> None:
        """Add the counts and the stored problems of `others`."""
        for code, n in others.counts.items():
            self.count(code, n)
        for diagnostic in others.kept:
            self.keep(diagnostic)
        self.log = others.log or self.log

    def locate(self, code: ProblemCode, line: int, text: str, *, reading: str = "") -> None:
        """Count and store a problem of an event at a line.

        `reading` is the name of the event's source, by default `self.reading`.
        """
        self.count(code, 1)
        encoded, file = text.encode("utf-8", "replace"), reading or self.reading
        self.keep(make_diagnostic(code, file=file, line=line, column=1, text=encoded, unit="event"))

    def problems_since(self, counts: Counter[ProblemCode], kept: int) -> Diagnostics:
        """Return the problems added since the counters had these counts and `kept` problems were stored."""
        return Diagnostics(counts=self.counts - counts, kept=self.kept[kept:])

    def summary(self) -> str:
        """Return a summary: the number of problems of each kind, and the first problem of each."""
        firsts = {problem.code: problem for problem in reversed(self.kept)}
        kinds = [(n, firsts[code]) for code, n in self.counts.most_common(_KINDS) if code in firsts]
        head = f"{self.total} problem{'s' * (self.total != 1)} in the input:"
        return "\n".join([head, *(f"  {n}, of which the first: {first}" for n, first in kinds)])

    def keep(self, diagnostic: Diagnostic) -> None:
        """Store a problem that is already counted, unless a hundred are stored."""
        if len(self.kept) < _KEEP:
            self.kept.append(diagnostic)
            if self.listener is not None:
                self.listener(diagnostic)


def _text_of(code: ProblemCode) -> tuple[str, str]:
    """Return the message and the reaction of a problem, with fields for the text and the unit."""
    text = _TEXTS[code]
    return (text, _SKIPPED) if isinstance(text, str) else text


def summary_of(code: ProblemCode) -> str:
    """Return a description of all problems of a kind.

    >>> summary_of(ProblemCode.LABEL_NOT_A_NUMBER)
    'label is not a number'
    """
    text = _text_of(code)[0].replace(" {text}", "").format(text="...")
    return text.rstrip(": ").removesuffix(" in")


def _quote(text: bytes) -> str:
    """Return text in quotes, shortened, with unprintable characters escaped."""
    result = text[:_SHOWN].decode("utf-8", "backslashreplace")
    if len(text) > _SHOWN:
        result = text[:_SHOWN].decode("utf-8", "ignore") + "..."
    return "'" + "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in result) + "'"


def _is_too_large(number: bytes, text: bytes) -> bool:
    """Return whether a JSON number at the start of an offending text is infinite as a float64.

    A number that fills the whole text was cut. Readers reject such a number only if it is too large.
    """
    return math.isinf(float(number)) or len(number) == len(text) == MOST_TEXT


def make_diagnostic(
    code: ProblemCode, *, file: str, line: int, column: int, text: bytes, unit: str, fatal: bool = False
) -> Diagnostic:
    """Return the `Diagnostic` for a problem that a kernel recorded.

    `text` is the offending text; `unit` is "line" or "event". Reading ends at a `fatal` problem.
    """
    message, done = _text_of(code)
    quoted = _quote(text)
    if code == ProblemCode.NO_LABEL:  # a description of Python values, not a text of the input
        quoted = quoted[1:-1]
    if code == ProblemCode.COST_NOT_FINITE and text.startswith(b"column "):  # of declared costs, a message
        message, quoted, done = "{text}", text.decode("utf-8", "backslashreplace"), _SKIPPED
    if code in _VALUES and (number := _NUMBER.match(text)) and _is_too_large(number[0], text):
        message, quoted = "number {text} is too large", _quote(number[0])
    return Diagnostic(
        file=file,
        line=line,
        column=column,
        code=code,
        message=message.format(text=quoted),
        done=_STOPPED if fatal else done.format(unit=unit),
    )
