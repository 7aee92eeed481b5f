"""``PacedPolicy``: a policy with a budget, evaluated on a log that has the cost of each action.

The price follows the costs that the policy itself expects: the mean of the logged costs, weighted by the
policy's probabilities. So a log with one budget, or with none, tells what another budget would have earned.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec
import numpy as np

from onlineauto.errors import OptionError
from onlineauto.explorers.ranking_kernels import note_outcome
from onlineauto.service.join.pacing import LARGEST_COST, Pacing
from onlineauto.state.schema import arrays_of
from onlineauto.workspace.pricing import check_priced, inactive, priced_pmf
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.explorers.ranking_kernels import Exploration
    from onlineauto.features.block import Block
    from onlineauto.options import Configuration


_MOST_LINES: Final = 256
"""Number of lines that are read at a time."""


class _Line(msgspec.Struct):
    costs: list[float | None] = msgspec.field(name="Costs", default_factory=list)


_LINES: Final = msgspec.json.Decoder(_Line)


class LoggedCosts:
    r"""The costs of the actions of each line of a log, by the number of the line.

    >>> logged = LoggedCosts()
    >>> list(logged.read([b'{"Costs":[0.5,2],"c":{}}', b"{}"]))
    [b'{"Costs":[0.5,2],"c":{}}\n{}\n']
    >>> logged.of(1), logged.of(2)
    ([0.5, 2.0], None)
    """

    def __init__(self) -> None:
        self._costs: list[list[float] | None] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same costs: copies of a policy read one log."""
        return self

    def read(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines of a log, many at a time, and note their costs."""
        batch: list[bytes] = []
        for line in lines:
            costs: list[float] | None = None
            if b'"Costs":' in line:
                try:
                    found = _LINES.decode(line).costs
                except msgspec.MsgspecError:  # the reader of events reports it
                    found = []
                known = [cost for cost in found if cost is not None and 0.0 <= cost < LARGEST_COST]
                costs = known if known and len(known) == len(found) else None
            self._costs.append(costs)
            batch.append(line.rstrip(b"\r\n") + b"\n")
            if len(batch) == _MOST_LINES:
                yield b"".join(batch)
                batch = []
        if batch:
            yield b"".join(batch)

    def of(self, line: int) -> list[float] | None:
        """Return the costs of the actions of a line, counted from 1; None if one of them is not known."""
        return self._costs[line - 1] if line <= len(self._costs) else None


def split_budget(words: Sequence[str]) -> tuple[list[str], float | None]:
    """Return the flags of a policy without ``--budget``, and the budget.

    >>> split_budget(["--cb_explore_adf", "--budget", "0.5", "--squarecb"])
    (['--cb_explore_adf', '--squarecb'], 0.5)
    """
    rest, text = [], ""
    left = iter(words)
    for word in left:
        if word == "--budget":
            text = next(left, "")
        elif word.startswith("--budget="):
            text = word.partition("=")[2]
        else:
            rest.append(word)
            continue
        try:
            budget = float(text)
        except ValueError:
            budget = 0.0
        if not 0.0 < budget < LARGEST_COST:
            raise OptionError(f"--budget takes a mean cost of a decision, a number above 0, not {text!r}")
    return rest, budget if text else None


class PacedPolicy(Workspace):
    """A workspace that holds a budget; it predicts like a service that learns each decision at once.

    It does not favour new actions.

    Parameters
    ----------
    configuration : Configuration
        The options of the policy.
    budget : float
        The mean cost of a decision.
    costs : LoggedCosts, optional
        The costs of the log that is evaluated, unless its blocks have them.
    """

    def __init__(self, configuration: Configuration, budget: float, costs: LoggedCosts | None = None) -> None:
        check_priced(configuration)
        super().__init__(configuration)
        self.budget, self.pacing, self._costs = budget, Pacing(), costs or LoggedCosts()
        task = self.learner.task
        self.learner.task = task._replace(exploration=inactive(task.exploration))

    def learn_block(self, block: Block, *, holdout: NDArray[np.bool_] | None = None) -> Outcomes:
        """Predict and learn the events of a block like `Workspace.learn_block`, with prices."""
        if not len(block):
            return super().learn_block(block, holdout=holdout)
        exploration = self.learner.task.exploration  # its arrays change while the block is learnt
        copies: Any = {name: array.copy() for name, array in arrays_of(exploration).items()}
        exploration, outcomes = exploration._replace(**copies), super().learn_block(block)
        starts = outcomes.action_start.tolist()
        for event, (begin, end) in enumerate(itertools.pairwise(starts)):
            self._explore(block, outcomes, event, slice(begin, end), exploration)
        return outcomes

    def _explore(
        self, block: Block, outcomes: Outcomes, event: int, actions: slice, exploration: Exploration
    ) -> None:
        """Replace the scores of an event by probabilities; let the price follow their expected cost."""
        costs = self._costs_of(block, event)
        action, row = outcomes.action[actions], outcomes.rows[event]
        scores = np.empty(len(action), np.float32)
        scores[action] = outcomes.score[actions]
        predicted = scores[row["known_action"]]
        prices = [self.pacing.price * cost for cost in costs or [0.0] * len(scores)]
        pmf = priced_pmf(self.configuration, exploration, scores, prices, np.ones_like(scores))
        outcomes.score[actions] = pmf[action]
        if outcomes.labelled[event]:
            cost, chance = row["known_cost"], pmf[row["known_action"]] / row["known_probability"]
            row["loss"] = cost * chance * outcomes.weight[event]
            self.pacing.reward(-float(cost))
            if not outcomes.outlier[event]:
                note_outcome(exploration, cost, predicted)
        if costs is not None:
            expected = float(np.dot(pmf, costs))
            self.pacing.pay(expected)
            self.pacing.follow(expected, spread=max(costs) - min(costs), budget=self.budget)

    def _costs_of(self, block: Block, event: int) -> list[float] | None:
        """Return the costs of the actions of an event; None if one of them is not known."""
        begin, end = block.event_start[event : event + 2].tolist()
        if block.action_costs is None:
            return self._costs.of(int(block.line_number[begin]))
        costs = block.action_costs[begin:end][~block.shared[begin:end]]
        return None if np.isnan(costs).any() else costs.tolist()
