"""``TrialActors``: actors of a Ray cluster that run trials, and wait after each step until they may go on.

Each call returns the next message of the trial. One call is therefore always pending, and the driver waits
for its result: a message, or the death of the actor.

A driver can die or stop responding, and another driver then claims its trials. Only drivers write to the
store, so results of an actor whose driver lost the trial are never stored. To release its resources, an
actor exits when its driver was silent for one lease. (If the driver has died, Ray ends the actor sooner.) The
job of an actor that died is given back to the store, and the next process that asks continues from the last
checkpoint with a new attempt.
"""

from __future__ import annotations

import json
import logging
import math
import os
import threading
import time
import weakref
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Self

from onlineauto.errors import OptionError
from onlineauto.tune.workers.process import message_of, perform, task_of
from onlineauto.tune.workers.trainable import import_trainable, name_of_trainable
from onlineauto.work.on_ray import Actor, imported_ray, wait_for_actors

if TYPE_CHECKING:
    from onlineauto.tune.workers.process import Message, TaskStep, TrialTask
    from onlineauto.tune.workers.resources import RayWorkers
    from onlineauto.tune.workers.trainable import AnyTrainable, Config, Trainable
    from onlineauto.work.on_ray import Bundles

_LOG: Final = logging.getLogger("onlineauto")
_BEATS: Final = 6
"""Number of beats that a driver sends to its actors during a lease, and of silent checks in a row after which
an actor has lost its driver. A delay of the actor's process delays both the beats and the checks."""
_RARELY: Final = 60.0
"""Maximum number of seconds between two beats."""


class TrialActor:
    """Runs tasks, one after the other, in a separate thread."""

    def __init__(self, trainable: str | AnyTrainable, silence: float) -> None:
        self._trainable, self._silence = trainable, silence
        self._heard = True
        self._tasks: SimpleQueue[TrialTask] = SimpleQueue()
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._messages: SimpleQueue[Message] = SimpleQueue()
        self._serves = False

    def ready(self) -> str:
        """Import the trainable and return an empty text, or why it cannot be imported."""
        if isinstance(self._trainable, str):
            try:
                self._trainable = import_trainable(self._trainable)
            except (ImportError, OptionError) as error:
                return f"{error}"
        self._serves = True
        if math.isfinite(self._silence):
            threading.Thread(target=self._watch, name="onlineauto watch", daemon=True).start()
        threading.Thread(
            target=self._serve, args=(self._trainable,), name="onlineauto trial", daemon=True
        ).start()
        return ""

    def heartbeat(self) -> None:
        """Receive a sign of life of the driver, in parallel to the other methods."""
        self._heard = True

    def begin(self, config: str, resource: int, step: int, saved: bytes | None, every: int) -> Message:
        """Begin a task and return its first message; an empty tuple if there is no trainable."""
        if not self._serves:
            return ()
        self._tasks.put(task_of(config, resource, step, saved, every))
        return self._messages.get()

    def go_on(self, goes_on: bool) -> Message:
        """Continue after a step, or end there; return the next message of the task."""
        self._answers.put(goes_on)
        return self._messages.get()

    def history(self, rows: str) -> Message:
        """Continue with the history that the trainable reads; return the next message of the task."""
        self._answers.put(rows)
        return self._messages.get()

    def _serve(self, trainable: AnyTrainable) -> None:
        reusable: Trainable | None = None
        try:
            while True:
                task = self._tasks.get()
                end, reusable = perform(trainable, task, reusable, self._report_step, self._read_history)
                self._messages.put(message_of(end))
        except BaseException:  # a trainable that exits ends the actor, like a worker process
            os._exit(1)

    def _watch(self) -> None:
        silent = 0
        while silent < _BEATS:
            time.sleep(self._silence / _BEATS)
            has_heartbeat, self._heard = self._heard, False
            silent = 0 if has_heartbeat else silent + 1
        os._exit(1)

    def _report_step(self, step: TaskStep) -> bool:
        self._messages.put(message_of(step))
        return bool(self._answers.get())

    def _read_history(self) -> list[dict[str, Any]]:
        self._messages.put(("history",))
        return list(json.loads(self._answers.get()))


class TrialActors:
    """Starts actors for a trainable, and waits for them. As a context manager, it sends them beats."""

    costs_idle: Final = True  # Ray reserves the resources of an idle actor

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

    def start(self, config: Config | None = None) -> Actor:
        """Start an actor with the resources of a trial; it is up when Ray has found a node for it."""
        bundles = self._workers.bundles(config or {})
        self._warn(bundles)
        strategy = self._workers.strategy
        actor = Actor(TrialActor, self._trainable, self._lease, bundles=bundles, strategy=strategy)
        with self._lock:
            self._actors.add(actor)
        return actor

    def fits(self, worker: Actor, config: Config) -> bool:
        """Return whether an actor has exactly the resources that a trial needs."""
        return self.is_uniform or worker.bundles == self._workers.bundles(config)

    wait = staticmethod(wait_for_actors)

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
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        for needs in bundles:
            if not any(all(node.get(name, 0) >= amount for name, amount in needs) for node in nodes):
                _LOG.warning("no node of this Ray cluster has %s; trials wait for one", dict(needs))
