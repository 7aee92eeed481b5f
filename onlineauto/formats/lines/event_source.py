"""Define the interfaces of readers of all formats, and of sources that can be read from a position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from onlineauto.features.block import Block, Namespaces
    from onlineauto.formats.lines.diagnostics import Diagnostics


class EventReader(Protocol):
    """A reader of events in blocks; can be iterated once."""

    name: str  # Name of the source in messages.
    namespaces: Namespaces  # Names seen so far, shared by all blocks.
    diagnostics: Diagnostics  # Problems found so far.

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks."""

    def blocks(self) -> Generator[Block]:
        """Yield the blocks, from a generator that must be closed if it is not exhausted."""


class EventRules(NamedTuple):
    """The options by which a source converts rows to events."""

    kind: str  # ``"simple"``, or the name of the flag of a bandit.
    hash: str = "strings"  # ``--hash`` and ``--hash_seed``.
    hash_seed: int = 0
    strict: bool = False  # Whether the first problem of the input is an error.
    uniform: bool = False  # Whether a logged action without a probability is taken as drawn uniformly.
    native: bool = True  # False to read events like Vowpal Wabbit.
    format: str = "text"  # The format of lines; datasets have none.
    chain_hash: bool = False  # ``--chain_hash``, of JSON.
    names: str = "any"
    identities: frozenset[str] = frozenset()  # ``--name_columns``.


@runtime_checkable
class EventSource(Protocol):
    """Events that can be read from a position.

    A position is a mapping of names to numbers and texts, which a checkpoint stores. Its key ``"events"`` is
    the number of events before the position.
    """

    name: str  # Name of the source in messages.
    events_before: int  # Number of events before the position at which the next reader begins.

    @property
    def can_be_read_again(self) -> bool:
        """True if a second pass yields the same events."""

    def seek(self, position: Mapping[str, Any] | None) -> None:
        """Set the position at which the next reader begins, or raise `InputError`; None is the beginning."""

    def open(self, rules: EventRules, found: Diagnostics | None = None) -> EventReader:
        """Return a reader of the events from the position on; raise `InputError` if that is not possible."""

    def position(self, events: int) -> dict[str, Any]:
        """Return the position after `events` events of this pass.

        Raise `ValueError` if the event was not read yet, or is not in one of the last blocks.
        """


@runtime_checkable
class EndlessSource(EventSource, Protocol):
    """A source without an end, such as a topic; a pass over it never ends."""

    @property
    def waiting(self) -> int:
        """The number of decisions that are read and will be events later."""

    def saved(self) -> None:
        """Receive the notice that the last position is in a file."""
