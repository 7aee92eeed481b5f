"""The options of the learner: the update of weights, the loss, and the targets for a bandit's costs."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.errors import OptionError
from onlineauto.options import Configuration, Log, OneOf, option

if TYPE_CHECKING:
    from onlineauto.features.records import Records

_LARGEST = 3.4028234663852886e38
"""Largest float32."""

CB_TYPES = ("mtr", "ips", "dr", "dm")
"""Values of ``--cb_type``; the position of a name is its code in kernels."""


def _write_rate(record: Records, value: float, default: float) -> None:
    record["rate"] = min(value / default, _LARGEST) if default else 1.0


def _write_power(record: Records, value: float, _: float) -> None:
    record["minus_power_t"] = -value
    record["norm_power"] = -record["minus_power_t"] - 1
    record["square_root"] = record["minus_power_t"] == -0.5


def _write_l1(record: Records, value: float, _: float) -> None:
    record["l1"] = _as_float32(value)


def _write_l2(record: Records, value: float, _: float) -> None:
    record["l2"] = _as_float32(value)


def _as_float32(value: float) -> float:
    """Return the float32 nearest to a value: penalties are float32 numbers, stored in float64 fields."""
    return float(struct.unpack("f", struct.pack("f", min(value, _LARGEST)))[0])


def _write_cb_type(record: Records, value: str, _: str) -> None:
    record["cb_type"] = CB_TYPES.index(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateOptions:
    """Options of gradient descent."""

    title: ClassVar[str] = "Gradient descent"

    learning_rate: float = option(
        0.5,
        "Step size. If it is not supplied and updates are not both adaptive and normalized, it is 10.",
        short="l",
        keep=True,
        override=True,
        minimum=0,
        metavar="RATE",
        # Where context says little, a rate far below the default one is best.
        tunable=Log(1e-4, 10.0, factors=(4.0, 0.125), write=_write_rate),
    )
    power_t: float = option(
        0.5,
        "Exponent by which the step size decays.",
        keep=True,
        override=True,
        minimum=0,
        metavar="POWER",
        tunable=Log(0.1, 1.0, factors=(0.5, 1.5), write=_write_power),
    )
    initial_t: float | None = option(
        None,
        "Number of events that count as already seen when the step size decays.",
        minimum=0,
        metavar="T",
        keep=True,
    )
    decay_learning_rate: float = option(
        1.0, "Factor on the step size after each pass.", minimum=0, metavar="FACTOR", keep=True, override=True
    )
    initial_weight: float = option(0.0, "Initial value of every weight.", metavar="WEIGHT", keep=True)
    sgd: bool = option(
        False,
        "Plain stochastic gradient descent, with only those of --adaptive, --normalized and --invariant that "
        "are supplied.",
        keep=True,
    )
    adaptive: bool = option(
        False,
        "A step size for each feature, from its past gradients. If none of --adaptive, --normalized, "
        "--invariant and --sgd is supplied, the first three are on.",
        keep=True,
    )
    normalized: bool = option(False, "A step size for each feature, from the scale of its values.", keep=True)
    invariant: bool = option(
        False, "Let one step with the importance weight 2 have the effect of two steps with 1.", keep=True
    )
    l1: float = option(
        0.0,
        "Weight of the L1 penalty, which makes small weights zero.",
        minimum=0,
        metavar="LAMBDA",
        keep=True,
        override=True,
        tunable=Log(1e-9, 1e-2, factors=(10.0, 0.1), first=1e-6, write=_write_l1),
    )
    l2: float = option(
        0.0,
        "Weight of the L2 penalty, which shrinks weights.",
        minimum=0,
        metavar="LAMBDA",
        keep=True,
        override=True,
        tunable=Log(1e-9, 1e-2, factors=(10.0, 0.1), first=1e-6, write=_write_l2),
    )
    min_prediction: float | None = option(
        None,
        "Smallest prediction. Not supplied: the smallest label so far, or 0 if that is less.",
        keep=True,
        metavar="LOW",
    )
    max_prediction: float | None = option(
        None,
        "Largest prediction. Not supplied: the largest label so far, or 0 if that is more.",
        keep=True,
        metavar="HIGH",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LossOptions:
    """Options of the loss and of predictions."""

    title: ClassVar[str] = "Loss and prediction"

    loss_function: str = option(
        "squared",
        "The loss that updates make smaller; 'classic' is squared without the invariant update.",
        choices=("squared", "classic", "hinge", "logistic", "quantile", "expectile", "poisson"),
        metavar="LOSS",
        keep=True,
        keyword="loss",
    )
    quantile_tau: float = option(
        0.5,
        "The quantile that --loss_function quantile predicts.",
        minimum=0,
        maximum=1,
        metavar="TAU",
        keep=True,
    )
    expectile_q: float | None = option(
        None,
        "The expectile that --loss_function expectile predicts; required there.",
        above=0,
        maximum=0.5,
        metavar="Q",
        keep=True,
    )
    logistic_min: float = option(
        -1.0,
        "The label that stands for the probability 0 with --loss_function logistic.",
        metavar="LOW",
        keep=True,
    )
    logistic_max: float = option(
        1.0,
        "The label that stands for the probability 1 with --loss_function logistic.",
        metavar="HIGH",
        keep=True,
    )
    link: str = option(
        "identity",
        "Turns a score x into a prediction: 'logistic' gives 0 to 1, 'glf1' gives -1 to 1, 'poisson' gives "
        "e^x.",
        keep=True,
        choices=("identity", "logistic", "glf1", "poisson"),
    )
    binary: bool = option(
        False, "Predict -1 or 1, and report the share of wrong ones as the loss.", keep=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CbOptions:
    """Options of contextual bandits."""

    title: ClassVar[str] = "Contextual bandit"

    cb: int | None = option(
        None,
        "Learn from lines that log one of K actions; predict the best action.",
        keep=True,
        minimum=1,
        maximum=2**32 - 1,
        metavar="K",
    )
    cb_adf: bool = option(
        False, "Learn from events of several lines, one for each action; predict the best action.", keep=True
    )
    cb_type: str = option(
        "mtr",
        "How the costs of actions are learnt: 'mtr' by importance-weighted regression on the logged action, "
        "'ips' from inverse propensity scores, 'dr' from doubly robust estimates, 'dm' by the direct method.",
        keep=True,
        choices=CB_TYPES,
        metavar="TYPE",
        needs=("cb", "cb_adf", "cb_explore", "cb_explore_adf", "ccb_explore_adf"),
        tunable=OneOf(("mtr", "dr", "ips"), write=_write_cb_type),
    )
    clip_p: float = option(
        0.0,
        "Raise logged probabilities below this one to it; 0 raises none.",
        keep=True,
        override=True,
        minimum=0,
        maximum=1,
        metavar="P",
        needs=("cb", "cb_adf", "cb_explore", "cb_explore_adf", "ccb_explore_adf"),
    )
    keep_unrewarded: float = option(
        1.0,
        "Learn a random share of the events whose cost is 0, such as 0.1, and let each count 1/share. All "
        "other events are learnt. Events that are left out are not predicted.",
        vw=False,
        keep=True,
        override=True,
        above=0,
        maximum=1,
        metavar="SHARE",
    )
    rank_all: bool = option(
        False,
        "Predict all actions with their scores, best first.",
        keep=True,
        override=True,
        needs=("cb_adf",),
    )


def check_loss(configuration: Configuration) -> None:
    """Refuse a parameter of an unused loss, and a loss without its required parameter."""
    options = configuration[LossOptions]
    for name, loss in (
        ("quantile_tau", "quantile"),
        ("expectile_q", "expectile"),
        ("logistic_min", "logistic"),
        ("logistic_max", "logistic"),
    ):
        if name in configuration.supplied and options.loss_function != loss:
            raise OptionError(
                f"--{name} is for --loss_function {loss}, but the loss is {options.loss_function}"
            )
    if options.loss_function == "expectile" and options.expectile_q is None:
        raise OptionError("--loss_function expectile needs --expectile_q, a number above 0 and at most 0.5")
    if options.logistic_min >= options.logistic_max:
        raise OptionError(
            f"--logistic_min {options.logistic_min} has to be less than --logistic_max {options.logistic_max}"
        )


def check_prediction_range(configuration: Configuration) -> None:
    """Refuse a ``--min_prediction`` above ``--max_prediction``."""
    low, high = configuration[UpdateOptions].min_prediction, configuration[UpdateOptions].max_prediction
    if low is not None and high is not None and low > high:
        raise OptionError(f"--min_prediction {low} is above --max_prediction {high}")
