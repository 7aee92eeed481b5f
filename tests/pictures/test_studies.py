"""A study is drawn in both looks, the same each time; what explains its values is what was put there."""

from __future__ import annotations

from math import inf, log10
from typing import TYPE_CHECKING

import pytest

from onlineauto.cli.main import main
from onlineauto.errors import InputError
from onlineauto.pictures.studies import best_so_far, importance, values_at_common_resource
from onlineauto.tune import Categorical, Float, Int, Study
from onlineauto.tune.drawing import draw_study

if TYPE_CHECKING:
    from pathlib import Path

SPACE = {
    "rate": Float(1e-4, 1, log=True),
    "depth": Int(1, 3),
    "loss": Categorical(["squared", "logistic"]),
    "decay": Float(0, 1, when={"loss": "logistic"}),
    "same": Categorical([True]),
}


def done(*, storage: str | None = None, mode: str = "min", trials: int = 40) -> Study:
    study = Study(SPACE, max_resource=9, searcher="random", max_trials=trials, mode=mode, storage=storage)
    study.run(lambda config, resource: abs(log10(config["rate"]) + 2) + config["depth"] / 10 + 1 / resource)
    return study


@pytest.mark.parametrize("dark", [False, True])
def test_a_study_is_drawn(tmp_path: Path, *, dark: bool) -> None:
    study = done()
    for name in ("one.svg", "other.svg"):
        draw_study(study, dark=dark).save(tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()
    picture = draw_study(study, title="Rates")
    assert [axes.get_title("left") for axes in picture.figure.axes] == [
        "what trials were given",
        "best so far, at the largest resource",
        "configs of 24 trials, by their values at 1",
        "what explains these values at 1",
    ]
    assert picture.figure.texts[0].get_text() == "Rates"


def test_the_command_draws_the_study_of_a_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'study.db'}"
    done(storage=url, trials=9)
    assert main(["plot", url, "-o", str(tmp_path / "study.svg")]) == 0
    assert main(["plot", url, "--name", "study", "--dark", "-o", str(tmp_path / "dark.png")]) == 0
    assert (tmp_path / "study.svg").stat().st_size > 10_000
    assert main(["plot", url, url, "-o", str(tmp_path / "study.svg")]) == 2


def test_a_study_without_values_is_not_drawn() -> None:
    study = Study({"rate": Float(0, 1)}, max_trials=1)
    with pytest.raises(InputError, match="no trial has a value"):
        draw_study(study)
    job = study.ask()
    assert job is not None
    study.tell(job, inf)
    with pytest.raises(InputError, match="no trial has a value"):
        draw_study(study)


def test_one_value_is_enough() -> None:
    draw_study(done(trials=1))
    draw_study(done(trials=2, mode="max"))


def test_what_explains_the_values() -> None:
    study = done(trials=200)
    level, rows = values_at_common_resource([row for row in study.history() if row["told"]])
    shares = importance(rows, study.space.described())
    assert level == 1
    assert shares["rate"] > 0.7 > 0.1 > shares["depth"]
    assert shares["loss"] < 0.1
    assert shares["same"] == 0


def test_the_best_of_those_that_were_given_most() -> None:
    rows = [{"resource": at, "value": value} for at, value in ((1, 5.0), (1, 7.0), (3, 6.0), (1, 9.0))]
    assert best_so_far(rows, -1.0) == [5.0, 7.0, 6.0, 6.0]
