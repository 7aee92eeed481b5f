"""``Joined``: logged decisions with the rewards that came later, as lines of dsjson with labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO, cast

import msgspec

from onlineauto.api.decisions.events import cost_of
from onlineauto.formats.sources.event_file import EventFile
from onlineauto.formats.sources.source import ByteSource, name_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

__all__ = ["Joined"]

_CHUNK = 1 << 16


class _Line(msgspec.Struct):
    """The members of a line that join it: a decision has a ranking with probabilities, a reward a value."""

    event_id: str = msgspec.field(name="EventId", default="")
    ranked: list[int] = msgspec.field(name="a", default_factory=list)
    probabilities: list[float] = msgspec.field(name="p", default_factory=list)
    reward: float | None = msgspec.field(name="RewardValue", default=None)
    cost: float | None = msgspec.field(name="_label_cost", default=None)


_DECODER = msgspec.json.Decoder(_Line)


class Joined:
    r"""The lines of a log, of which the decisions have their rewards as labels.

    All other lines are as they were: decisions without a reward, late rewards, and lines that are malformed,
    which the reader reports where they are. Each reward is joined once, to the first decision of its id.

    Parameters
    ----------
    log : path
        The decisions, as `AutoML` logs them; gzip and zstd are recognised.
    rewards : mapping of event id to reward, or path, optional
        A file has lines with ``EventId`` and ``RewardValue``; by default it is the log, which has such lines
        behind its decisions.
    default_reward : float, optional
        The reward of all other decisions. Without it they stay without.

    Attributes
    ----------
    unmatched : int
        Number of rewards that belong to no decision, once all lines are read.
    unrewarded : int
        Number of decisions without a reward, once all lines are read.

    Raises
    ------
    InputError
        The log cannot be read, or a reward is not a finite number.

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
        self._log = log
        lines = log if rewards is None else rewards
        given = lines if isinstance(lines, Mapping) else _late_rewards(lines)
        self._costs = {key: cost_of(value, None, where=f"event {key!r}") for key, value in given.items()}
        self._default = None if default_reward is None else cost_of(default_reward, None)
        self.unmatched, self.unrewarded = len(self._costs), 0

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines."""
        left, unrewarded = dict(self._costs), 0
        for text in _lines(self._log):
            line = _decoded(text)
            if line is None or not line.ranked or not line.probabilities or line.cost is not None:
                yield text
                continue
            cost = left.pop(line.event_id, self._default)
            if cost is None:
                unrewarded += 1
                yield text
                continue
            label = {
                "_label_cost": cost,
                "_label_probability": line.probabilities[0],
                "_label_Action": line.ranked[0],
                "_labelIndex": line.ranked[0] - 1,
            }
            yield msgspec.json.encode(label)[:-1] + b"," + text.lstrip()[1:]
        self.unmatched, self.unrewarded = len(left), unrewarded

    def file(self) -> BinaryIO:
        """Return the lines as a binary file with the name of the log, whose lines have the same numbers."""
        return cast("BinaryIO", EventFile(iter(self), multiline=False, name=name_of(self._log)))


def _late_rewards(log: str | os.PathLike[str]) -> dict[str, float]:
    """Return the rewards that a log has behind its decisions; of several for one decision, the first."""
    found: dict[str, float] = {}
    for text in _lines(log):
        if b'"RewardValue"' in text:
            line = _decoded(text)
            if line is not None and line.reward is not None:
                found.setdefault(line.event_id, line.reward)
    return found


def _decoded(text: bytes) -> _Line | None:
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield the lines of a file, without their ends."""
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
