"""The option of exact mode, and the errors about options that ``--vw_exact`` does not reproduce."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from onlineauto.automl.options import AutomlOptions
from onlineauto.automl.oracles import ORACLES
from onlineauto.engine.options.registry import ModelOptions, OutputOptions
from onlineauto.engine.records.quirks import Quirks
from onlineauto.errors import OptionError
from onlineauto.exact.control import VW
from onlineauto.explorers.options import choose_explorer
from onlineauto.explorers.quirks import ExploringQuirks
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.options import FORMATS, InputOptions
from onlineauto.formats.quirks import ReadingQuirks
from onlineauto.learners.options import CbOptions, UpdateOptions
from onlineauto.options import option, options_of

if TYPE_CHECKING:
    from onlineauto.automl.control import Control
    from onlineauto.engine.loop.semantics import Semantics
    from onlineauto.engine.stream.dialect import Dialect
    from onlineauto.explorers.explorer import Explorer
    from onlineauto.options import Configuration

READING = ReadingQuirks(*(True for _ in ReadingQuirks._fields))
"""Quirks of VW's readers."""
EVENT = Quirks(*(True for _ in Quirks._fields))
"""Quirks of VW's handling of events."""
EXPLORING = ExploringQuirks(*(True for _ in ExploringQuirks._fields))
"""Quirks of VW's explorers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactOptions:
    """Options of exact mode."""

    title: ClassVar[str] = "Vowpal Wabbit"

    vw_exact: bool = option(
        False, "Reproduce Vowpal Wabbit 9.11.9 bit for bit, its defects included.", vw=False, keep=True
    )

    def bytewise_letters(self) -> bool | None:
        """Return True in exact mode, where letters of options are bytes, else None."""
        return self.vw_exact or None

    def dialect(self) -> Dialect | None:
        """Return the dialect of VW in exact mode, else None."""
        if not self.vw_exact:
            return None
        from onlineauto.exact.dialect import VW as DIALECT

        return DIALECT

    def semantics(self) -> Semantics | None:
        """Return the semantics of VW in exact mode, else None."""
        if not self.vw_exact:
            return None
        from onlineauto.exact.semantics import EXACT

        return EXACT

    def control(self) -> Control | None:
        """Return the control plane of VW in exact mode, else None."""
        return VW if self.vw_exact else None


_NOT_EXACT: Final = {
    "experimental_full_name_interactions": "Vowpal Wabbit crosses runs of the features of one full name",
    "lags": "Vowpal Wabbit has no labels among the features",
    "keep_unrewarded": "Vowpal Wabbit learns all events",
    "max_crossed": "Vowpal Wabbit leaves no interaction out",
    "rnd": "Vowpal Wabbit draws the guesses of members by the indices of weights",
}
_NOT_OF_SLOTS: Final = {
    "leave_duplicate_interactions": "Vowpal Wabbit has every interaction twice then",
    "interaction_type": "Vowpal Wabbit stops at interactions of more than three namespaces",
}
_AUDITED: Final = ("greedy", "first", "softmax", "synthcover")
_SEARCHED_FOR: Final = ("greedy", "first", "softmax", "squarecb")
"""Explorers that ``--vw_exact`` reproduces with ``--automl``."""
_OF_NATIVE: Final = (
    *("champion_test", "cost_range", "min_prob", "feature_cost"),
    *("on_drift", "search", "predict_with", "members", "keep_configs", "waiting_overtakes"),
)
"""Options of native mode's search, refused in exact mode."""


def check_exact(configuration: Configuration) -> None:
    """Refuse options that ``--vw_exact`` does not reproduce, or that have no effect with it."""
    if configuration[ExactOptions].vw_exact:
        explorer = choose_explorer(configuration)
        _check_foreign(configuration, explorer)
        _check_slots(configuration, explorer)
        _check_numbered_actions(configuration, explorer)
        _check_search(configuration, explorer)
        _check_decay(configuration)
        _check_audit(configuration, explorer)


def _not_reproduced(subject: str, reason: str, *, hint: str = "; leave --vw_exact out") -> OptionError:
    return OptionError(f"{subject} is not reproduced by --vw_exact: {reason}{hint}")


def _check_foreign(configuration: Configuration, explorer: Explorer) -> None:
    """Refuse options that ``--vw_exact`` never reproduces."""
    explored = [declared for group in explorer.options for declared in options_of(group)]
    groups = [type(group) for group in configuration.groups]
    tuned = [declared for group in groups for declared in options_of(group) if declared.tunable]
    formats = [declared for declared in options_of(InputOptions) if declared.name in FORMATS]
    others = [declared for declared in explored + tuned + formats if not declared.vw]
    foreign = {declared.name: "Vowpal Wabbit does not have it" for declared in others}
    for name, reason in (_NOT_EXACT | foreign).items():
        if name in configuration.supplied:
            raise _not_reproduced(f"--{name}", reason)


def _check_numbered_actions(configuration: Configuration, explorer: Explorer) -> None:
    """Refuse numbers of ``--cb K`` models with which Vowpal Wabbit lets actions share weights."""
    kind = next((name for name in ("cb", "cb_explore") if name in configuration.supplied), None)
    if kind is None:
        return
    estimates = configuration[CbOptions].cb_type == "dr"
    models = explorer.parts(configuration, estimates=estimates, quirks=EXPLORING)
    models *= configuration[AutomlOptions].automl or 1
    if models & (models - 1):
        raise _not_reproduced(
            f"--{kind} with {models} models",
            "unless the models of all live configs are a power of two, Vowpal Wabbit lets actions share "
            "weights",
        )


def _check_slots(configuration: Configuration, explorer: Explorer) -> None:
    """Refuse options that ``--vw_exact`` does not reproduce with ``--ccb_explore_adf``."""
    if "ccb_explore_adf" not in configuration.supplied:
        return
    for name, reason in _NOT_OF_SLOTS.items():
        if name in configuration.supplied:
            raise _not_reproduced(f"--{name} with --ccb_explore_adf", reason, hint="")
    features, automl = configuration[FeatureOptions], configuration[AutomlOptions]
    texts = (*features.quadratic, *features.cubic, *features.interactions)
    if explorer.bounds(configuration) and any(":" not in text for text in texts):
        raise _not_reproduced(
            f"--{explorer.name} with --ccb_explore_adf and interactions",
            "Vowpal Wabbit has some of them twice when it lists the features again",
            hint="",
        )
    oracle = automl.oracle_type or VW.oracle
    if automl.automl is not None and oracle in ("rand", "qbase_cubic"):
        raise _not_reproduced(
            f"--oracle_type {oracle} with --ccb_explore_adf",
            "Vowpal Wabbit's oracle and its sampling draw from the same numbers",
            hint="",
        )


def _check_search(configuration: Configuration, explorer: Explorer) -> None:
    """Refuse options that ``--vw_exact`` does not reproduce with a search, and those that are not VW's."""
    automl, update = configuration[AutomlOptions], configuration[UpdateOptions]
    if automl.automl is None:
        return
    for name in _OF_NATIVE:
        if name in configuration.supplied:
            raise OptionError(f"--{name} has no effect with --vw_exact, which decides as Vowpal Wabbit does")
    explorers = [flag for flag in explorer.flags if flag in configuration.supplied]
    if explorer.name not in _SEARCHED_FOR or explorer.bounds(configuration):
        name = "elim" if explorer.name in _SEARCHED_FOR else explorers[-1]
        names = ", ".join("--" + other for other in _SEARCHED_FOR[1:])
        raise OptionError(
            f"--automl with --{name} is not reproduced by --vw_exact, which has it with ε-greedy, {names}; "
            "leave --vw_exact out"
        )
    penalty = "l1" if update.l1 > 0 else "l2" if update.l2 > 0 else None
    if penalty is not None and explorer.name != "greedy":
        raise _not_reproduced(
            f"--automl with --{explorers[-1]} and --{penalty}", "a search has penalties only with ε-greedy"
        )
    oracle = ORACLES[automl.oracle_type or VW.oracle]
    if not oracle.in_vw or ORACLES.source(oracle) is not None:
        raise OptionError(
            f"--oracle_type cannot be {automl.oracle_type} with --vw_exact: Vowpal Wabbit does not have it"
        )
    if automl.is_paired(VW.paired):
        raise OptionError(
            "--estimator paired cannot be used with --vw_exact, which decides as Vowpal Wabbit does"
        )
    if automl.interaction_type == "both":
        raise OptionError(
            "--interaction_type cannot be both with --vw_exact: Vowpal Wabbit has no such value"
        )


def _check_audit(configuration: Configuration, explorer: Explorer) -> None:
    """Refuse an audit that would differ from Vowpal Wabbit's."""
    if configuration.get("ccb_explore_adf") and configuration[ModelOptions].readable_model:
        raise OptionError(
            "--readable_model cannot be used with --ccb_explore_adf: names of features are not kept for slots"
        )
    if not configuration[OutputOptions].audit:
        return
    if configuration.get("automl") is not None:
        cause = "--automl"
    elif configuration.get("cb_type") != "mtr":
        cause = f"--cb_type {configuration.get('cb_type')}"
    elif explorer.name not in _AUDITED:
        cause = f"--{explorer.name}"
    else:
        return
    raise _not_reproduced(
        f"--audit with {cause}", "Vowpal Wabbit prints what it predicts in the midst of learning an event"
    )


def _check_decay(configuration: Configuration) -> None:
    """Refuse options that ``--vw_exact`` does not reproduce, or does not use, with ``--epsilon_decay``."""
    if "epsilon_decay" not in configuration.supplied:
        return
    if "cb_sample" in configuration.supplied:
        raise _not_reproduced(
            "--cb_sample with --epsilon_decay",
            "Vowpal Wabbit draws an action for every model, and draws again to predict",
        )
    if "cost_range" in configuration.supplied:
        raise OptionError("--cost_range has no effect with --vw_exact, which decides as Vowpal Wabbit does")
