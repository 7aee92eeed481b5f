"""``Status``: the answer of ``/v1/status``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from onlineauto.service.join.decision import BYTES_PER_DECISION
from onlineauto.service.join.join import JoinSettings
from onlineauto.service.learning.experiment import ExperimentReport
from onlineauto.service.learning.segments import SegmentSummary
from onlineauto.service.learning.values import Agreement, Point, Value
from onlineauto.service.log.log_copier import CopyStatus
from onlineauto.service.loop.board import ChampionChange, LiveConfigSummary

if TYPE_CHECKING:
    from onlineauto.service.loop.loop import Loop
    from onlineauto.service.loop.rank_server import RankServer


class Status(msgspec.Struct, frozen=True):
    """The state of a service.

    Attributes
    ----------
    ranked, rewarded, learnt : int
        Decisions, rewards, and decisions that were learnt, since the log began.
    champion : LiveConfig
        The config that decides.
    champion_changes : int
        Number of champions before it.
    lag_seconds : float
        Age of the oldest record that the learner has not taken; 0 if there is none.
    ready : bool
        The log can be written.
    learning : bool
        Learning continues; if not, `error` has the reason, and the model that was published last decides.
    pending, max_pending : int
        The number of decisions that have not ended, and its maximum. They are in no value, interval or arm.
    finished, max_finished : int
        The number of finished decisions that are remembered, and its maximum.
    table_bytes : int
        Approximate memory of all these decisions, in the tables of the front and of the learner.
    held_out : int
        The number of decisions of the control arm that have ended; they are not learnt.
    experiment : ExperimentReport
        The lift over the control arm, the guardrails, and the alarms.
    skipped, skipped_latest : int and list of str
        The number of records of the log that could not be applied, and a description of the latest.
    segments : list of SegmentSummary
        What the model prefers for whom.
    copies : list of CopyStatus
        The copies of the log in another folder or in a topic, and how far they are behind.
    """

    ranked: int
    rewarded: int
    learnt: int
    champion: LiveConfigSummary
    champion_changes: int
    lag_seconds: float
    ready: bool
    learning: bool
    error: str
    model: str
    settings: JoinSettings
    pending: int
    max_pending: int
    finished: int
    max_finished: int
    early: int
    table_bytes: int
    joined: int
    defaulted: int
    inactive: int
    late: int
    duplicate: int
    dangling: int
    repeated: int
    forgotten: int
    clipped: int
    clock_jumps: int
    faulty: int
    too_wide: int
    outliers: int
    skipped: int
    skipped_latest: list[str]
    mean_wait: float
    live_configs: list[LiveConfigSummary]
    changes: list[ChampionChange]
    values: list[Value]
    agreement: Agreement
    points: list[Point]
    segments: list[SegmentSummary]
    held_out: int
    experiment: ExperimentReport
    log_bytes: int
    log_groups: int
    queued: int
    loss_window_seconds: float
    copies: list[CopyStatus]
    time: float


class FollowerStatus(msgspec.Struct, frozen=True):
    """The state of a rank server.

    Attributes
    ----------
    ranked, rewarded : int
        Decisions and rewards of its log.
    model : str
        The name of the model that ranks.
    behind_bytes : int
        Bytes of its log that the learner does not have yet.
    ready : bool
        The log can be written.
    learning : bool
        The last request to the learner succeeded; if not, `error` has the reason.
    """

    ranked: int
    rewarded: int
    model: str
    behind_bytes: int
    ready: bool
    learning: bool
    error: str
    settings: JoinSettings
    pending: int
    max_pending: int
    finished: int
    max_finished: int
    early: int
    log_bytes: int
    log_groups: int
    queued: int
    time: float


def follower_status(rank_server: RankServer) -> FollowerStatus:
    """Return the state of a rank server."""
    counts = rank_server.join.counts
    return FollowerStatus(
        ranked=counts.ranked,
        rewarded=counts.rewarded,
        model=rank_server.published.name,
        behind_bytes=rank_server.behind,
        ready=rank_server.writable,
        learning=rank_server.failed is None,
        error=rank_server.trouble or ("" if rank_server.failed is None else str(rank_server.failed)),
        settings=rank_server.join.settings,
        pending=rank_server.join.waiting,
        max_pending=rank_server.limits.pending,
        finished=rank_server.join.finished,
        max_finished=rank_server.join.settings.max_finished,
        early=rank_server.join.early,
        log_bytes=rank_server.log.end,
        log_groups=rank_server.groups,
        queued=rank_server.queued,
        time=rank_server.clock(),
    )


def status_of(loop: Loop, *, points: bool = False) -> Status:
    """Return the state of a service, with its curve if `points`."""
    board, counts = loop.board, loop.join.counts
    return Status(
        ranked=counts.ranked,
        rewarded=counts.rewarded,
        learnt=board.learnt,
        champion=board.live_configs[0],
        champion_changes=board.champion_changes,
        lag_seconds=loop.lag_seconds(),
        ready=loop.writable,
        learning=loop.failed is None,
        error=loop.trouble,
        model=board.model,
        settings=loop.join.settings,
        pending=loop.join.waiting,
        max_pending=loop.limits.pending,
        finished=loop.join.finished,
        max_finished=loop.join.settings.max_finished,
        early=loop.join.early,
        table_bytes=2 * BYTES_PER_DECISION * (loop.join.waiting + loop.join.finished),
        joined=counts.joined,
        defaulted=counts.defaulted,
        inactive=counts.inactive,
        late=counts.late,
        duplicate=counts.duplicate,
        dangling=counts.dangling,
        repeated=counts.repeated,
        forgotten=counts.forgotten,
        clipped=counts.clipped,
        clock_jumps=counts.clock_jumps,
        faulty=loop.learner.faulty,
        too_wide=board.too_wide,
        outliers=board.outliers,
        skipped=loop.learner.skipped,
        skipped_latest=list(map(str, loop.learner.latest)),
        mean_wait=board.waited,
        live_configs=board.live_configs,
        changes=board.changes,
        values=[value for value in board.values if value.reward is not None],
        agreement=board.agreement,
        points=board.points if points else [],
        segments=board.segments,
        held_out=loop.learner.held_out,
        experiment=loop.experiment,
        log_bytes=loop.log.end,
        log_groups=loop.groups,
        queued=loop.queued,
        loss_window_seconds=0.0,  # an answer is sent only after the disk has its record
        copies=[each.status() for each in loop.copies],
        time=loop.clock(),
    )
