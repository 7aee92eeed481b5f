"""Readable model: a model as text in VW's layout (``--readable_model``, ``--invert_hash``).

With ``--vw_exact`` it is the output of VW 9.11.9, with its checksum. In native mode version and options are
those of onlineauto, and the weights of live configs are adjacent: the weight in lane k of a cell has the
number lanes · cell + k.

Source: VW ``parse_regressor.cc``, ``gd.cc``, and ``save_load`` of the reductions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.automl.config import ConfigKind
from onlineauto.engine.records.search import RewardOwner, Tally
from onlineauto.engine.stream.source import kind_of
from onlineauto.estimators.robust_kernels import HISTOGRAM, LOW, LOWER, MID, SUM, UPPER, USED, T
from onlineauto.explorers.kinds.first import left_to_explore
from onlineauto.explorers.options import choose_explorer
from onlineauto.explorers.ranking_kernels import LEARNT
from onlineauto.features.hash_kernels import murmur3
from onlineauto.features.options import GRAMS, FeatureOptions
from onlineauto.learners.gradient_kernels import (
    CONTRACTION,
    GRAVITY,
    MAX_LABEL,
    MIN_LABEL,
    NORM,
    ORIGIN,
    WEIGHT,
    A,
    N,
    W,
)
from onlineauto.learners.gradient_kernels import T as LEARNER_T
from onlineauto.learners.model import apply_penalties, read_cells
from onlineauto.learners.rule import initial_t
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from onlineauto.automl.config import Config
    from onlineauto.engine.report.progress import ProgressTable
    from onlineauto.engine.search.live_configs import LiveConfigs
    from onlineauto.engine.search.search_engine import Searching
    from onlineauto.options import Configuration
    from onlineauto.options.registry import Option
    from onlineauto.workspace.workspace import Workspace

_COUNTERS = {"squarecb": "squarecb", "regcb": "squarecb", "cover": "cover", "first": "first"}

_PREFIX = "_automl_config_manager"


def readable_search(searching: Searching, *, by_letter: bool = False) -> Iterator[str]:
    """Yield the lines of a search, without newlines."""
    search, live_configs = searching.search, searching.live_configs
    yield "_automl_state = Experimenting"
    yield f"{_PREFIX}_count = {live_configs.arrays.tally[Tally.LEARNT]}"
    yield f"{_PREFIX}_champ = 0"
    yield f"{_PREFIX}_valid_config_size = {search.n_valid}"
    names = [name for name in live_configs.namespaces if live_configs.count(name)]
    yield f"{_PREFIX}_ns_counter.size() = {len(names)}"
    for i, name in enumerate(names):
        yield f"{_PREFIX}_ns_counter.key{i} = {_namespace(name, by_letter=by_letter)}"
        yield f"{_PREFIX}_ns_counter[key{i}] = {live_configs.count(name)}"
    yield f"{_PREFIX}_configs.size() = {len(search.candidates)}"
    for i, candidate in enumerate(search.candidates):
        yield from _config(candidate.config, f"{_PREFIX}_configs[{i}]", by_letter=by_letter)
        yield f"{_PREFIX}_configs[{i}]_lease = {candidate.lease}"
        yield f"{_PREFIX}_configs[{i}]_state = {candidate.state.value.capitalize()}"
        kind = "Exclusion" if candidate.config.kind is ConfigKind.EXCLUSION else "Interaction"
        yield f"{_PREFIX}_configs[{i}]_type = {kind}"
    yield f"{_PREFIX}_estimators.size() = {len(search.slots)}"
    for i, slot in enumerate(search.slots):
        if not live_configs.arrays.tests.paired:
            yield from _estimator(live_configs, i, RewardOwner.SELF, f"{_PREFIX}_estimators[{i}].first")
        yield f"{_PREFIX}_estimators[{i}].first_index = {slot.index}"
        yield f"{_PREFIX}_estimators[{i}].first_eligible_to_inactivate = {str(slot.gives_way).lower()}"
        if not live_configs.arrays.tests.paired:
            yield from _estimator(live_configs, i, RewardOwner.CHAMPION, f"{_PREFIX}_estimators[{i}].second")
    yield f"{_PREFIX}_index_queue.size() = {len(search.queue)}"
    for i, (priority, index) in enumerate(search.queue):
        yield f"{_PREFIX}_index_queue[{i}].first = {_number(priority)}"
        yield f"{_PREFIX}_index_queue[{i}].second = {index}"


def _namespace(name: bytes, *, by_letter: bool) -> str:
    return str(name[0]) if by_letter else name.decode("utf-8", "surrogateescape")


def _config(config: Config, name: str, *, by_letter: bool) -> Iterator[str]:
    yield f"{name}_exclusions.size() = {len(config.elements)}"
    for i, element in enumerate(config.elements):
        yield f"{name}_exclusions[{i}].size() = {len(element)}"
        for k, namespace in enumerate(element):
            yield f"{name}_exclusions[{i}][{k}] = {_namespace(namespace, by_letter=by_letter)}"
    for setting, value in config.settings:
        yield f"{name}_{setting} = {value}"


def _estimator(live_configs: LiveConfigs, live: int, policy: int, name: str) -> Iterator[str]:
    arrays = live_configs.arrays
    weight, reward = arrays.statistics.last[live, policy].tolist()
    yield f"{name}_update_count = {arrays.schedule.updates[live]}"
    yield f"{name}_last_w = {_number(weight)}"
    yield f"{name}_last_r = {_number(reward)}"
    for row, side in ((LOWER, "lower"), (UPPER, "upper")):
        state = arrays.tests.evidence[live, policy, row].copy()
        if live == 0 and policy == RewardOwner.CHAMPION:  # VW has moved its histogram to live config 1.
            state[USED] = 0
        yield from _sequence(state, f"{name}_{side}")


def _sequence(state: NDArray[np.float64], name: str) -> Iterator[str]:
    yield f"{name}_t = {int(state[T])}"
    for entry, what in ((SUM, "sum_x"), (LOW, "sum_low_v"), (MID, "sum_mid_v")):
        yield f"{name}_gt_{what} = {_number(state[entry])}"
    yield f"{name}_gt_t = {int(state[T])}"
    entries = list(_histogram(state))
    yield f"{name}_gt_sum_v_histo.size() = {len(entries)}"
    for i, (bucket, strong, value) in enumerate(entries):
        yield f"{name}_gt_sum_v_histo.key{i}.first = {bucket}"
        yield f"{name}_gt_sum_v_histo.key{i}.second = {str(strong).lower()}"
        yield f"{name}_gt_sum_v_histo[key{i}] = {_number(value)}"


def _histogram(state: NDArray[np.float64]) -> Iterator[tuple[int, bool, float]]:
    """Yield (bucket, strong, value) for each entry of VW's histogram.

    A bucket with an error has two entries, and VW creates an entry of the bucket after it, even if it is 0.
    """
    before, last = False, int(state[USED]) - 2
    for bucket in range(last + 2):
        weight, term = float(state[HISTOGRAM + 2 * bucket]), float(state[HISTOGRAM + 2 * bucket + 1])
        is_shown = term != 0 or bucket == last or (weight != 0 and not before)
        if weight != 0 or is_shown or before:
            yield bucket, False, weight
        if is_shown:
            yield bucket, True, term or -0.0
        before = is_shown


def _number(value: float) -> str:
    """Return the shortest text that parses to this number."""
    return repr(float(value)).removesuffix(".0")


def readable_model(
    workspace: Workspace,
    progress: ProgressTable,
    *,
    names: Mapping[int, str] | None = None,
    weights_only: bool = False,
    hexfloat: bool = False,
) -> Iterator[str]:
    """Yield the lines of a model's text, each with its newline."""
    from importlib.metadata import version

    program = "9.11.9" if workspace.semantics.reports_as_vw else f"onlineauto {version('onlineauto')}"
    yield f"Version {program}\n"
    checksum = 0
    for text in _header(workspace, resumes=not weights_only):
        yield text
        data = np.frombuffer(text.encode("utf-8", "surrogateescape"), np.uint8)
        checksum = int(murmur3(data, 0, len(data), np.uint32(checksum)))
    yield f"Checksum: {checksum}\n"
    for line in _reductions(workspace, weights_only=weights_only):
        yield f"{line}\n"
    yield f":{int(not weights_only)}\n"
    if not weights_only:
        for name, value in _online_state(workspace, progress):
            yield f"{name} {value:g}\n" if isinstance(value, float) else f"{name} {value}\n"
    yield from _weights(workspace, names, weights_only=weights_only, hexfloat=hexfloat)


def _header(workspace: Workspace, *, resumes: bool) -> Iterator[str]:
    """Yield the texts of the header, over which the checksum is computed."""
    configuration, shared = workspace.configuration, workspace.learner.model.shared
    yield "Id \n"
    yield f"Min label:{shared[MIN_LABEL]:g}\n"
    yield f"Max label:{shared[MAX_LABEL]:g}\n"
    yield f"bits:{configuration[FeatureOptions].bit_precision}\n"
    yield "lda:0\n"
    options = configuration[FeatureOptions]
    for name, words in (("ngram", options.ngram), ("skip", options.skips)):
        yield from (f"{len(words)} {name}:", *(f"{word} " for word in words), "\n")
    command = " " + configuration.command(kept=True)
    if workspace.semantics.reports_as_vw:
        seed = int(workspace.learner.task.exploration.random[0])
        if configuration.get("automl") is not None:
            seed = workspace.search.random_state
        command = vw_command(configuration, seed=seed, resumes=resumes)
    yield f"options:{command}\n"


def _reductions(workspace: Workspace, *, weights_only: bool) -> Iterator[str]:
    """Yield the lines of the explorer, the search and the bandit."""
    if workspace.kind == "simple":
        if workspace.configuration.get("automl") is not None and not weights_only:
            yield from readable_search(workspace.searching)
        return
    exploration = workspace.learner.task.exploration
    explorer = choose_explorer(workspace.configuration).name
    if workspace.kind.startswith("cb_explore"):
        counter = int(exploration.counts[LEARNT])
        if explorer == "synthcover":
            yield f"_min_cost {exploration.costs[0]:g}"
            yield f"_max_cost {exploration.costs[1]:g}"
        elif explorer in _COUNTERS:
            first = explorer == "first"
            left = left_to_explore(workspace.configuration, counter) if first else counter
            yield f"cb {_COUNTERS[explorer]} adf storing example counter:  = {left}"
    if workspace.configuration.get("automl") is not None and not weights_only:
        yield from readable_search(workspace.searching, by_letter=workspace.semantics.reports_as_vw)
    actions, events = workspace.learner.model.sums[0, :2].tolist()
    if origin := workspace.learner.model.shared[ORIGIN]:
        yield f"origin {origin:g}"
    yield f"event_sum {events}"
    yield f"action_sum {actions}"


def _online_state(workspace: Workspace, progress: ProgressTable) -> Iterator[tuple[str, float | int]]:
    """Yield the numbers needed for further learning, with VW's names."""
    model, counts = workspace.learner.model, progress.counts()
    shared, lane = model.shared, model.lanes[0]
    yield "initial_t", float(initial_t(workspace.configuration))
    yield "norm normalizer", float(lane[NORM])
    yield "t", float(shared[LEARNER_T])
    yield "sum_loss", progress.sum_loss
    yield "sum_loss_since_last_dump", float(counts["_recent_loss"] or 0)
    yield "dump_interval", float(counts["_mark"] or 0)
    yield "min_label", float(shared[MIN_LABEL])
    yield "max_label", float(shared[MAX_LABEL])
    yield "weighted_labeled_examples", progress.weighted_labelled
    yield "weighted_labels", progress.weighted_labels
    yield "weighted_unlabeled_examples", progress.weighted_unlabelled
    yield "example_number", progress.example_number
    yield "total_features", progress.total_features
    yield "total_weight", float(lane[WEIGHT])
    yield "sd::oec.weighted_labeled_examples", float(counts["_old_labelled"] or 0)
    yield "current_pass", progress.current_pass
    yield "l1_state", float(lane[GRAVITY])
    yield "l2_state", float(lane[CONTRACTION])


def _weights(
    workspace: Workspace, names: Mapping[int, str] | None, *, weights_only: bool, hexfloat: bool
) -> Iterator[str]:
    """Yield a line for each weight with a written number other than 0."""
    rule, task = workspace.learner.rule, workspace.learner.task
    fields = [W]
    if not weights_only and task.training:
        fields += [A] if rule.adaptive else []
        fields += [N] if rule.normalized else []
    model = workspace.learner.model
    n_cells, lanes = model.weights.shape
    if not workspace.learner.unlearnt[fields].any():
        cells = np.flatnonzero(model.touched)
    else:
        cells = np.arange(n_cells)
    rows = read_cells(model, cells)[:, fields]
    if weights_only:
        rows[:, 0] = apply_penalties(rows[:, 0], model.lanes[model.penalised[:lanes]])
    rows = rows.transpose(0, 2, 1).reshape(-1, len(fields))
    numbers = (cells[:, None] * lanes + np.arange(lanes)).reshape(-1)
    nonzero = (rows != 0).any(axis=1)
    spell = _hexadecimal if hexfloat and not weights_only else "{:g}".format
    for number, row in zip(numbers[nonzero].tolist(), rows[nonzero].tolist(), strict=True):
        name = None if names is None else names.get(number) if row[0] != 0 else None
        if name is None:
            before = ":" if names is not None and weights_only else ""
        else:
            before = f"{name}:"
        yield f"{before}{number}:{' '.join(map(spell, row))}\n"


def _hexadecimal(value: float) -> str:
    """Return a number in hexadecimal in C's format, without trailing zeros.

    >>> _hexadecimal(1.5), _hexadecimal(-2.0), _hexadecimal(0.0)
    ('0x1.8p+0', '-0x1p+1', '0x0p+0')
    """
    mantissa, separator, exponent = value.hex().partition("p")
    return mantissa.rstrip("0").rstrip(".") + separator + exponent if "." in mantissa else value.hex()


_DROPPED: Final = frozenset(
    (
        *("bit_precision", "constant", "decay_learning_rate", "debug_reversed_learn", "expectile_q"),
        *("initial_t", "initial_weight", "l1", "l2", "leave_duplicate_interactions", "logistic_max"),
        *("logistic_min", "loss_function", "max_prediction", "min_prediction", "permutations"),
        *("quantile_tau", "random_seed", *GRAMS),
    )
)
"""Options that onlineauto's models store and VW's do not."""
OF_LEARNING: Final = frozenset(("adaptive", "invariant", "learning_rate", "normalized", "power_t", "sgd"))
"""Options that VW stores only in models that can learn further."""
_MERGED: Final = ("ignore", "ignore_linear", "keep")
"""Options that are written last, each as one word with all characters of its values in ascending order."""


def vw_command(configuration: Configuration, *, seed: int, resumes: bool) -> str:
    """Return the options that VW stores, in VW's order, as text with a blank before each.

    >>> vw_command(REGISTRY.parse("-q ab --ignore cb --epsilon 0.1 --cb_explore_adf"), seed=0, resumes=True)
    ' --cb_adf --cb_explore_adf --cb_type mtr --csoaa_ldf multiline --csoaa_rank --epsilon 0.100000001490116 \
--quadratic ab --ignore bc'
    """
    words: dict[str, str] = {}
    for option in REGISTRY.options:
        is_written = option.vw and option.keep and option.name not in _DROPPED
        is_written &= option.name in configuration.supplied and (resumes or option.name not in OF_LEARNING)
        if is_written:
            words[option.name] = _words(option, configuration.get(option.name))
    merged = {name: words.pop(name) for name in _MERGED if name in words}
    words |= _implied_options(configuration)
    text = "".join(words[name] for name in sorted(words))
    for name in merged:
        values = configuration.get(name)
        assert isinstance(values, tuple)
        text += f" --{name} {_characters(values)}"
    return f"{text} --random_seed {seed}" if seed else text


def _characters(values: tuple[str, ...]) -> str:
    """Return all bytes of the values, each once, in the order of C's signed characters."""
    characters = set("".join(values).encode("utf-8", "surrogateescape"))
    ordered = sorted(characters, key=lambda byte: (byte < 128, byte))
    return bytes(ordered).decode("utf-8", "surrogateescape")


def _implied_options(configuration: Configuration) -> dict[str, str]:
    """Return the options that VW's reductions set for one another, by name."""
    kind = kind_of(configuration)
    if kind == "simple":
        return {}
    names = ["cb_adf", "csoaa_rank", *(["cb_explore_adf"] if kind.startswith("cb_explore") else [])]
    words = {name: f" --{name}" for name in names}
    return words | {
        "csoaa_ldf": " --csoaa_ldf multiline",
        "cb_type": f" --cb_type {configuration.get('cb_type')}",
    }


def _words(option: Option, value: object) -> str:
    if option.switch:
        return f" --{option.name}"
    values = value if isinstance(value, tuple) else (value,)
    texts = (f"{float(np.float32(item)):.15g}" if isinstance(item, float) else str(item) for item in values)
    return "".join(f" --{option.name} {text}" for text in texts)
