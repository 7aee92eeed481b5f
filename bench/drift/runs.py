"""Runs over streams whose truth is known: the search and fixed configs, and VW's search beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.drift.streams import Text
from bench.speed.workers import WHEEL_WORKER, Worker
from onlineauto import Workspace
from onlineauto.automl.decisions import Decision, PredictWith
from onlineauto.engine.search.journal import Promotion, decision_of

VW = {"VW": (), "VW qbase_cubic": ("--oracle_type", "qbase_cubic")}
"""Searches of VW: by default among pairs, or beginning with all pairs and adding interactions of three."""

Interactions = tuple[tuple[bytes, ...], ...]
"""Names of namespaces."""


@dataclass(frozen=True, slots=True)
class Search:
    """What a search did."""

    changes: list[Promotion]  # changes of champion
    # true mean reward of the action that the champion thought best, before it learnt the event
    rewards: NDArray[np.float64]
    alarms: int | None  # drift alarms, if there is a drift detector
    last: Interactions  # those of the last champion

    def champion_at(self, events: int) -> Interactions:
        """Interactions of the champion after so many events."""
        return next((change.before for change in self.changes if change.events > events), self.last)


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a fixed config earned and missed."""

    rewards: NDArray[np.float64]  # true mean reward of the action that it thought best
    # squared error of its predictions of the mean rewards, averaged over the actions
    losses: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spell:
    """Events that the stack predicts, what decided on it, and what it truly adds to reward and to loss."""

    begin: int
    end: int
    by: str
    reward: float
    loss: float

    @property
    def worse(self) -> bool:
        """Whether the champion would have done as well, by what decided."""
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
    """Return when the stack predicts in ``--automl 4``, and what that adds to its champion."""
    workspace = Workspace(cb_adf=True, automl=4, predict_with="stack")
    told: list[tuple[int, Decision]] = []
    workspace.observe(lambda entry: told.append((entry.events, decision_of(entry))))
    stack = _learnt(text, workspace)
    champion = _learnt(text, Workspace(cb_adf=True, automl=4, predict_with="champion"))
    switches = [(events, decision) for events, decision in told if isinstance(decision, PredictWith)]
    ends = [*(events for events, _ in switches[1:]), len(text)]
    return [
        Spell(
            begin,
            end,
            decision.by,
            float((stack.rewards - champion.rewards)[begin:end].mean()),
            float((stack.losses - champion.losses)[begin:end].mean()),
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
    with Worker(WHEEL_WORKER) as worker:
        worker.ask(argv=words, directory=str(directory))
    [trace] = directory.glob("*.champ_change.csv")
    lines = trace.read_text(encoding="utf-8").splitlines()
    return [int(line.split(",")[1]) for line in lines if line.startswith("CHAMP_SWITCH")]
