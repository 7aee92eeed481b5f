"""`Explorer`: the base class of explorers, and all that one declares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.explorers.quirks import ExploringQuirks
    from onlineauto.options import Configuration
    from onlineauto.options.option import Group

_EXPLORING = ("cb_explore", "cb_explore_adf", "ccb_explore_adf")
_SHARED = ("epsilon", "first_only")


def explores(configuration: Configuration) -> bool:
    """Return whether there is anything to explore; else options of explorers have no effect."""
    return not configuration.supplied.isdisjoint(_EXPLORING)


class Explorer(ABC):
    """Turns scores into the pmf of the actions: its options, what depends on them, and its kernel.

    One file has all of an explorer, and one line of `onlineauto.explorers` adds it; `register` adds one from
    outside the package. The file is read for ``--help`` too, so whatever imports NumPy or Numba is imported
    inside of `kernel`.

    Attributes
    ----------
    name : str
        What VW calls it, mostly behind ``cb_explore_adf_``.
    flags : tuple of str
        Options of which any chooses it; of the default explorer there is none.
    options : tuple of type
        Its groups of options.
    uses : tuple of str
        Options that explorers share and this one goes by.
    epsilon : float
        The default of ``--epsilon``.
    mellowness : float
        The default of ``--mellowness``, if it goes by plausible costs.
    stack : tuple of str
        What VW calls its reductions, from the bottom to the top, if not ``cb_explore_adf_`` and the name.
    cb_types : tuple of str
        What costs can be learnt from. With mtr alone they are learnt as they are, whatever their probability.
    policy_kind : str
        How the models of a multi-model explorer learn, one of the engine's ways; "" if there is one model.
    direct : bool
        The loop computes its probabilities without calling the kernel; so it is for ε-greedy alone.
    sees_costs : bool
        It goes by the range of the costs learnt so far.
    predicts_apart : bool
        VW's driver has it predict before it learns, since its learning returns no prediction.
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
    predicts_apart: ClassVar[bool] = True

    @property
    def reductions(self) -> tuple[str, ...]:
        """VW's names of its reductions, from the bottom to the top."""
        return self.stack or (f"cb_explore_adf_{self.name}",)

    @staticmethod
    @abstractmethod
    def kernel() -> Callable[..., None]:
        """Return the kernel that replaces scores by probabilities: an `onlineauto.jit.entry_kernel`.

        It is called for events with at least one action, with these arguments:

        at : Exploration
            `numbers` of the explorer as ``at.numbers``, ``at.epsilon``, ``at.first_only``, and what was seen:
            ``at.counts[LEARNT]`` events learnt, ``at.costs`` (see `sees_costs`).
        order : int32[n]
            Actions, the best first; the kernel may list them in another order.
        score : float32[n]
            Their costs in that order, so the first is the lowest; to be replaced by their probabilities.
            Costs may be equal, as all are before anything is learnt; such actions are in their own order.
        room : float32[4, n or more]
            Scratch, but for the lowest and the highest plausible cost of each action in the first two rows,
            if `bounds` says so.
        """

    def numbers(self, configuration: Configuration) -> tuple[float, ...]:
        """Return what the kernel goes by, in an order of its own."""
        del configuration
        return ()

    def models(self, configuration: Configuration) -> int:
        """Return the number of models in each live config; 0 if there is only one."""
        del configuration
        return 0

    def announced(self, configuration: Configuration) -> tuple[str, ...]:
        """Lines that VW prints of it before all others."""
        del configuration
        return ()

    def parts(self, configuration: Configuration, *, estimates: bool, quirks: ExploringQuirks) -> int:
        """Models that it needs, each a lane of weights; those that estimate costs for it are among them."""
        del quirks
        return (self.models(configuration) or 1) * (2 if estimates else 1)

    def bounds(self, configuration: Configuration) -> bool:
        """Return whether it goes by the range in which the cost of each action plausibly lies."""
        del configuration
        return False

    def check(self, configuration: Configuration) -> None:
        """Refuse what it cannot be together with.

        Raises
        ------
        OptionError
            Such as ``--squarecb`` with ``--cb_type dr``.
        """
        cb_type = configuration.get("cb_type")
        if cb_type not in self.cb_types:
            raise OptionError(
                f"--{self.name} cannot learn by --cb_type {cb_type}; it can by {', '.join(self.cb_types)}"
            )

    def check_effects(self, configuration: Configuration) -> None:
        """Refuse options of all explorers that it does not use.

        Raises
        ------
        OptionError
            Such as ``--first_only`` with ``--softmax``.
        """
        for name in _SHARED:
            if name in configuration.supplied and name not in self.uses:
                raise OptionError(f"--{name} has no effect with --{self.name}: leave it out")
