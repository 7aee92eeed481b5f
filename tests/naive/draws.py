"""Whether the actions of a log were drawn anew for each event, the plain way."""

from __future__ import annotations


class Draws:
    """The logged actions so far, and what they tell."""

    def __init__(self) -> None:
        self.actions: list[int] = []
        self.places: dict[int, int] = {}
        """How often each was logged."""
        self.changes = 0
        self.changed = self.by_chance = self.largest = 0.0
        """Weights of events with another action than the event before; how large they are by chance."""
        self.due = self.propensity = 0.0
        """Changes that were due by the propensities of the events before; the latest of these."""

    def note(self, action: int, probability: float, *, often: float | None = None) -> None:
        """Take in a logged action; how `often` it was logged so far is known of more events than these."""
        weight = 1.0 / probability
        if self.actions:
            share = self.places.get(action, 0) / len(self.actions) if often is None else often
            self.by_chance += (1.0 - share) * weight
            self.due += max(1.0 - self.propensity, 0.0)
            if self.actions[-1] != action:
                self.changes += 1
                self.changed += weight
        self.largest = max(self.largest, weight)
        self.propensity = probability
        self.actions.append(action)
        self.places[action] = self.places.get(action, 0) + 1

    @property
    def events(self) -> float:
        """How many events seem to share a draw."""
        if not self.actions:
            return 1.0
        many = (self.by_chance + self.largest) / (self.changed + self.largest)
        if self.changes < 16 and (self.changes or self.due < 256):
            many = max(many, (self.due + 1) / (self.changes + 1))
        return many if many >= 1.5 else 1.0

    @property
    def tell_of_actions(self) -> bool:
        """Whether losses on logged actions tell of more than one of them."""
        return not self.actions or self.changes >= 16
