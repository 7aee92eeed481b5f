"""``Story``: the content of a journal as periods in which a config was live in a lane."""

from __future__ import annotations

import io
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from onlineauto.automl.config import Config, ConfigKind
from onlineauto.automl.decisions import (
    Extend,
    PredictWith,
    Remove,
    Reopen,
    RestMembers,
    Rotate,
    Swap,
    Widen,
)
from onlineauto.engine.search.journal import End, JournalHead, decision_of, read_journal
from onlineauto.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from onlineauto.automl.config import Interaction
    from onlineauto.engine.search.journal import Entry

_LOG: Final = logging.getLogger("onlineauto")

Journal: TypeAlias = "str | os.PathLike[str] | Iterable[Mapping[str, Any] | Entry | End | JournalHead]"
"""A journal: the path of its file, or its lines, as objects or as dictionaries."""


@dataclass(slots=True)
class Stretch:
    """A period in which a config was live in one lane."""

    lane: int  # Index of the live config; 0 is the champion.
    config: Config
    champion: Config  # The champion at the beginning of the period.
    begin: int  # Numbers of events before the beginning and before the end.
    end: int = 0
    leases: list[int] = field(default_factory=list)  # Events at which its lease was extended.
    # The end of the period: still live; replaced by another config; proved worse; became the champion; or no
    # longer the champion.
    outcome: str = "live"


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds on the champion's average reward over the last `updates` learnt events."""

    events: int  # Number of completed events.
    updates: int  # Number of events in the bounds.
    low: float  # The bounds.
    high: float


@dataclass(slots=True)
class Story:
    """The search of a run."""

    stretches: list[Stretch] = field(default_factory=list)  # The periods, in the order of their beginnings.
    # Events at which the champion changed, and the lane of its challenger.
    swaps: list[tuple[int, int]] = field(default_factory=list)
    drifts: list[int] = field(default_factory=list)  # Events at which drift was detected.
    # Numbers of events at which the predictor changed, and the new one: "ensemble" or "champion".
    predicted: list[tuple[int, str]] = field(default_factory=list)
    # Numbers of events at which the set of inactive members changed, and these members.
    rested: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    # Namespaces that appeared after the search had begun.
    late: list[tuple[int, tuple[bytes, ...]]] = field(default_factory=list)
    # Bounds on the champion's reward, in the order of events.
    intervals: list[Interval] = field(default_factory=list)
    namespaces: list[bytes] = field(default_factory=list)  # All namespaces, in ascending order.
    events: int = 0  # Number of events of the run, as far as the journal reports it.

    @property
    def champion(self) -> Config:
        """The champion at the end."""
        return next((stretch.config for stretch in reversed(self.stretches) if stretch.lane == 0), Config())

    def champion_interactions(self) -> list[Interaction]:
        """Return the interactions of the champion at the end.

        For a config that excludes interactions, the result is all pairs but these.
        """
        champion, names = self.champion, self.namespaces
        if champion.kind is ConfigKind.INCLUSION:
            return list(champion.elements)
        pairs = [(one, other) for at, one in enumerate(names) for other in names[at:]]
        return [pair for pair in pairs if pair not in champion.elements]


def story_of(journal: Journal) -> Story:
    """Return the story of a journal. Lines that cannot be read are left out, with a warning in the log."""
    builder, damage = _StoryBuilder(), list[str]()
    for entry in _entries(journal, damage.append):
        builder.add(entry)
    if damage:
        lines = "1 line is" if len(damage) == 1 else f"{len(damage)} lines are"
        _LOG.warning("%s left out of the picture; the first: %s", lines, damage[0])
    return builder.end()


def _entries(journal: Journal, on_damage: Callable[[str], None]) -> Iterator[Entry | End]:
    """Yield the decisions of a journal, and its end. Damage of a file is reported by `on_damage`."""
    if isinstance(journal, str | os.PathLike):
        with Path(journal).open("rb") as file:
            yield from read_journal(file, name=os.fspath(journal), on_damage=on_damage)
        return
    lines = [msgspec.json.encode(line) for line in journal]
    head = msgspec.json.encode(JournalHead(""))
    if not lines or b'"search"' not in lines[0]:
        lines.insert(0, head)
    yield from read_journal(io.BytesIO(b"\n".join([*lines, b""])))


class _StoryBuilder:
    """Builds a story from the decisions of a journal."""

    def __init__(self) -> None:
        first = Stretch(0, Config(), Config(), 0)  # replaced once the journal names the champion
        self._story = Story([first])
        self._live = [first]

    def add(self, entry: Entry | End) -> None:
        """Process a line."""
        story, now = self._story, entry.events
        story.events = max(story.events, now)
        if isinstance(entry, End):
            return
        decision = decision_of(entry)
        bounds = getattr(entry, "bounds", None)
        if bounds is not None and bounds.updates > 0:
            interval = Interval(entry.events, bounds.updates, bounds.champion_lower, bounds.champion_upper)
            self._story.intervals.append(interval)
        if isinstance(decision, Widen):
            story.namespaces = sorted({*story.namespaces, *decision.names})
            if now > 0:
                story.late.append((now, decision.names))
        elif isinstance(decision, Reopen):
            story.drifts.append(now)
        elif isinstance(decision, Rotate):
            self._begin_lease(decision.live, decision.config, now)
        elif isinstance(decision, Extend):
            self._stretch_of(decision.live).leases.append(now)
        elif isinstance(decision, Remove):
            self._stretch_of(decision.live).outcome = "worse"
        elif isinstance(decision, PredictWith):
            story.predicted.append((now, decision.who))
        elif isinstance(decision, RestMembers):
            story.rested.append((now, decision.members))
        else:
            self._swap(decision, now)

    def end(self) -> Story:
        """Return the story."""
        story = self._story
        for stretch in self._live:
            stretch.end = story.events
        story.stretches = [stretch for stretch in story.stretches if stretch.end > stretch.begin]
        if not story.stretches:
            raise InputError(
                "the journal has no decision behind the first event, so there is nothing to draw"
            )
        return story

    def _stretch_of(self, live: int) -> Stretch:
        if live >= len(self._live):
            raise InputError(
                f"the journal decides on live config {live}, which never became live: the run may "
                "have continued a saved model; a picture needs the journal from the first event on"
            )
        return self._live[live]

    def _begin_lease(self, live: int, config: Config, now: int, *, outcome: str = "waiting") -> None:
        """Begin a period of a config at index `live`."""
        champion = self._live[0].config if live else config
        stretch = Stretch(live, config, champion, now)
        self._story.stretches.append(stretch)
        if live < len(self._live):
            self._close(self._live[live], now, outcome)
            self._live[live] = stretch
        elif live == len(self._live):
            self._live.append(stretch)
        else:
            self._stretch_of(live)

    def _close(self, stretch: Stretch, now: int, outcome: str) -> None:
        stretch.end = now
        if stretch.outcome == "live":
            stretch.outcome = outcome

    def _swap(self, swap: Swap, now: int) -> None:
        self._story.swaps.append((now, swap.live))
        old = self._stretch_of(0).config
        self._stretch_of(swap.live).outcome = "promoted"
        self._begin_lease(0, swap.config, now, outcome="deposed")
        if swap.keeps:
            self._begin_lease(swap.live, old, now)
            return
        for each in self._live[1:]:
            self._close(each, now, "waiting")
        del self._live[1:]
        self._begin_lease(1, old, now)
