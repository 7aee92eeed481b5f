"""``label_line``: a decision's line with its reward, to learn; ``is_explored``: whether a model decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from onlineauto.service.log.record import LogRecord


class LabelledDecision(NamedTuple):
    """A decision that has ended: its position, its line with its label, and whether the model decided.

    In an experiment, `arm` and `bucket` have its arm and the bucket of its unit, and `epoch` its epoch.
    """

    position: int
    line: bytes
    explored: bool
    arm: str = ""
    bucket: int = 0
    epoch: int = 0


def label_line(line: bytes, decision: LogRecord, reward: float) -> bytes:
    """Return the dsjson line of a decision, with the label that its reward gives.

    >>> from onlineauto.service.log.record import LogRecord
    >>> from datetime import datetime
    >>> decision = LogRecord("rank", datetime(2026, 1, 1), "e", [2, 1], [0.75, 0.25])
    >>> label_line(b'{"Type":"rank"}', decision, 1.0).decode()
    '{"_label_cost":-1.0,"_label_probability":0.75,"_label_Action":2,"_labelIndex":1,"Type":"rank"}'
    """
    label = {
        "_label_cost": 0.0 - reward,
        "_label_probability": decision.probabilities[0],
        "_label_Action": decision.ranked[0],
        "_labelIndex": decision.ranked[0] - 1,
    }
    return msgspec.json.encode(label)[:-1] + b"," + line[1:]


def is_explored(line: bytes) -> bool:
    """Return whether a model made a decision, and not a baseline, which explores no other actions.

    >>> is_explored(b'{"mode":"online","c":{}}'), is_explored(b'{"mode":"apprentice","c":{"mode":"online"}}')
    (True, False)
    """
    return line.find(b'"mode":"online"', 0, line.find(b',"c":')) >= 0
