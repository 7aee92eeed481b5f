"""Models with scaled numbers and labels on the command line: rejected by name, and inspected."""

from pathlib import Path

import pytest

from onlineauto import AutoMLRegressor
from tests.cli.conftest import Command

pytestmark = pytest.mark.lane("quick")


@pytest.fixture
def rent(tmp_path: Path) -> None:
    """Save a model of rents, and a new event."""
    rows = [({"rooms": 1 + k % 4}, 300.0 * (1 + k % 4)) for k in range(400)]
    AutoMLRegressor(live_configs=1).fit(rows).save(tmp_path / "rent.oam")
    (tmp_path / "new.json").write_text('{"rooms": 3}\n')


@pytest.mark.parametrize(
    "words",
    [
        ["new.json", "--json", "-i", "rent.oam", "-t"],
        ["new.json", "--json", "-i", "rent.oam", "--automl", "2"],
        ["convert", "rent.oam", "rent.vw"],
        ["merge", "rent.oam", "rent.oam", "-f", "both.oam"],
        ["evaluate", "new.json", "--policy", "rent.oam"],
    ],
    ids=["predict", "search", "convert", "merge", "evaluate"],
)
@pytest.mark.usefixtures("rent")
def test_commands_reject_a_model_of_a_regressor_by_name(run: Command, words: list[str]) -> None:
    err = run(words, code=None).err
    assert "is a model of AutoMLRegressor, which scales numbers and labels" in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("rent")
def test_inspection_names_the_class_that_scales(run: Command) -> None:
    words = run("inspect rent.oam").out.split()
    assert " ".join(words).count("scaled by AutoMLRegressor: numbers and labels are in standard deviations")
