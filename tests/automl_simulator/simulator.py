"""A simulator of articles and users: a click depends on the user and the time of day; learners act on-policy.

Every event: a user comes, the learner predicts, an article is drawn from its probabilities, and the learner
learns the cost. Draws and sums are in single precision, so that every learner that predicts the same bits
lives through the same events as in Vowpal Wabbit's tests.

Source: VW ``core/tests/simulator.cc``, class ``cb_sim``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

ARTICLES = ("politics", "sports", "music")
_USERS = ("Tom", "Anna")
_TIMES = ("morning", "afternoon")
_LIKED = {
    ("Tom", "morning"): "politics",
    ("Tom", "afternoon"): "music",
    ("Anna", "morning"): "sports",
    ("Anna", "afternoon"): "politics",
}


class Learner(Protocol):
    """A learner that acts in the simulator."""

    def predict(self, lines: Sequence[str]) -> Sequence[float]:
        """Return the probability of each action of an event."""

    def learn(self, lines: Sequence[str]) -> None:
        """Learn from an event with a label."""


class Draws:
    """Uniform numbers in [0, 1) with 23 bits: VW's ``merand48``."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def __call__(self) -> np.float32:
        self._state = (self._state * 0xEECE66D5DEECE66D + 2147483647) % 2**64
        return np.float32((self._state >> 25 & 0x7FFFFF) / 2**23)


class Simulator:
    """The simulator.

    Parameters
    ----------
    seed : int
        Where its random numbers begin.
    named_actions : bool, default=True
        Whether the articles have the namespace ``Action``, or the one without a name.

    Attributes
    ----------
    user_namespace : str
        Where user and time of day are; may be changed between two events.
    rates : list of float
        Average reward after each event.
    """

    def __init__(self, seed: int, *, named_actions: bool = True) -> None:
        self.user_namespace = "User"
        self.rates: list[float] = []
        self._action_namespace = "Action" if named_actions else ""
        self._draw = Draws(seed)
        self._sum = np.float32(0)

    def run(
        self,
        learner: Learner,
        events: int,
        *,
        swap_after: Sequence[int] = (),
        hooks: Mapping[int, Callable[[], None]] | None = None,
    ) -> float:
        """Run events 1 to `events`; return the average reward.

        Parameters
        ----------
        learner : Learner
            Who acts and learns.
        events : int
            How many events.
        swap_after : sequence of int
            Events after which what was liked is disliked, and the other way round.
        hooks : mapping of int to callable, optional
            What to do after an event was learnt, by its number.
        """
        for event in range(1, events + 1):
            self._live(learner, swapped=sum(event > swap for swap in swap_after) % 2 == 1)
            self.rates.append(float(-self._sum / np.float32(event + 1)))
            if hooks and event in hooks:
                hooks[event]()
        return self.rates[-1]

    def _live(self, learner: Learner, *, swapped: bool) -> None:
        user, time = self._choose(_USERS), self._choose(_TIMES)
        chances = learner.predict(self._event(user, time))
        action, chance = self._act(np.array(chances, np.float32))
        liked = ARTICLES[action] == _LIKED[user, time]
        cost = 0 if liked == swapped else -1
        self._sum += np.float32(cost)
        learner.learn(self._event(user, time, label=f"0:{cost}:{chance} ", labelled=action))

    def _choose(self, things: Sequence[str]) -> str:
        return things[int(self._draw() * np.float32(len(things)))]

    def _act(self, chances: NDArray[np.float32]) -> tuple[int, np.float32]:
        """Draw an action; return its index and probability."""
        total = np.float32(0)
        for chance in chances:
            total += chance
        chances = chances * (np.float32(1) / total)
        draw, sum_so_far = self._draw(), np.float32(0)
        for action, chance in enumerate(chances):
            sum_so_far += chance
            if sum_so_far > draw:
                return action, chance
        raise AssertionError("the probabilities end below the draw")

    def _event(self, user: str, time: str, *, label: str = "", labelled: int = -1) -> list[str]:
        """Return the lines of an event in VW's text format."""
        shared = f"shared |{self.user_namespace} user={user} time_of_day={time}"
        actions = [
            f"{label if action == labelled else ''}|{self._action_namespace} article={article}"
            for action, article in enumerate(ARTICLES)
        ]
        return [shared, *actions]
