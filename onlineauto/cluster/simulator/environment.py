"""``ClusterEnv``: a simulated cluster as an environment of Gymnasium, with masks of actions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces

from onlineauto.cluster.simulator.simulation import Simulation
from onlineauto.cluster.simulator.traces import draw_traces
from onlineauto.cluster.simulator.workload import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.cluster.policies.situation import Bools, Situation

_OF_JOB = 8
"""Numbers of a job, beside one for each kind."""


class ClusterEnv(gymnasium.Env["NDArray[np.float32]", "np.int64"]):
    """Divide the slots of one simulated cluster, an action at a time.

    An action is one of the 3J + 1 of `onlineauto.cluster.policies.actions`. The last one ends the slot: the
    jobs work, and the reward is what they did, each as a part of its own work. Other actions have no reward.
    An episode ends with its last job. `action_masks`, which sb3-contrib's MaskablePPO asks, says what can be
    chosen; an action that cannot counts as the end of the slot, or as the first choice if a job has to be
    begun.

    Parameters
    ----------
    workload : Workload, optional
        The cluster, and its jobs.
    jobs : int
        Jobs of an episode.

    Examples
    --------
    >>> env = ClusterEnv(jobs=3)
    >>> seen, about = env.reset(seed=1)
    >>> total, ended = 0.0, False
    >>> while not ended:
    ...     seen, reward, ended, _, about = env.step(np.int64(env.action_masks().argmax()))
    ...     total += reward
    >>> round(total, 6)
    3.0
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (Gymnasium's declaration)

    def __init__(self, workload: Workload | None = None, *, jobs: int = 40) -> None:
        self.workload = Workload() if workload is None else workload
        self._jobs = jobs
        places, kinds = self.workload.places, len(self.workload.kinds)
        size = places * (kinds + _OF_JOB) + len(self.workload.capacity) + 1
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = spaces.Discrete(3 * places + 1)
        self._simulation: Simulation
        self._situation: Situation

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin with other jobs; `options` may have a ``rate`` of arrivals."""
        super().reset(seed=seed)
        workload = self.workload
        if options and "rate" in options:
            workload = replace(workload, rate=float(options["rate"]))
        drawn = int(self.np_random.integers(2**31))
        self._simulation = Simulation(draw_traces(workload, [drawn], jobs=self._jobs))
        self._situation = self._simulation.situation()
        return self._seen(), {}

    def action_masks(self) -> Bools:
        """Return what can be chosen: bool[3J + 1]."""
        return np.asarray(self._situation.choices()[0])

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Do one action."""
        masks = self.action_masks()
        nothing = 3 * self.workload.places
        if not masks[action]:
            action = np.int64(nothing if masks[nothing] else masks.argmax())
        if action != nothing:
            self._situation = self._situation.after(np.array([action]))
            return self._seen(), 0.0, False, False, {}
        slot = self._simulation.advance(self._situation)
        reward = float((slot.progress / np.maximum(slot.total, 1e-12)).sum())
        self._situation = self._simulation.situation()
        ended = self._simulation.is_done
        about = {"mean": float(self._simulation.ran().mean[0])} if ended else {}
        return self._seen(), reward, ended, False, about

    def _seen(self) -> NDArray[np.float32]:
        """Return what an agent sees, as one row of numbers."""
        now = self._situation
        kinds = now.kind[0][:, None] == np.arange(len(self.workload.kinds))
        jobs = np.stack(
            [
                now.valid[0],
                np.log1p(now.age[0]),
                np.log1p(now.remaining[0]),
                now.remaining[0] / np.maximum(now.done[0] + now.remaining[0], 1e-12),
                now.workers[0] / 8,
                now.servers[0] / 8,
                now.shares()[0],
                now.takes_servers[0],
            ],
            1,
        )
        rows = np.concatenate([kinds, jobs], 1) * now.valid[0][:, None]
        return np.concatenate([rows.ravel(), now.free_parts[0], np.log1p(now.backlog)]).astype(np.float32)
