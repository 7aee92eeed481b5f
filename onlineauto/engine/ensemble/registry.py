"""The members that an ensemble may have, in the order of their weights.

Each line has the name of a member, which is also the name of its module in `members`, and its text in
``--help``. The module is imported when the member is chosen, so that reading options imports neither NumPy
nor kernels.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.engine.ensemble.member import ClassMember, EnsembleLearner, Member
    from onlineauto.options import Registry


class Entry(NamedTuple):
    """Facts about a member that are known before it is imported."""

    help: str
    costs: bool = True
    """Whether the member serves bandits and regressions."""
    classes: bool = False
    """Whether the member serves classifications."""
    default: bool = True
    """Whether an ensemble has the member by default."""
    member: EnsembleLearner | None = None
    """The member, if it is defined outside the package."""


_MEMBERS = {
    "features": Entry("least squares on features and on bins of numbers", classes=True),
    "waves": Entry(
        "least squares on random waves of numbers and words, which approximate any smooth function",
        classes=True,
    ),
    "crosses": Entry("weights of products of features with the action: one by one, in pairs, in triples"),
    "layer": Entry(
        "least squares on waves of the scores that features gives to all actions; it needs features"
    ),
    "baseline": Entry("the cost of a context whatever the action, and what each action adds"),
    "ridge": Entry("strongly regularised least squares on features, for rare or noisy rewards"),
    "trees": Entry(
        "boosted trees of numbers and words, fitted again as events double, later every 16,384", classes=True
    ),
    "logistic": Entry(
        "logistic regressions on features, and on features and pairs of words", costs=False, classes=True
    ),
}

MEMBERS: Mapping[str, Entry] = MappingProxyType(_MEMBERS)
"""The members, by name."""

_EXTENDED: list[Registry] = []

DEFAULT = ",".join(name for name, entry in _MEMBERS.items() if entry.default)
"""The default of ``--members``."""


def register(member: EnsembleLearner) -> None:
    """Add a member from outside the package, with its options, to the names that ``--members`` accepts.

    Register a member before making or loading a model that has it.
    """
    taken = {*_MEMBERS, *(name for each in _MEMBERS for name in _scores_of(member_of(each)))}
    if not taken.isdisjoint({member.name, *_scores_of(member)}):
        raise ValueError(f"there is a member {member.name} already, or a score of one of its names")
    for registry in _EXTENDED:
        registry.add(*(group for group in member.options if group not in registry.groups))
    _MEMBERS[member.name] = Entry(
        (member.__doc__ or "").partition("\n")[0],
        costs=hasattr(member, "kernels"),
        classes=hasattr(member, "class_kernels"),
        default=False,
        member=member,
    )


def _scores_of(member: EnsembleLearner) -> tuple[str, ...]:
    """Return the names of a member's scores of costs."""
    return getattr(member, "names", ())


def unregister(name: str) -> None:
    """Remove a member that was added by `register`."""
    if name not in _MEMBERS or _MEMBERS[name].member is None:
        raise ValueError(f"no member {name} was registered")
    del _MEMBERS[name]


def extend(registry: Registry) -> None:
    """Add the options of members that are registered later to a registry of options."""
    _EXTENDED.append(registry)


def member_of(name: str) -> Any:
    """Return the member with a name, importing its module if necessary."""
    return _MEMBERS[name].member or _import_member(name)


@cache
def _import_member(name: str) -> EnsembleLearner:
    member: EnsembleLearner = import_module(f"onlineauto.engine.ensemble.members.{name}").MEMBER
    return member


def members_of(text: str) -> tuple[Member, ...]:
    """Return the members of costs that ``--members`` names, in the order of their weights."""
    names = _names(text)
    return tuple(member_of(name) for name, entry in _MEMBERS.items() if name in names and entry.costs)


def class_members_of(text: str) -> tuple[ClassMember, ...]:
    """Return the members of classes that ``--members`` names, in the order of their weights."""
    names = _names(text)
    return tuple(member_of(name) for name, entry in _MEMBERS.items() if name in names and entry.classes)


def _names(text: str) -> set[str]:
    if text == "none":
        return set()
    return {name.strip() for name in text.split(",") if name.strip()}


def check_names(text: str) -> None:
    """Check the names in ``--members``."""
    names = _names(text)
    if text != "none" and (not names or not names <= _MEMBERS.keys()):
        unknown = sorted(names - _MEMBERS.keys())
        more = f"; register {', '.join(unknown)} before it is used" if unknown else ""
        raise OptionError(
            f"--members cannot be {text}; it takes some of {', '.join(_MEMBERS)}, separated by commas, or "
            f"none{more}"
        )
    if text == DEFAULT:
        return
    members = members_of(text)
    available = {name for member in members for name in member.names}
    for member in members:
        for needs in member.needs:
            if needs.upon and needs.upon not in available:
                raise OptionError(
                    f"--members cannot have {member.name} without {needs.upon}, from whose scores it is "
                    f"computed; write {needs.upon},{member.name}"
                )
