"""Explore in a way of your own: an explorer is one class, and `register` adds it.

Next: 24 searches in a way of your own.
"""

from dataclasses import dataclass

from onlineauto import AutoML
from onlineauto.explorers import register
from onlineauto.explorers.explorer import Explorer
from onlineauto.explorers.policy import Policy
from onlineauto.jit import entry_kernel
from onlineauto.options import Configuration, option
from onlineauto.testing import check_explorer


@dataclass(frozen=True)
class HalvingOptions:
    """Options, for Python and for the command line."""

    title = "Exploration: halving"
    halving: bool = option(
        False, "Halve the probability from action to action, best first.", vw=False, keep=True
    )
    share: float = option(
        0.5, "Another part than half.", vw=False, keep=True, above=0, below=1, needs=("halving",)
    )


class Halving(Explorer):
    """The best action, and each behind it half as often as the one before."""

    name, flags, options, uses = "halving", ("halving",), (HalvingOptions,), ()

    def numbers(self, configuration: Configuration) -> tuple[float, ...]:
        """Return what the kernel goes by."""
        return (configuration[HalvingOptions].share,)

    @staticmethod
    def kernel():  # type: ignore[no-untyped-def]
        """Return the kernel: it replaces the costs of the actions, the best first, by probabilities."""

        @entry_kernel
        def halving(exploration, order, score, scratch):  # type: ignore[no-untyped-def]  # noqa: ARG001
            total = 0.0
            for i in range(len(score)):
                score[i] = exploration.numbers[0] ** i
                total += score[i]
            for i in range(len(score)):
                score[i] /= total

        return halving


register(Halving())
check_explorer(Policy(halving=True))

bandit = AutoML(explorer=Halving(share=0.5), live_configs=2)
kinds = [{"kind": "watches"}, {"kind": "rings"}, {"kind": "chains"}]
for _ in range(100):
    bandit.learn({"visitor": "anna"}, kinds, action=1, probability=0.5, reward=1)
print("probabilities:", bandit.predict({"visitor": "anna"}, kinds).round(2))
