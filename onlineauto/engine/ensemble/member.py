"""``Member``: the contract of what the ensemble weighs beside the live configs.

A member is one file in `members` and one line of `registry`; `register` adds one from outside the package. It
gives each action one or several scores, and the ensemble learns a weight for each score. It has a state that
it learns, and a scratch that each caller of the loop has for itself: predictions must change nothing else.

Its kernels are called by their addresses. So the loop is compiled without them, and they may have any state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from onlineauto.automl.member_seats import LEAST_WORTH
from onlineauto.engine.records.ensemble import MOST_ACTIONS, MOST_FEATURES, MOST_NUMBERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.features.stored import Stored
    from onlineauto.options import Configuration
    from onlineauto.options.option import Group

__all__ = ["ANY", "Kernels", "Lesson", "Member", "Need", "Needs", "Part", "Sizes", "Work"]

ANY = 2**62
"""A limit that nothing exceeds."""


class Part(NamedTuple):
    """The part of an event that a member is to score: the actions [begin, end)."""

    begin: int
    end: int
    score: int  # number of its first score among those of all members
    column: int  # column of that score in `Buffers.score`


class Lesson(NamedTuple):
    """A cost for a member to learn: that of the logged action of an event that was scored before."""

    action: int
    known: int  # number of the action among those that are known; -1 if it is not known
    cost: float  # on the range of costs so far, extended by one range to each side
    weight: float
    score: int  # as in `Part`
    column: int
    again: bool  # the inputs are no longer those that were scored


class Need(IntEnum):
    """Columns of `Ensemble.needs`, which are the fields of `Needs`."""

    MOST_FEATURES = 0
    MOST_NUMBERS = 1
    NUMBERS = 2
    LEAST_ACTIONS = 3
    MOST_ACTIONS = 4
    EVENTS = 5
    WIDTH = 6
    UPON = 7
    INPUTS = 8


class Needs(NamedTuple):
    """Conditions of a score; unless all hold, the score is neither computed nor weighed."""

    most_features: int = ANY
    """Known features, at most."""
    most_numbers: int = ANY
    """Known numbers among them, at most."""
    numbers: bool = False
    """There must be a number, unless actions are joined."""
    least_actions: int = 1
    """Known actions, at least."""
    most_actions: int = ANY
    """Known actions, at most. More than `MOST_ACTIONS` are joined."""
    events: int = 0
    """Learnt events, at least."""
    width: int = ANY
    """Features of a context that may be crossed, at most."""
    upon: str = ""
    """Another score that this one is computed from: it must be there too."""
    inputs: bool = False
    """It is computed from `MemberBuffers.taken`."""


class Sizes(NamedTuple):
    """The options and sizes by which a member makes its state."""

    configuration: Configuration
    cells: int  # cells of the table of weights of the live configs
    features: int = MOST_FEATURES
    numbers: int = MOST_NUMBERS
    actions: int = MOST_ACTIONS


class Work(NamedTuple):
    """Sizes of an event, on which the price of a member depends."""

    inputs: int  # known features and bins
    widest: int  # features of a context that may be crossed
    features: float  # features of an action, with those of the context
    n_actions: float
    visits: float  # actions of an event, and as much again as learning counts
    joined: bool  # there are too many actions to tell apart


class Kernels(NamedTuple):
    """The entry kernels of a member.

    ``score(context, stream, actions, part, state, scratch)`` writes its scores into `Buffers.score`; where it
    has none for an action, the champion's is there already. ``learn(context, stream, actions, lesson, state,
    scratch)`` learns an event. ``grow(context, state)`` is called when a feature, a bin or an action is new.
    """

    score: Any
    learn: Any
    grow: Any


class Member(ABC):
    """A learner whose scores the ensemble weighs.

    Attributes
    ----------
    name : str
        Its name in ``--members``, in the registry and in model files.
    scores : tuple of str
        The names of its scores, in the order of their columns; one of its own name if there are none.
    needs : tuple of Needs
        What each score needs.
    least_worth : float
        What a score must be worth; else it rests. See `onlineauto.automl.member_seats`.
    options : tuple of type
        Its own groups of options.
    version : int
        Version of its section in a model file; `restore` takes all from 1 to this one.
    merges : str
        How states merge, in a few words, for the table of members.
    """

    name: ClassVar[str]
    scores: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[Needs, ...]] = (Needs(),)
    least_worth: ClassVar[float] = LEAST_WORTH
    options: ClassVar[tuple[Group, ...]] = ()
    version: ClassVar[int] = 1
    merges: ClassVar[str] = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its scores."""
        return self.scores or (self.name,)

    @abstractmethod
    def kernels(self) -> Kernels:
        """Return its kernels."""

    @abstractmethod
    def make_state(self, sizes: Sizes) -> Any:
        """Return its state before the first event: a NamedTuple of arrays, numbers and such tuples."""

    @abstractmethod
    def make_scratch(self) -> Any:
        """Return the scratch of a caller of the loop: a NamedTuple of arrays."""

    @abstractmethod
    def prices(self, work: Work) -> Sequence[float]:
        """Return the work of each score, in weights that are touched for an event."""

    def to_predict(self, state: Any) -> Any:
        """Return a state that shares the arrays that predictions need, and has the others empty."""
        return state

    @abstractmethod
    def state(self, state: Any, inputs: Inputs, *, working: Sequence[bool]) -> dict[str, Any]:
        """Return its section of a model file, but for the version: only what is in use.

        `working` says of each score whether it does not rest, or may work again.
        """

    @abstractmethod
    def restore(self, stored: Stored, state: Any, inputs: Inputs) -> None:
        """Put a section that `state` made into a state as `make_state` or `to_predict` returned it.

        Raises
        ------
        ValueError
            It is not the section of such a state.
        """

    def begin(self, state: Any, inputs: Inputs) -> None:  # noqa: B027 - most states begin as they are made
        """Let a new state begin with inputs that are known already."""

    @abstractmethod
    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> Any:
        """Return the state that one learner of the base and of all branches' events would about have.

        Each branch continued from the base and learnt separate events; `inputs` are the merged inputs. States
        stay as they are, the order of branches changes nothing but rounding, and a branch that learnt nothing
        changes nothing. `onlineauto.engine.ensemble.branches` has the algebra.
        """
