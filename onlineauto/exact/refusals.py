"""What ``--vw_exact`` does not reproduce, refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onlineauto.automl.options import AutomlOptions
from onlineauto.errors import OptionError
from onlineauto.exact.options import ExactOptions
from onlineauto.exact.quirks import EXPLORING
from onlineauto.explorers.choice import chosen_explorer
from onlineauto.features.options import FeatureOptions
from onlineauto.learners.options import CbOptions

if TYPE_CHECKING:
    from onlineauto.options import Configuration

__all__ = ["CHECKS"]

_NOT_EXACT: Final = {
    "experimental_full_name_interactions": "Vowpal Wabbit crosses runs of the features of one full name",
    "rnd": "Vowpal Wabbit draws the guesses of members by the indices of weights",
}
_NOT_OF_SLOTS: Final = {
    "leave_duplicate_interactions": "Vowpal Wabbit has every interaction twice then",
    "interaction_type": "Vowpal Wabbit stops at interactions of more than three namespaces",
}


def check_exact(configuration: Configuration) -> None:
    """Refuse what ``--vw_exact`` reproduces beside no other option.

    Raises
    ------
    OptionError
        If it is supplied with ``--vw_exact``; the message says why and what to leave out.
    """
    for name, why in _NOT_EXACT.items() if configuration[ExactOptions].vw_exact else ():
        if name in configuration.supplied:
            raise OptionError(f"--{name} is not reproduced by --vw_exact: {why}; leave --vw_exact out")


def check_numbered(configuration: Configuration) -> None:
    """Refuse so many models of ``--cb K`` that Vowpal Wabbit lets actions share weights, in exact mode.

    Raises
    ------
    OptionError
        If ``--vw_exact`` is supplied, and the models of all live configs are no power of two.
    """
    kind = next((name for name in ("cb", "cb_explore") if name in configuration.supplied), None)
    if kind is None or not configuration[ExactOptions].vw_exact:
        return
    explorer, estimates = chosen_explorer(configuration), configuration[CbOptions].cb_type == "dr"
    models = explorer.parts(configuration, estimates=estimates, quirks=EXPLORING)
    models *= configuration[AutomlOptions].automl or 1
    if models & (models - 1):
        raise OptionError(
            f"--{kind} with {models} models is not reproduced by --vw_exact: unless the models of all live "
            "configs are a power of two, Vowpal Wabbit lets actions share weights; leave --vw_exact out"
        )


def check_slots(configuration: Configuration) -> None:
    """Refuse what ``--vw_exact`` does not reproduce of ``--ccb_explore_adf``.

    Raises
    ------
    OptionError
        Such as with ``--leave_duplicate_interactions``.
    """
    if "ccb_explore_adf" not in configuration.supplied or not configuration[ExactOptions].vw_exact:
        return
    for name, why in _NOT_OF_SLOTS.items():
        if name in configuration.supplied:
            raise OptionError(f"--{name} with --ccb_explore_adf is not reproduced by --vw_exact: {why}")
    explorer, features = chosen_explorer(configuration), configuration[FeatureOptions]
    texts = (*features.quadratic, *features.cubic, *features.interactions)
    if explorer.bounds(configuration) and any(":" not in text for text in texts):
        raise OptionError(
            f"--{explorer.name} with --ccb_explore_adf and interactions is not reproduced by --vw_exact: "
            "Vowpal Wabbit has some of them twice when it lists the features again"
        )
    automl = configuration[AutomlOptions]
    if automl.automl is not None and automl.oracle(exact=True) in ("rand", "qbase_cubic"):
        raise OptionError(
            f"--oracle_type {automl.oracle(exact=True)} with --ccb_explore_adf is not reproduced by "
            "--vw_exact: Vowpal Wabbit's oracle and its sampling draw from the same numbers"
        )


def check_decay(configuration: Configuration) -> None:
    """Refuse what ``--vw_exact`` does not reproduce of ``--epsilon_decay``, or has no use for.

    Raises
    ------
    OptionError
        With ``--cb_sample`` or ``--cost_range``.
    """
    if not configuration[ExactOptions].vw_exact or "epsilon_decay" not in configuration.supplied:
        return
    if "cb_sample" in configuration.supplied:
        raise OptionError(
            "--cb_sample with --epsilon_decay is not reproduced by --vw_exact: Vowpal Wabbit draws for every "
            "model, and again to predict; leave --vw_exact out"
        )
    if "cost_range" in configuration.supplied:
        raise OptionError("--cost_range has no effect with --vw_exact, which decides as Vowpal Wabbit does")


CHECKS: Final = (check_exact, check_slots, check_numbered, check_decay)
"""What refuses options, in the order in which they are asked."""
