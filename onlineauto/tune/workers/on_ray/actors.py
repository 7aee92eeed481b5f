"""``Actors``: starts actors of a Ray cluster, and waits for their messages.

Ray never restarts an actor that died. Its job is given back to the store, and the next process that asks
continues from the last checkpoint with a new attempt. An old actor on an unreachable node cannot write to the
store, and it exits when its driver was silent for one lease.
"""

from __future__ import annotations

import json
import logging
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final, Self

from onlineauto.errors import OptionError
from onlineauto.tune.workers.naming import name_of_trainable
from onlineauto.tune.workers.on_ray.connection import imported_ray
from onlineauto.tune.workers.on_ray.trial_actor import TrialActor, said_in
from onlineauto.tune.workers.process import WorkerLost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.tune.workers.on_ray.ray_workers import Bundles, RayWorkers
    from onlineauto.tune.workers.process import TaskEnded, TaskFailed, TaskStep, TrialTask
    from onlineauto.tune.workers.trainable import AnyTrainable, Config

_LOG: Final = logging.getLogger("onlineauto")
_BEAT: Final = "beat"
"""Ray's concurrency group for calls that run in parallel to all other calls."""
_BEATS: Final = 6
"""Number of beats that a driver sends to its actors during a lease."""
_RARELY: Final = 60.0
"""Maximum number of seconds between two beats."""


class Actor:
    """An actor, in the process of the driver."""

    def __init__(self, ray: Any, trainable: Any, bundles: Bundles, strategy: str, silence: float) -> None:
        self.bundles = bundles
        self._ray = ray
        self._group = None
        self._is_killed = False
        options: dict[str, Any] = resource_options(dict(bundles[0]))
        if len(bundles) > 1:
            from ray.util.placement_group import placement_group
            from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

            self._group = placement_group([dict(each) for each in bundles], strategy=strategy)
            options["scheduling_strategy"] = PlacementGroupSchedulingStrategy(
                self._group, placement_group_bundle_index=0, placement_group_capture_child_tasks=True
            )
        options["concurrency_groups"] = {_BEAT: 1}  # all other calls run one after the other
        remote = ray.remote(max_restarts=0, max_task_retries=0, **options)(TrialActor)
        self._actor = remote.remote(trainable, silence)
        self._ready: Any = self._actor.ready.remote()
        self.awaited: Any = self._ready

    @property
    def is_up(self) -> bool:
        """False: Ray first has to find a node for the actor."""
        return False

    def receive_ready(self) -> None:
        """Receive the message that the actor is up."""
        if self._ready is None:
            return
        why, self._ready = self._get(self._ready), None
        if why:
            raise OptionError(f"a worker of Ray cannot run the trials, because on its node {why}")

    def beat(self) -> None:
        """Send the actor a sign of life of its driver, if the actor is up."""
        if self._ready is None and not self._is_killed:
            self._actor.heartbeat.options(concurrency_group=_BEAT).remote()

    def begin(self, task: TrialTask) -> None:
        """Send a task."""
        config = json.dumps(task.config)
        self.awaited = self._actor.begin.remote(config, task.resource, task.step, task.saved, task.every)

    def answer(self, goes_on: bool) -> None:
        """Send the actor the answer to a step: whether its trial continues."""
        self.awaited = self._actor.go_on.remote(goes_on)

    def receive(self) -> TaskStep | TaskEnded | TaskFailed:
        """Return the next message; raise `WorkerLost` if the actor has died."""
        self.receive_ready()
        return said_in(self._get(self.awaited))

    def _get(self, reference: Any) -> Any:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError:
            raise  # an error of our own code
        except self._ray.exceptions.RayError as error:
            raise WorkerLost(_why_lost(error)) from None

    def close(self) -> None:
        """End the actor and release its resources."""
        self.kill()

    def kill(self) -> None:
        """End the actor at once and release its resources."""
        self._is_killed = True
        self._ray.kill(self._actor, no_restart=True)
        if self._group is not None:
            from ray.util.placement_group import remove_placement_group

            remove_placement_group(self._group)
            self._group = None


class Actors:
    """Starts actors for a trainable, and waits for them. As a context manager, it sends them beats."""

    def __init__(self, trainable: AnyTrainable, workers: RayWorkers, *, lease: float) -> None:
        self._ray = imported_ray()
        name = name_of_trainable(trainable)
        self._trainable = self._ray.put(trainable) if name is None else name
        self._workers = workers
        self._warned: set[Bundles] = set()
        self._lease = lease
        self._actors: weakref.WeakSet[Actor] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._renew_leases, name="onlineauto beat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()

    @property
    def is_uniform(self) -> bool:
        """True if all trials need the same resources."""
        return not callable(self._workers.needs)

    @property
    def costs_idle(self) -> bool:
        """True: Ray reserves the resources of an idle actor."""
        return True

    def start(self, config: Config | None) -> Actor:
        """Start an actor with the resources of a trial; it is up when Ray has found a node for it."""
        bundles = self._workers.bundles(config or {})
        self._warn(bundles)
        actor = Actor(self._ray, self._trainable, bundles, self._workers.strategy, self._lease)
        with self._lock:
            self._actors.add(actor)
        return actor

    def fits(self, worker: Actor, config: Config) -> bool:
        """Return whether an actor has exactly the resources that a trial needs."""
        return self.is_uniform or worker.bundles == self._workers.bundles(config)

    def wait(self, workers: Sequence[Actor], seconds: float | None) -> Sequence[Actor]:
        """Return actors that have sent a message or died; none after the timeout."""
        by_reference = {each.awaited: each for each in workers}
        ready, rest = self._ray.wait([*by_reference], num_returns=1, timeout=seconds, fetch_local=False)
        if ready and rest:
            ready += self._ray.wait(rest, num_returns=len(rest), timeout=0, fetch_local=False)[0]
        return [by_reference[each] for each in ready]

    def _renew_leases(self) -> None:
        while not self._closed.wait(min(self._lease / _BEATS, _RARELY)):
            with self._lock:
                actors = [*self._actors]
            for actor in actors:
                actor.beat()

    def _warn(self, bundles: Bundles) -> None:
        """Warn once if no node can satisfy a trial's resource request, because Ray would wait forever."""
        if bundles in self._warned:
            return
        self._warned.add(bundles)
        nodes = [each["Resources"] for each in self._ray.nodes() if each["Alive"]]
        for needs in bundles:
            if not any(all(node.get(name, 0) >= amount for name, amount in needs) for node in nodes):
                _LOG.warning("no node of this Ray cluster has %s; trials wait for one", dict(needs))


def resource_options(needs: dict[str, float]) -> dict[str, Any]:
    """Return the resources of an actor as options of `ray.remote`."""
    options: dict[str, Any] = {"num_cpus": needs.pop("CPU")}
    if "GPU" in needs:
        options["num_gpus"] = needs.pop("GPU")
    if "memory" in needs:
        options["memory"] = needs.pop("memory")
    if needs:
        options["resources"] = needs
    return options


def _why_lost(error: Exception) -> str:
    """Return why an actor has died, in one line that completes 'its process was'."""
    lines = [line.strip() for line in f"{error}".splitlines()]
    reason = next((line for line in lines[1:] if line.startswith(("The actor", "The node"))), lines[0])
    return f"lost with its actor: {reason}"
