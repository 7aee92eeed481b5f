"""The catalogue of the search covers what it has to, and its comparison sees what it has to see."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.parity import automl_outputs
from tests.parity.automl_cases import CASES, SWITCHES, SearchCase
from tests.parity.automl_compare import differences_of_search, metric_differences

if TYPE_CHECKING:
    from pathlib import Path

    from tests.parity.automl_outputs import Outputs
    from tests.parity.wheel import Wheel

_SMALL = SearchCase(
    stream="two",
    events=120,
    flags="--cb_explore_adf --automl 3 --default_lease 10 --oracle_type one_diff_inclusion "
    "--automl_significance_level 1.99 --fixed_significance_level",
)


def _values(flag: str) -> set[str]:
    pairs = [pair for case in CASES for pair in pairwise(case.argv)]
    return {after for word, after in pairs if word == flag}


def test_the_catalogue_has_what_was_asked_for() -> None:
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


def test_the_wheel_rotates_and_changes_champions_in_the_catalogue(wheel: Wheel, tmp_path: Path) -> None:
    runs = {case: automl_outputs.wheels_once(case, wheel=wheel, directory=tmp_path) for case in CASES}
    sure = [run for case, run in runs.items() if "1.99" not in case.flags]
    assert sum(run.switches for run in sure) >= 10 * SWITCHES
    assert sum(run.switches > 0 for run in sure) >= SWITCHES
    for oracle in ("one_diff_inclusion", "rand", "qbase_cubic", "champdupe"):
        assert any(run.switches for case, run in runs.items() if oracle in case.argv), oracle
    assert sum(run.leases > 10 for run in runs.values()) > len(runs) / 2


@pytest.fixture
def outputs(wheel: Wheel, tmp_path: Path) -> Outputs:
    return automl_outputs.wheels(_SMALL, wheel=wheel, directory=tmp_path)


def test_a_run_differs_in_nothing_from_itself(outputs: Outputs, wheel: Wheel, tmp_path: Path) -> None:
    assert not differences_of_search(outputs, automl_outputs.wheels(_SMALL, wheel=wheel, directory=tmp_path))


def test_a_run_that_decides_otherwise_is_told_apart(outputs: Outputs, wheel: Wheel, tmp_path: Path) -> None:
    other = replace(_SMALL, flags=_SMALL.flags.replace("1.99", "0.1"))
    found = differences_of_search(outputs, automl_outputs.wheels(other, wheel=wheel, directory=tmp_path))
    kinds = {difference.split()[0].rstrip(":") for difference in found}
    assert kinds >= {"metrics", "search", "weight"}


def test_only_bounds_may_be_a_little_apart() -> None:
    for key, by, same in (("lb", 1e-7, True), ("ub", 1e-4, False), ("last_r", 1e-7, False)):
        assert (not metric_differences([(key, 0.5)], [(key, 0.5 + by)])) is same
