"""``MemberStates``: the states of the members of an ensemble, together with the members."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from onlineauto.engine.ensemble.registry import member_of
from onlineauto.jit import SealedRecords
from onlineauto.state.schema import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onlineauto.engine.ensemble.member import Member, Needs
    from onlineauto.engine.records.ensemble import Ensemble


class MemberStates(SealedRecords):
    """The states of members; kernels receive their addresses."""

    __slots__ = ("members",)

    def __init__(self, members: Iterable[Any], records: Iterable[Any]) -> None:
        super().__init__(records)
        self.members = tuple(members)

    def state_of(self, name: str) -> Any:
        """Return the state of a member."""
        return next(
            state for member, state in zip(self.members, self.records, strict=True) if member.name == name
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the constructor and arguments of a copy; members are stored by name."""
        names = tuple(member.name for member in self.members)
        return _by_name, (names, tuple(map(pack, self.records)))


def _by_name(names: tuple[str, ...], records: tuple[Any, ...]) -> MemberStates:
    return MemberStates(map(member_of, names), map(unpack, records))


@lru_cache(maxsize=16)  # each review of the search asks several times
def needs_of(members: tuple[Member, ...]) -> tuple[tuple[str, Needs], ...]:
    """Return the name and the conditions of each score of members, in the order of their weights."""
    return tuple(pair for member in members for pair in zip(member.names, member.needs, strict=True))


def constant_of(ensemble: Ensemble) -> int:
    """Return the index of the constant's weight; the weights of levels follow it."""
    return len(ensemble.weights) - ensemble.n_levels - 1


def states_of(ensemble: Ensemble) -> MemberStates:
    """Return the states of an ensemble's members; kernels see an array of addresses instead."""
    return cast("MemberStates", ensemble.members.states)
