"""``Actor``: a worker in an actor of Ray. Ray is imported only when an actor or a connection is needed.

Only Ray's core is used: long-lived actors with one call per message. Their arguments and results are text,
bytes and numbers. Ray itself pickles the calls, so all machines of a cluster must trust each other.

Ray never restarts an actor that died, and never repeats a call: only the owner of a job knows where the job
begins again.
"""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OnlineautoError, OptionError, install_hint
from onlineauto.work.crew import WorkerLost

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BEAT: Final = "beat"
"""Ray's concurrency group for calls that run in parallel to all other calls."""

Bundles = tuple[tuple[tuple[str, float], ...], ...]
"""The resources of an actor: for each bundle, pairs of name and amount, sorted by name."""


def imported_ray() -> Any:
    """Return the module `ray`."""
    try:
        import ray
    except ModuleNotFoundError as error:
        raise OptionError(
            f"there is no module {error.name!r} here: {install_hint('ray')}, on all nodes"
        ) from None
    return ray


@contextmanager
def ray_connection(address: str | None) -> Iterator[None]:
    """Connect to a cluster: that of this process, one at an address, or a new one on this machine.

    At the end it disconnects, unless this process was connected before.
    """
    ray = imported_ray()
    if ray.is_initialized():
        yield
        return
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    except (ConnectionError, TimeoutError, RuntimeError) as error:
        raise OnlineautoError(f"no Ray cluster at {address or 'RAY_ADDRESS, or here'}: {error}") from None
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before)  # ray.init() replaces the handler
    try:
        yield
    finally:
        ray.shutdown()


class Actor:
    """An actor, in the process of the driver.

    The class of the actor has a method ``ready``, which returns why the actor cannot work, or nothing.
    """

    is_up = False  # Ray first has to find a node for the actor

    def __init__(self, kind: type, *arguments: Any, bundles: Bundles, strategy: str = "PACK") -> None:
        self._ray = imported_ray()
        self.bundles = bundles
        self._group = None
        self._is_killed = False
        options: dict[str, Any] = _resource_options(dict(bundles[0]))
        if len(bundles) > 1:
            from ray.util.placement_group import placement_group
            from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

            self._group = placement_group([dict(bundle) for bundle in bundles], strategy=strategy)
            options["scheduling_strategy"] = PlacementGroupSchedulingStrategy(
                self._group, placement_group_bundle_index=0, placement_group_capture_child_tasks=True
            )
        options["concurrency_groups"] = {_BEAT: 1}  # all other calls run one after the other
        remote = self._ray.remote(max_restarts=0, max_task_retries=0, **options)(kind)
        self.handle = remote.remote(*arguments)
        self._ready: Any = self.handle.ready.remote()
        self.awaited: Any = self._ready

    def send(self, method: str, *arguments: Any) -> None:
        """Call a method of the actor."""
        self.awaited = getattr(self.handle, method).remote(*arguments)

    def receive(self) -> Any:
        """Return the result of the last call; raise `WorkerLost` if the actor has died."""
        if self._ready is not None:
            why, self._ready = self._get(self._ready), None
            if why:
                raise OptionError(f"a worker of Ray cannot begin, because on its node {why}")
        return self._get(self.awaited)

    def beat(self) -> None:
        """Call ``heartbeat`` in parallel to the other calls, if the actor is up."""
        if self._ready is None and not self._is_killed:
            self.handle.heartbeat.options(concurrency_group=_BEAT).remote()

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
        self._ray.kill(self.handle, no_restart=True)
        if self._group is not None:
            from ray.util.placement_group import remove_placement_group

            remove_placement_group(self._group)
            self._group = None


def wait_for_actors(actors: Sequence[Actor], seconds: float | None) -> list[Actor]:
    """Return actors that have sent a message or died; none after the timeout."""
    ray = imported_ray()
    by_reference = {actor.awaited: actor for actor in actors}
    ready, rest = ray.wait([*by_reference], num_returns=1, timeout=seconds, fetch_local=False)
    if ready and rest:
        ready += ray.wait(rest, num_returns=len(rest), timeout=0, fetch_local=False)[0]
    return [by_reference[reference] for reference in ready]


def _resource_options(needs: dict[str, float]) -> dict[str, Any]:
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
