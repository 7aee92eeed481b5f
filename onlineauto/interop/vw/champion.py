"""``write_vw_model``: the champion as a model file that Vowpal Wabbit loads.

``champion_words`` is the champion as a command line of Vowpal Wabbit, or the reason why it has none.
"""

from __future__ import annotations

import math
import os
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from onlineauto.automl.options import OF_DECAY, AutomlOptions
from onlineauto.errors import OptionError
from onlineauto.explorers.kinds.first import left_to_explore
from onlineauto.explorers.options import choose_explorer
from onlineauto.explorers.ranking_kernels import LEARNT as EXPLORED
from onlineauto.features.interactions import WILDCARD, parse_full_names
from onlineauto.features.options import GRAMS, FeatureOptions, unescape
from onlineauto.features.slots import INDEX_NAME
from onlineauto.interop.vw.file import VwDescent, VwFile, VwHead, VwShape, vw_file_bytes
from onlineauto.interop.vw.model import estimator_of, fields_of
from onlineauto.interop.vw.options import EXPLORER_FIELDS, PER_MODEL
from onlineauto.interop.vw.search import VwDecay
from onlineauto.learners.gradient_kernels import (
    CONTRACTION,
    GRAVITY,
    HOLDOUT_WEIGHT,
    MAX_LABEL,
    MIN_LABEL,
    NORM,
    ORIGIN,
    UNLABELLED_WEIGHT,
    WEIGHT,
    T,
    W,
)
from onlineauto.learners.model import read_cells
from onlineauto.learners.options import CbOptions
from onlineauto.learners.rule import initial_t
from onlineauto.options import options_of
from onlineauto.options.registry import to_text
from onlineauto.workspace.model_file import replace_file
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from onlineauto.engine.records.task import Decay
    from onlineauto.features.interactions import Product
    from onlineauto.options import Configuration
    from onlineauto.workspace.workspace import Workspace


def write_vw_model(workspace: Workspace, target: str | os.PathLike[str] | BinaryIO) -> None:
    """Write a model file that Vowpal Wabbit 9.11.9 loads with ``-i``; a search writes its champion.

    VW predicts the same with it: for a model of exact mode bit for bit, for any other up to the rounding of
    sums and of decimals in the text of options. Unless the model only predicts, VW can continue learning.

    Parameters
    ----------
    workspace : Workspace
        The model, which is not changed.
    target : path or binary file
        The file to write; a path is written atomically.
    """
    data = vw_model_bytes(workspace)
    if isinstance(target, str | os.PathLike):
        replace_file(target, [data])
    else:
        target.write(data)


def vw_model_bytes(workspace: Workspace) -> bytes:
    """Return the content of the file of `write_vw_model`."""
    words, parts = champion_words(workspace)
    exploration = workspace.learner.task.exploration
    whole = workspace.learner.fields > 1 or exploration.bounds  # cost bounds need the time even without rates
    explorer = choose_explorer(workspace.configuration).name
    several = whole and len(parts) > 1
    if several:
        words.append(PER_MODEL.decode())
    model = workspace.learner.model
    later = whole and len(np.unique(model.penalised[parts])) == 1  # VW applies shared penalties
    cell, value = _cells(workspace, parts, whole=whole, penalised=not later)
    low, high = float(model.shared[MIN_LABEL]), float(model.shared[MAX_LABEL])
    bits = int(math.log2(len(model.weights) * _n_lanes(parts)))
    options = "".join(f" {word}" for word in words).encode("utf-8", "surrogateescape")
    features = workspace.configuration[FeatureOptions]
    bandit, explores = workspace.kind != "simple", "explore" in workspace.kind
    kinds = EXPLORER_FIELDS.get(explorer, "") if explores else ""
    decay = workspace.learner.task.decay
    file = VwFile(
        head=VwHead(
            low=low,
            high=high,
            bits=bits,
            ngram=_grams("ngram", features.ngram),
            skips=_grams("skips", features.skips),
            options=options,
        ),
        indexed=bool(workspace.state(copy=False)["slots"]["told"]),
        decay=_decay(decay),
        explorer=_explorer(workspace, explorer) if kinds else (),
        averages=_averages(workspace, len(parts) if several else 1) if bandit else (),
        descent=_descent(workspace, parts if several else parts[:1], later=later) if whole else None,
        cell=cell,
        value=value,
    )
    shape = VwShape(slots=workspace.learner.task.slots, decaying=len(decay.place), explorer=kinds)
    return vw_file_bytes(file, shape=shape)


def _averages(workspace: Workspace, models: int) -> tuple[tuple[int, int], ...]:
    """Return the numbers of events and actions over which mtr has averaged, for each of `models` models."""
    count = models // 2 if models > 1 and workspace.configuration[CbOptions].cb_type == "dr" else models
    sums = [(int(events), int(actions)) for actions, events in workspace.learner.model.sums[0].reshape(-1, 2)]
    return tuple((sums + [(0, 0)] * count)[:count])


def _n_lanes(parts: list[int]) -> int:
    """Return the number of lanes in VW's table: the next power of two."""
    return 1 << (len(parts) - 1).bit_length()


def _cells(
    workspace: Workspace, parts: list[int], *, whole: bool, penalised: bool
) -> tuple[NDArray[np.uint64], NDArray[np.float32]]:
    """Return the numbers and the values of the champion's cells that are not zero."""
    learner = workspace.learner
    model = learner.model
    fields = fields_of(workspace.configuration) if whole else [W]
    any_learnt = learner.unlearnt.any()
    rows = np.arange(len(model.weights)) if any_learnt else np.flatnonzero(model.touched)
    value = read_cells(model, rows, lanes=parts)[:, fields].transpose(0, 2, 1)
    if penalised:
        for part, lane in enumerate(parts):
            value[:, part, 0] = _penalised_weights(workspace, value[:, part, 0], lane)
    value[rows == learner.shape.constant[0], 0, 0] += np.float32(model.shared[ORIGIN])
    cell = rows[:, None].astype(np.uint64) * np.uint64(_n_lanes(parts)) + np.arange(
        len(parts), dtype=np.uint64
    )
    nonzero = (value != 0).any(axis=2)
    return cell[nonzero], np.ascontiguousarray(value[nonzero])


def _penalised_weights(workspace: Workspace, weight: NDArray[np.float32], lane: int) -> NDArray[np.float32]:
    """Return the weights of a lane after its L1 and L2 penalties."""
    penalties = workspace.learner.model.lanes[workspace.learner.model.penalised[lane]]
    gravity, contraction = np.float32(penalties[GRAVITY]), np.float32(penalties[CONTRACTION])
    magnitude = np.maximum(np.abs(weight) - gravity, np.float32(0))
    return np.asarray(np.copysign(magnitude, weight) * contraction, np.float32)


def _explorer(workspace: Workspace, name: str) -> tuple[float, ...]:
    exploration = workspace.learner.task.exploration
    if EXPLORER_FIELDS[name] == "ff":
        return tuple(map(float, exploration.costs))
    learnt = int(exploration.counts[EXPLORED])
    return (left_to_explore(workspace.configuration, learnt) if name == "first" else learnt,)


def _decay(decay: Decay) -> VwDecay:
    return VwDecay(
        tuple(
            tuple(estimator_of(evidence) for evidence in decay.evidence[model, : model + 1])
            for model in range(len(decay.place))
        ),
        tuple(map(int, decay.place)),
    )


def _descent(workspace: Workspace, parts: list[int], *, later: bool) -> VwDescent:
    model = workspace.learner.model
    shared, first = model.shared, model.lanes[model.penalised[parts[0]]]
    return VwDescent(
        initial_t=float(initial_t(workspace.configuration)),
        t=float(shared[T] - shared[UNLABELLED_WEIGHT] - shared[HOLDOUT_WEIGHT]),  # VW omits these two
        norms=tuple(map(float, model.lanes[parts, NORM])),
        weights=tuple(map(float, model.lanes[parts, WEIGHT])),
        low=float(shared[MIN_LABEL]),
        high=float(shared[MAX_LABEL]),
        passes=workspace.learner.current_pass,
        gravity=float(first[GRAVITY]) if later else 0.0,
        contraction=float(first[CONTRACTION]) if later else 1.0,
    )


_INTERACTIONS = ("quadratic", "cubic", "interactions")
_LETTERS = (*_INTERACTIONS, "ignore", "ignore_linear", "keep")
_WRITTEN = {"bit_precision", "constant", "initial_weight", *GRAMS}
"""Options that other parts of the file contain, or that have no effect once weights are learnt."""
_SEARCH = {option.name for option in options_of(AutomlOptions)}
_NATIVE = {
    "cover": "arranges its policies differently",
    "regcb": "uses other plausible costs",
    "elim": "uses other plausible costs",
    "cb_sample": "draws otherwise",
    "ccb_explore_adf": "draws otherwise",
}
"""Options with which native mode and VW predict differently, and the reason."""
_PRINTABLE = range(32, 127)
_PLAIN = set(_PRINTABLE) - set(b" \\")


def champion_words(workspace: Workspace) -> tuple[list[str], list[int]]:
    """Return options with which VW predicts like the champion, and the lanes of the models that they need."""
    configuration, searching = workspace.configuration, workspace.searching
    if not workspace.semantics.predicts_as_vw:
        _refuse(workspace)
    values: dict[str, Any] = {
        option.name: configuration.get(option.name)
        for option in REGISTRY.options
        if option.keep and option.vw and option.name in configuration.supplied
    }
    searched = configuration[AutomlOptions].automl is not None
    if searched:
        champion = [
            interaction for interaction in searching.interactions(0) if INDEX_NAME not in interaction
        ]  # VW adds the other options
        values |= dict.fromkeys(_INTERACTIONS, ()) | {"interactions": tuple(map(_letters, champion))}
        settings = dict(searching.live_configs.configs[0].settings)
        values |= {name: value for name, value in settings.items() if REGISTRY[name].vw}
    elif "experimental_full_name_interactions" in values:
        full = [parse_full_names(text) for text in values.pop("experimental_full_name_interactions")]
        values["interactions"] = (*values.get("interactions", ()), *map(_letters_of_terms, full))
    if workspace.semantics.predicts_as_vw and (state := int(workspace.learner.task.exploration.random[0])):
        values["random_seed"] = state
    if "squarecb" not in values:  # VW has no --scaled_squarecb, the default of a search: it gets ε-greedy
        values.pop("gamma_scale", None)
    if "synthcover" in values and not workspace.semantics.predicts_as_vw:  # VW's least probability is 0
        values.setdefault("epsilon", choose_explorer(configuration).epsilon)
    searches = _SEARCH - (set(OF_DECAY) if "epsilon_decay" in values else set())
    words: list[str] = []
    for name, value in values.items():
        if name not in searches | _WRITTEN:
            words += _words(name, value)
    return words, _lanes_for(workspace, values)


def _grams(name: str, words: tuple[str, ...]) -> tuple[bytes, ...]:
    """Return the words of ``--ngram`` or ``--skips``, of which VW stores three bytes."""
    for word in words:
        if len(unescape(word)) > 3:
            raise OptionError(f"--{name} {word!r} has more than the three bytes that Vowpal Wabbit stores")
    return tuple(map(unescape, words))


def _words(name: str, value: Any) -> Iterator[str]:
    """Yield the words of one option."""
    if value is True:
        yield f"--{name}"
        return
    for each in value if isinstance(value, tuple) else (value,):
        text = to_text(each)
        if name in _LETTERS:
            text = text.replace(" ", r"\x20")
        if not text or re.search(r"\s", text) or text.startswith("--"):
            raise OptionError(f"--{name} {text!r} cannot be in a model file of Vowpal Wabbit")
        yield from (f"--{name}", text)


def _letters(interaction: tuple[bytes, ...]) -> str:
    """Return the first bytes of an interaction's names, in the spelling of an option."""
    letters = b"".join(name[:1] for name in interaction)
    if b":" in letters:
        raise OptionError("Vowpal Wabbit treats a namespace that begins with ':' as all namespaces")
    return "".join(chr(byte) if byte in _PLAIN else rf"\x{byte:02x}" for byte in letters)


def _letters_of_terms(terms: Product) -> str:
    """Return the first bytes of the full names of an interaction, in the spelling of an option."""
    if WILDCARD in terms:
        raise OptionError(
            "Vowpal Wabbit's --experimental_full_name_interactions with ':' cross other namespaces"
        )
    return _letters(tuple(term.name for term in terms))


def _lanes_for(workspace: Workspace, values: dict[str, Any]) -> list[int]:
    """Return the lanes of the champion that VW stores with these options."""
    lanes = workspace.learner.champion_lanes()
    if "cb_type" in workspace.configuration[AutomlOptions].searched() and values.get("cb_type") != "dr":
        return lanes[::2]  # the other lanes serve only the estimates of dr
    return lanes


def _refuse(workspace: Workspace) -> None:
    """Reject a model of native mode that VW cannot represent."""
    configuration = workspace.configuration
    if choose_explorer(configuration).name == "rnd":  # --vw_exact does not reproduce it either
        raise OptionError("Vowpal Wabbit would predict differently: its random predictions with --rnd differ")
    for reason in _reasons(workspace, configuration):
        raise OptionError(
            f"Vowpal Wabbit would predict differently: {reason}; learn with --vw_exact, where it does not"
        )


def _reasons(workspace: Workspace, configuration: Configuration) -> Iterator[str]:
    if "namespaces" in configuration[AutomlOptions].searched():
        yield "--search namespaces excludes namespaces, including those that appear later"
    if configuration[FeatureOptions].lags:
        yield "it has no --lags"
    explorer = choose_explorer(configuration).name if "explore" in workspace.kind else ""
    for name, reason in _NATIVE.items():
        if name == explorer or name in configuration.supplied:
            yield f"it {reason} with --{name}"
    flags = choose_explorer(configuration).flags
    settings = dict(workspace.searching.live_configs.configs[0].settings)
    tuned = (name for name in configuration.supplied if REGISTRY[name].tunable)
    for name in dict.fromkeys(
        (*(flag for flag in flags if flag in configuration.supplied), *tuned, *settings)
    ):
        if not REGISTRY[name].vw:
            yield f"it has no --{name}"
    layout = workspace.state(copy=False)["layout"]
    names = sorted({*layout["known"], *workspace.searching.live_configs.namespaces})
    for name, other in pairwise(names):
        if name[:1] == other[:1]:
            pair = f"{_quote_name(name)} and {_quote_name(other)}"
            yield f"namespaces {pair} begin with one letter, and are one to it"
    for name in names:
        if name[0] not in _PRINTABLE or name[:1] == b":":
            yield f"it does not cross namespace {_quote_name(name)}"
    if layout["left_out"]:
        yield "some namespaces are excluded from wildcards"


def _quote_name(name: bytes) -> str:
    return repr(name.decode("utf-8", "backslashreplace"))
