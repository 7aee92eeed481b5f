"""``--vw_exact --epsilon_decay`` equals VW: predictions, weights, text, metrics, models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias

import pytest

from onlineauto.engine.records.task import Decay, DecayTally
from onlineauto.estimators.robust_kernels import LOWER, SUM, UPPER, T
from tests.parity import case as plain
from tests.parity.automl_outputs import metric_differences, parsed_metrics
from tests.parity.automl_streams import content
from tests.parity.exact import run_and_keep
from tests.parity.result import differences
from tests.parity.vw import VwRunner

_SURE = "--bonferroni_denominator 1 --epsilon_decay_significance_level"

CASES = f"""
quick    400 --cb_explore_adf
quick    500 --cb_explore_adf {_SURE} 1.9 --min_scope 10
quick    300 --cb_explore_adf {_SURE} 1.99 --model_count 5 --min_champ_examples 20
two      600 --cb_explore_adf {_SURE} 1.9 --model_count 2 --challenger_epsilon
tastes   600 --cb_explore_adf {_SURE} 1.5 -q :: --min_scope 30 --cb_type dr
three    400 --cb_explore_adf {_SURE} 1.99 --model_count 8 --min_scope 5 --shift_model_bounds 3
tastes   400 --cb_explore_adf --model_count 1
rewards  300 --cb_explore_adf --model_count 5 -q :: --first_only --tol_x 1e-3
rewards  300 --cb_explore_adf --model_count 4 --min_scope 10 --cb_type dr -b 12
rewards  300 --cb_explore_adf --min_scope 20 --constant_epsilon --epsilon 0.2
rewards  300 --cb_explore_adf --min_scope 20 --initial_epsilon 0.3 --cb_type ips --sgd -l 0.05
rewards  300 --cb_explore_adf --min_scope 20 --initial_weight 0.1 --cb_type dm --power_t 0.3
rewards  200 --cb_explore_adf -t
rewards  200 --cb_explore_adf --min_scope 10 --passes 2
bandit   300 --cb_explore_adf --l1 1e-4 --l2 1e-4 --min_scope 10
bandit   300 --cb_explore_adf --reward_as_cost --noconstant --min_scope 10 -q UA
unsure   300 --cb_explore_adf --min_scope 10 --clip_p 0.2
classic_bandit 300 --cb_explore 4 --model_count 4 --min_scope 5 --reward_as_cost
rewards  300 --cb_explore_adf --min_scope 10 --cb_type dr --l1 1e-3 --l2 1e-2 --model_count 2
classic_bandit 300 --cb_explore 4 --model_count 2 --cb_type dr -b 10 --l2 1e-3
"""

Sums: TypeAlias = "dict[tuple[str, ...], float]"

_SUMS = re.compile(r"_epsilon_decayconf_seq_estimators\[(\d+)\]\[(\d+)\]_(lower|upper)_gt_(t|sum_x) = (\S+)")
_PLACE = re.compile(r"_epsilon_decay_weight_indices\[(\d+)\] = (\d+)")


def _of_vw(model: str) -> tuple[Sums, list[int]]:
    """Sums of all estimators, and where the weights of each model are, of a readable model."""
    sums: Sums = {found.groups()[:4]: float(found[5]) for found in _SUMS.finditer(model)}
    return sums, [int(found[2]) for found in _PLACE.finditer(model)]


def _of_ours(decay: Decay) -> tuple[Sums, list[int]]:
    sums: Sums = {
        (str(model), str(since), side, name): float(decay.evidence[model, since, row, entry])
        for model in range(len(decay.place))
        for since in range(model + 1)
        for side, row in (("lower", LOWER), ("upper", UPPER))
        for name, entry in (("t", T), ("sum_x", SUM))
    }
    return sums, [int(place) for place in decay.place]


def _content(stream: str, events: int) -> bytes:
    try:
        return content(stream, events=events)
    except KeyError:
        return plain.content(stream, events=events)


@pytest.mark.parametrize("line", CASES.strip().splitlines())
def test_restarted_models_equal_those_of_vw(line: str, vw: VwRunner, tmp_path: Path) -> None:
    stream, events, flags = line.split(maxsplit=2)
    argv = [*flags.split(), "--epsilon_decay", "--extra_metrics", "metrics.json"]
    file, metrics = tmp_path / "stream.txt", tmp_path / "metrics.json"
    file.write_bytes(_content(stream, int(events)))
    expected = vw.run(argv, file=file)
    counted = parsed_metrics(metrics.read_text())
    actual, workspace = run_and_keep(argv, file=file)
    found = differences(expected, actual) + metric_differences(counted, parsed_metrics(metrics.read_text()))
    assert not found, "\n".join(found)
    decay = workspace.learner.task.decay
    assert _of_ours(decay) == _of_vw((tmp_path / "vw.model").read_text("utf-8", "backslashreplace"))
    if _SURE in line:
        assert decay.tally[DecayTally.PROMOTED] > 0
    if "--min_scope" in line:
        assert decay.tally[DecayTally.DROPPED] > 0
