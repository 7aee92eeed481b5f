"""``JoinSettings``: how decisions wait for their rewards; records of the log can change the settings."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onlineauto.errors import InputError, OptionError
from onlineauto.formats.decisions.waiting import LEARN_AT
from onlineauto.service.join.pacing import LARGEST_COST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MODES: Final = ("online", "apprentice", "logging-only")
"""The model decides; the baseline decides and the model learns; the baseline decides without learning."""
WAIT: Final = LEARN_AT[0]
MOST_WAIT: Final = 30 * 86400.0
"""Maximum number of seconds for which a decision may wait."""
_OF_EPOCH: Final = ("mode", "control", "guardrails", "canary", "canary_share", "budget")
_MOST_FINISHED: Final = 10**12
_MOST_CONTROL: Final = 0.5
_MOST_GUARDRAILS: Final = 8
_METRIC: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
ROLLBACK: Final = "rollback"
"""Behind the name of a guardrail: the baseline decides for all once the guardrail is broken."""

AGGREGATIONS: Final = ("first", "last", "sum", "mean", "min", "max")
"""Names of the aggregations. Only with ``first`` is a reward final before the wait of its decision ends."""


def seconds_of(duration: float | str, *, name: str) -> float:
    """Return a duration in seconds; `name` is that of the setting, for errors.

    >>> seconds_of("PT10M", name="reward_wait"), seconds_of("90", name="reward_wait")
    (600.0, 90.0)
    """
    try:
        return float(duration)
    except ValueError:
        pass
    try:
        return msgspec.convert(duration, timedelta).total_seconds()
    except msgspec.ValidationError:
        raise OptionError(
            f"{name} is a number of seconds, or a duration like PT10M or P1DT12H, not {duration!r}"
        ) from None


def add_reward(how: str, count: int, value: float, reward: float) -> float:
    """Return the running value of `count` rewards, `value`, updated by one more reward.

    >>> add_reward("max", 0, 0.0, -3.0), add_reward("mean", 1, 2.0, 4.0)
    (-3.0, 6.0)
    """
    if count == 0 or how == "last":
        return reward
    if how == "first":
        return value
    if how in ("sum", "mean"):
        return value + reward
    return min(value, reward) if how == "min" else max(value, reward)


def final_reward(how: str, count: int, value: float) -> float:
    """Return the reward of a decision from its running value.

    >>> final_reward("mean", 2, 6.0), final_reward("sum", 2, 6.0)
    (3.0, 6.0)
    """
    return value / count if how == "mean" else value


class JoinSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings for how decisions wait for their rewards and end.

    A decision keeps the wait, the default reward, the aggregation, the range of rewards and `learn_at` in
    force when it was made. A change applies to later decisions.

    Attributes
    ----------
    reward_wait : float
        Seconds for which a decision waits.
    default_reward : float
        The reward of a decision that received none.
    aggregation : str
        One of `onlineauto.service.join.settings.AGGREGATIONS`.
    mode : {"online", "apprentice", "logging-only"}
        Whether model or baseline decides, and whether joined decisions are learnt.
    options : str
        Options of the model, as on a command line.
    reward_range : tuple of (float, float), optional
        The lowest and the highest reward. A reward outside is replaced by the nearer bound, and so is a sum
        with the aggregation ``sum``. By default the bound is learnt (`onlineauto.service.join.join`).
    max_finished : int
        Maximum number of finished decisions that are remembered until their wait is over, to recognise
        repetitions. At least the latest half of them is remembered.
    control : float
        The share of units, by a hash, for which the baseline decides, and whose decisions are not learnt.
    guardrails : tuple of str
        Names of metrics that must not fall, and ``reward``. With ``:rollback`` behind a name, the baseline
        decides for all once the metric has proved to be lower than in the control arm.
    canary : str
        The name of a model of the history that decides for a share of the units.
    canary_share : float
        That share.
    learn_at : {"wait", "reward"}
        When a decision ends; see `LEARN_AT`.
    budget : float, optional
        The mean cost of a decision that is held; see `onlineauto.service.join.pacing`.
    epoch : int
        The number of changes of who decides for whom, so far: of the mode, the arms, the guardrails or the
        budget.
    """

    reward_wait: float = 600.0
    default_reward: float = 0.0
    aggregation: str = "first"
    mode: str = "online"
    options: str = ""
    reward_range: tuple[float, float] | None = None
    max_finished: int = 1_000_000
    control: float = 0.0
    guardrails: tuple[str, ...] = ()
    canary: str = ""
    canary_share: float = 0.0
    learn_at: str = WAIT
    budget: float | None = None
    epoch: int = 0

    def next_epoch(self, changed: JoinSettings) -> JoinSettings:
        """Return changed settings, with the next epoch if they change who decides for whom."""
        same = all(getattr(self, name) == getattr(changed, name) for name in _OF_EPOCH)
        return msgspec.structs.replace(changed, epoch=self.epoch + (not same))


def check_settings(settings: JoinSettings) -> None:
    """Check that each setting is within its range."""
    for name, value, choices in (
        ("reward_aggregation", settings.aggregation, AGGREGATIONS),
        ("learn_at", settings.learn_at, LEARN_AT),
        ("mode", settings.mode, MODES),
    ):
        if value not in choices:
            raise OptionError(f"{name} takes one of {', '.join(choices)}, not {value}")
    if not 0 < settings.reward_wait <= MOST_WAIT:
        raise OptionError(
            f"reward_wait is {settings.reward_wait}: give a number of seconds above 0, and at most 30 days"
        )
    if not abs(settings.default_reward) < 3e38:
        raise OptionError(f"default_reward is {settings.default_reward}: give a finite number")
    low, high = settings.reward_range or (-3e38, 3e38)
    if not -3e38 <= low < high <= 3e38 or not low <= settings.default_reward <= high:
        raise OptionError(
            f"reward_range is {low:g},{high:g} and default_reward is {settings.default_reward:g}: give two "
            "finite numbers, the lower one first, with the default reward between them"
        )
    if not 1 <= settings.max_finished <= _MOST_FINISHED:
        raise OptionError(
            f"max_finished is at least 1 and at most {_MOST_FINISHED:,}, not {settings.max_finished}"
        )
    if settings.budget is not None and not 0.0 < settings.budget < LARGEST_COST:
        raise OptionError(f"budget is {settings.budget}: give a mean cost of a decision, above 0, below 1e30")
    _check_experiment(settings)


def _check_experiment(settings: JoinSettings) -> None:
    """Check the shares of the arms, and the guardrails."""
    if not (0 <= settings.control <= _MOST_CONTROL and 0 <= settings.canary_share <= _MOST_CONTROL):
        raise OptionError(
            f"control is {settings.control} and canary_share is {settings.canary_share}: give shares from 0 "
            f"to {_MOST_CONTROL}"
        )
    if bool(settings.canary) != bool(settings.canary_share):
        raise OptionError("a canary needs the name of a model and a share above 0")
    names = [guardrail.partition(":") for guardrail in settings.guardrails]
    if len(names) > _MOST_GUARDRAILS or len({name for name, _, _ in names}) < len(names):
        raise OptionError(f"guardrails are at most {_MOST_GUARDRAILS} different names")
    for name, mark, act in names:
        if not _METRIC.fullmatch(name) or (mark and act != ROLLBACK):
            raise OptionError(
                f"guardrail {name + mark + act!r}: give a name of at most 64 letters, digits, '-', '_' and "
                f"'.', or such a name with ':{ROLLBACK}'"
            )


def read_settings(values: Mapping[str, Any]) -> JoinSettings:
    """Return the settings of a record of the log."""
    try:
        settings = msgspec.convert(values, JoinSettings)
        check_settings(settings)
    except msgspec.ValidationError as error:
        raise InputError(f"the log has settings that this program does not know: {error}") from None
    except OptionError as error:
        raise InputError(f"the log has settings that are out of range: {error}") from None
    return settings


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
        self.rules = {0: rules_of(settings)}
        self._until: dict[int, float] = {}  # the time until which replaced rules are kept

    def change(self, settings: JoinSettings, now: float) -> None:
        """Replace the current settings."""
        wanted = rules_of(settings)
        if wanted == self.rules[self.current]:
            return
        for number in [number for number, until in self._until.items() if until <= now]:
            del self.rules[number], self._until[number]
        number = next((number for number, rule in self.rules.items() if rule == wanted), -1)
        if number < 0:
            if len(self.rules) >= _MOST_RULES:
                raise InputError(f"{_MOST_RULES} different settings have decisions that may wait for them")
            number = next(number for number in range(_MOST_RULES) if number not in self.rules)
            self.rules[number] = wanted
        self._until.pop(number, None)
        self._until[self.current] = now + MOST_WAIT
        self.current = number

    def state(self) -> tuple[int, list[tuple[int, float, JoinRules]]]:
        """Return the current number, and all rules with their numbers and expiry times."""
        rules = sorted(self.rules.items())
        return self.current, [(number, self._until.get(number, 0.0), rule) for number, rule in rules]

    @classmethod
    def of(
        cls, settings: JoinSettings, state: tuple[int, Sequence[tuple[int, float, JoinRules]]]
    ) -> RuleBook:
        """Return the book of a `state`, whose current rules must match the settings."""
        book = cls(settings)
        book.current, entries = state
        book.rules = {number: rules for number, _, rules in entries}
        book._until = {number: until for number, until, _ in entries if number != book.current}
        if book.rules.get(book.current) != rules_of(settings) or not all(
            0 <= number < _MOST_RULES for number in book.rules
        ):
            raise InputError("the rules of decisions are not those of their settings")
        return book
