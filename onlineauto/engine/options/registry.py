"""The options of a run, the list of all groups of options, and the checks of their combinations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from onlineauto.automl.control import control_of
from onlineauto.automl.options import ELEMENTS, AutomlOptions
from onlineauto.automl.oracles import ORACLES
from onlineauto.errors import OptionError
from onlineauto.explorers import EXPLORERS
from onlineauto.explorers.cost_range import check_cost_range
from onlineauto.explorers.options import EXPLORER_GROUPS, check_explorer, check_one_explorer, choose_explorer
from onlineauto.features.options import FeatureOptions, check_grams, check_interactions
from onlineauto.formats.options import InputOptions, check_format
from onlineauto.learners.options import (
    CbOptions,
    LossOptions,
    UpdateOptions,
    check_loss,
    check_prediction_range,
)
from onlineauto.options import Configuration, option, options_of

_BANDITS: Final = ("cb", "cb_adf", "cb_explore", "cb_explore_adf", "ccb_explore_adf")
_MODEL_FILES = ("final_regressor", "readable_model", "invert_hash")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """Models."""

    title: ClassVar[str] = "Models"

    final_regressor: str | None = option(
        None, "File for the model, written at once at the end.", short="f", metavar="FILE"
    )
    initial_regressor: tuple[str, ...] = option(
        (),
        "Model to continue from, exactly where it stopped, with its options. With -t, it only predicts.",
        short="i",
        metavar="FILE",
    )
    save_every: int | None = option(
        None,
        "Also write the model of -f whenever at least N more events are learnt.",
        vw=False,
        minimum=1,
        maximum=2**63 - 1,
        metavar="N",
        needs=("final_regressor",),
    )
    resume: bool = option(
        False,
        "If the file of -f exists, continue the run that wrote it: its model, counts and outputs, from the "
        "event after its last one. Otherwise start a new run.",
        vw=False,
        needs=("final_regressor",),
    )
    predict_only_model: bool = option(
        False,
        "Write only the champion to -f: a small model that can predict, and cannot learn further.",
        needs=_MODEL_FILES,
    )
    predict_only_ensemble: bool = option(
        False,
        "Write only what predicts now to -f, usually the ensemble, without what only learning needs. The "
        "model predicts the same as the whole model, and cannot learn further.",
        vw=False,
        needs=_MODEL_FILES,
    )
    readable_model: str | None = option(None, "File for the model as text, in VW's layout.", metavar="FILE")
    invert_hash: str | None = option(
        None, "File for the same text, with the names of the features that the run has seen.", metavar="FILE"
    )
    hexfloat_weights: bool = option(
        False,
        "Write the weights in these files exactly, in hexadecimal.",
        needs=("readable_model", "invert_hash"),
    )
    preserve_performance_counters: bool = option(
        False,
        "Continue the losses and counts of the run that saved the model of -i.",
        needs=("initial_regressor",),
    )
    base: str | None = option(
        None,
        "For `onlineauto merge`: the model from which all others continued; what they learnt since then is "
        "merged.",
        vw=False,
        metavar="FILE",
    )
    save_resume: bool = option(False, "Has no effect: every model can continue to learn.")

    def predict_only(self) -> Literal["champion", "ensemble", False]:
        """Return the predictor of a predict-only model of ``-f``; False if the model can learn."""
        if self.predict_only_ensemble:
            return "ensemble"
        return "champion" if self.predict_only_model else False


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOptions:
    """Inspect."""

    title: ClassVar[str] = "Inspect"

    format: str = option(
        "table",
        "What `onlineauto inspect` prints: a table for the terminal, Markdown or JSON.",
        vw=False,
        choices=("table", "markdown", "json"),
        metavar="FORMAT",
    )
    largest: int = option(
        20, "How many weights `onlineauto inspect` lists, the largest ones.", vw=False, minimum=0, metavar="N"
    )


def check_models(configuration: Configuration) -> None:
    """Reject several initial models, and options that a predict-only model cannot serve."""
    models = configuration[ModelOptions]
    if len(models.initial_regressor) > 1:
        names = " and ".join(map(str, models.initial_regressor))
        raise OptionError(
            f"-i takes one model, not {names}: files of data follow -d; `onlineauto merge` makes one model "
            "of several"
        )
    if models.resume and configuration.get("audit"):
        raise OptionError("--audit and --resume exclude each other: what was printed cannot be continued")
    if models.predict_only_model and models.predict_only_ensemble:
        raise OptionError(
            "--predict_only_model and --predict_only_ensemble exclude each other: one is the champion alone"
        )
    for name in configuration.supplied & {"resume", "save_every"}:
        if models.final_regressor is None:
            raise OptionError(f"--{name} needs -f, which names the file for the model")
        if models.predict_only():
            flag = "predict_only_ensemble" if models.predict_only_ensemble else "predict_only_model"
            raise OptionError(
                f"--{flag} and --{name} exclude each other: a model that only predicts cannot learn on"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Run."""

    title: ClassVar[str] = "Run"

    testonly: bool = option(False, "Predict only: ignore labels and change no weights.", short="t")
    passes: int = option(1, "How many times to read the data.", minimum=1, maximum=2**63 - 1, metavar="N")
    holdout_off: bool = option(False, "With several passes, learn from every event: hold none out.")
    holdout_period: int = option(
        10,
        "With several passes, hold out every N-th event to measure the loss.",
        minimum=1,
        maximum=2**32 - 1,
        metavar="N",
    )
    holdout_after: int | None = option(
        None,
        "Hold out all events after the N-th, instead of every N-th of --holdout_period.",
        minimum=1,
        maximum=2**32 - 1,
        metavar="N",
    )
    early_terminate: int = option(
        3,
        "Stop after this many passes in a row without a smaller held-out loss.",
        minimum=1,
        maximum=2**63 - 1,
        metavar="N",
    )
    cache: bool = option(
        False,
        "Write what is read into FILE.cache, as blocks, and read that in later passes and runs, while the "
        "data are older and are read by the same rules.",
        short="c",
    )
    cache_file: str | None = option(None, "The same, with a name for the cache.", metavar="FILE")
    kill_cache: bool = option(
        False, "Write the cache again, even if it is valid.", short="k", needs=("cache", "cache_file")
    )
    replay: str | None = option(
        None,
        "Do not search; repeat the decisions of this journal, which must be of the same stream.",
        vw=False,
        metavar="FILE",
        needs=("automl",),
    )
    random_seed: int = option(
        0,
        "Seed of everything random.",
        minimum=0,
        maximum=2**64 - 1,
        metavar="SEED",
        keep=True,
        keyword="seed",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOptions:
    """Several threads or actors that learn one model."""

    title: ClassVar[str] = "Several workers"

    workers: int | None = option(
        None,
        "Learn with this many threads: each round of events is cut into partitions, learnt by workers and "
        "merged. Only for --automl. The result does not depend on the number.",
        vw=False,
        minimum=1,
        maximum=256,
        metavar="N",
    )
    servers: int = option(
        0,
        "Number of merge servers, beside --workers of Ray: each owns a share of the model's tables, and "
        "merges what the workers send it. With 0, the process that reads merges. The result does not depend "
        "on it.",
        vw=False,
        minimum=0,
        maximum=64,
        metavar="M",
        needs=("workers",),
    )
    partitions: int = option(
        4,
        "Into how many parts --workers cuts a round. The result depends on this number, and not on that of "
        "the workers.",
        vw=False,
        minimum=1,
        maximum=256,
        metavar="P",
        needs=("workers",),
    )
    backend: str = option(
        "threads",
        "What --workers are: threads of one process, or actors of the Ray cluster at RAY_ADDRESS.",
        vw=False,
        choices=("threads", "ray"),
        needs=("workers",),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """Output."""

    title: ClassVar[str] = "Output"

    predictions: str | None = option(
        None,
        "File for the predictions; 'stdout' is standard output; a name that ends in .parquet makes Parquet.",
        short="p",
        metavar="FILE",
    )
    raw_predictions: str | None = option(
        None, "File for the scores before --link and the prediction's range.", short="r", metavar="FILE"
    )
    progress: str | None = option(
        None,
        "When to print a line of progress: after every N events, or, if N has a decimal point, each time the "
        "number of events has grown by the factor N. Not supplied: 2.0.",
        short="P",
        metavar="N",
    )
    audit: bool = option(
        False,
        "Print the features of each example with their values and weights to standard output.",
        short="a",
    )
    quiet: bool = option(
        False, "Print no progress, no summary and no warnings.", aliases=("driver_output_off",)
    )
    extra_metrics: str | None = option(None, "File for the run's metrics, as JSON.", metavar="FILE")
    journal: str | None = option(
        None,
        "File for the decisions of --automl, one line of JSON each; --replay repeats them.",
        vw=False,
        metavar="FILE",
        needs=("automl",),
    )
    version: bool = option(False, "Print the version and stop.")
    help: bool = option(False, "Print this help and stop.", short="h")


GROUPS: Final = (
    InputOptions,
    OutputOptions,
    ModelOptions,
    InspectOptions,
    RunOptions,
    PartitionOptions,
    FeatureOptions,
    UpdateOptions,
    LossOptions,
    CbOptions,
    *EXPLORER_GROUPS,
    AutomlOptions,
)
"""Every class of options, in the order of the help."""


def check_bandit(configuration: Configuration) -> None:
    """Reject two kinds of bandit at once, and ``--raw_predictions`` for bandits."""
    kinds = ["--" + name for name in _BANDITS if name in configuration.supplied]
    if len(kinds) > 1:
        raise OptionError(f"{kinds[0]} and {kinds[1]} exclude each other")
    if kinds and "raw_predictions" in configuration.supplied:
        raise OptionError(f"--raw_predictions is for single-line learning, not for {kinds[0]}")


def check_lags(configuration: Configuration) -> None:
    """Reject ``--lags`` where lines have no labels, no order or no names."""
    if not configuration[FeatureOptions].lags:
        return
    chosen = [name for name in (*_BANDITS, "audit", "invert_hash") if configuration.get(name)]
    if configuration[RunOptions].passes > 1:
        chosen.append("passes")
    if (loss := configuration[LossOptions].loss_function) in ("logistic", "hinge"):
        chosen.append(f"loss_function {loss}")
    if chosen:
        raise OptionError(
            f"--lags and --{chosen[0]} exclude each other: lags are of one pass of a regression"
        )


def check_automl(configuration: Configuration) -> None:
    """Reject a search that contradicts other options, such as interactions given by hand."""
    automl = configuration[AutomlOptions]
    if automl.automl is None:
        return
    control = control_of(configuration)
    named = automl.oracle_type or control.oracle
    oracle = ORACLES[named]
    bandit = not configuration.supplied.isdisjoint(_BANDITS)
    if not bandit and not oracle.renews:
        raise OptionError(
            f"--automl with --oracle_type {named} needs a bandit: one of "
            + ", ".join("--" + name for name in _BANDITS)
        )
    searched = automl.searched()
    if "epsilon" in searched:
        raise OptionError(
            "--search cannot have epsilon: logged rewards always favour less exploration, because "
            "they cannot measure its long-term value"
        )
    offered = (*ELEMENTS, *configuration.tunable())
    if not searched or searched - set(offered):
        raise OptionError(
            f"--search cannot be {automl.search}; it takes some of {', '.join(offered)}, separated by commas"
        )
    if "cb_type" in searched and not bandit:
        raise OptionError("--search cannot have cb_type on single lines, which log no action")
    explorer = choose_explorer(configuration)
    if "cb_type" in searched and explorer.cb_types != EXPLORERS["greedy"].cb_types:
        only = ", ".join(explorer.cb_types)
        raise OptionError(f"--search cannot have cb_type with --{explorer.name}, which takes only {only}")
    if "namespaces" in searched and "ignore_linear" in configuration.supplied:
        raise OptionError("--ignore_linear and --search namespaces exclude each other")
    if automl.champion_test == "reward" and not bandit:
        raise OptionError(
            "--champion_test cannot be reward on single lines: they log no action; leave it out, and losses "
            "are compared"
        )
    _refuse_contradictions(configuration, bandit=bandit, renews=oracle.renews)
    for name in ("quadratic", "cubic", "interactions", "leave_duplicate_interactions"):
        if name in configuration.supplied and not control.ignores_given:
            raise OptionError(
                f"--{name} and --automl exclude each other: the search chooses the interactions"
            )
    if automl.default_lease == 0 and not control.ignores_given:
        raise OptionError("--default_lease cannot be 0: no challenger would learn anything")
    if "experimental_full_name_interactions" in configuration.supplied:
        raise OptionError("--experimental_full_name_interactions and --automl exclude each other")


def check_kept(configuration: Configuration) -> None:
    """Reject ``--keep_unrewarded`` without a bandit, and with tests that do not weight events."""
    if configuration[CbOptions].keep_unrewarded == 1.0:
        return
    given, automl = configuration.supplied, configuration[AutomlOptions]
    paired = automl.automl is None or automl.is_paired(control_of(configuration).paired)
    reasons = (
        (
            given.isdisjoint(set(_BANDITS) - {"ccb_explore_adf"}),
            "is for bandits without slots, such as --cb_adf",
        ),
        (not paired, "and --estimator robust exclude each other: its bounds do not weight events"),
        ("epsilon_decay" in given, "and --epsilon_decay exclude each other: its bounds do not weight events"),
    )
    for holds, reason in reasons:
        if holds:
            raise OptionError(f"--keep_unrewarded {reason}")
    low, high = automl.rewards()
    if low < high and not low <= 0 <= high:
        raise OptionError(
            "--keep_unrewarded needs a --cost_range that contains 0, the cost of unrewarded events, not "
            f"{automl.cost_range}"
        )


def check_rewards(configuration: Configuration) -> None:
    """Reject a ``--cost_range`` that is not two numbers, the lower one first."""
    automl = configuration[AutomlOptions]
    try:
        automl.rewards()
    except ValueError:
        raise OptionError(
            f"--cost_range cannot be {automl.cost_range}; it takes two numbers, the lower one first, such "
            "as 0,1"
        ) from None


_PAIRED_OPTIONS: Final = (
    *("champion_test", "cost_range", "min_prob", "feature_cost", "on_drift", "waiting_overtakes"),
)


def _refuse_contradictions(configuration: Configuration, *, bandit: bool, renews: bool) -> None:
    """Reject options of the search that have no effect because of another option."""
    automl, control = configuration[AutomlOptions], control_of(configuration)
    paired = automl.is_paired(control.paired)
    oracle = automl.oracle_type or control.oracle
    reasons = (
        (not paired, _PAIRED_OPTIONS, "--estimator robust, which compares a bound on each one's reward"),
        (not renews, ("search", "feature_cost"), f"--oracle_type {oracle}"),
    )
    for holds, names, what in reasons:
        for name in names:
            decides = name == "cost_range" and "epsilon_decay" in configuration.supplied
            if holds and name in configuration.supplied and not decides:
                raise OptionError(f"--{name} has no effect with {what}")
    if automl.predict_with == "mix" and bandit:
        raise OptionError("--predict_with mix is for single lines; bandits have champion and ensemble")
    if automl.predict_with == "ensemble" and (what := excludes_ensemble(configuration)):
        raise OptionError(f"--predict_with ensemble and {what} exclude each other")
    of_ensemble = automl.predict_with in (None, "ensemble") and not excludes_ensemble(configuration)
    if of_ensemble and configuration[RunOptions].passes > 1:
        raise OptionError(
            "--passes: the ensemble over-fits events that it reads again; leave --passes out, or add "
            "--predict_with champion"
        )
    if paired and automl.automl_significance_level >= 1:
        raise OptionError(
            f"--automl_significance_level {automl.automl_significance_level} is not a probability below 1"
        )


def check_audit(configuration: Configuration) -> None:
    """Reject ``--audit`` and ``--invert_hash`` with slots, for which names are not stored."""
    names = [name for name in ("audit", "invert_hash") if configuration.get(name)]
    if names and configuration.get("ccb_explore_adf"):
        raise OptionError(
            f"--{names[0]} cannot be used with --ccb_explore_adf: names of features are not kept for slots"
        )


def check_progress(configuration: Configuration) -> None:
    """Reject a ``--progress`` that is neither a number of events nor a factor with a decimal point."""
    text = configuration[OutputOptions].progress
    if text is None:
        return
    if re.fullmatch(r"[0-9]+", text) and int(text) >= 1:
        return
    if re.fullmatch(r"[0-9]*\.[0-9]*", text) and text != "." and float(text) > 1:
        return
    raise OptionError(
        f"--progress cannot be {text}; it takes a number of events, such as 1000, "
        "or a factor above 1 with a decimal point, such as 2.0"
    )


CHECKS: Final = (
    check_format,
    check_interactions,
    check_grams,
    check_lags,
    check_loss,
    check_prediction_range,
    check_models,
    check_bandit,
    check_one_explorer,
    check_explorer,
    check_cost_range,
    check_automl,
    check_rewards,
    check_kept,
    check_audit,
    check_progress,
)
"""Functions that reject contradictory options, in the order in which they are called."""


_INSTEAD: Final = {
    "data": "fit takes the source",
    "help": "the documentation lists the options",
    "initial_regressor": "load takes the file",
    "final_regressor": "save takes the file",
    "journal": "observe is called with the decisions of the search, and AutoML.history has them",
    "predictions": "stream yields the outcomes of each block",
    "version": "onlineauto.__version__ has it",
    **dict.fromkeys(("cache", "cache_file", "kill_cache"), "convert writes a file of blocks"),
}
"""Alternatives in Python to options of the command line."""


COMMAND_LINE: Final = (
    *(
        "data",
        "cache",
        "cache_file",
        "kill_cache",
        "verbose_metrics",
        "workers",
        "servers",
        "partitions",
        "backend",
    ),
    *(
        option.name
        for group in (OutputOptions, ModelOptions, InspectOptions)
        for option in options_of(group)
        if option.name != "quiet"
    ),
)
"""Options that have an effect on the command line only; ``--quiet`` is always on in Python."""


def refuse_command_line(configuration: Configuration) -> None:
    """Reject options that have an effect on the command line only, see `COMMAND_LINE`."""
    for name in COMMAND_LINE:
        if name in configuration.supplied:
            instead = _INSTEAD.get(name, "it has no effect in Python: leave it out")
            raise OptionError(f"{name} is for the command line; {instead}")


def predicts_with(configuration: Configuration, *, simple: bool) -> str:
    """Return what predicts events in a search: "champion", "mix" or "ensemble"."""
    predictor: str | None = configuration[AutomlOptions].predict_with
    if predictor in ("champion", "mix"):
        return predictor
    if excludes_ensemble(configuration):
        return "mix" if simple else "champion"
    return "ensemble"


def excludes_ensemble(configuration: Configuration) -> str:
    """Return the option that makes an ensemble impossible, "" if there is no such option."""
    automl, explorer = configuration[AutomlOptions], choose_explorer(configuration)
    searched, update = automl.searched(), configuration[UpdateOptions]
    reasons = (
        (automl.automl is None, "no --automl"),
        (not automl.is_paired(control_of(configuration).paired), "--estimator robust"),
        (configuration[CbOptions].cb_type != "mtr", f"--cb_type {configuration[CbOptions].cb_type}"),
        (configuration[LossOptions].loss_function != "squared", "a --loss_function other than squared"),
        (bool(update.l1 or update.l2), "--l1 or --l2"),
        (not searched.isdisjoint(("cb_type", "l1", "l2")), "--search of cb_type, l1 or l2"),
        (bool(explorer.models(configuration) or explorer.bounds(configuration)), f"--{explorer.name}"),
        ("epsilon_decay" in configuration.supplied, "--epsilon_decay"),
    )
    return next((name for holds, name in reasons if holds), "")
