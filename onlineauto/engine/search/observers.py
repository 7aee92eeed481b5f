"""Observers: functions that are called with each decision of a search before it is applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from onlineauto.engine.search.journal import Entry

Observer: TypeAlias = "Callable[[Entry], object]"
"""A function that is called with a decision in the form of the journal."""


class Observation:
    """The registration of an observer, made by `Observers.add`, until `remove` or the end of a ``with``."""

    def __init__(self, observers: Observers, observer: Observer) -> None:
        self._observers, self._observer = observers, observer

    def remove(self) -> None:
        """Stop calling the observer. Further calls have no effect."""
        self._observers.drop(self)

    def tell(self, entry: Entry) -> None:
        """Call the observer."""
        self._observer(entry)

    def __enter__(self) -> Self:
        """Return this observation."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the observer."""
        self.remove()


class Observers:
    """The observers of one search, in the order of registration. Copies have none."""

    def __init__(self) -> None:
        self._all: tuple[Observation, ...] = ()

    def __reduce__(self) -> tuple[type[Observers], tuple[()]]:
        """Return the recipe of a copy, which has no observers."""
        return Observers, ()

    def __bool__(self) -> bool:
        """Return whether there are observers."""
        return bool(self._all)

    def add(self, observer: Observer) -> Observation:
        """Call `observer` with all decisions from now on."""
        observation = Observation(self, observer)
        self._all = (*self._all, observation)
        return observation

    def drop(self, observation: Observation) -> None:
        """Remove an observation, if it is registered."""
        self._all = tuple(observer for observer in self._all if observer is not observation)

    def tell(self, entry: Entry) -> None:
        """Call all observers."""
        for observation in self._all:
            observation.tell(entry)
