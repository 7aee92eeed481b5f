"""The options for models: the one that a run starts from, and those that it writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from onlineauto.errors import OptionError
from onlineauto.options import Configuration, option

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
        aliases=("predict_only_stack",),
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
