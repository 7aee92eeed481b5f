"""Bandit logs that know the true reward of every action: as committed, or logged again by the same policy."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from datasets import logs
from datasets.convert import FOLDER
from datasets.fresh_sets import KEPT_BACK
from datasets.generate import stream
from datasets.table_sets import TABLE_SETS

GROUPS = {
    "tuned": ("penbased", "letter", "surveys", "flights", "diamonds", "planted"),
    "numbers": ("penbased-n", "letter-n", "surveys-n", "diamonds-n"),
    "development": ("satimage", "diseases", "routes"),
    "held-out": ("weather", "storms", "birds"),
    "fresh": ("alerts", "tuna"),
    "kept-back": KEPT_BACK,
    "tables": tuple(TABLE_SETS),
    "little-signal": ("null", "vary", "varied", "headlines", "swissmetro"),
    "many-actions": ("sixty", "hundred"),
    "vectors": ("route", "vector", "vector-null"),
    "long": ("clicks",),
    "ordered": ("book",),
}
"""The sets: those that the search was tuned on, the same with numbers for bins, those to develop with, those
to look at once, when all is done, tables (see `datasets.table_sets`), and sets that simple learners may learn
as well (`datasets.weak_sets`). `datasets.convert` makes those that are not committed."""

SETS = tuple(name for names in GROUPS.values() for name in names)
"""All sets."""

_KEPT = {"letter": 12_000, "flights": 30_000, "diamonds": 30_000}
"""First events that are used, where a directory has more than are committed."""
_PLANTED_EVENTS = 40_000
_PLANTED_NOISE = 100  # thousandths, see `datasets.bandit_streams.Planted`
_FIRST_SEED = 1000  # no seed from here on has shuffled the rows of a set
_LABEL = re.compile(rb"^\d+:\S+ (?=\|)", re.MULTILINE)
_REWARD = re.compile(rb"^\d+:-([^:]+):", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class BanditLog:
    """Logged events, and what is known of them."""

    name: str  # the set and how it was logged, such as penbased-u
    namespaces: str  # letters of those of the context
    events: tuple[bytes, ...]  # text without the empty line behind it
    rewards: NDArray[np.float64]  # [events, actions]: true ones
    actions: NDArray[np.int64]  # logged, from 0
    probabilities: NDArray[np.float64]  # of those
    observed: NDArray[np.float64]  # reward in the label
    noise: int = 0  # thousandths by which a reward in a label differs from the true one at most

    @property
    def set(self) -> str:
        """Name of the set."""
        return self.name.rpartition("-")[0]

    @property
    def action_namespaces(self) -> str:
        """Letters of the namespaces of an action."""
        line = unlabelled(self.events[0]).decode().split("\n")[1]
        return "".join(part[0] for part in line.split("|")[1:])

    @property
    def uniform(self) -> bool:
        """Return whether every action had the same probability."""
        return self.name.endswith("-u")


def names_in(directory: Path, sets: Iterable[str] = GROUPS["tuned"]) -> list[str]:
    """Logs of these sets that there are, the uniform ones first; `planted` is generated if need be."""
    names = [f"{name}-{how}" for how in "ue" for name in sets]
    return [name for name in names if name == "planted-u" or (directory / f"cb-{name}.npz").exists()]


def load(name: str, directory: Path = FOLDER) -> BanditLog:
    """Read a log; the planted one is generated if `directory` does not have it."""
    path = directory / f"cb-{name}.npz"
    if not path.exists() and name == "planted-u":
        return _planted()
    kept = _KEPT.get(name.rpartition("-")[0])
    with np.load(path) as truth, gzip.open(directory / f"cb-{name}.txt.gz") as text:
        rewards, actions = truth["R"][:kept], truth["a"][:kept]
        return BanditLog(
            name=name,
            namespaces=str(truth["ns"]),
            events=tuple(text.read().split(b"\n\n")[: len(rewards)]),
            rewards=rewards,
            actions=actions,
            probabilities=truth["p"][:kept],
            observed=rewards[np.arange(len(rewards)), actions],
        )


def _planted() -> BanditLog:
    chunks = list(stream("planted", events=_PLANTED_EVENTS, seed=1))
    events = tuple(b"".join(chunk.text for chunk in chunks).removesuffix(b"\n\n").split(b"\n\n"))
    actions = [chunk.actions for chunk in chunks if chunk.actions is not None]
    probabilities = [chunk.probabilities for chunk in chunks if chunk.probabilities is not None]
    return BanditLog(
        name="planted-u",
        namespaces="abcdefgh",
        events=events,
        rewards=np.concatenate([chunk.truth for chunk in chunks]),
        actions=np.concatenate(actions),
        probabilities=np.concatenate(probabilities),
        observed=np.array([_reward(event) for event in events]),
        noise=_PLANTED_NOISE,
    )


def _reward(event: bytes) -> float:
    found = _REWARD.search(event)
    assert found is not None
    return float(found[1])


def head(log: BanditLog, events: int) -> BanditLog:
    """Return the first events of a log."""
    return part(log, slice(events))


def part(log: BanditLog, events: slice) -> BanditLog:
    """Return some consecutive events of a log."""
    names = ("events", "rewards", "actions", "probabilities", "observed")
    return replace(log, **{name: getattr(log, name)[events] for name in names})


def unlabelled(event: bytes) -> bytes:
    """Return an event without its label."""
    return _LABEL.sub(b"", event)


def labelled(event: bytes, action: int, *, reward: float, probability: float) -> bytes:
    """Return an unlabelled event with a label added to the line of `action`."""
    lines = event.split(b"\n")
    lines[1 + action] = b"0:-%s:%s " % (b"%.4g" % reward, b"%.6g" % probability) + lines[1 + action]
    return b"\n".join(lines)


def drawn(log: BanditLog, seed: int) -> logs.Log:
    """Return a log in which the same policy draws by another seed.

    An ε-greedy policy takes the best actions of other events then, so its rule differs as well.
    """
    events, actions = log.rewards.shape
    with mock.patch.object(logs, "_SEED", seed):  # fixed there, as the committed files are
        if log.uniform:
            return logs.uniform(events, actions=actions)
        keys = [event.split(maxsplit=3)[2].decode() for event in log.events]
        return logs.epsilon_greedy(keys, log.rewards.argmax(axis=1), actions=actions)


def relogged(log: BanditLog, seed: int) -> BanditLog:
    """Return the events, logged again; seed 0 is the log itself."""
    if seed == 0:
        return log
    new = drawn(log, _FIRST_SEED + seed)
    halves = np.random.default_rng((seed, 1)).integers(
        -(log.noise // 2), log.noise // 2, (2, len(log.events)), endpoint=True
    )
    observed = log.rewards[np.arange(len(log.events)), new.actions] + halves.sum(axis=0) / 1000
    rows = zip(log.events, new.actions.tolist(), observed, new.probabilities, strict=True)
    events = tuple(labelled(unlabelled(e), a, reward=r, probability=p) for e, a, r, p in rows)
    return replace(
        log, events=events, actions=new.actions, probabilities=new.probabilities, observed=observed
    )


def write(log: BanditLog, path: Path) -> None:
    """Write the text of a log."""
    path.write_bytes(b"".join(event + b"\n\n" for event in log.events))
