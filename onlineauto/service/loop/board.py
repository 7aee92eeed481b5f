"""``Board``: the state of a published model, as plain values that any thread may read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from onlineauto.api.champion import champion_of
from onlineauto.automl.config import namespace_text
from onlineauto.formats.lines.diagnostics import ProblemCode
from onlineauto.service.learning.segments import SegmentSummary
from onlineauto.service.learning.values import Agreement, Point, Value

if TYPE_CHECKING:
    from onlineauto.service.learning.learner import LogLearner

_MOST_CHANGES: Final = 20


class LiveConfigSummary(msgspec.Struct, frozen=True):
    """A live config: its interactions and settings, bounds on its reward and on the champion's since then."""

    interactions: list[str]
    settings: dict[str, float | str]
    events: int
    low: float
    high: float
    champion_low: float
    champion_high: float


class ChampionChange(msgspec.Struct, frozen=True):
    """A change of the champion: the number of events of its search, and the new champion's interactions."""

    events: int
    interactions: list[str]


class Board(msgspec.Struct, frozen=True):
    """The state of the model and of its search; the fields without a comment are those of `Status`."""

    model: str
    learnt: int
    faulty: int
    too_wide: int
    outliers: int
    waited: float  # Mean number of seconds that a learnt decision has waited.
    champion_changes: int
    changes: list[ChampionChange]  # The latest of these changes.
    live_configs: list[LiveConfigSummary]  # The champion first.
    values: list[Value]
    points: list[Point]
    agreement: Agreement
    segments: list[SegmentSummary]


def board_of(learner: LogLearner) -> Board:
    """Return the state of the model of a learner; its thread calls this."""
    workspace, values = learner.workspace, learner.values
    champion, estimates = champion_of(workspace), workspace.estimates
    live = []
    for index, config in enumerate(workspace.searching.live_configs.configs):
        names = workspace.searching.interactions(index)
        live.append(
            LiveConfigSummary(
                interactions=list(champion.interactions)
                if index == 0
                else ["*".join(map(namespace_text, interaction)) for interaction in names],
                settings=dict(champion.settings) | dict(config.settings),
                events=champion.events if index == 0 else estimates.updates(index),
                low=estimates.lower(index),
                high=estimates.upper(index),
                champion_low=estimates.champion_lower(index) if index else estimates.lower(0),
                champion_high=estimates.champion_upper(index) if index else estimates.upper(0),
            )
        )
    return Board(
        model=learner.name,
        learnt=learner.learnt,
        faulty=learner.faulty,
        too_wide=workspace.diagnostics.counts[ProblemCode.TOO_WIDE],
        outliers=sum(workspace.outliers.values()),
        waited=learner.waited / max(learner.learnt, 1),
        champion_changes=champion.changes,
        changes=[
            ChampionChange(change.events, ["*".join(map(namespace_text, names)) for names in change.after])
            for change in list(workspace.searching.changes)[-_MOST_CHANGES:]
        ],
        live_configs=live,
        values=values.values(),
        points=list(values.points),
        agreement=msgspec.structs.replace(values.agreement),
        segments=learner.segments.summaries(),
    )
