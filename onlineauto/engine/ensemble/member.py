"""``Member`` and ``ClassMember``: the learners whose scores an ensemble weighs besides the live configs.

A `Member` scores the costs of actions, or of single lines. A `ClassMember` scores the classes of events. A
learner may be both; its states of both tasks are then records of the same class.

A member is one file in `members` and one line of `registry`; `register` adds a member from outside the
package. A member gives each action one or more scores, and the ensemble learns a weight for each score. It
has a state that it learns, and separate scratch memory for each caller of the loop. A prediction must not
change anything except this scratch memory.

The kernels of a member are called by their addresses. So the loop is compiled without them, and a state may
have any type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from enum import IntEnum
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np

from onlineauto.automl.member_budget import LEAST_WORTH
from onlineauto.engine.ensemble.calibration import CHAMPION
from onlineauto.engine.records.ensemble import MOST_ACTIONS, MOST_FEATURES, MOST_NUMBERS
from onlineauto.state.schema import make, merge, read, save, to_predict, widen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.automl.config import Interaction
    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.options import Configuration
    from onlineauto.options.registry import Group
    from onlineauto.state.stored import Stored

ANY = 2**62
"""A limit that nothing exceeds."""

TOGETHER, EACH = 8, 4
"""Number of matrix entries that count as one weight, and of events per update of the covariance."""
LEARNT = 2.0
"""Additional count of a learnt action."""


def price_of_config(sizes: dict[bytes, float], crossed: Iterable[Interaction], n_actions: float) -> float:
    """Return the price of a config from the sizes of its namespaces and its interactions.

    >>> price_of_config({b"a": 2.0, b"b": 3.0}, [(b"a", b"b")], 4.0) - CHAMPION
    72.0
    """
    size_of = defaultdict(float, sizes).__getitem__
    own = 1.0 + sum(sizes.values()) + sum([prod(map(size_of, names)) for names in crossed])
    return CHAMPION + own * (n_actions + LEARNT)


class Part(NamedTuple):
    """The part of an event that a member must score: the actions [begin, end)."""

    begin: int
    end: int
    score: int  # index of the member's first score among those of all members
    column: int  # column of that score in `Buffers.score`


class Lesson(NamedTuple):
    """A cost for a member to learn: that of the logged action of an event that was already scored."""

    action: int
    known: int  # index of the action among the known actions; -1 if it is not known, 0 if actions are joined
    cost: float  # clipped to the range of costs so far, extended by one range on each side
    weight: float
    score: int  # as in `Part`
    column: int
    again: bool  # the inputs have changed since the event was scored
    trust: float  # a further factor of the weight, for members that learn each product separately
    fair: float  # the propensity weight if the policy hardly explores, else 1


class Need(IntEnum):
    """Columns of `Members.needs`, which are the fields of `Needs`."""

    NUMBERS = 0
    LEAST_ACTIONS = 1
    MOST_ACTIONS = 2
    EVENTS = 3
    WIDTH = 4
    VECTORS = 5
    UPON = 6
    INPUTS = 7


class Needs(NamedTuple):
    """Conditions of a score. Unless all are true, the score is neither computed nor weighed."""

    numbers: bool = False
    """At least one number must be known, unless actions are joined."""
    least_actions: int = 1
    """Minimum number of known actions."""
    most_actions: int = ANY
    """Maximum number of known actions. More than `MOST_ACTIONS` are joined."""
    events: int = 0
    """Minimum number of learnt events."""
    width: int = ANY
    """Maximum number of features of a context that may be crossed."""
    vectors: bool = False
    """At least one vector must be known."""
    upon: str = ""
    """Another score from which this one is computed; that score must work too."""
    inputs: bool = False
    """The score is computed from `MemberBuffers.taken`."""


class Sizes(NamedTuple):
    """The options and sizes that determine the state of a member."""

    configuration: Configuration
    cells: int  # cells of the table of weights of the live configs
    features: int = MOST_FEATURES
    numbers: int = MOST_NUMBERS
    actions: int = MOST_ACTIONS
    classes: int = 0  # capacity for classes; 0 if costs are learnt


class Work(NamedTuple):
    """Sizes of an event, which determine the price of a member."""

    inputs: int  # number of known features and bins
    unbinned: int  # number of known features
    widest: int  # number of features of the context that may be crossed
    features: float  # mean number of features of an action, including those of the context
    n_actions: float
    visits: float  # number of actions of an event, plus the additional ones for learning
    joined: bool  # there are too many actions for separate regressions
    in_vectors: int = 0  # number of numbers in known vectors


class ClassKernels(NamedTuple):
    """The entry kernels of a member of classes.

    ``score(classes, event, first, n_classes, state, scratch)`` writes the member's scores of each class into
    the rows of `ClassEvent.score` from `first` on. ``learn(classes, event, lesson, n_classes, state,
    scratch)`` learns the class `Lesson.action` of the event that was scored; the member's scores begin at
    the row `Lesson.score`.
    """

    score: Any
    learn: Any


class Kernels(NamedTuple):
    """The entry kernels of a member.

    ``score(context, stream, actions, part, state, scratch)`` writes the member's scores into `Buffers.score`,
    which already has the champion's score for each action. ``learn(context, stream, actions, lesson, state,
    scratch)`` learns an event. It is called unless all scores of the member rest, so it has to ask `works`
    for each score. ``grow(context, state)`` is called when a feature, a bin or an action is new.

    `MemberBuffers.known` has the index of each action that was learnt, -1 for others, and 0 for all actions
    if they are joined. `MemberBuffers.taken` is of this event only if `Needs.inputs` says so.
    """

    score: Any
    learn: Any
    grow: Any


def used_axes(inputs: Inputs) -> dict[str, int]:
    """Return the part of axes in use: of actions that are too many, all share one."""
    features, numbers, actions, _ = inputs.tally.tolist()
    return {
        "actions": 1 if actions > MOST_ACTIONS else actions,
        "classes": actions,
        "inputs": features,
        "numbers": numbers,
    }


def add_by_action(
    base: NDArray[Any], ends: Sequence[NDArray[Any]], context: Sequence[Branch]
) -> NDArray[Any]:
    """Return the sums of each action over all branches, which may have found actions in different orders."""
    total = np.zeros_like(base)
    times = 1 - len(ends), *(1 for _ in ends)
    for sums, branch, factor in zip((base, *ends), context, times, strict=True):
        known = branch.actions >= 0
        total[branch.actions[known]] += factor * sums[: len(known)][known]
    return total


class EnsembleLearner(ABC):
    """A learner of an ensemble: its name, and its state, also in model files.

    Attributes
    ----------
    record : type
        The declared class of its state; see `onlineauto.state.schema`. The sizes of the axes ``actions``,
        ``classes``, ``inputs``, ``numbers`` and ``cells`` are those of the ensemble. A learner with a
        declared class needs none of the methods on states: a new array is one line of the class.
    name : str
        Its name in ``--members``, in the registry and in model files.
    options : tuple of type
        The learner's groups of options.
    version : int
        Version of the learner's section in a model file; `restore` reads all versions from 1 to this one.
    """

    record: ClassVar[type[Any]]
    name: ClassVar[str]
    options: ClassVar[tuple[Group, ...]] = ()
    version: ClassVar[int] = 1

    def make_state(self, sizes: Sizes) -> Any:
        """Return the state before the first event: a NamedTuple of arrays, numbers and such tuples."""
        named = {"actions": sizes.actions, "inputs": sizes.features, "numbers": sizes.numbers}
        return make(self.record, named | {"cells": sizes.cells, "classes": sizes.classes})

    def state(self, state: Any, inputs: Inputs, *, working: Sequence[bool]) -> dict[str, Any]:
        """Return the section of a model file, without the version: only what is in use.

        `working` is true for each score that does not rest, or may work again.
        """
        del working
        return save(state, used_axes(inputs))

    def restore(self, stored: Stored, state: Any, inputs: Inputs) -> None:
        """Copy a section made by `state` into a state made by `make_state` or `to_predict`.

        Raises
        ------
        ValueError
            The section does not fit the state.
        """
        read(stored, state, used_axes(inputs))


class ClassMember(EnsembleLearner):
    """A learner whose scores of the classes the ensemble of a classification weighs.

    Attributes
    ----------
    class_scores : mapping of str to float
        The names of the scores, and their weights before the first event.
    class_kernels : ClassKernels
        The kernels of classes.
    """

    class_scores: ClassVar[Mapping[str, float]]
    class_kernels: ClassVar[ClassKernels]

    def class_scratch(self, features: int) -> Any:
        """Return the scratch memory for an event of up to `features` features: by default that of costs."""
        del features
        return cast("Member", self).make_scratch()

    def widen(self, state: Any, wider: Any) -> None:
        """Copy the state into a new one with more capacity for classes."""
        widen(state, wider)

    def add_class(self, state: Any, inputs: Inputs) -> None:
        """Prepare the state for a new class, which is the last of the known ones."""


class Member(EnsembleLearner):
    """A learner whose scores of costs the ensemble weighs.

    Attributes
    ----------
    scores : tuple of str
        Names of the member's scores, in the order of their columns; by default `name` alone.
    needs : tuple of Needs
        The conditions of each score.
    least_worth : float
        The minimum worth of a score that does not rest. See `onlineauto.automl.member_budget`.
    first_weight : float
        The weight of the member's first score before the first event; the champion has the rest of 1.
    merges : str
        How states merge, in a few words, for the table of members in the documentation.
    cells : tuple of str
        Names of the arrays of the state that are hashed tables, whose last axis is the cell. Few cells change
        in an event, and cells merge independently of each other.
    least_squares : (float, float) or None
        The variance of a weight of the state's regression before the first event, and the part of its
        information that an event retains; None without a regression.
    any_order : bool
        Whether `merge` is right for branches that found new features and actions in different orders.
    """

    scores: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[Needs, ...]] = (Needs(),)
    least_worth: ClassVar[float] = LEAST_WORTH
    first_weight: ClassVar[float] = 0.0
    merges: ClassVar[str] = ""
    cells: ClassVar[tuple[str, ...]] = ()
    least_squares: ClassVar[tuple[float, float] | None] = None
    any_order: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the member's scores."""
        return self.scores or (self.name,)

    @property
    def on_lines(self) -> bool:
        """True if single lines have the member: not all of its scores need several actions."""
        return any(needs.least_actions < 2 for needs in self.needs)

    @property
    def on_actions(self) -> bool:
        """True if bandits have the member: its scores are not for single lines alone."""
        return any(needs.most_actions > 1 for needs in self.needs)

    @abstractmethod
    def kernels(self) -> Kernels:
        """Return the member's kernels."""

    @abstractmethod
    def make_scratch(self) -> Any:
        """Return the scratch memory for a caller of the loop: a NamedTuple of arrays."""

    @abstractmethod
    def prices(self, work: Work) -> Sequence[float]:
        """Return the work of each score, which `calibration` turns into its price.

        It is the number of weights that are touched for an event: counted, not measured by a clock, so that
        decisions are reproducible. Matrices are added up row by row, so that `TOGETHER` entries count as one.
        """

    def to_predict(self, state: Any) -> Any:
        """Return a state that shares the arrays that predictions need; its other arrays are empty."""
        return to_predict(state)

    def begin(self, state: Any, inputs: Inputs) -> None:
        """Prepare a new state for inputs that are already known."""

    def forget(self, state: Any) -> None:
        """Forget what a drift of the stream has made worthless, if the member does not forget by itself."""

    def terms(
        self, state: Any, inputs: Inputs, values: NDArray[np.float32], action: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """Return the terms of inputs in the member's score of a known action, which `explain` lists.

        `values` are the inputs of the event (`Taken.values`). The result has the indices of inputs and their
        terms, whose sum is the score but for a constant. None if the score is not linear.
        """
        del state, inputs, values, action
        return None

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> Any:
        """Return approximately the state that a single learner of all events would have.

        Each branch continued from the base and learnt separate events. `inputs` are the merged inputs. The
        given states are not changed. The order of branches affects rounding only, and a branch that learnt
        nothing has no effect. `onlineauto.engine.ensemble.branches` has the algebra.
        """
        del inputs
        return merge(base.state, [branch.state for branch in branches], (base, *branches))
