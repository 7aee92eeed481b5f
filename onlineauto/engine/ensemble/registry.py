"""The members that an ensemble may have, in the order of their weights.

Each line has the name of a member, which is also the name of its module in `members`, and its text in
``--help``. The module is imported when the member is chosen, so that reading options imports neither NumPy
nor kernels.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from onlineauto.errors import OptionError
from onlineauto.options import Parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.engine.ensemble.member import ClassMember, EnsembleLearner, Member


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


class Members(Parts[Any]):
    """The members, by name; each value is an `Entry`."""

    def _check(self, part: Any) -> None:
        """Check a member, whose base class is imported only now, since it needs NumPy."""
        from onlineauto.engine.ensemble.member import EnsembleLearner

        self._base = EnsembleLearner
        super()._check(part)
        missing = [name for name in _CLASS_ATTRIBUTES if not hasattr(part, name)]
        if len(missing) == 1 or (missing and not hasattr(part, "kernels")):
            raise OptionError(
                f"the member {part.name} has no {' and no '.join(missing)}: a member of classes has "
                f"{' and '.join(_CLASS_ATTRIBUTES)}, and a member of costs has kernels"
            )
        taken = {*self, *(name for each in self for name in _scores_of(member_of(each)))}
        if not taken.isdisjoint({part.name, *_scores_of(part)}):
            raise OptionError(f"there is a member {part.name} already, or a score of one of its names")

    def _add(self, part: Any) -> None:
        super()._add(part)
        self._parts[part.name] = Entry(
            (part.__doc__ or "").partition("\n")[0],
            costs=hasattr(part, "kernels"),
            classes=all(hasattr(part, name) for name in _CLASS_ATTRIBUTES),
            default=False,
            member=part,
        )


_CLASS_ATTRIBUTES = "class_kernels", "class_scores"


def _scores_of(member: EnsembleLearner) -> tuple[str, ...]:
    """Return the names of a member's scores of costs."""
    return getattr(member, "names", ())


MEMBERS = Members(
    "member",
    object,
    {
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
        "means": Entry("the mean cost of each action or feature of an action, whatever the context"),
        "vectors": Entry("least squares on all numbers of vectors, such as embeddings"),
        "linear": Entry("least squares on the features of single lines, without bins"),
        "trees": Entry(
            "boosted trees of numbers and words, fitted again as events double, later every 16,384",
            classes=True,
        ),
        "logistic": Entry(
            "logistic regressions on features, and on features and pairs of words", costs=False, classes=True
        ),
    },
)
"""The members, by name."""
register = MEMBERS.register
"""Make a member known by its name; see `onlineauto.options.Parts.register`."""
unregister = MEMBERS.unregister
"""Remove a member that was registered."""
extend = MEMBERS.extend
"""Add the options of members, also of those registered later, to a registry of options."""

DEFAULT = ",".join(name for name, entry in MEMBERS.items() if entry.default)
"""The default of ``--members``."""


def member_of(name: str) -> Any:
    """Return the member with a name, importing its module if necessary."""
    return MEMBERS[name].member or _import_member(name)


@cache
def _import_member(name: str) -> EnsembleLearner:
    member: EnsembleLearner = import_module(f"onlineauto.engine.ensemble.members.{name}").MEMBER
    return member


def members_of(text: str) -> tuple[Member, ...]:
    """Return the members of costs that ``--members`` names, in the order of their weights.

    Raises
    ------
    OptionError
        A name serves classifications only, unless all default members are named.
    """
    serving = [name for name, entry in MEMBERS.items() if entry.costs]
    _check_serving(text, serving, "costs")
    return _members(text, serving)


def class_members_of(text: str, *, trees: bool = True) -> tuple[ClassMember, ...]:
    """Return the members of classes that ``--members`` names, in the order of their weights.

    Raises
    ------
    OptionError
        A name serves costs only, unless all default members are named; or no member remains.
    """
    serving = [name for name, entry in MEMBERS.items() if entry.classes and (trees or name != "trees")]
    _check_serving(text, [*serving, "trees"], "classes")
    members: tuple[ClassMember, ...] = _members(text, serving)
    if not members:
        without = "" if trees else " and trees = False"
        raise OptionError(
            f"--members {text}{without} leaves no member of classes: name some of {', '.join(serving)}"
        )
    return members


def _members(text: str, serving: Sequence[str]) -> tuple[Any, ...]:
    names = _names(text)
    return tuple(member_of(name) for name in serving if name in names)


def _check_serving(text: str, serving: Sequence[str], task: str) -> None:
    """Check that each name serves a task; the default names, all together, are for both tasks."""
    names = _names(text)
    others = [name for name in MEMBERS if name in names - {*serving}]
    if others and names != _names(DEFAULT):
        raise OptionError(
            f"--members cannot have {', '.join(others)} for {task}; members of {task} are "
            f"{', '.join(name for name in MEMBERS if name in serving)}"
        )


def _names(text: str) -> set[str]:
    if text == "none":
        return set()
    return {name.strip() for name in text.split(",") if name.strip()}


def check_names(text: str) -> None:
    """Check the names in ``--members``."""
    names = _names(text)
    unknown = sorted(name for name in names if name not in MEMBERS)
    if text != "none" and (not names or unknown):
        more = f"; register {', '.join(unknown)} before it is used" if unknown else ""
        raise OptionError(
            f"--members cannot be {text}; it takes some of {MEMBERS.listed}, separated by commas, or "
            f"none{more}"
        )
    if text == DEFAULT:
        return
    members: tuple[Member, ...] = _members(text, [name for name, entry in MEMBERS.items() if entry.costs])
    available = {name for member in members for name in member.names}
    for member in members:
        for needs in member.needs:
            if needs.upon and needs.upon not in available:
                raise OptionError(
                    f"--members cannot have {member.name} without {needs.upon}, from whose scores it is "
                    f"computed; write {needs.upon},{member.name}"
                )
