"""Estimate whether the actions of a log were drawn independently for each event."""

from __future__ import annotations


class Draws:
    """The logged actions so far, and the estimates from them."""

    def __init__(self) -> None:
        self.actions: list[int] = []
        self.places: dict[int, int] = {}
        """Number of events of each action."""
        self.changes = 0
        self.changed = self.by_chance = self.largest = 0.0
        """Weights of events whose action differs from the previous one; their size by chance."""
        self.due = self.propensity = 0.0
        """Expected number of changes, from the propensities of earlier events; the latest term of it."""

    def note(self, action: int, probability: float, *, often: float | None = None) -> None:
        """Add a logged action; `often` is how often it was logged, in more events than these."""
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
        """Return the estimated number of events that share a draw."""
        if not self.actions:
            return 1.0
        many = (self.by_chance + self.largest) / (self.changed + self.largest)
        if self.changes < 16 and (self.changes or self.due < 256):
            many = max(many, (self.due + 1) / (self.changes + 1))
        return many if many >= 1.5 else 1.0

    @property
    def tell_of_actions(self) -> bool:
        """Return whether losses on logged actions are of more than one action."""
        return not self.actions or self.changes >= 16
