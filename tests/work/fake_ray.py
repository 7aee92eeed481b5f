"""A stand-in for the part of Ray that is used: actors are objects of this process, each with a thread."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from functools import partial
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
        return SimpleNamespace(
            remote=partial(self._call, name),
            options=lambda num_returns=1, **_: SimpleNamespace(
                remote=partial(self._call, name, num_returns=num_returns)
            ),
        )

    def _call(self, name: str, *arguments: Any, num_returns: int = 1) -> Any:
        """Call a method; return a reference, or a list of references to the parts of its result."""
        answers = [Future[Any]() for _ in range(num_returns)]
        self.pending += answers

        def call() -> None:
            try:
                value = getattr(self._object.result(), name)(*map(get, arguments))
                for answer, part in zip(answers, value if num_returns > 1 else [value], strict=True):
                    if not answer.done():
                        answer.set_result(part)
            except Exception as error:
                fail(answers, RayTaskError(f"{error!r}"))

        if self.is_dead:
            fail(answers, RayError("lost\nThe actor is dead"))
        elif name == "heartbeat":
            call()
        else:
            self._thread.submit(call)
        return answers if num_returns > 1 else answers[0]


def fail(answers: list[Future[Any]], error: RayError) -> None:
    """Answer with an error, unless there is an answer."""
    for answer in answers:
        if not answer.done():
            answer.set_exception(error)


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
    fail(handle.pending, RayError("lost\nThe actor is dead"))
