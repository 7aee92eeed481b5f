"""``JoinRules``: the settings that a decision keeps until it ends; ``RuleBook``: rules by small numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from onlineauto.errors import InputError
from onlineauto.service.join.settings import MOST_WAIT, WAIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.service.join.settings import JoinSettings

_MOST_RULES: Final = 1 << 16


class JoinRules(msgspec.Struct, frozen=True, array_like=True):
    """Settings in force for a decision until it ends; see `JoinSettings` for their meanings."""

    aggregation: str
    default_reward: float
    reward_range: tuple[float, float] | None = None
    learn_at: str = WAIT

    @property
    def at_once(self) -> bool:
        """True if a decision ends at its first reward."""
        return self.learn_at != WAIT and self.aggregation == "first"


def rules_of(settings: JoinSettings) -> JoinRules:
    """Return the rules of a decision that is made under some settings."""
    return JoinRules(settings.aggregation, settings.default_reward, settings.reward_range, settings.learn_at)


class RuleBook:
    """The rules of all decisions of a table, by numbers that fit into a packed decision.

    Replaced rules are kept for the longest possible wait: after that, no decision uses them.
    """

    def __init__(self, settings: JoinSettings) -> None:
        self.current = 0
        self._rules = {0: rules_of(settings)}
        self._until: dict[int, float] = {}  # the time until which replaced rules are kept

    def __getitem__(self, number: int) -> JoinRules:
        """Return the rules with a number."""
        return self._rules[number]

    def __contains__(self, number: int) -> bool:
        """Return whether there are rules with a number."""
        return number in self._rules

    def change(self, settings: JoinSettings, now: float) -> None:
        """Replace the current settings."""
        wanted = rules_of(settings)
        if wanted == self._rules[self.current]:
            return
        for number in [number for number, until in self._until.items() if until <= now]:
            del self._rules[number], self._until[number]
        number = next((number for number, each in self._rules.items() if each == wanted), -1)
        if number < 0:
            if len(self._rules) >= _MOST_RULES:
                raise InputError(f"{_MOST_RULES} different settings have decisions that may wait for them")
            number = next(number for number in range(_MOST_RULES) if number not in self._rules)
            self._rules[number] = wanted
        self._until.pop(number, None)
        self._until[self.current] = now + MOST_WAIT
        self.current = number

    def state(self) -> tuple[int, list[tuple[int, float, JoinRules]]]:
        """Return the current number, and all rules with their numbers and expiry times."""
        rules = sorted(self._rules.items())
        return self.current, [(number, self._until.get(number, 0.0), each) for number, each in rules]

    @classmethod
    def of(
        cls, settings: JoinSettings, state: tuple[int, Sequence[tuple[int, float, JoinRules]]]
    ) -> RuleBook:
        """Return the book of a `state`, whose current rules must match the settings."""
        made = cls(settings)
        made.current, entries = state
        made._rules = {number: rules for number, _, rules in entries}
        made._until = {number: until for number, until, _ in entries if number != made.current}
        if made._rules.get(made.current) != rules_of(settings) or not all(
            0 <= number < _MOST_RULES for number in made._rules
        ):
            raise InputError("the rules of decisions are not those of their settings")
        return made
