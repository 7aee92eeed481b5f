"""A stand-in for the part of Ray that is used: actors are objects of this process, each with a thread."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from types import SimpleNamespace
from typing import Any


class RayError(Exception):
    """An actor has died."""


class RayTaskError(RayError):
    """A method has raised an error."""


class Handle:
    """An actor."""

    def __init__(self, kind: type, arguments: tuple[Any, ...]) -> None:
        self.is_dead = False
        self.pending: list[Future[Any]] = []
        self._thread = ThreadPoolExecutor(1)
        self._object = self._thread.submit(lambda: kind(*map(get, arguments)))

    def __getattr__(self, name: str) -> Any:
        def remote(*arguments: Any) -> Future[Any]:
            answer: Future[Any] = Future()
            self.pending.append(answer)

            def call() -> None:
                try:
                    value = getattr(self._object.result(), name)(*map(get, arguments))
                    if not answer.done():
                        answer.set_result(value)
                except Exception as error:
                    answer.set_exception(RayTaskError(f"{error!r}"))

            if self.is_dead:
                answer.set_exception(RayError("lost\nThe actor is dead"))
            elif name == "heartbeat":
                call()
            else:
                self._thread.submit(call)
            return answer

        return SimpleNamespace(remote=remote, options=lambda **_: SimpleNamespace(remote=remote))


def new_module() -> Any:
    """Return a new module `ray`, whose `handles` are the actors that were started."""
    handles: list[Handle] = []

    def remote(**_: Any) -> Any:
        def of_class(kind: type) -> Any:
            def start(*arguments: Any) -> Handle:
                handles.append(Handle(kind, arguments))
                return handles[-1]

            return SimpleNamespace(remote=start)

        return of_class

    return SimpleNamespace(
        exceptions=SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError),
        is_initialized=lambda: True,
        nodes=lambda: [{"Alive": True, "Resources": {"CPU": 8.0}}],
        remote=remote,
        put=put,
        get=get,
        wait=wait,
        kill=kill,
        handles=handles,
    )


def put(value: Any) -> Future[Any]:
    reference: Future[Any] = Future()
    reference.set_result(value)
    return reference


def get(reference: Any) -> Any:
    return reference.result() if isinstance(reference, Future) else reference


def wait(
    references: list[Future[Any]], *, num_returns: int, timeout: float | None, fetch_local: bool
) -> tuple[list[Future[Any]], list[Future[Any]]]:
    del num_returns, fetch_local
    done, _ = wait_for(references, timeout, FIRST_COMPLETED)
    return [each for each in references if each in done], [each for each in references if each not in done]


def kill(handle: Handle, *, no_restart: bool = True) -> None:
    """End an actor: its calls are never answered."""
    del no_restart
    handle.is_dead = True
    for answer in handle.pending:
        if not answer.done():
            answer.set_exception(RayError("lost\nThe actor is dead"))
