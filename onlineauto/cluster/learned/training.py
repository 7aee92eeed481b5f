"""``imitate`` and ``improve_policy``: train a policy in simulated clusters, by a teacher or by rewards."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from onlineauto.cluster.learned.learned import Learned
from onlineauto.cluster.learned.net import NetworkInputs, draw_weights, features
from onlineauto.cluster.policies.baselines import Fair
from onlineauto.cluster.policies.policy import ClusterPolicy, allocate, best_choices
from onlineauto.cluster.simulator.simulation import Simulation, mean_ratio, run, slots
from onlineauto.cluster.simulator.workload import Traces, draw_traces
from onlineauto.errors import OptionError, install_hint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from onlineauto.cluster.learned.learned import Improving, WarmUp
    from onlineauto.cluster.learned.net import Weights
    from onlineauto.cluster.policies.situation import Bools, Floats, Ints, Situation
    from onlineauto.cluster.simulator.workload import Workload

_OUT_OF_PROPORTION: Final = 3
_CHECKED: Final = 16
"""Number of traces at each rate on which policies are compared."""
_JOBS: Final = 40
_SCALE: Final = 10.0
"""Scale of values; the reward of a job in a slot is about 0.1."""
_WIDTH: Final = 64
_OF_POLICY: Final = ("mean_out", "cluster_out", "nothing_out")
"""Outputs of the cluster, which a critic does not use."""

Decisions = tuple["Floats", "Floats", "Bools", "Bools", "Ints"]
"""Features of jobs, of clusters, valid rows, choices and actions, all with one row for each decision."""
Tensor = Any


def require_torch() -> Any:
    """Return the module ``torch``."""
    try:
        import torch
    except ImportError:
        raise OptionError(f"training a policy needs PyTorch: {install_hint('learned')}") from None
    return torch


def as_tensors(weights: Weights) -> dict[str, Tensor]:
    """Return copies of weights that have gradients."""
    torch = require_torch()
    return {
        name: torch.tensor(array, dtype=torch.float32, requires_grad=True) for name, array in weights.items()
    }


def as_weights(tensors: Mapping[str, Tensor]) -> Weights:
    """Return weights as arrays of NumPy."""
    return {name: tensor.detach().numpy().astype(np.float64) for name, tensor in tensors.items()}


def forward(
    weights: Mapping[str, Tensor], jobs: Tensor, cluster: Tensor, valid: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the outputs of `Net` in PyTorch, with gradients, for each job and for the cluster."""
    mask = valid[..., None].to(jobs.dtype)
    many = mask.sum(1).clamp(min=1)
    first = (
        jobs @ weights["job_in"] + (cluster @ weights["cluster_in"] + weights["bias_in"])[:, None]
    ).relu()
    mean = (first * mask).sum(1) / many
    context = mean @ weights["mean"] + cluster @ weights["cluster"] + weights["bias"]
    second = (first @ weights["job"] + context[:, None]).relu()
    average = (second * mask).sum(1) / many
    of_cluster = average @ weights["mean_out"] + cluster @ weights["cluster_out"] + weights["nothing_out"]
    return second @ weights["job_out"] + weights["bias_out"], of_cluster


def log_probabilities(
    weights: Mapping[str, Tensor], jobs: Tensor, cluster: Tensor, valid: Tensor, choices: Tensor
) -> Tensor:
    """Return the logarithm of the probability of each action, [B, 3J + 1]; impossible actions have -1e9."""
    of_jobs, of_cluster = forward(weights, jobs, cluster, valid)
    scores = of_jobs.transpose(1, 2).flatten(1)
    torch = require_torch()
    scores = torch.cat([scores, of_cluster], 1).masked_fill(~choices, -1e9)
    return scores.log_softmax(1)


def scales_of(workload: Workload) -> Floats:
    """Return the number of slots of a unit of work with one bundle, for each kind and for other kinds."""
    speeds = workload.speeds()
    times = [float(speeds.time_per_unit(kind.name, 1, 1 if kind.server else 0)) for kind in workload.kinds]
    return np.array([*times, float(np.exp(np.mean(np.log(times))))])


def decisions_of(
    teacher: ClusterPolicy,
    workload: Workload,
    kinds: tuple[str, ...],
    scales: Floats,
    seeds: range,
    jobs: int,
) -> Decisions:
    """Return the decisions of a teacher in simulated clusters with at least two choices."""
    decisions: list[tuple[Floats, Floats, Bools, Bools, Ints]] = []
    simulation = Simulation(draw_traces(workload, seeds, jobs=jobs))
    nothing = 3 * workload.places
    ended = np.zeros(len(seeds), np.bool_)

    def watch(situation: Situation, choices: Bools, actions: Ints) -> None:
        chose = ~ended & (choices.sum(1) > 1)
        read = features(situation, kinds, scales)
        decisions.append(
            (read.jobs[chose], read.cluster[chose], read.valid[chose], choices[chose], actions[chose])
        )
        ended[:] |= actions == nothing

    for _ in slots(teacher, simulation, watch_actions=watch):
        ended[:] = False
    jobs_, cluster, valid, choices, actions = (
        np.concatenate(arrays) for arrays in zip(*decisions, strict=True)
    )
    return jobs_, cluster, valid, choices, actions


def imitate(workload: Workload, teacher: ClusterPolicy, settings: WarmUp, *, seed: int) -> Learned:
    """Return a policy that imitates the decisions of a teacher; see `Learned.warm_up`."""
    torch = require_torch()
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    kinds, scales = workload.names, scales_of(workload)
    many = max(1, settings.traces // len(settings.rates))
    parts = [
        decisions_of(
            teacher,
            replace(workload, rate=workload.rate * rate),
            kinds,
            scales,
            range(10_000 * (seed + 1) + many * number, 10_000 * (seed + 1) + many * (number + 1)),
            settings.jobs,
        )
        for number, rate in enumerate(settings.rates)
    ]
    jobs, cluster, valid, choices, actions = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    target = np.zeros(choices.shape)
    target[np.arange(len(actions)), actions] = 1 - settings.smoothing
    target += settings.smoothing * choices / choices.sum(1, keepdims=True)
    policy = Learned.untrained(kinds, scales, seed=seed)
    weights = as_tensors(policy.net.weights)
    tensors = [torch.from_numpy(np.asarray(array, np.float32)) for array in (jobs, cluster)]
    masks = [torch.from_numpy(mask) for mask in (valid, choices)]
    targets = torch.from_numpy(target.astype(np.float32))
    steps = torch.optim.Adam(list(weights.values()), lr=settings.rate)
    draw = np.random.default_rng([0x3A, seed])
    for step in range(settings.steps):
        for group in steps.param_groups:
            group["lr"] = settings.rate * (1 - 0.9 * step / settings.steps)
        batch = torch.from_numpy(draw.integers(len(actions), size=settings.batch))
        logs = log_probabilities(weights, *(tensor[batch] for tensor in (*tensors, *masks)))
        loss = -(targets[batch] * logs).sum(1).mean()
        steps.zero_grad()
        loss.backward()
        steps.step()
    return Learned(kinds, scales, as_weights(weights))


def agreement(policy: Learned, decisions: Decisions) -> float:
    """Return the part of decisions in which a policy chooses the same action as the teacher."""
    jobs, cluster, valid, choices, actions = decisions
    scores = policy.net.scores(NetworkInputs(jobs, cluster, valid))
    return float((best_choices(scores, choices) == actions).mean())


class Sample(NamedTuple):
    """Hold n decisions."""

    jobs: NDArray[np.float32]  # The input of the network, the possible actions, and the chosen action.
    cluster: NDArray[np.float32]
    valid: Bools
    choices: Bools
    actions: Ints
    logs: NDArray[np.float32]  # float32[n]: logarithm of the probability of the action.
    gain: NDArray[np.float32]  # float32[n]: target value minus estimated value.
    targets: NDArray[np.float32]  # float32[n, J]: target value of each job.


class Replay:
    """A buffer of the last decisions."""

    def __init__(self, most: int, draw: np.random.Generator) -> None:
        self._most, self._draw = most, draw
        self._parts: list[Sample] = []
        self._all: Sample | None = None

    def __len__(self) -> int:
        return sum(len(part.actions) for part in self._parts)

    def add(self, sample: Sample) -> None:
        """Add decisions, and drop the oldest ones beyond the maximum."""
        self._parts.append(sample)
        while len(self._parts) > 1 and len(self) - len(self._parts[0].actions) >= self._most:
            del self._parts[0]
        self._all = None

    def clear(self) -> None:
        """Drop all decisions."""
        self._parts, self._all = [], None

    def sample(self, count: int) -> Sample:
        """Draw `count` decisions with replacement."""
        if self._all is None:
            self._all = Sample(*(np.concatenate(arrays) for arrays in zip(*self._parts, strict=True)))
        rows = self._draw.integers(len(self._all.actions), size=count)
        return Sample._make(array[rows] for array in self._all)


class Critic:
    """Estimates the value of partial allocations: the expected progress of each job in this slot.

    The reward of a slot is a sum over jobs, and so is the value; each job trains its own part of the value.
    """

    def __init__(self, kinds: int, settings: Improving, draw: np.random.Generator) -> None:
        torch = require_torch()
        self._weights = as_tensors(draw_weights(draw, kinds, 1, _WIDTH))
        used = [tensor for name, tensor in self._weights.items() if name not in _OF_POLICY]
        self._steps = torch.optim.Adam(used, lr=settings.critic_rate)

    def values(self, jobs: NDArray[np.float32], cluster: NDArray[np.float32], valid: Bools) -> Floats:
        """Return the value of each job, 0 in empty rows: float64[K, B, J] for K decisions in B clusters."""
        torch = require_torch()
        shape = valid.shape
        flat = (array.reshape(-1, *array.shape[2:]) for array in (jobs, cluster, valid))
        with torch.no_grad():
            of_jobs, _ = forward(self._weights, *(torch.from_numpy(array) for array in flat))
        return np.asarray(of_jobs[..., 0].numpy().reshape(shape) * valid, np.float64)

    def update(self, jobs: Any, cluster: Any, valid: Any, targets: Any) -> None:
        """Take a gradient step towards the target values of jobs."""
        of_jobs, _ = forward(self._weights, jobs, cluster, valid)
        loss = (((of_jobs[..., 0] - targets) ** 2) * valid).sum() / valid.sum().clamp(min=1)
        self._steps.zero_grad()
        loss.backward()
        self._steps.step()


class _Sampling(ClusterPolicy):
    """Draw actions with the probabilities of a policy; sometimes correct a disproportion of a job."""

    name: ClassVar[str] = "sampling"

    def __init__(self, policy: Learned, explore: float, draw: np.random.Generator) -> None:
        self.policy, self.explore, self.draw = policy, explore, draw
        self.read: NetworkInputs
        self.scores: Floats

    def score(self, situation: Situation) -> Floats:
        """Return the scores plus Gumbel noise, so that the maximum is an action drawn from the softmax."""
        self.read = features(situation, self.policy.kinds, self.policy.scales)
        self.scores = self.policy.net.scores(self.read)
        noisy = self.scores + self.draw.gumbel(size=self.scores.shape)
        if self.explore:
            noisy = np.where(self._short(situation), 1e6, noisy)
        return noisy

    def _short(self, situation: Situation) -> Bools:
        """Return the actions that add workers or servers to a job that has too few of them."""
        workers, servers = situation.workers, situation.servers
        begun = situation.takes_servers & (workers > 0)
        tries = self.draw.random((len(workers), 1)) < self.explore
        worker = tries & begun & (servers > _OUT_OF_PROPORTION * workers)
        server = tries & begun & (workers > _OUT_OF_PROPORTION * servers)
        return np.concatenate([worker, server, np.zeros_like(begun), np.zeros_like(tries)], 1)


class _Slot:
    """Collect the decisions of one slot of all clusters."""

    def __init__(self, sampling: _Sampling, clusters: int) -> None:
        self._sampling = sampling
        self._ended = np.zeros(clusters, np.bool_)
        self.reads: list[NetworkInputs] = []
        self.choices: list[Bools] = []
        self.actions: list[Ints] = []
        self.acts: list[Bools] = []
        self.logs: list[Floats] = []

    def watch(self, situation: Situation, choices: Bools, actions: Ints) -> None:
        """Record a decision of each cluster, and whether its slot continued until then."""
        scores = np.where(choices, self._sampling.scores, -np.inf)
        scores = scores - scores.max(1, keepdims=True)
        chosen = scores[np.arange(len(actions)), actions] - np.log(np.exp(scores).sum(1))
        self.reads.append(self._sampling.read)
        self.choices.append(choices)
        self.actions.append(actions)
        self.acts.append(~self._ended)
        self.logs.append(chosen)
        self._ended |= actions == 3 * situation.places


def improve_policy(policy: Learned, workload: Workload, settings: Improving, *, seed: int) -> Learned:
    """Train a policy on simulated clusters; return the better one of the old and the new policy."""
    torch = require_torch()
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    draw = np.random.default_rng([0x1F, seed])
    training = _Training(policy, settings, draw)
    judge = _Judge(workload, settings)
    best, least = policy, judge.ratio(policy)
    simulation = None
    for slot in range(settings.slots):
        if slot % settings.episode == 0:
            simulation = Simulation(_traces(workload, settings, seed * 1000 + slot // settings.episode))
        assert simulation is not None
        training.slot(simulation, part=slot / settings.slots)
        if (slot + 1) % settings.check == 0:
            now = training.policy()
            ratio = judge.ratio(now)
            if ratio < least:
                best, least = now, ratio
    return best


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


class _Training:
    """The state of the training."""

    def __init__(self, policy: Learned, settings: Improving, draw: np.random.Generator) -> None:
        torch = require_torch()
        self._kinds, self._scales = policy.kinds, policy.scales
        self._settings, self._draw = settings, draw
        self._weights = as_tensors(policy.net.weights)
        self._steps = torch.optim.Adam(list(self._weights.values()), lr=settings.rate)
        self._critic = Critic(len(policy.kinds), settings, draw)
        self._replay = Replay(settings.replay, draw)
        self._rewards: list[Floats] = []
        self._size = 1.0

    def policy(self) -> Learned:
        """Return the current policy."""
        return Learned(self._kinds, self._scales, as_weights(self._weights))

    def slot(self, simulation: Simulation, *, part: float) -> None:
        """Simulate a slot and learn from it; `part` is the completed part of the training."""
        settings = self._settings
        sampling = _Sampling(self.policy(), settings.explore, self._draw)
        decisions = _Slot(sampling, len(simulation.traces))
        allocation = allocate(sampling, simulation.situation(), watch=decisions.watch)
        done = simulation.advance(allocation)
        reward = done.progress / np.maximum(done.total, 1e-12)
        if settings.permuted:
            reward = self._permute(reward)
        self._store(decisions, reward)
        for group in self._steps.param_groups:
            group["lr"] = settings.rate * (1 - 0.8 * part)
        for _ in range(settings.updates):
            if len(self._replay) >= min(settings.batch, 64):
                self._update(self._replay.sample(settings.batch))
        if not settings.replay:
            self._replay.clear()

    def _permute(self, reward: Floats) -> Floats:
        """Return random rewards of other clusters and earlier slots."""
        self._rewards = [*self._rewards[-31:], reward]
        other = self._rewards[self._draw.integers(len(self._rewards))]
        shuffled = other[self._draw.permutation(len(other))]
        return np.asarray(self._draw.permuted(shuffled, axis=1))

    def _store(self, decisions: _Slot, reward: Floats) -> None:
        """Estimate the value of every decision of a slot, and add the decisions to the replay."""
        many = len(decisions.reads)
        acts = np.stack(decisions.acts)
        jobs = np.stack([read.jobs for read in decisions.reads]).astype(np.float32)
        cluster = np.stack([read.cluster for read in decisions.reads]).astype(np.float32)
        valid = np.stack([read.valid for read in decisions.reads])
        values = self._critic.values(jobs, cluster, valid)  # [K, B, J]
        trace, reward = self._settings.trace, _SCALE * reward * valid[0]
        targets = np.empty_like(values)
        later = reward
        for step in range(many - 1, -1, -1):
            if step + 1 < many:
                # In a cluster whose slot has ended, the value is the reward alone.
                active = acts[step + 1][:, None]
                mixed = trace * later + (1 - trace) * values[step + 1]
                later = np.where(active, mixed, reward)
            targets[step] = later
        gain = (targets - values).sum(2)
        chose = acts & (np.stack(decisions.choices).sum(2) > 1)
        self._size = 0.95 * self._size + 0.05 * float(gain[chose].std() + 1e-6) if chose.any() else self._size
        self._replay.add(
            Sample(
                jobs=jobs[acts],
                cluster=cluster[acts],
                valid=valid[acts],
                choices=np.stack(decisions.choices)[acts],
                actions=np.stack(decisions.actions)[acts],
                logs=np.stack(decisions.logs)[acts].astype(np.float32),
                gain=gain[acts].astype(np.float32),
                targets=targets[acts].astype(np.float32),
            )
        )

    def _update(self, sample: Sample) -> None:
        """Take a gradient step of the policy and of the critic."""
        torch = require_torch()
        settings = self._settings
        tensors: list[Any] = [torch.from_numpy(array) for array in sample]
        jobs, cluster, valid, choices, actions, before, gain, targets = tensors
        logs = log_probabilities(self._weights, jobs, cluster, valid, choices)
        chosen = logs.gather(1, actions[:, None])[:, 0]
        ratio = (chosen - before).clamp(-5, 5).exp()
        advantage = (gain / self._size).clamp(-5, 5)
        clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
        surrogate = torch.minimum(ratio * advantage, clipped * advantage)
        entropy = -(logs.exp() * logs.clamp(min=-50)).sum(1)
        loss = -(surrogate + settings.entropy * entropy).mean()
        self._steps.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(self._weights.values()), 1.0)
        self._steps.step()
        self._critic.update(jobs, cluster, valid, targets)
