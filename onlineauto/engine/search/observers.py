"""Observers: those who hear of each decision of a search before it is applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from onlineauto.engine.search.journal import Entry

Observer: TypeAlias = "Callable[[Entry], object]"
"""Called with a decision, as the journal has it."""


class Observation:
    """The place of an observer, as `Observers.add` returns it: until `remove` or the end of a ``with``."""

    def __init__(self, observers: Observers, observer: Observer) -> None:
        self._observers, self._observer = observers, observer

    def remove(self) -> None:
        """Let the observer hear of no further decision; after the first call, do nothing."""
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
    """The observers of one search, in the order in which they came. Copies have none."""

    def __init__(self) -> None:
        self._all: tuple[Observation, ...] = ()

    def __reduce__(self) -> tuple[type[Observers], tuple[()]]:
        """Return the recipe of a copy, which nobody observes yet."""
        return Observers, ()

    def __bool__(self) -> bool:
        """Return whether anybody observes."""
        return bool(self._all)

    def add(self, observer: Observer) -> Observation:
        """Let `observer` hear of the decisions from now on."""
        observation = Observation(self, observer)
        self._all = (*self._all, observation)
        return observation

    def drop(self, observation: Observation) -> None:
        """Forget an observation, if it is there."""
        self._all = tuple(each for each in self._all if each is not observation)

    def tell(self, entry: Entry) -> None:
        """Call all observers."""
        for observation in self._all:
            observation.tell(entry)
