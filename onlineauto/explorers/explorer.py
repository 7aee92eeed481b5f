"""`Explorer`: the base class of explorers, with everything that an explorer declares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from onlineauto.errors import OptionError
from onlineauto.options import options_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.explorers.quirks import ExploringQuirks
    from onlineauto.options import Configuration
    from onlineauto.options.registry import Group

EXPLORING = ("cb_explore", "cb_explore_adf", "ccb_explore_adf")
"""Options of which explorers need one."""

_SHARED = ("epsilon", "first_only")


def explores(configuration: Configuration) -> bool:
    """Return whether a configuration explores; otherwise options of explorers have no effect."""
    return not configuration.supplied.isdisjoint(EXPLORING)


class Explorer(ABC):
    """Turns scores into the probabilities of the actions: options, what depends on them, and the kernel.

    An instance is a choice with its settings: ``Bag(5)``, ``Squarecb(gamma_scale=100)``.

    Each explorer is one file and one line of `onlineauto.explorers`; `register` adds an explorer from outside
    the package. ``--help`` imports the file, too, so anything that imports NumPy or Numba is imported inside
    `kernel`.

    Parameters
    ----------
    value : int, optional
        The value of the option that chooses the explorer, if it takes one: the number of models of a bag.
    **settings
        Options of the explorer, as on the command line, and shared ones such as ``epsilon``.

    Attributes
    ----------
    settings : mapping
        The options of this instance.
    name : str
        VW's name of the explorer, mostly the part after ``cb_explore_adf_``.
    flags : tuple of str
        Options that choose the explorer; the default explorer has none.
    options : tuple of type
        The groups of options of the explorer.
    uses : tuple of str
        Shared options that the explorer uses.
    epsilon : float
        The default of ``--epsilon``.
    mellowness : float
        The default of ``--mellowness``, if the explorer uses plausible costs.
    stack : tuple of str
        VW's names of its reductions, from the bottom to the top, if not ``cb_explore_adf_`` and the name.
    cb_types : tuple of str
        Valid values of ``--cb_type``. If ``mtr`` is the only one, costs are learnt without importance
        weights.
    policy_kind : str
        How the models of a multi-model explorer learn, by the engine's name; "" if there is one model.
    direct : bool
        True if the loop computes the probabilities without calling the kernel; for ε-greedy only.
    sees_costs : bool
        True if the explorer reads the range of the costs learnt so far.
    sees_errors : bool
        True if the explorer reads the typical error of predictions.
    predicts_apart : bool
        True if VW's driver predicts before it learns, since this explorer's learning returns no prediction.
    """

    name: ClassVar[str]
    flags: ClassVar[tuple[str, ...]]
    options: ClassVar[tuple[Group, ...]] = ()
    uses: ClassVar[tuple[str, ...]] = ("epsilon",)
    epsilon: ClassVar[float] = 0.0
    mellowness: ClassVar[float] = 0.0
    stack: ClassVar[tuple[str, ...]] = ()
    cb_types: ClassVar[tuple[str, ...]] = ("mtr", "ips", "dr", "dm")
    policy_kind: ClassVar[str] = ""
    direct: ClassVar[bool] = False
    sees_costs: ClassVar[bool] = False
    sees_errors: ClassVar[bool] = False
    predicts_apart: ClassVar[bool] = True
    settings: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, value: int | None = None, /, **settings: Any) -> None:
        if value is not None:
            if not self.flags:
                raise OptionError(f"{type(self).__name__} takes settings by name, and not {value!r}")
            settings = {self.flags[0]: value, **settings}
        self.settings = settings

    def __repr__(self) -> str:
        """Return the explorer with its settings."""
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"{type(self).__name__}({settings})"

    def keywords(self) -> dict[str, Any]:
        """Return the options that choose this explorer, as keywords of a model.

        >>> from onlineauto.explorers import Bag, Squarecb
        >>> Bag(5).keywords(), Squarecb(elim=True).keywords()
        ({'bag': 5}, {'squarecb': True, 'elim': True})

        Raises
        ------
        OptionError
            The explorer takes a value, and has none.
        """
        if not self.flags or any(flag in self.settings for flag in self.flags):
            return dict(self.settings)
        declared = [option for group in self.options for option in options_of(group)]
        if not next((option.switch for option in declared if option.name == self.flags[0]), True):
            name = type(self).__name__
            raise OptionError(f"the explorer {self.name} takes a number: explorer={name}(5)")
        return {self.flags[0]: True, **self.settings}

    @property
    def reductions(self) -> tuple[str, ...]:
        """VW's names of the explorer's reductions, from the bottom to the top."""
        return self.stack or (f"cb_explore_adf_{self.name}",)

    @staticmethod
    @abstractmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel that replaces scores by probabilities: an `onlineauto.jit.entry_kernel`.

        It is called for events with at least one action, with these arguments:

        exploration : Exploration
            Its field ``numbers`` has the result of `numbers`. Explorers also read ``epsilon``,
            ``first_only``, ``counts[LEARNT]`` (the number of events learnt), ``costs`` (see `sees_costs`)
            and ``errors`` (see `sees_errors`).
        order : int32[n]
            Actions, the best first; the kernel may reorder them.
        score : float32[n]
            Costs of the actions in that order, ascending; the kernel replaces them by probabilities. Actions
            of equal cost are in ascending order; before the first event is learnt, all costs are equal.
        scratch : float32[4, n or more]
            Scratch. If `bounds` is true, the first two rows have the lowest and the highest plausible cost of
            each action.
        """

    def numbers(self, configuration: Configuration) -> tuple[float, ...]:
        """Return the parameters of the kernel, in an order that the explorer defines."""
        del configuration
        return ()

    def models(self, configuration: Configuration) -> int:
        """Return the number of models in each live config; 0 if there is only one."""
        del configuration
        return 0

    def announced(self, configuration: Configuration) -> tuple[str, ...]:
        """Return the lines that VW prints about the explorer before all others."""
        del configuration
        return ()

    def parts(self, configuration: Configuration, *, estimates: bool, quirks: ExploringQuirks) -> int:
        """Return the number of models, each a lane of weights, including those that estimate costs."""
        del quirks
        return (self.models(configuration) or 1) * (2 if estimates else 1)

    def bounds(self, configuration: Configuration) -> bool:
        """Return whether the explorer reads the range of plausible costs of each action."""
        del configuration
        return False

    def check(self, configuration: Configuration) -> None:
        """Refuse options that the explorer cannot be combined with.

        Raises
        ------
        OptionError
            For example, for ``--squarecb`` with ``--cb_type dr``.
        """
        cb_type = configuration.get("cb_type")
        if cb_type not in self.cb_types:
            raise OptionError(
                f"--{self.name} cannot learn by --cb_type {cb_type}; it can by {', '.join(self.cb_types)}"
            )

    def check_effects(self, configuration: Configuration) -> None:
        """Refuse shared options of explorers that this one does not use.

        Raises
        ------
        OptionError
            For example, for ``--first_only`` with ``--softmax``.
        """
        for name in _SHARED:
            if name in configuration.supplied and name not in self.uses:
                raise OptionError(f"--{name} has no effect with --{self.name}: leave it out")
