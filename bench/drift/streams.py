"""Bandit streams in VW's text format whose best interactions change, or never do, and their truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.speed.workers import VW_WORKER, Worker
from datasets.chunks import BLOCK, Chunk, Stream, bandit_chunk
from datasets.draws import Draws
from datasets.spelling import counting, side_by_side, words
from onlineauto import Workspace
from onlineauto.automl.decisions import Decision, PredictWith
from onlineauto.engine.search.journal import Promotion, decision_of


@dataclass(frozen=True, slots=True)
class Text:
    """A whole stream, and the mean rewards of all actions: float64[events, actions]."""

    text: bytes
    truth: NDArray[np.float64]

    def __len__(self) -> int:
        """Count the events."""
        return len(self.truth)


def written(stream: Stream, events: int) -> Text:
    """Return the first events of a stream."""
    chunks = [stream.block(start // BLOCK, min(BLOCK, events - start)) for start in range(0, events, BLOCK)]
    return Text(b"".join(chunk.text for chunk in chunks), np.concatenate([chunk.truth for chunk in chunks]))


def _chunk(
    take: int,
    letters: bytes,
    context: NDArray[np.int64],
    means: NDArray[np.int64],
    draws: Draws,
    *,
    binary: bool,
) -> Chunk:
    """Log each event uniformly, and write it: a category for each letter, the number of the action in ``Z``.

    Rewards are 0 or 1, or have noise in [-0.2, 0.2].
    """
    n_actions = means.shape[1]
    logged = draws.integers(n_actions, (BLOCK,))
    own = means[np.arange(BLOCK), logged]
    if binary:
        rewards = np.where(draws.integers(1000, (BLOCK,)) < own, 1000, 0)
    else:
        rewards = own + draws.around_zero(100, (2, BLOCK)).sum(axis=0)
    names = words([b"|%c " % letter for letter in letters])
    shared = side_by_side(names, counting(int(context.max()) + 1)[context], b" ")
    return bandit_chunk(
        take=take,
        shared=shared.reshape(BLOCK, -1)[:, :-1],
        actions=side_by_side(b"|Z ", counting(n_actions))[np.newaxis],
        means=means,
        rewards=rewards,
        logged=logged,
        probabilities=np.full(BLOCK, 1000 // n_actions),
    )


class Regimes:
    """8 actions; shared ``a``-``f``, one category of 6 values each; what pays changes from time to time.

    The mean reward is 0.5 plus a table, in [-0.3, 0.3], of the two namespaces of the regime and the action.
    """

    number: ClassVar[int] = 101
    letters: ClassVar[bytes] = b"abcdef"

    def __init__(self, seed: int, *, pairs: tuple[str, ...], length: int) -> None:
        self._seed, self._length = seed, length
        draws = Draws(seed, stream=self.number)
        self._tables = draws.around_zero(300, (2, 6, 6, 8))
        self._which = np.array([("ab", "cd").index(pair) for pair in pairs])

    def block(self, index: int, take: int) -> Chunk:
        """Return the first `take` events of the block `index`."""
        draws = Draws(self._seed, stream=self.number, block=index)
        context = draws.integers(6, (BLOCK, len(self.letters)))
        regime = (index * BLOCK + np.arange(BLOCK)) // self._length
        which = self._which[np.minimum(regime, len(self._which) - 1)]
        first, second = (context[np.arange(BLOCK), 2 * which + place] for place in (0, 1))
        means = 500 + self._tables[which, first, second]
        return _chunk(take, self.letters, context, means, draws, binary=False)


class Light:
    """4 actions; shared ``a``-``c``, one category of 4 values each; rewards of 0 or 1; nothing ever changes.

    The mean reward is 0.5 plus a table, in [-0.2, 0.2], of ``a`` and the action; or 0.5, if nothing pays.
    """

    number: ClassVar[int] = 102
    letters: ClassVar[bytes] = b"abc"

    def __init__(self, seed: int, *, pays: bool) -> None:
        self._seed = seed
        draws = Draws(seed, stream=self.number)
        self._table = draws.around_zero(200 if pays else 0, (4, 4))

    def block(self, index: int, take: int) -> Chunk:
        """Return the first `take` events of the block `index`."""
        draws = Draws(self._seed, stream=self.number, block=index)
        context = draws.integers(4, (BLOCK, len(self.letters)))
        return _chunk(take, self.letters, context, 500 + self._table[context[:, 0]], draws, binary=True)


VW = {"VW": (), "VW qbase_cubic": ("--oracle_type", "qbase_cubic")}
"""Searches of VW: by default among pairs, or beginning with all pairs and adding interactions of three."""
Interactions = tuple[tuple[bytes, ...], ...]
"""Names of namespaces."""


@dataclass(frozen=True, slots=True)
class Search:
    """The decisions and rewards of a search."""

    changes: list[Promotion]  # changes of champion
    # true mean reward of the action that the champion thought best, before it learnt the event
    rewards: NDArray[np.float64]
    alarms: int | None  # drift alarms, if there is a drift detector
    last: Interactions  # those of the last champion

    def champion_at(self, events: int) -> Interactions:
        """Return the interactions of the champion after `events` events."""
        return next((change.before for change in self.changes if change.events > events), self.last)


@dataclass(frozen=True, slots=True)
class Learnt:
    """The rewards and losses of a fixed config."""

    rewards: NDArray[np.float64]  # true mean reward of the action that it thought best
    # squared error of its predictions of the mean rewards, averaged over the actions
    losses: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spell:
    """Events that the ensemble predicts, what decided on it, and what it truly adds to reward and to loss."""

    begin: int
    end: int
    by: str
    reward: float
    loss: float

    @property
    def worse(self) -> bool:
        """Return whether the champion would have done as well, by the deciding measure."""
        return self.loss >= 0 if self.by == "loss" else self.reward <= 0


def search(text: Text, **options: Any) -> Search:
    """Run ``--automl 4`` over a stream."""
    workspace = Workspace(cb_explore_adf=True, automl=4, **options)
    searching = workspace.searching
    best: list[NDArray[np.int32]] = []
    changes: list[Promotion] = []
    for _, outcomes in workspace.stream(text.text):
        best.append(outcomes.action[outcomes.action_start[:-1]])
        new = searching.n_switches - len(changes)
        if new > len(searching.changes):
            raise RuntimeError(f"{new} changes of champion in one block are more than are kept")
        changes += list(searching.changes)[len(searching.changes) - new :]
    rewards = text.truth[np.arange(len(text)), np.concatenate(best)]
    return Search(changes, rewards, getattr(searching, "n_alarms", None), tuple(searching.interactions(0)))


def fixed(text: Text, interactions: Interactions, settings: tuple[tuple[str, float], ...] = ()) -> Learnt:
    """Learn a stream with interactions of namespaces that have one letter each."""
    options: dict[str, Any] = dict(settings)
    return _learnt(text, Workspace(cb_adf=True, interactions=spelt(interactions), **options))


def _learnt(text: Text, workspace: Workspace) -> Learnt:
    """Learn a stream with a workspace that shows what it predicts."""
    outcomes = [each for _, each in workspace.stream(text.text)]
    action = np.concatenate([each.action for each in outcomes]).reshape(text.truth.shape)
    cost = np.concatenate([each.score for each in outcomes]).astype(np.float64).reshape(text.truth.shape)
    truth = np.take_along_axis(text.truth, action, axis=1)
    return Learnt(truth[:, 0], ((cost + truth) ** 2).mean(axis=1))


def spells(text: Text) -> list[Spell]:
    """Return when the ensemble predicts in ``--automl 4``, and what that adds to its champion."""
    workspace = Workspace(cb_adf=True, automl=4, predict_with="ensemble")
    told: list[tuple[int, Decision]] = []
    workspace.observe(lambda entry: told.append((entry.events, decision_of(entry))))
    ensemble = _learnt(text, workspace)
    champion = _learnt(text, Workspace(cb_adf=True, automl=4, predict_with="champion"))
    switches = [(events, decision) for events, decision in told if isinstance(decision, PredictWith)]
    ends = [*(events for events, _ in switches[1:]), len(text)]
    return [
        Spell(
            begin,
            end,
            decision.by,
            float((ensemble.rewards - champion.rewards)[begin:end].mean()),
            float((ensemble.losses - champion.losses)[begin:end].mean()),
        )
        for (begin, decision), end in zip(switches, ends, strict=False)
        if decision.who == "ensemble" and end > begin
    ]


def spelt(interactions: Interactions) -> list[str]:
    """Spell interactions as ``--interactions`` does.

    >>> spelt(((b"Z", b"a"), (b"Z", b"a", b"b")))
    ['Za', 'Zab']
    """
    return [b"".join(each).decode() for each in interactions]


def vw_changes(text: Text, flags: tuple[str, ...], *, directory: Path) -> list[int]:
    """After how many events VW's search changed its champion; by its ``--csv_trace``."""
    (directory / "stream.txt").write_bytes(text.text)
    words = ["--cb_explore_adf", "--automl", "4", *flags, "--csv_trace", "--quiet", "-d", "stream.txt"]
    with Worker(VW_WORKER) as worker:
        worker.ask(argv=words, directory=str(directory))
    [trace] = directory.glob("*.champ_change.csv")
    lines = trace.read_text(encoding="utf-8").splitlines()
    return [int(line.split(",")[1]) for line in lines if line.startswith("CHAMP_SWITCH")]
