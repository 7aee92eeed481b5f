"""The options for models: the one that a run starts from, and those that it writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onlineauto.errors import OptionError
from onlineauto.options import Configuration, option

__all__ = ["InspectOptions", "ModelOptions", "check_models"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """Models."""

    title: ClassVar[str] = "Models"

    final_regressor: str | None = option(
        None, "File for the model, in one step when all is learnt.", short="f", metavar="FILE"
    )
    initial_regressor: tuple[str, ...] = option(
        (),
        "Model to go on with, exactly where it was; it brings its options. With -t, to predict with.",
        short="i",
        metavar="FILE",
    )
    save_every: int | None = option(
        None,
        "Write the model of -f also whenever so many more events are learnt, at least.",
        vw=False,
        minimum=1,
        maximum=2**63 - 1,
        metavar="N",
        needs=("final_regressor",),
    )
    resume: bool = option(
        False,
        "Go on with a run that was stopped, if the file of -f is there: with its model, counts and outputs, "
        "behind the events that it was through with. Otherwise begin.",
        vw=False,
        needs=("final_regressor",),
    )
    predict_only_model: bool = option(
        False,
        "Let the model of -f be the champion alone, small, to predict with and not to go on with.",
        needs=("final_regressor", "readable_model", "invert_hash"),
    )
    readable_model: str | None = option(None, "File for the model as text, in VW's layout.", metavar="FILE")
    invert_hash: str | None = option(
        None, "The same with the names of the weights, of the features that were met.", metavar="FILE"
    )
    hexfloat_weights: bool = option(
        False,
        "Spell the weights in these files exactly, in hexadecimal.",
        needs=("readable_model", "invert_hash"),
    )
    preserve_performance_counters: bool = option(
        False,
        "Go on with the losses and counts of the run that the model of -i was saved in.",
        needs=("initial_regressor",),
    )
    base: str | None = option(
        None,
        "For `onlineauto merge`: the model that all others went on from; what they learnt since is merged.",
        vw=False,
        metavar="FILE",
    )
    save_resume: bool = option(False, "Has no effect: every model can be gone on with.")


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
    """Refuse several initial models, and options that a predict-only model cannot serve.

    Raises
    ------
    OptionError
        ``--initial_regressor`` is given twice; ``--resume`` or ``--save_every`` lacks ``-f`` or is given with
        ``--predict_only_model``; or ``--audit`` is given with ``--resume``.
    """
    models = configuration[ModelOptions]
    if len(models.initial_regressor) > 1:
        raise OptionError("-i takes one model; `onlineauto merge` makes one of several")
    if models.resume and configuration.get("audit"):
        raise OptionError("--audit and --resume exclude each other: standard output cannot be gone on with")
    for name in configuration.supplied & {"resume", "save_every"}:
        if models.final_regressor is None:
            raise OptionError(f"--{name} needs -f, which names the file for the model")
        if models.predict_only_model:
            raise OptionError(
                f"--predict_only_model and --{name} exclude each other: no run can go on with one"
            )
