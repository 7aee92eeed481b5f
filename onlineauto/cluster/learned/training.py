"""``imitate``, ``Learner`` and ``improve_policy``: train a policy by decisions and by rewards."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from onlineauto.cluster.learned.learned import Learned, read_arrays
from onlineauto.cluster.learned.net import (
    Adam,
    NetworkInputs,
    backward,
    draw_weights,
    features,
    forward,
    join_scores,
    scores,
)
from onlineauto.cluster.policies.baselines import Fair
from onlineauto.cluster.policies.policy import ClusterPolicy, allocate, best_choices
from onlineauto.cluster.policies.policy import scores as join
from onlineauto.cluster.policies.situation import LEAST_REMAINING, Row, Situation, demand_of
from onlineauto.cluster.policies.speeds import Speeds
from onlineauto.cluster.simulator.simulation import Simulation, mean_ratio, run
from onlineauto.cluster.simulator.workload import Traces, draw_traces
from onlineauto.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from onlineauto.cluster.history import History, Record
    from onlineauto.cluster.learned.learned import Improving, WarmUp
    from onlineauto.cluster.learned.net import Array
    from onlineauto.cluster.policies.situation import Bools, Floats, Ints
    from onlineauto.cluster.simulator.workload import Workload

_OUT_OF_PROPORTION: Final = 3
_CHECKED: Final = 16
"""Number of traces at each rate on which policies are compared."""
_JOBS: Final = 40
_SCALE: Final = 10.0
"""Scale of values; the reward of a job in a slot is about 0.1."""
_AT_ONCE: Final = 512
"""Number of slots of a history whose decisions are derived at once."""


class Decisions(NamedTuple):
    """Hold n decisions: the input of the network, the possible actions, and the chosen action."""

    jobs: Array
    cluster: Array
    valid: Bools
    choices: Bools
    actions: Ints

    @property
    def read(self) -> NetworkInputs:
        """The input of the network."""
        return NetworkInputs(self.jobs, self.cluster, self.valid)


class _Watched:
    """Collects the decisions of one slot of B clusters, until each of them has ended."""

    def __init__(self, read: Callable[[Situation], NetworkInputs], clusters: int) -> None:
        self._read = read
        self._ended = np.zeros(clusters, np.bool_)
        self.steps: list[Decisions] = []
        self.acts: list[Bools] = []  # bool[B] for each step: clusters whose slot had not ended before it.

    def watch(self, situation: Situation, choices: Bools, actions: Ints) -> None:
        """Record a decision of each cluster."""
        self.steps.append(Decisions(*self._read(situation), choices, actions))
        self.acts.append(~self._ended)
        self._ended |= actions == 3 * situation.places

    def made(self) -> Decisions:
        """Return all decisions between at least two choices."""
        chose = [act & (step.choices.sum(1) > 1) for act, step in zip(self.acts, self.steps, strict=True)]
        parts = ((array[rows] for array in step) for rows, step in zip(chose, self.steps, strict=True))
        made: Decisions = joined(Decisions._make(part) for part in parts)
        return made


def joined(parts: Iterable[Any]) -> Any:
    """Return one tuple of arrays for several ones."""
    many = [*parts]
    return many[0]._make(np.concatenate(arrays) for arrays in zip(*many, strict=True))


class Recorded(ClusterPolicy):
    """Allocate given numbers of workers and servers to each job, int64[B, J], the smallest share first."""

    name: ClassVar[str] = "recorded"

    def __init__(self, workers: Ints, servers: Ints) -> None:
        self._workers, self._servers = workers, servers

    def score(self, situation: Situation) -> Floats:
        """Return a higher score for a smaller share, and minus infinity for what was not allocated."""
        worker = situation.workers < self._workers
        server = situation.servers < self._servers
        score = -situation.shares()
        both = np.where(worker & server, score, -np.inf)
        one = [np.where(more & ~(worker & server), score, -np.inf) for more in (worker, server)]
        return join(one[0], one[1], both, -1e18)


def decisions_of(
    teacher: ClusterPolicy, workload: Workload, speeds: Speeds, seeds: range, jobs: int
) -> Decisions:
    """Return the decisions of a teacher in simulated clusters with at least two choices."""
    simulation = Simulation(draw_traces(workload, seeds, jobs=jobs))
    made = []
    while not simulation.is_done:
        watched = _Watched(partial(features, speeds=speeds), len(seeds))
        simulation.advance(allocate(teacher, simulation.situation(), watch=watched.watch))
        made.append(watched.made())
    result: Decisions = joined(made)
    return result


def recorded_decisions(history: History, *, places: int = 12) -> Decisions:
    """Return the decisions that give each job of a history what it had in each slot.

    The increments of a slot have the order in which `allocate` would give them, the smallest share first. A
    slot that left resources free ends with the decision "nothing more".
    """
    speeds = Speeds()
    speeds.observe(history.records)
    made = []
    pairs = [*_slots_of(history, places)]
    for begin in range(0, len(pairs), _AT_ONCE):
        situation = _stacked([pair[0] for pair in pairs[begin : begin + _AT_ONCE]])
        workers, servers = np.stack([pair[1] for pair in pairs[begin : begin + _AT_ONCE]], 1)
        watched = _Watched(partial(features, speeds=speeds), len(workers))
        allocate(Recorded(workers, servers), situation, watch=watched.watch)
        made.append(watched.made())
    decisions = joined(made) if made else None
    if decisions is None or not len(decisions.actions):
        raise InputError("the history has no slot in which a policy had a choice")
    result: Decisions = decisions
    return result


def _slots_of(history: History, places: int) -> Iterator[tuple[Situation, Ints]]:
    """Yield the situation of each slot, and the workers and servers of its jobs: int64[2, J]."""
    slots_: dict[int, list[Record]] = {}
    for record in history.records:
        slots_.setdefault(record.slot, []).append(record)
    for records in slots_.values():
        rows = [
            Row(
                kind=record.kind,
                age=max(record.slot - record.arrived, 0.0),
                done=record.before,
                remaining=max(record.total - record.before, LEAST_REMAINING),
                **demand_of(record),
            )
            for record in records
        ]
        yield Situation.of(rows, history.head.capacity, places=places), allocated(records, places)


def allocated(records: Sequence[Record], places: int) -> Ints:
    """Return the workers and the servers of the jobs of a slot: int64[2, places]."""
    sizes = np.zeros((2, places), np.int64)
    visible = records[:places]
    sizes[:, : len(visible)] = np.array([(record.workers, record.servers) for record in visible]).T
    return sizes


def _stacked(situations: Sequence[Situation]) -> Situation:
    """Return one batch of several situations."""
    kinds = tuple(sorted({kind for situation in situations for kind in situation.kinds}))
    arrays: dict[str, Any] = {}
    for field in fields(Situation):
        if field.name in ("kinds", "gpus"):
            continue
        arrays[field.name] = np.concatenate([getattr(situation, field.name) for situation in situations])
    arrays["kind"] = np.concatenate(
        [
            np.array([kinds.index(kind) for kind in situation.kinds])[situation.kind]
            for situation in situations
        ]
    )
    return Situation(kinds=kinds, **arrays)


def teacher_decisions(
    workload: Workload, teacher: ClusterPolicy, settings: WarmUp, *, seed: int
) -> Decisions:
    """Return the decisions of a teacher in simulated clusters of several rates of arrival."""
    many = settings.traces // len(settings.rates) + 1
    return joined(  # type: ignore[no-any-return]
        decisions_of(
            teacher,
            replace(workload, rate=workload.rate * rate),
            workload.speeds(),
            range(10_000 * (seed + 1) + many * number, 10_000 * (seed + 1) + many * (number + 1)),
            settings.jobs,
        )
        for number, rate in enumerate(settings.rates)
    )


def imitate(decisions: Decisions, settings: WarmUp, *, seed: int) -> Learned:
    """Return a policy that makes the same decisions, trained by cross entropy."""
    many = len(decisions.actions)
    target = settings.smoothing * decisions.choices / decisions.choices.sum(1, keepdims=True)
    target[np.arange(many), decisions.actions] += 1 - settings.smoothing
    policy = Learned.untrained(seed=seed)
    adam = Adam(policy.weights)
    draw = np.random.default_rng([0x3A, seed])
    for step in range(settings.steps):
        rows = draw.integers(many, size=settings.batch)
        part = Decisions._make(array[rows] for array in decisions)
        layers = forward(policy.weights, part.read)
        probability = np.exp(_log_softmax(join_scores(layers), part.choices))
        slope = (probability - target[rows]) / settings.batch
        gradient = backward(policy.weights, part.read, layers, *_split(slope))
        adam.step(gradient, settings.rate * (1 - 0.9 * step / settings.steps))
    return policy


def _log_softmax(score: Array, choices: Bools) -> Array:
    """Return the logarithm of the probability of each choice; other actions have about -1e9."""
    score = np.where(choices, score, -1e9)
    score = score - score.max(1, keepdims=True)
    result: Array = score - np.log(np.exp(score).sum(1, keepdims=True))
    return result


def _split(slope: Array) -> tuple[Array, Array]:
    """Return a gradient by scores, [B, 3J + 1], as gradients by the outputs of jobs and of clusters."""
    of_jobs = slope[:, :-1].reshape(len(slope), 3, -1).transpose(0, 2, 1)
    return of_jobs.astype(np.float32), slope[:, -1:].astype(np.float32)


def agreement(policy: Learned, decisions: Decisions) -> float:
    """Return the part of decisions in which a policy chooses the same action."""
    chosen = best_choices(scores(policy.weights, decisions.read), decisions.choices)
    return float((chosen == decisions.actions).mean())


class Sample(NamedTuple):
    """Hold n decisions of slots whose results are known."""

    jobs: Array
    cluster: Array
    valid: Bools
    choices: Bools
    actions: Ints
    logs: Array  # float32[n]: logarithm of the probability of the action.
    gain: Array  # float32[n]: target value minus estimated value.
    targets: Array  # float32[n, J]: target value of each job.

    @property
    def read(self) -> NetworkInputs:
        """The input of the networks."""
        return NetworkInputs(self.jobs, self.cluster, self.valid)


class _Sampling(ClusterPolicy):
    """Draw actions with the probabilities of a policy; sometimes correct a disproportion of a job."""

    name: ClassVar[str] = "sampling"

    def __init__(self, policy: Learned, explore: float, draw: np.random.Generator) -> None:
        self.policy, self.explore, self.draw = policy, explore, draw
        self.read: NetworkInputs

    def score(self, situation: Situation) -> Floats:
        """Return the scores plus Gumbel noise, so that the maximum is an action drawn from the softmax."""
        self.read = features(situation, self.policy.speeds)
        score = scores(self.policy.weights, self.read)
        noisy = score + self.draw.gumbel(size=score.shape)
        return np.where(self._short(situation), 1e6, noisy) if self.explore else noisy

    def last_read(self, _: Situation) -> NetworkInputs:
        """Return the input of the last scores."""
        return self.read

    def _short(self, situation: Situation) -> Bools:
        """Return the actions that add workers or servers to a job that has too few of them."""
        workers, servers = situation.workers, situation.servers
        begun = situation.takes_servers & (workers > 0)
        tries = self.draw.random((len(workers), 1)) < self.explore
        worker = tries & begun & (servers > _OUT_OF_PROPORTION * workers)
        server = tries & begun & (workers > _OUT_OF_PROPORTION * servers)
        return np.concatenate([worker, server, np.zeros_like(begun), np.zeros_like(tries)], 1)


class Learner:
    """Improves a policy by the progress of jobs in slots: an actor and a critic, with replay.

    The critic estimates the value of partial allocations: the expected progress of each job in this slot. The
    reward of a slot is a sum over jobs, and so is the value; each job trains its own part of the value.
    """

    def __init__(self, policy: Learned, settings: Improving, *, seed: int) -> None:
        self.settings, self.seed = settings, seed
        self.policy = policy
        if policy.critic is None:
            policy.critic = draw_weights(np.random.default_rng([0x1F, seed]), 1)
        self.actor, self.critic = Adam(policy.weights), Adam(policy.critic)
        self.replay: Sample | None = None
        self.size = 1.0
        self.slots = 0
        self.situation: Situation | None = None

    def tree(self) -> dict[str, Any]:
        """Return the state beside the weights as a tree of arrays and numbers."""
        adams = {"actor": self.actor, "adam_of_critic": self.critic}
        moments = {f"{name}_mean": adam.mean for name, adam in adams.items()}
        moments |= {f"{name}_square": adam.square for name, adam in adams.items()}
        counts = {"slots": self.slots, "size": self.size, "steps": [self.actor.steps, self.critic.steps]}
        replay = {} if self.replay is None else self.replay._asdict()
        return {**moments, **counts, "replay": replay}

    def restore(self, path: str | os.PathLike[str], tree: Mapping[str, Any]) -> None:
        """Continue with the state of a tree, and with the weights of the policy."""
        policy = self.policy
        assert policy.critic is not None
        self.actor, self.critic = Adam(policy.weights), Adam(policy.critic)
        for name, adam in {"actor": self.actor, "adam_of_critic": self.critic}.items():
            like = {key: array.shape for key, array in adam.weights.items()}
            adam.mean = read_arrays(path, tree, f"{name}_mean", like)
            adam.square = read_arrays(path, tree, f"{name}_square", like)
        try:
            self.actor.steps, self.critic.steps = tree["steps"]
            self.slots, self.size = tree["slots"], tree["size"]
            self.replay = Sample(**tree["replay"]) if tree["replay"] else None
            if self.replay is not None and len({len(array) for array in self.replay}) != 1:
                raise ValueError("the arrays of the replay differ in length")
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{os.fspath(path)}: not the state of a living policy: {error}") from error

    def observe(self, records: Sequence[Record]) -> bool:
        """Learn from the slot that has ended, whichever policy decided; return whether it was possible."""
        situation, self.situation = self.situation, None
        if situation is None:
            return False
        records = records[: situation.places]
        rows = situation.valid[0]
        before = np.array([record.before for record in records])
        if len(before) != rows.sum() or not np.array_equal(before, situation.done[0, rows]):
            return False
        workers, servers = allocated(records, situation.places)[:, None]
        watched = _Watched(partial(features, speeds=self.policy.speeds), 1)
        allocate(Recorded(workers, servers), situation, watch=watched.watch)
        reward = np.zeros(rows.shape)
        reward[: len(before)] = [_reward(record) for record in records]
        self.learn(watched, reward[None], self.settings.rate)
        return True

    def learn(self, watched: _Watched, reward: Floats, rate: float) -> None:
        """Add the decisions of a slot of B clusters with the progress of jobs, and take gradient steps."""
        settings = self.settings
        self._store(watched, reward)
        self.slots += 1
        assert self.replay is not None
        many = len(self.replay.actions)
        draw = np.random.default_rng([0x1F, self.seed, self.slots])
        for _ in range(settings.updates if many >= min(settings.batch, 64) else 0):
            rows = draw.integers(many, size=settings.batch)
            self._update(Sample._make(array[rows] for array in self.replay), rate)
        if not settings.replay:
            self.replay = None

    def _store(self, watched: _Watched, reward: Floats) -> None:
        """Estimate the value of every decision of a slot, and add the decisions to the replay."""
        steps, acts = watched.steps, np.stack(watched.acts)
        flat = joined(steps)
        valid = steps[0].valid
        shape = (len(steps), *valid.shape)
        values = forward(self.critic.weights, flat.read).of_jobs[..., 0].reshape(shape) * valid
        settings = self.settings
        trace, reward = settings.trace, _SCALE * reward * valid
        targets = np.empty_like(values)
        later = reward
        for step in range(len(steps) - 1, -1, -1):
            if step + 1 < len(steps):
                # In a cluster whose slot has ended, the value is the reward alone.
                mixed = trace * later + (1 - trace) * values[step + 1]
                later = np.where(acts[step + 1][:, None], mixed, reward)
            targets[step] = later
        gain = (targets - values).sum(2)
        logs = _log_softmax(scores(self.policy.weights, flat.read), flat.choices)
        logs = logs[np.arange(len(logs)), flat.actions]
        rows = acts.ravel()
        chose = rows & (flat.choices.sum(1) > 1)
        if chose.any():
            self.size = 0.95 * self.size + 0.05 * float(gain.ravel()[chose].std() + 1e-6)
        new = (logs, gain.ravel(), targets.reshape(len(rows), -1))
        sample = Sample._make(
            [*(array[rows] for array in flat), *(array[rows].astype(np.float32) for array in new)]
        )
        if self.replay is not None and self.replay.jobs.shape[1:] != sample.jobs.shape[1:]:
            self.replay = None  # of a cluster with another number of places
        kept = sample if self.replay is None else joined([self.replay, sample])
        most = max(settings.replay, len(sample.actions))
        self.replay = Sample._make(array[-most:] for array in kept)

    def _update(self, sample: Sample, rate: float) -> None:
        """Take a gradient step of the policy and of the critic."""
        settings, many = self.settings, len(sample.actions)
        weights = self.actor.weights
        layers = forward(weights, sample.read)
        logs = _log_softmax(join_scores(layers), sample.choices)
        probability = np.exp(logs)
        picked = np.arange(many), sample.actions
        ratio = np.exp(np.clip(logs[picked] - sample.logs, -5, 5))
        advantage = np.clip(sample.gain / self.size, -5, 5)
        # The loss is constant where the probability has changed by more than `clip` (PPO).
        clipped = np.where(advantage > 0, ratio > 1 + settings.clip, ratio < 1 - settings.clip)
        push = np.where(clipped, 0.0, ratio * advantage)[:, None]
        slope = push * probability
        slope[picked] -= push[:, 0]
        logs = np.maximum(logs, -50)
        entropy = -(probability * logs).sum(1, keepdims=True)
        slope += settings.entropy * probability * (logs + entropy)
        self.actor.step(backward(weights, sample.read, layers, *_split(slope / many)), rate, clip=1.0)
        layers = forward(self.critic.weights, sample.read)
        error = (layers.of_jobs[..., 0] - sample.targets) * sample.valid
        slope = (2 * error / max(sample.valid.sum(), 1))[..., None].astype(np.float32)
        nothing = np.zeros((many, 1), np.float32)
        self.critic.step(
            backward(self.critic.weights, sample.read, layers, slope, nothing), settings.critic_rate
        )


def _reward(record: Record) -> float:
    """Return the part of a job that was done in a slot; for an endless stream, of the events that waited."""
    whole = record.total - record.before * record.endless
    return (record.done - record.before) / whole if whole > 0 else 0.0


def improve_policy(policy: Learned, workload: Workload, settings: Improving, *, seed: int) -> Learned:
    """Train a policy on simulated clusters; return the better one of the old and the new policy."""
    judge = _Judge(workload, settings)
    best = policy.copy(workload.speeds())
    least = judge.ratio(best)
    learner = Learner(policy.copy(workload.speeds()), settings, seed=seed)
    draw = np.random.default_rng([0x2E, seed])
    rewards: list[Floats] = []
    simulation = None
    for slot in range(settings.slots):
        if slot % settings.episode == 0:
            simulation = Simulation(_traces(workload, settings, seed * 1000 + slot // settings.episode))
        assert simulation is not None
        sampling = _Sampling(learner.policy, settings.explore, draw)
        watched = _Watched(sampling.last_read, settings.clusters)
        done = simulation.advance(allocate(sampling, simulation.situation(), watch=watched.watch))
        reward = done.progress / np.maximum(done.total, 1e-12)
        if settings.permuted:
            rewards = [*rewards[-31:], reward]
            reward = rewards[draw.integers(len(rewards))]
            reward = draw.permuted(reward[draw.permutation(len(reward))], axis=1)
        learner.learn(watched, reward, settings.rate * (1 - 0.8 * slot / settings.slots))
        if (slot + 1) % settings.check == 0:
            ratio = judge.ratio(learner.policy)
            if ratio < least:
                best, least = learner.policy.copy(), ratio
    return Learned(best.weights, learner.policy.critic, policy.speeds)


def _traces(workload: Workload, settings: Improving, seed: int) -> Traces:
    """Draw traces of all rates in one batch, with enough jobs for an episode."""
    drawn = []
    rates = settings.rates
    fastest = workload.rate * max(rates)
    jobs = int(1.5 * fastest * settings.episode) + 10
    for number in range(settings.clusters):
        one = replace(workload, rate=workload.rate * rates[number % len(rates)])
        drawn.append(draw_traces(one, [1_000_000 + settings.clusters * seed + number], jobs=jobs))
    arrays = {
        name: np.concatenate([getattr(traces, name) for traces in drawn])
        for name in ("arrival", "kind", "work", "noise")
    }
    return Traces(workload=workload, **arrays)


class _Judge:
    """Compare policies on the same traces, which are not used for training."""

    def __init__(self, workload: Workload, settings: Improving) -> None:
        self._traces = [
            draw_traces(
                replace(workload, rate=workload.rate * rate),
                range(900_000, 900_000 + _CHECKED),
                jobs=_JOBS,
            )
            for rate in sorted({*settings.rates})
        ]
        self._fair = [run(Fair(), traces).mean for traces in self._traces]

    def ratio(self, policy: ClusterPolicy) -> float:
        """Return the mean completion time relative to `Fair`, averaged over rates."""
        ratios = [
            mean_ratio(run(policy, traces, most_slots=1000).mean, fair)[0]
            for traces, fair in zip(self._traces, self._fair, strict=True)
        ]
        return float(np.mean(ratios))
