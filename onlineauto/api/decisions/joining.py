"""``Joined``: logged decisions with their later rewards, as lines of dsjson with labels."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import msgspec

from onlineauto.api.decisions.events import cost_of
from onlineauto.errors import InputError
from onlineauto.formats.decisions.dsjson import AnyLine, labelled_line
from onlineauto.formats.lines.diagnostics import Diagnostics, ProblemCode, make_diagnostic
from onlineauto.formats.sources.source import ByteSource, EventFile, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 1 << 16


_DECODER = msgspec.json.Decoder(AnyLine)


class Joined:
    r"""The lines of a log, with rewards as labels of the decisions.

    All other lines are unchanged: decisions without a reward, late rewards, and malformed lines, which the
    reader reports with their positions. Each reward is joined once, to the first decision with its id. A line
    that cannot be joined, or a reward that cannot be learnt, is recorded as a problem.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory) / "log.dsjson"
    ...     _ = path.write_text('{"EventId":"e1","a":[2,1],"p":[0.75,0.25],"c":{"_multi":[{},{}]}}\n')
    ...     print(*Joined(path, {"e1": 1.0}))
    b'{"_label_cost":-1.0,"_label_probability":0.75,"_label_Action":2,"_labelIndex":1,"EventId":"e1",...
    """

    def __init__(
        self,
        log: str | os.PathLike[str],
        rewards: Mapping[str, float] | str | os.PathLike[str] | None = None,
        *,
        default_reward: float | None = None,
    ) -> None:
        if not Path(log).exists() or Path(log).is_dir():
            raise InputError(f"{os.fspath(log)}: {'a directory' if Path(log).is_dir() else 'no such file'}")
        self._log, self.problems = log, Diagnostics()
        if isinstance(rewards, Mapping):
            self._costs = {
                key: cost_of(value, None, where=f"event {key!r}") for key, value in rewards.items()
            }
        else:
            self._costs = self._late_costs(log if rewards is None else rewards)
        self._default = None if default_reward is None else cost_of(default_reward, None)
        self.unmatched, self.unrewarded = len(self._costs), 0

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines."""
        left, unrewarded = dict(self._costs), 0
        for number, text in enumerate(lines_in(self._log), 1):
            line = _decode_line(text)
            if line is None or line.cost is not None or not line.is_decision:
                if line is not None and line.cost is None and line.ranked is not None:
                    self._add(ProblemCode.LOG_MEMBER, self._log, number, text)
                yield text
                continue
            cost = left.pop(line.event_id, self._default)
            if cost is None:
                unrewarded += 1
                yield text
                continue
            yield labelled_line(
                text,
                cost,
                action=line.ranked[0],
                probability=line.probabilities[0],
                name_columns=line.name_columns,
            )
        self.unmatched, self.unrewarded = len(left), unrewarded

    def file(self) -> BinaryIO:
        """Return the lines as a binary file with the name of the log and the same line numbers."""
        return cast("BinaryIO", EventFile(iter(self), multiline=False, name=name_of(self._log)))

    def _late_costs(self, log: str | os.PathLike[str]) -> dict[str, float]:
        """Return the costs of rewards that follow their decisions in a log; the first reward counts."""
        costs: dict[str, float] = {}
        lines = enumerate(lines_in(log), 1)
        while True:
            try:
                number, text = next(lines)
            except StopIteration:
                return costs
            except InputError:
                if log is not self._log:
                    raise
                return costs  # reading the decisions raises the error at the same position
            if b'"RewardValue"' not in text:
                continue
            line = _decode_line(text)
            if line is None and not _broke_off(text):
                self._add(ProblemCode.LOG_REWARD, log, number, text)
            elif line is None and log is not self._log:
                # Malformed lines of the log of decisions are reported when the decisions are read.
                self._add(ProblemCode.JSON_NO_OBJECT, log, number, text)
            if line is None or line.reward is None:
                continue
            if not isinstance(line.event_id, str):
                self._add(ProblemCode.LOG_MEMBER, log, number, text)
                continue
            try:
                costs.setdefault(line.event_id, cost_of(line.reward, None))
            except InputError:
                self._add(ProblemCode.LOG_REWARD, log, number, str(line.reward).encode("utf-8", "replace"))

    def _add(self, code: ProblemCode, log: str | os.PathLike[str], number: int, text: bytes) -> None:
        """Add a problem of line `number` of a log."""
        self.problems.count(code, 1)
        self.problems.keep(
            make_diagnostic(code, file=name_of(log), line=number, column=1, text=text, unit="line")
        )


def _decode_line(text: bytes) -> AnyLine | None:
    """Return the members of a line; None if the line is not a JSON object."""
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # The reader accepts bytes that are not UTF-8. Newer versions of msgspec raise a DecodeError for them.
        return AnyLine(ranked=()) if "utf-8" in str(error).lower() else None


def _broke_off(text: bytes) -> bool:
    """Return whether a line is the beginning of a JSON object; a power failure may leave zeros after it."""
    try:
        _DECODER.decode(text.rstrip(b"\0"))
    except (msgspec.DecodeError, RecursionError) as error:
        return "truncated" in str(error)
    return True


def lines_in(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield the lines of a file, without line ends."""
    source = ByteSource(path)
    try:
        rest = b""
        while data := source.read(_CHUNK):
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
        if rest:
            yield rest
    finally:
        source.close()
