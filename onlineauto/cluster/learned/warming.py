"""``imitate``: a network that imitates the decisions of a teacher."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.cluster.learned.features import features
from onlineauto.cluster.learned.learned import Learned
from onlineauto.cluster.learned.torch_net import as_tensors, as_weights, log_probabilities, require_torch
from onlineauto.cluster.policies.policy import allocate
from onlineauto.cluster.simulator.simulation import Simulation
from onlineauto.cluster.simulator.workload import draw_traces

if TYPE_CHECKING:
    from onlineauto.cluster.learned.settings import WarmUp
    from onlineauto.cluster.policies.policy import ClusterPolicy
    from onlineauto.cluster.policies.situation import Bools, Floats, Ints, Situation
    from onlineauto.cluster.simulator.workload import Workload

Decisions = tuple["Floats", "Floats", "Bools", "Bools", "Ints"]
"""Features of jobs, of clusters, valid rows, choices and actions, all with one row for each decision."""


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

    while not simulation.is_done:
        ended[:] = False
        simulation.advance(allocate(teacher, simulation.situation(), watch=watch))
    jobs_, cluster, valid, choices, actions = (np.concatenate(each) for each in zip(*decisions, strict=True))
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
            range(10_000 * (seed + 1) + many * at, 10_000 * (seed + 1) + many * (at + 1)),
            settings.jobs,
        )
        for at, rate in enumerate(settings.rates)
    ]
    jobs, cluster, valid, choices, actions = (np.concatenate(each) for each in zip(*parts, strict=True))
    target = np.zeros(choices.shape)
    target[np.arange(len(actions)), actions] = 1 - settings.smoothing
    target += settings.smoothing * choices / choices.sum(1, keepdims=True)
    policy = Learned.untrained(kinds, scales, seed=seed)
    weights = as_tensors(policy.net.weights)
    tensors = [torch.from_numpy(np.asarray(each, np.float32)) for each in (jobs, cluster)]
    masks = [torch.from_numpy(each) for each in (valid, choices)]
    targets = torch.from_numpy(target.astype(np.float32))
    steps = torch.optim.Adam(list(weights.values()), lr=settings.rate)
    draw = np.random.default_rng([0x3A, seed])
    for step in range(settings.steps):
        for group in steps.param_groups:
            group["lr"] = settings.rate * (1 - 0.9 * step / settings.steps)
        batch = torch.from_numpy(draw.integers(len(actions), size=settings.batch))
        logs = log_probabilities(weights, *(each[batch] for each in (*tensors, *masks)))
        loss = -(targets[batch] * logs).sum(1).mean()
        steps.zero_grad()
        loss.backward()
        steps.step()
    return Learned(kinds, scales, as_weights(weights))


def agreement(policy: Learned, decisions: Decisions) -> float:
    """Return the part of decisions in which a policy chooses the same action as the teacher."""
    from onlineauto.cluster.learned.features import NetworkInputs
    from onlineauto.cluster.policies.policy import best_choices

    jobs, cluster, valid, choices, actions = decisions
    return float(
        (best_choices(policy.net.scores(NetworkInputs(jobs, cluster, valid)), choices) == actions).mean()
    )
