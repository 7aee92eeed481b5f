"""The state of a search in the readable model: a line for each number, in VW's format.

VW writes the first bytes of namespaces as numbers; native mode writes names, and also settings. The paired
tests of native mode are not written; ``onlineauto inspect`` displays their evidence.

Source: VW ``automl_iomodel.cc``, ``confidence_sequence_robust.cc``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.automl.config import ConfigKind
from onlineauto.engine.records.search import RewardOwner, Tally
from onlineauto.estimators.robust_kernels import HISTOGRAM, LOW, LOWER, MID, SUM, UPPER, USED, T

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.automl.config import Config
    from onlineauto.engine.search.live_configs import LiveConfigs
    from onlineauto.engine.search.search_engine import Searching

_PREFIX = "_automl_config_manager"


def readable_search(searching: Searching, *, by_letter: bool = False) -> Iterator[str]:
    """Yield the lines of a search, without newlines.

    Namespaces are written by name or, with `by_letter`, as the number of their first byte.
    """
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
    for i, each in enumerate(search.slots):
        if not live_configs.arrays.tests.paired:
            yield from _estimator(live_configs, i, RewardOwner.SELF, f"{_PREFIX}_estimators[{i}].first")
        yield f"{_PREFIX}_estimators[{i}].first_index = {each.index}"
        yield f"{_PREFIX}_estimators[{i}].first_eligible_to_inactivate = {str(each.gives_way).lower()}"
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
    for at, what in ((SUM, "sum_x"), (LOW, "sum_low_v"), (MID, "sum_mid_v")):
        yield f"{name}_gt_{what} = {_number(state[at])}"
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
