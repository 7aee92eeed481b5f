"""``--vw_exact --automl`` decides, learns, predicts and reports like VW."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.parity import automl_outputs
from tests.parity.automl_cases import CASES, LONG_CASES, SWITCHES, SearchCase
from tests.parity.automl_outputs import Outputs, differences_of_search, metric_differences
from tests.parity.vw import VwRunner

_SMALL = SearchCase(
    stream="two",
    events=120,
    flags="--cb_explore_adf --automl 3 --default_lease 10 --oracle_type one_diff_inclusion "
    "--automl_significance_level 1.99 --fixed_significance_level",
)


def _values(flag: str) -> set[str]:
    pairs = [pair for case in CASES for pair in pairwise(case.argv)]
    return {after for word, after in pairs if word == flag}


def test_catalogue_covers_all_options_of_the_search() -> None:
    assert len(set(CASES)) == len(CASES) >= 36
    assert _values("--automl") >= {"1", "2", "3", "4", "8", "16"}
    assert _values("--default_lease") >= {"10", "100", "1000", "4000"}
    assert _values("--oracle_type") | {"one_diff"} == {
        *("one_diff", "one_diff_inclusion", "rand", "qbase_cubic", "champdupe")
    }
    assert _values("--priority_type") | {"none"} == {"none", "favor_popular_namespaces"}
    assert _values("--cb_type") | {"mtr"} == {"mtr", "ips", "dr", "dm"}
    words = {word for case in CASES for word in case.argv}
    assert words >= {
        *("--cb_adf", "--cb_explore_adf", "--ignore", "--random_seed", "--debug_reversed_learn"),
        *("--automl_significance_level", "--fixed_significance_level", "--tol_x"),
        *("--priority_challengers", "--reward_as_cost", "cubic"),
        *("-b", "--noconstant", "--l1", "--l2", "--sgd", "--power_t"),
    }


def test_vw_rotates_and_changes_champions_in_the_catalogue(vw: VwRunner, tmp_path: Path) -> None:
    runs = {case: automl_outputs.run_vw_once(case, vw=vw, directory=tmp_path) for case in CASES}
    sure = [run for case, run in runs.items() if "1.99" not in case.flags]
    assert sum(run.switches for run in sure) >= 10 * SWITCHES
    assert sum(run.switches > 0 for run in sure) >= SWITCHES
    for oracle in ("one_diff_inclusion", "rand", "qbase_cubic", "champdupe"):
        assert any(run.switches for case, run in runs.items() if oracle in case.argv), oracle
    assert sum(run.leases > 10 for run in runs.values()) > len(runs) / 2


@pytest.fixture
def outputs(vw: VwRunner, tmp_path: Path) -> Outputs:
    return automl_outputs.run_vw(_SMALL, vw=vw, directory=tmp_path)


def test_run_equals_itself(outputs: Outputs, vw: VwRunner, tmp_path: Path) -> None:
    assert not differences_of_search(outputs, automl_outputs.run_vw(_SMALL, vw=vw, directory=tmp_path))


def test_different_decisions_are_reported(outputs: Outputs, vw: VwRunner, tmp_path: Path) -> None:
    other = replace(_SMALL, flags=_SMALL.flags.replace("1.99", "0.1"))
    found = differences_of_search(outputs, automl_outputs.run_vw(other, vw=vw, directory=tmp_path))
    kinds = {difference.split()[0].rstrip(":") for difference in found}
    assert kinds >= {"metrics", "search", "weight"}


def test_only_bounds_have_a_tolerance() -> None:
    for key, by, same in (("lb", 1e-7, True), ("ub", 1e-4, False), ("last_r", 1e-7, False)):
        assert (not metric_differences([(key, 0.5)], [(key, 0.5 + by)])) is same


def _compare(case: SearchCase, *, vw: VwRunner, directory: Path) -> None:
    expected = automl_outputs.run_vw_once(case, vw=vw, directory=directory)
    found = differences_of_search(expected, automl_outputs.run_exact(case, directory=directory))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_search_equals_that_of_vw(case: SearchCase, vw: VwRunner, tmp_path: Path) -> None:
    _compare(case, vw=vw, directory=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", LONG_CASES, ids=lambda case: case.id)
def test_long_searches_equal_those_of_vw(case: SearchCase, vw: VwRunner, tmp_path: Path) -> None:
    _compare(case, vw=vw, directory=tmp_path)
