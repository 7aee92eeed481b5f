"""``header``: the lines that VW prints above its progress table, with those that mean nothing here.

Source: VW ``parse_args.cc``, ``parser.cc``, ``vw.cc``, and the names of the reductions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.automl.options import AutomlOptions
from onlineauto.engine.options.registry import ModelOptions, OutputOptions, RunOptions
from onlineauto.engine.report.progress import COLUMN_TITLES, format_general
from onlineauto.explorers.kinds.epsilon_decay import models_of
from onlineauto.explorers.options import choose_explorer
from onlineauto.explorers.sampling import SampleOptions
from onlineauto.features.options import FeatureOptions, letters_of, unescape
from onlineauto.formats.options import InputOptions
from onlineauto.learners.options import CbOptions, LossOptions, UpdateOptions
from onlineauto.learners.rule import initial_t, make_rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np

    from onlineauto.options import Configuration

_INPUTS = {"simple": "SIMPLE", "ccb_explore_adf": "CCB"}
_OUTPUTS = {
    "simple": "SCALAR",
    "cb": "MULTICLASS",
    "cb_adf": "ACTION_SCORES",
    "cb_explore": "ACTION_PROBS",
    "cb_explore_adf": "ACTION_PROBS",
    "ccb_explore_adf": "DECISION_PROBS",
}


def header(
    configuration: Configuration,
    *,
    kind: str,
    learnt_weight: float | None = None,
    cache: str = "using no cache",
) -> Iterator[str]:
    """Yield the lines above the table and its two lines of titles, without newlines.

    >>> from onlineauto.workspace.options import REGISTRY
    >>> for line in header(REGISTRY.parse("-d a.txt -q :: --ignore xy -t"), kind="simple"):
    ...     print(line)
    creating quadratic features for pairs: ::
    ignoring namespaces beginning with: x y
    only testing
    using no cache
    Reading datafile = a.txt
    num sources = 1
    Num weight bits = 18
    learning rate = 0.5
    initial_t = 0
    power_t = 0.5
    Enabled learners: gd, generate_interactions, scorer-identity, count_label
    Input label = SIMPLE
    Output pred = SCALAR
    average  since         example        example        current        current  current
    loss     last          counter         weight          label        predict features
    """
    yield from _features(
        configuration[FeatureOptions], bytewise=bool(configuration.first_result("bytewise_letters"))
    )
    yield from _example_and_output(configuration)
    if "explore" in kind:
        yield from choose_explorer(configuration).announced(configuration)
    sources = configuration[InputOptions].data or ("-",)
    yield cache
    yield from (f"Reading datafile = {'stdin' if source == '-' else source}" for source in sources)
    yield f"num sources = {len(sources)}"
    yield from _rates(configuration, initial_t(configuration) if learnt_weight is None else learnt_weight)
    if kind != "simple" or "cb_type" in configuration.supplied:
        yield f"cb_type = {configuration[CbOptions].cb_type}"
    yield f"Enabled learners: {', '.join(enabled_learners(configuration, kind=kind))}"
    yield f"Input label = {_INPUTS.get(kind, 'CB')}"
    yield f"Output pred = {_OUTPUTS[kind]}"
    yield from COLUMN_TITLES


def enabled_learners(configuration: Configuration, *, kind: str) -> list[str]:
    """Return the reductions of VW's stack for this configuration, from the bottom to the top."""
    loss = configuration[LossOptions]
    names = ["gd"]
    searches = configuration[AutomlOptions].automl is not None
    slots = kind == "ccb_explore_adf"
    if (slots or has_wildcards(configuration[FeatureOptions])) and not searches:
        names.append("generate_interactions")
    names.append(f"scorer-{loss.link}")
    if loss.binary:
        names.append("binary")
    if kind != "simple":
        names += ["csoaa_ldf-rank", "cb_adf"]
        names += ["automl"] if searches else []
        if "explore" in kind:
            names += choose_explorer(configuration).reductions
            names += ["cb_sample"] if slots or configuration[SampleOptions].cb_sample else []
            names += ["epsilon_decay"] if models_of(configuration) else []
        names.append("shared_feature_merger")
        names += [kind] if slots else []
        names += [] if kind.endswith("_adf") else ["cb_to_cbadf"]
    if configuration[OutputOptions].extra_metrics is not None:
        names.append("extra_metrics")
    if kind == "simple":
        names.append("count_label")
    return names


def has_wildcards(options: FeatureOptions) -> bool:
    """Return whether an interaction has a wildcard."""
    letters = (*options.quadratic, *options.cubic, *options.interactions)
    terms = [term for text in options.experimental_full_name_interactions for term in text.split("|")]
    return any(b":" in unescape(text) for text in letters) or ":" in terms


def _features(options: FeatureOptions, *, bytewise: bool) -> Iterator[str]:
    for texts, title in (
        (options.quadratic, "creating quadratic features for pairs:"),
        (options.cubic, "creating cubic features for triples:"),
        (options.interactions, "creating features for following interactions:"),
    ):
        if texts:
            yield f"{title} {' '.join(texts)}"
    for texts, title in (
        (options.ignore, "ignoring namespaces beginning with:"),
        (options.ignore_linear, "ignoring linear terms for namespaces beginning with:"),
        (options.keep, "using namespaces beginning with:"),
    ):
        if texts:
            yield f"{title} {_letters(texts, bytewise=bytewise)}"


def _letters(texts: Iterable[str], *, bytewise: bool) -> str:
    """Return each letter of the texts once, in order; bytes that are not characters as numbers."""
    named = sorted({letter for text in texts for letter in letters_of(text, bytewise=bytewise)})
    return " ".join(letter.decode("ascii" if bytewise else "utf-8", "backslashreplace") for letter in named)


def _example_and_output(configuration: Configuration) -> Iterator[str]:
    update, output = configuration[UpdateOptions], configuration[OutputOptions]
    if configuration[RunOptions].testonly:
        yield "only testing"
    if update.l1 > 0:
        yield f"using l1 regularization = {format_general(update.l1)}"
    if update.l2 > 0:
        yield f"using l2 regularization = {format_general(update.l2)}"
    if (model := configuration[ModelOptions].final_regressor) is not None:
        yield f"final_regressor = {model}"
    if output.predictions is not None:
        yield f"predictions = {output.predictions}"
    if output.raw_predictions is not None:
        yield f"raw predictions = {output.raw_predictions}"


def _rates(configuration: Configuration, learnt_weight: float | np.float32) -> Iterator[str]:
    update = configuration[UpdateOptions]
    yield f"Num weight bits = {configuration[FeatureOptions].bit_precision}"
    yield f"learning rate = {format_general(make_rule(configuration).learning_rate)}"
    yield f"initial_t = {format_general(learnt_weight)}"
    yield f"power_t = {format_general(update.power_t)}"
    if configuration[RunOptions].passes > 1:
        yield f"decay_learning_rate = {format_general(update.decay_learning_rate)}"
