"""Rewards of learning in partitions, compared with one learner, on streams with and without a change.

``python -m bench.partitions --designs 0 1 2 --partitions 4 16`` prints the true mean reward of the
first action of each ranking over the second half of each stream: for one learner, and as differences.
It also prints the ratio of CPU time. Designs differ in actions, items, namespaces, rewards, noise and logging
policy. Each design is run without a change, and with an abrupt change half-way: effects are drawn again,
rewards of groups are swapped, or the items that pay best have no reward.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench import kit
from onlineauto import Workspace
from onlineauto.cluster.partitions.run import PartitionedRun
from onlineauto.workspace.run import Run

OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "automl": 4}
CHANGES = ("effects", "swap", "death")
KINDS = ("click", "logistic", "graded")
_BLOCK = 4096


class Design(NamedTuple):
    """The distribution of a stream."""

    kind: str  # of reward
    change: str
    actions: int  # of each event
    items: int
    groups: int  # of items
    users: int
    segments: int  # of users
    devices: int  # 0 for no such namespace
    has_hour: bool  # a number that interacts with the group of the item
    has_price: bool
    own: float  # effect of the item
    crossed: float  # effect of segment and group
    noise: float  # of graded rewards
    prefers: float  # of the logging policy, for items of a fixed taste


def design_of(number: int) -> Design:
    """Return the design with a number."""
    draw = np.random.default_rng([number, 1])
    actions = int(draw.choice([3, 5, 8, 12]))
    fixed = bool(draw.random() < 0.3)
    return Design(
        kind=KINDS[number % 3],
        change=CHANGES[(number // 3 + number) % 3],
        actions=actions,
        items=actions if fixed else int(draw.integers(2 * actions, 80)),
        groups=int(draw.integers(3, 9)),
        users=int(draw.choice([30, 200, 2000])),
        segments=int(draw.integers(3, 9)),
        devices=int(draw.choice([0, 3, 5])),
        has_hour=bool(draw.random() < 0.5),
        has_price=bool(draw.random() < 0.5),
        own=float(draw.uniform(0.2, 0.8)),
        crossed=float(draw.uniform(0.3, 1.0)),
        noise=float(draw.uniform(0.1, 0.4)),
        prefers=float(draw.choice([0.0, 1.0])),
    )


class _Effects:
    """Effects on the score of an item for a user, standard normal before their scale."""

    def __init__(self, design: Design, draw: np.random.Generator) -> None:
        self.design = design
        self.item = design.own * draw.standard_normal(design.items)
        self.crossed = design.crossed * draw.standard_normal((design.segments, design.groups))
        self.device = 0.3 * draw.standard_normal((max(design.devices, 1), design.groups))
        self.hour = 0.4 * draw.standard_normal(design.groups) * design.has_hour
        self.price = -0.3 * design.has_price
        self.dead = np.zeros(design.items, np.bool_)

    def change(self, draw: np.random.Generator) -> _Effects:
        """Return the effects after the change of the design."""
        new, design = _Effects(self.design, draw), self.design
        if design.change == "effects":
            return new
        new.item, new.crossed, new.device, new.hour = self.item, self.crossed, self.device, self.hour
        if design.change == "swap":
            new.crossed, new.item = np.roll(self.crossed, 1, axis=0), self.item[::-1]
        else:
            new.dead[np.argsort(self.item)[-max(design.items // 6, 1) :]] = True
        return new


def write_stream(path: Path, number: int, events: int, *, changes: bool) -> NDArray[np.float64]:
    """Write the events of a design; return the true mean reward of each action, float64[events, actions]."""
    design, draw = design_of(number), np.random.default_rng([number, 2])
    effects = before = _Effects(design, draw)
    after = before.change(np.random.default_rng([number, 3]))
    group = draw.integers(design.groups, size=design.items)
    segment = draw.integers(design.segments, size=design.users)
    price, taste = draw.random(design.items), design.prefers * draw.standard_normal(design.items)
    lines = [
        f"|i i{i} |g g{group[i]}" + (f" |p p:{price[i]:.3f}" if design.has_price else "")
        for i in range(design.items)
    ]
    truth = []
    with path.open("w") as file:
        for begin in range(0, events, _BLOCK):
            if changes and begin >= events // 2:
                effects = after
            n, k = min(_BLOCK, events - begin), design.actions
            user, hour = draw.integers(design.users, size=n), draw.random(n)
            device = draw.integers(max(design.devices, 1), size=n)
            items = np.argsort(draw.random((n, design.items)), axis=1)[:, :k]
            score = effects.item[items] + effects.crossed[segment[user][:, None], group[items]]
            score += effects.device[device[:, None], group[items]]
            score += effects.hour[group[items]] * (2 * hour[:, None] - 1) + effects.price * price[items]
            if design.kind == "graded":
                mean = 0.5 + 0.15 * score
            else:
                mean = 1 / (1 + np.exp(-score + (3.8 if design.kind == "click" else 0.5)))
            mean[effects.dead[items]] = 0.0
            odds = np.exp(taste[items]) / np.exp(taste[items]).sum(axis=1, keepdims=True)
            odds = 0.5 * odds + 0.5 / k
            logged = (odds.cumsum(axis=1) < draw.random((n, 1))).sum(axis=1).clip(max=k - 1)
            own = mean[np.arange(n), logged]
            noise = design.noise * draw.standard_normal(n)
            reward = own + noise if design.kind == "graded" else (draw.random(n) < own).astype(float)
            truth.append(mean)
            texts = []
            for e, (of, at, p) in enumerate(zip(items.tolist(), logged.tolist(), odds.tolist(), strict=True)):
                shared = f"shared |u u{user[e]} |s s{segment[user[e]]}"
                if design.devices:
                    shared += f" |d d{device[e]}"
                if design.has_hour:
                    shared += f" |h h:{hour[e]:.3f}"
                actions = [lines[i] for i in of]
                actions[at] = f"0:{-reward[e]:.4g}:{p[at]:.4f} {actions[at]}"
                texts.append("\n".join([shared, *actions, "", ""]))
            file.write("".join(texts))
    return np.concatenate(truth)


class Earned(NamedTuple):
    """True rewards of the first action of each ranking, and CPU seconds."""

    rewards: NDArray[np.float64]
    seconds: float


def earned(path: Path, truth: NDArray[np.float64], partitions: int) -> Earned:
    """Return the reward of `partitions`, or of one learner with 0."""
    workspace, begin = Workspace(**OPTIONS), time.process_time()
    run = PartitionedRun(workspace, path, partitions=partitions) if partitions else Run(workspace, path)
    with run if isinstance(run, PartitionedRun) else nullcontext():
        first = np.concatenate([outcomes.action[outcomes.rows["action_start"]] for _, outcomes in run])
    return Earned(truth[np.arange(len(truth)), first], time.process_time() - begin)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table."""
    given = kit.parser(
        __doc__,
        events=400_000,
        designs=list(range(10)),
        partitions=[4, 16],
        changes=kit.Option([0, 1], "0: none, 1: half-way"),
    ).parse_args(arguments)
    titles = " | ".join(f"{n}: difference, CPU" for n in given.partitions)
    columns = 3 + len(given.partitions)
    print(f"| design | change | one learner, best | {titles} |\n|{'---|' * columns}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "events.txt")
        for changes in given.changes:
            for number in given.designs:
                design = design_of(number)
                truth = write_stream(path, number, given.events, changes=bool(changes))
                one, later = earned(path, truth, 0), slice(given.events // 2, None)
                cells = [f"{number} {design.kind}", design.change if changes else "none"]
                cells.append(f"{one.rewards[later].mean():.4f}, {truth[later].max(axis=1).mean():.4f}")
                for n in given.partitions:
                    other = earned(path, truth, n)
                    difference = other.rewards[later].mean() - one.rewards[later].mean()
                    cells.append(f"{difference:+.4f}, {other.seconds / one.seconds:.2f}")
                print(f"| {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
