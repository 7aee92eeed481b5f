"""``check_log``: what is wrong with a log of decisions, before anybody learns from it."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from onlineauto.api.decisions.joining import Joined, lines_in
from onlineauto.api.tables import is_frame
from onlineauto.engine.stream.source import read_blocks, rules_of
from onlineauto.errors import InputError, OptionError
from onlineauto.evaluation.evaluation import LOGGED, Evaluation
from onlineauto.features.block import UNLABELLED
from onlineauto.features.hash_constants import GOLDEN
from onlineauto.formats.datasets.frame import FrameColumns
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.formats.options import format_of
from onlineauto.interop.frames import from_frame
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from numpy.typing import NDArray

    from onlineauto.engine.stream.source import Sources
    from onlineauto.features.block import Block

_FEW = 3
"""Number of places that a finding names."""
_TRACKED = 50_000
"""Maximum number of actions, and of features, that are followed one by one."""
_FOLLOWED = 100_000
"""Number of labelled events whose features are followed one by one."""
_COPIED = 20
"""Number of consecutive events that must be equal to earlier ones to be a copy of them."""
_ENOUGH = 100
"""Least number of events on which a finding about frequencies is based."""
_EXPLAINED = 0.98
"""Share of the variance of costs from which on a feature is reported as a leak."""
_COLUMNS = frozenset(
    ("context", "actions", "event", "choices", "cost", "reward", "probability", "weight", "time")
)
"""Names of columns of a frame."""
_SURE = 6.0
"""Number of standard errors from which on frequencies and probabilities disagree."""

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a log, or worth knowing.

    Attributes
    ----------
    severity : {"error", "warning", "note"}
        An error makes estimates or learning wrong, a warning may, and a note does not.
    code : str
        The kind of the finding, such as ``duplicate-actions``.
    count : int
        Number of events, lines or features that it is about.
    places : list of str
        Where the first of them are.
    message : str
        What is wrong, and what to do.
    """

    severity: Severity
    code: str
    count: int
    places: list[str]
    message: str


@dataclass(frozen=True, slots=True)
class LogReport:
    """The result of `check_log`.

    Attributes
    ----------
    events : int
        Number of events.
    labelled : int
        Number of events with a logged action and its cost.
    actions : int
        Number of different actions, by their features.
    lowest_cost, highest_cost : float
        Range of the costs; NaN without labelled events.
    findings : list of Finding
        Errors first.
    """

    events: int
    labelled: int
    actions: int
    lowest_cost: float
    highest_cost: float
    findings: list[Finding]

    @property
    def has_errors(self) -> bool:
        """True if a finding is an error."""
        return any(finding.severity == "error" for finding in self.findings)


def check_log(
    source: Sources,
    *,
    policies: Mapping[str, Workspace] | None = None,
    progress: Callable[[int], object] | None = None,
    **options: Any,
) -> LogReport:
    r"""Check a log of decisions whose actions are lines, and return what was found.

    Rewards that follow decisions in a file of dsjson are joined with them.

    Parameters
    ----------
    source : path, list of paths, bytes, iterable or frame of events
        The log, as for `onlineauto.Workspace.fit`, or a frame of pandas, polars or arrow.
    policies : mapping of str to Workspace, optional
        Policies to be evaluated on the log, which must be a frame, a list of blocks or in files, and read by
        the same options; the report says how many events support each.
    progress : callable, optional
        Called with the number of events so far.
    options
        Options of reading, as on the command line: ``dsjson=True``, ``columns="columns.toml"``. With a frame
        the columns of `onlineauto.interop.from_frame`, and `time`, by which its rows are in order:
        ``check_log(frame, actions="article", reward="click", probability="p", time="when")``.

    Raises
    ------
    InputError
        If the log cannot be read at all, or can be read only once and there are policies.
    OptionError
        If an option is not valid, or a policy reads events by other options.

    Examples
    --------
    >>> log = "shared |u a\n0:-1:0.5 |a x\n|a x\n\n" * 3
    >>> for finding in check_log(log.encode()).findings:
    ...     print(finding.severity, finding.code, finding.count)
    error duplicate-actions 3
    warning constant-cost 3
    """
    check = LogCheck()
    if is_frame(source):
        source, options = check.add_frame(source, options)
    reading = Workspace(**{"cb_adf": True, "missing_probability": "uniform", **options})
    configuration = reading.configuration
    for name, policy in (policies or {}).items():
        if _rules(policy) != _rules(reading):
            raise OptionError(f"policy {name} reads events by other options than the log: give it the same")
    paths = _paths_of(source)
    if policies and paths is None and not isinstance(source, bytes | list):
        raise InputError(
            "policies need a log that can be read twice: files, bytes, a frame or a list of blocks"
        )
    check.several_files = paths is not None and len(paths) > 1
    is_log = format_of(configuration).log
    sources: Any = source
    if paths is not None:
        sources = [check.open(path) if is_log and path.is_file() else path for path in paths]
    for block in read_blocks(sources, configuration, check.diagnostics):
        check.add(block)
        if progress is not None:
            progress(check.n_events)
    if policies:
        again: Any = source
        if paths is not None:  # joined again: a pass counts the problems of its lines
            again = [Joined(path).file() if is_log and path.is_file() else path for path in paths]
        _add_support(check, policies, again)
    return check.report()


def _rules(workspace: Workspace) -> dict[str, Any]:
    """Return the options by which events are read, but for what a missing probability means."""
    rules = rules_of(workspace.configuration)
    others = {name: rule for name, rule in rules.items() if name != "missing_probability"}
    return others | {"format": format_of(workspace.configuration)}


def _paths_of(source: Sources) -> list[Path] | None:
    """Return the paths of a source; None if it is anything else."""
    if isinstance(source, str | os.PathLike):
        return [Path(source)]
    if isinstance(source, list | tuple) and all(isinstance(path, os.PathLike) for path in source):
        return [Path(path) for path in source]
    return None


def _add_support(check: LogCheck, policies: Mapping[str, Workspace], source: Sources) -> None:
    """Evaluate policies on a log, and report their support; or why they cannot be evaluated."""
    try:
        values = Evaluation(policies).run(source)
    except InputError as error:
        check.findings.append(Finding("error", "no-support", 1, [], f"policies cannot be evaluated: {error}"))
        return
    for value in values:
        if value.policy != LOGGED:
            check.add_support(value.policy, value.events, value.effective_sample_size)


@dataclass
class _Arm:
    """An action, by its features: how often it was there and chosen, and sums of 1/p where it was chosen."""

    place: str
    n_shown: int = 0
    n_chosen: int = 0
    inverse: float = 0.0


@dataclass
class _Values:
    """Sums of a feature's values and of the costs of the events that have it."""

    namespace: str
    place: str
    n: int = 0
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(5))  # v, v², c, c², v·c


@dataclass
class _Places:
    """A count, and where the first of what was counted are."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, place: str, count: int = 1) -> None:
        self.count += count
        if len(self.first) < _FEW:
            self.first.append(place)


class LogCheck:
    """Collects findings over the blocks of a log."""

    def __init__(self) -> None:
        self.diagnostics = Diagnostics()
        self.findings: list[Finding] = []
        self.n_events = 0
        self._n_labelled = 0
        self.several_files = False
        self._is_frame = False
        self._joined: list[Joined] = []
        self._ids: set[str] = set()
        self._latest: Any = None
        self._places: dict[str, _Places] = {}
        self._costs = np.zeros(3)  # number, sum, sum of squares
        self._followed = np.zeros(3)  # the same, of the events whose features are followed
        self._range = (np.inf, -np.inf)
        self._least = 1.0  # lowest logged probability
        self._arms: dict[int, _Arm] = {}
        self._features: dict[int, _Values] = {}
        self._seen: dict[int, int] = {}  # signatures of events, with the first event of each
        self._run, self._expected = 0, -1
        # By namespace: signatures with the number and sums of the costs of their events.
        self._groups: dict[str, dict[int, NDArray[np.float64]]] = {}

    def _place(self, code: str) -> _Places:
        return self._places.setdefault(code, _Places())

    def add(self, block: Block) -> None:
        """Check the events of a block."""
        if not len(block):
            return
        lines = _Lines(block)
        self.n_events += len(block)
        self._add_duplicates(lines)
        self._add_arms(lines)
        self._add_costs(lines)
        self._add_namespaces(lines)
        self._add_features(lines)

    def _add_duplicates(self, lines: _Lines) -> None:
        """Find actions that an event has twice, and events that the log has twice."""
        actions = np.flatnonzero(lines.is_action)
        order = np.lexsort((lines.signature[actions], lines.event[actions]))
        ordered = actions[order]
        equal = (lines.event[ordered][1:] == lines.event[ordered][:-1]) & (
            lines.signature[ordered][1:] == lines.signature[ordered][:-1]
        )
        doubles = ordered[1:][equal]
        _, first = np.unique(lines.event[doubles], return_index=True)
        for second in doubles[first]:
            self._place("duplicate-actions").add(lines.place(second))
        for event, signature in enumerate(
            lines.event_signatures().tolist(), self.n_events - len(lines.block)
        ):
            self._add_event(event, signature, lines)

    def _add_event(self, event: int, signature: int, lines: _Lines) -> None:
        """Follow a run of events that are equal to as many consecutive events before."""
        earlier = self._seen.get(signature)
        if earlier is None:
            if len(self._seen) < 40 * _TRACKED:
                self._seen[signature] = event
            self._run, self._expected = 0, -1
            return
        self._run = self._run + 1 if earlier == self._expected else 1
        self._expected = earlier + 1
        if self._run == _COPIED:
            first = event - (self.n_events - len(lines.block)) - _COPIED + 1
            place = lines.place(lines.block.event_start[max(first, 0)])
            self._place("repeated-part").add(f"from {place} on", _COPIED)
        elif self._run > _COPIED:
            self._place("repeated-part").count += 1

    def _add_arms(self, lines: _Lines) -> None:
        """Count how often each action was there and was chosen."""
        rows = np.flatnonzero(lines.is_action & lines.is_labelled[lines.event])
        signatures, first, number = np.unique(lines.signature[rows], return_index=True, return_inverse=True)
        n_shown = np.bincount(number, minlength=len(signatures))
        chosen = np.searchsorted(signatures, lines.signature[lines.chosen])
        n_chosen = np.bincount(chosen, minlength=len(signatures))
        p = lines.probability.astype(np.float64)
        inverse = np.bincount(chosen, 1 / p, minlength=len(signatures))
        self._least = min(self._least, p.min(initial=1.0))
        for index, signature in enumerate(signatures.tolist()):
            arm = self._arms.get(signature)
            if arm is None:
                if len(self._arms) == _TRACKED:
                    continue
                arm = self._arms[signature] = _Arm(lines.place(rows[first[index]]))
            arm.n_shown += int(n_shown[index])
            arm.n_chosen += int(n_chosen[index])
            arm.inverse += float(inverse[index])

    def _add_costs(self, lines: _Lines) -> None:
        costs = lines.cost.astype(np.float64)
        self._n_labelled += len(costs)
        if len(costs):
            self._costs += len(costs), costs.sum(), (costs**2).sum()
            self._range = min(self._range[0], costs.min()), max(self._range[1], costs.max())

    def _add_namespaces(self, lines: _Lines) -> None:
        """Group the labelled events by what each namespace of the context has in them."""
        costs = lines.cost_of(lines.shared)
        known = ~np.isnan(costs)
        for namespace, signatures in lines.namespace_signatures(lines.shared):
            groups = self._groups.setdefault(namespace, {})
            values, number = np.unique(signatures[known], return_inverse=True)
            sums = [np.bincount(number, costs[known] ** power, minlength=len(values)) for power in (0, 1, 2)]
            for value, *parts in zip(values.tolist(), *sums, strict=True):
                if value in groups:
                    groups[value] += parts
                elif len(groups) < _TRACKED:
                    groups[value] = np.array(parts, np.float64)

    def _add_features(self, lines: _Lines) -> None:
        """Sum values and costs of each feature of the context, over the first labelled events."""
        if self._followed[0] > _FOLLOWED:
            return
        costs = lines.cost.astype(np.float64)
        self._followed += len(costs), costs.sum(), (costs**2).sum()
        for row, cost in zip(lines.shared.tolist(), lines.cost_of(lines.shared).tolist(), strict=True):
            if np.isnan(cost):
                continue
            for namespace, hash_, value in lines.features(row):
                values = self._features.get(hash_)
                if values is None:
                    if len(self._features) == _TRACKED:
                        continue
                    values = self._features[hash_] = _Values(namespace, lines.place(row))
                values.n += 1
                values.sums += value, value * value, cost, cost * cost, value * cost

    def add_frame(self, frame: Any, options: Mapping[str, Any]) -> tuple[list[Block], dict[str, Any]]:
        """Check what is in no block, and return the blocks of a frame and the options that name no column."""
        self._is_frame = True
        columns = {name: value for name, value in options.items() if name in _COLUMNS}
        time = columns.pop("time", None)
        if time is not None:
            read = FrameColumns(frame)
            array = read.array(time)
            times = read.values(time) if array is None else array.to_pylist()
            try:
                for row, value in enumerate(times):
                    self._add_time(_time_of(value) if isinstance(value, str) else value, f"row {row}")
            except TypeError:
                raise InputError(f"column {time!r} has values that cannot be compared: row {row}") from None
        rest = {name: value for name, value in options.items() if name not in _COLUMNS}
        return list(from_frame(frame, **columns, problems=self.diagnostics, strict=False)), rest

    def open(self, path: Path) -> BinaryIO:
        """Check the lines of a log in dsjson, and return its decisions, joined with later rewards."""
        self._add_decisions(path)
        joined = Joined(path)
        self._joined.append(joined)
        return joined.file()

    def _add_decisions(self, path: Path) -> None:
        """Check what events do not have: ids, rankings, all probabilities, times."""
        decoder = msgspec.json.Decoder(_Decision)
        file = f"{path}, " if self.several_files else ""
        for number, line in enumerate(lines_in(path), 1):
            try:
                decision = decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue  # the reader reports it, if it is malformed
            ranked, probabilities = decision.ranked, decision.probabilities
            if ranked is None or probabilities is None:
                continue
            place = f"{file}line {number}"
            p = np.array(probabilities, np.float64)
            if len(p) != len(ranked) or abs(p.sum() - 1) > 1e-3 or p.min(initial=0) < 0:
                self._place("bad-probabilities").add(place)
            if sorted(ranked) != list(range(1, len(ranked) + 1)):
                self._place("bad-ranking").add(place)
            if decision.event_id in self._ids:
                self._place("repeated-ids").add(place)
            elif decision.event_id is not None and len(self._ids) < 40 * _TRACKED:
                self._ids.add(decision.event_id)
            self._add_time(_time_of(decision.time), place)

    def _add_time(self, time: Any, place: str) -> None:
        """Compare a time with the latest one before; None and NaN are none."""
        if time is None or time != time:
            return
        if self._latest is not None and time < self._latest:
            self._place("times-go-back").add(place)
        self._latest = time if self._latest is None else max(self._latest, time)

    def add_support(self, policy: str, events: int, sample_size: float) -> None:
        """Report how many events support a policy."""
        share = sample_size / max(events, 1)
        severity: Severity = "warning" if sample_size < _ENOUGH or share < 0.01 else "note"
        self.findings.append(
            Finding(
                severity,
                "support",
                round(sample_size),
                [],
                f"{policy}: {events:,} events say as much as {sample_size:,.0f} of its own ({share:.1%})"
                + ("; it chooses what the log seldom has" if severity == "warning" else ""),
            )
        )

    def report(self) -> LogReport:
        """Return what was found so far."""
        order = {"error": 0, "warning": 1, "note": 2}
        parts = (self._problems(), self._counted(), self._of_costs(), self._of_arms(), self._of_features())
        findings = [*chain(*parts), *self.findings]
        findings.sort(key=lambda finding: order[finding.severity])
        low, high = self._range if self._n_labelled else (np.nan, np.nan)
        return LogReport(
            self.n_events, self._n_labelled, len(self._arms), float(low) + 0.0, float(high) + 0.0, findings
        )

    def _problems(self) -> Iterator[Finding]:
        sources = [self.diagnostics, *(joined.problems for joined in self._joined)]
        for code, count in sum((problems.counts for problems in sources), Counter()).most_common():
            if code == ProblemCode.NO_LABEL:
                continue  # these events are counted as unlabelled
            kept = [problem for problems in sources for problem in problems.kept if problem.code == code]
            places = [
                f"row {problem.line - 1}" if self._is_frame else f"line {problem.line}"
                for problem in kept[:_FEW]
            ]
            yield Finding("error", "malformed", count, places, str(kept[0]) if kept else code.name)
        unmatched = sum(joined.unmatched for joined in self._joined)
        if unmatched:
            message = "rewards have no decision in the log"
            yield Finding("warning", "unmatched-rewards", unmatched, [], message)

    def _counted(self) -> Iterator[Finding]:
        for code, (severity, message) in _MESSAGES.items():
            if code not in self._places:
                continue
            places = self._places[code]
            if code == "repeated-part" and places.count > self.n_events / 2:
                severity = "note"  # most events come again in the same order, as in a stream with a period
            yield Finding(severity, code, places.count, places.first, message)

    def _of_costs(self) -> Iterator[Finding]:
        unlabelled = self.n_events - self._n_labelled
        if unlabelled:
            severity: Severity = "note" if self._n_labelled else "error"
            message = "events without a logged action or cost: nothing is learnt from them"
            yield Finding(severity, "unlabelled", unlabelled, [], message)
        if not self._n_labelled:
            return
        low, high = self._range
        if low == high:
            message = f"events all have the cost {low:g}: there is nothing to learn"
            yield Finding("warning", "constant-cost", self._n_labelled, [], message)
        elif low >= 0:
            message = (
                f"costs are from {low:g} to {high:g}: if these are rewards, write them as negative costs"
            )
            yield Finding("note", "positive-costs", self._n_labelled, [], message)

    def _of_arms(self) -> Iterator[Finding]:
        untried = [arm for arm in self._arms.values() if not arm.n_chosen and arm.n_shown >= _ENOUGH]
        if untried:
            message = (
                f"actions were never chosen, although at least {_ENOUGH} events have each: no estimate about "
                "them is possible"
            )
            places = [arm.place for arm in untried[:_FEW]]
            yield Finding("warning", "never-tried", len(untried), places, message)
        for is_low in (False, True):
            odd = [arm for arm in self._arms.values() if self._is_odd(arm, is_low=is_low)]
            if odd:
                arm = max(odd, key=lambda arm: abs(arm.inverse / arm.n_shown - 1))
                message = (
                    "actions have probabilities that do not fit how often they were chosen: 1/p of the first "
                    f"adds up to {arm.inverse:,.0f} in {arm.n_shown:,} events that have it"
                )
                if is_low:
                    message += ": it could not be chosen in some, or its logged probabilities are too high"
                places = [arm.place, *(other.place for other in odd if other is not arm)][:_FEW]
                severity: Severity = "warning" if is_low else "error"
                yield Finding(severity, "wrong-probabilities", len(odd), places, message)
        if len(self._arms) == _TRACKED:
            message = "different actions were followed, and no later ones"
            yield Finding("note", "many-actions", _TRACKED, [], message)

    def _is_odd(self, arm: _Arm, *, is_low: bool) -> bool:
        """Return whether the sum of 1/p of an action is too low, or too high, for its events.

        The variance of the sum is at most that with the lowest probability of the log in every event.
        """
        deviation = np.sqrt(arm.n_shown * (1 / self._least - 1) + 1)
        excess = arm.n_shown - arm.inverse if is_low else arm.inverse - arm.n_shown
        far = excess > max(_SURE * deviation, 0.05 * arm.n_shown)
        return bool(arm.n_shown >= _ENOUGH and arm.n_chosen and far)

    def _of_features(self) -> Iterator[Finding]:
        n, total, squares = self._costs
        spread = squares - total * total / n if n else 0.0
        leaks: set[str] = set()
        for namespace, groups in self._groups.items():
            counts = np.array([group[0] for group in groups.values()])
            if len(groups) == 1 and counts.sum() >= max(_ENOUGH, 0.999 * n):
                message = f"namespace of the context is the same in all events: {namespace!r} says nothing"
                yield Finding("note", "constant", 1, [], message)
            if spread > 0 and self._explained(groups, n) >= _EXPLAINED:
                leaks.add(namespace)
                yield Finding("error", "leak", 1, [], f"namespace {_LEAKS.format(namespace)}")
        constant = [
            values
            for values in self._features.values()
            if len(self._groups[values.namespace]) > 1 and _is_constant(values, self._followed[0])
        ]
        if constant and n >= _ENOUGH:
            names = sorted({repr(values.namespace) for values in constant})
            message = f"features of the context are the same in all events, in {', '.join(names[:_FEW])}"
            places = [values.place for values in constant[:_FEW]]
            yield Finding("note", "constant", len(constant), places, message)
        for values in self._features.values():
            if values.namespace in leaks or values.n < _ENOUGH or not spread > 0:
                continue
            if max(_by_value(values), _by_presence(values, *self._followed)) >= _EXPLAINED:
                leaks.add(values.namespace)
                message = f"feature of namespace {_LEAKS.format(values.namespace)}"
                yield Finding("error", "leak", 1, [values.place], message)

    def _explained(self, groups: Mapping[int, NDArray[np.float64]], n: float) -> float:
        """Return the share of the variance of costs that groups of at least 5 events explain."""
        table = np.array(list(groups.values()))
        table = table[table[:, 0] >= 5]
        if len(table) < 2 or table[:, 0].sum() < max(0.8 * n, _ENOUGH) or len(table) > table[:, 0].sum() / 10:
            return 0.0
        counts, sums, squares = table.T
        within = (squares - sums**2 / counts).sum()
        around = squares.sum() - sums.sum() ** 2 / counts.sum()
        return float(1 - within / around) if around > 0 else 0.0


_LEAKS = "{!r} of the context predicts the cost almost exactly: was it known before the decision?"
_MESSAGES: Mapping[str, tuple[Severity, str]] = {
    "bad-probabilities": (
        "error",
        "decisions have probabilities that do not add up to 1, or are not from 0 to 1",
    ),
    "bad-ranking": (
        "error",
        "decisions have a ranking `a` that does not name each action once, counted from 1",
    ),
    "repeated-ids": ("warning", "decisions have the EventId of an earlier one: rewards go to the first"),
    "times-go-back": (
        "warning",
        "decisions have an earlier time than one before: learn a log in the order of time",
    ),
    "duplicate-actions": (
        "error",
        "events have two actions with the same features, which no learner can tell apart",
    ),
    "repeated-part": (
        "error",
        "consecutive events are equal to earlier ones, labels included: a part of the log is in it twice",
    ),
}
"""Severity and message of findings that are counted."""


def _is_constant(values: _Values, n: float) -> bool:
    """Return whether all `n` events have a feature with the same value."""
    v, vv = values.sums[:2]
    return values.n == n and bool(vv * n - v * v <= 1e-9 * vv * n)


def _by_value(values: _Values) -> float:
    """Return the squared correlation of the values of a feature with the costs of its events."""
    v, vv, c, cc, vc = values.sums
    n = values.n
    spread = (vv - v * v / n) * (cc - c * c / n)
    return float((vc - v * c / n) ** 2 / spread) if spread > 1e-9 * n else 0.0


def _by_presence(values: _Values, n: float, total: float, squares: float) -> float:
    """Return the share of the variance of costs that the presence of a feature explains."""
    present, absent = values.n, n - values.n
    if min(present, absent) < _ENOUGH / 10:
        return 0.0
    _, _, c, cc, _ = values.sums
    within = cc - c * c / present + (squares - cc) - (total - c) ** 2 / absent
    return float(1 - within / (squares - total * total / n))


def _time_of(text: str | None) -> datetime | None:
    """Return a time in UTC; None if there is none that can be read."""
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


class _Decision(msgspec.Struct):
    """The members of a line of dsjson that are checked."""

    event_id: str | None = msgspec.field(name="EventId", default=None)
    time: str | None = msgspec.field(name="Timestamp", default=None)
    ranked: list[int] | None = msgspec.field(name="a", default=None)
    probabilities: list[float] | None = msgspec.field(name="p", default=None)


class _Lines:
    """Signatures of the lines of a block, which do not depend on the order of features."""

    def __init__(self, block: Block) -> None:
        self.block = block
        first = block.span_start
        mixed = _mix(block.hash.astype(np.uint64), _bits(block.value))
        self.span_signature = _sums_between(mixed, first)
        self.signature = _sums_between(mixed, first[block.line_start])
        sizes = np.diff(block.event_start)
        self.event = np.repeat(np.arange(len(sizes)), sizes)
        self.is_action = ~block.shared
        self.shared = np.flatnonzero(block.shared)
        line = np.repeat(np.arange(block.n_lines), np.diff(block.cost_start))
        known = (block.cost != UNLABELLED) & (block.probability > 0)
        self.chosen = line[known]
        self.cost, self.probability = block.cost[known], block.probability[known]
        self._cost_of_event = np.full(len(block), np.nan)
        self._cost_of_event[self.event[self.chosen]] = self.cost
        self.is_labelled = ~np.isnan(self._cost_of_event)

    def place(self, line: int) -> str:
        return str(self.block.place_of(int(line)))

    def cost_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the cost of the event of each line; NaN if it has none."""
        costs: NDArray[np.float64] = self._cost_of_event[self.event[rows]]
        return costs

    def event_signatures(self) -> NDArray[np.uint64]:
        """Return a signature of each event, in which the order of lines and labels count."""
        block = self.block
        position = np.arange(block.n_lines) - block.event_start[self.event]
        lines = _mix(self.signature, position.astype(np.uint64))
        labels = np.zeros(block.n_lines, np.uint64)
        labels[self.chosen] = _mix(_bits(self.cost), _bits(self.probability))
        return _sums_between(lines + labels, block.event_start)

    def namespace_signatures(self, rows: NDArray[np.int64]) -> Iterator[tuple[str, NDArray[np.uint64]]]:
        """Yield each namespace with the signature of its features on each line; 0 if there are none."""
        block = self.block
        counts = block.line_start[rows + 1] - block.line_start[rows]
        position = np.repeat(np.arange(len(rows)), counts)
        before = np.cumsum(counts) - counts
        spans = np.repeat(block.line_start[rows] - before, counts) + np.arange(counts.sum())
        namespace = block.span_namespace[spans]
        for number in np.unique(namespace).tolist():
            mine = namespace == number
            signatures = np.zeros(len(rows), np.uint64)
            np.add.at(signatures, position[mine], self.span_signature[spans[mine]])
            yield self._name(number), signatures

    def features(self, row: int) -> Iterator[tuple[str, int, float]]:
        """Yield namespace, hash and value of the features of a line."""
        block = self.block
        for span in range(block.line_start[row], block.line_start[row + 1]):
            name = self._name(block.span_namespace[span])
            run = slice(block.span_start[span], block.span_start[span + 1])
            for hash_, value in zip(block.hash[run].tolist(), block.value[run].tolist(), strict=True):
                yield name, hash_, value

    def _name(self, number: int) -> str:
        return self.block.namespaces.names[number].decode(errors="replace")


def _sums_between(values: NDArray[np.uint64], starts: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the sum of the values from each start to the next, modulo 2^64; empty runs have 0."""
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    differences: NDArray[np.uint64] = sums[starts[1:]] - sums[starts[:-1]]
    return differences


def _bits(values: NDArray[np.float32]) -> NDArray[np.uint64]:
    return np.ascontiguousarray(values).view(np.uint32).astype(np.uint64)


def _mix(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return one number for each pair, which is different for almost all different pairs."""
    x = a * np.uint64(GOLDEN) + b * np.uint64(0xC2B2AE3D27D4EB4F) + np.uint64(1)
    x ^= x >> np.uint64(29)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    return x ^ (x >> np.uint64(32))


def lines_of(report: LogReport) -> Sequence[str]:
    """Return a report in words, a line for each finding."""
    costs = f", costs from {report.lowest_cost:g} to {report.highest_cost:g}" if report.labelled else ""
    head = (
        f"{report.events:,} events, {report.labelled:,} with a logged action, "
        f"{report.actions:,} different actions{costs}"
    )
    rows = []
    for finding in report.findings:
        more = ", …" if finding.count > len(finding.places) else ""
        where = f" ({', '.join(finding.places)}{more})" if finding.places else ""
        rows.append(f"{finding.severity}: {finding.code}: {finding.count:,} {finding.message}{where}")
    return [head, *(rows or ["no problem was found"])]
