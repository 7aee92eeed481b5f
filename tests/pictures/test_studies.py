"""A study is drawn in both looks, the same each time; what explains its values is what was put there."""

from __future__ import annotations

from math import inf, log10
from pathlib import Path
from typing import Any

import pytest

from onlineauto.cli.main import main
from onlineauto.errors import InputError
from onlineauto.pictures.studies import best_so_far, importance, study_picture, values_at_common_resource
from onlineauto.tune import ActiveTrial, Categorical, Float, Int, Study, TrialPruned, create_study
from onlineauto.tune.drawing import draw_study

pytestmark = pytest.mark.lane("ci")

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
        "configs of 13 trials, by their values at 9",
        "what explains these values at 9",
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


def test_importance_finds_the_parameters_that_matter() -> None:
    study = done(trials=200)
    level, rows = values_at_common_resource([row for row in study.history() if row["told"]])
    shares = importance(rows, study.space.described())
    assert level == 9  # which half as many trials reached as the most common level
    assert shares["rate"] > 0.7 > 0.1 > shares["depth"]
    assert shares["loss"] < 0.1
    assert shares["same"] == 0


def test_best_so_far_is_taken_at_the_largest_resource() -> None:
    rows = [{"resource": at, "value": value} for at, value in ((1, 5.0), (1, 7.0), (3, 6.0), (1, 9.0))]
    assert best_so_far(rows, -1.0) == [5.0, 7.0, 6.0, 6.0]


def pruned(name: str = "x", *, reports: bool = True) -> Study:
    def objective(trial: ActiveTrial) -> float:
        rate = trial.suggest_float(f"{name}rate", 1e-4, 1, log=True)
        depth, loss = trial.suggest_int(f"{name}depth", 1, 12), 1.0
        for epoch in range(20):
            loss += rate * (abs(depth - 5) / 10 - loss)
            if reports:
                trial.report(loss, epoch)
            if trial.should_prune():
                raise TrialPruned
        return loss

    study = create_study(study_name="pruned", seed=0)
    study.optimize(objective, n_trials=60)
    return study


def texts_of(picture: Any) -> list[Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(picture.figure).draw()  # type: ignore[no-untyped-call]
    return [each for each in picture.figure.findobj(Text) if each.get_visible() and each.get_text()]


def test_a_study_without_a_limit_is_drawn_at_its_furthest_step() -> None:
    picture = draw_study(pruned())
    texts = [each.get_text() for each in texts_of(picture)]
    assert not [text for text in texts if "mathdefault" in text or "000000000" in text]
    assert any(text.startswith("60 trials") and text.endswith(" at 20") for text in texts)
    assert "what explains these values at 20" in texts
    shares = [float(each.get_text()[:-1]) for each in picture.figure.axes[3].texts]
    assert 99 <= sum(shares) <= 101


@pytest.mark.parametrize("name", ["x", "module.encoder.layers.0.attention_", "a" * 60])
def test_no_text_of_a_picture_is_cut(name: str) -> None:
    picture = draw_study(pruned(name))
    texts_of(picture)
    box = picture.figure.get_tightbbox()
    assert -0.01 <= box.x0 < box.x1 <= 11.01
    assert -0.01 <= box.y0 < box.y1 <= 8.01


def test_a_study_without_reports_has_one_resource() -> None:
    texts = [each.get_text() for each in texts_of(draw_study(pruned(reports=False)))]
    assert not [text for text in texts if "mathdefault" in text or "000000000" in text]


def test_a_logarithmic_axis_has_plain_numbers() -> None:
    rows = [
        {"trial": at, "resource": 1 + 60 * at, "value": at / 30, "told": True, "config_x": at / 30}
        for at in range(30)
    ]
    picture = study_picture(rows, {"x": Float(0, 1).described()})
    assert picture.figure.axes[0].get_yscale() == "log"
    ticks = [each.get_text() for each in picture.figure.axes[0].get_yticklabels()]
    assert "1,000" in ticks
    assert not [text for text in ticks if "$" in text]


def test_shares_of_importance_add_up_to_one() -> None:
    for seed in range(3):
        study = Study(SPACE, "fifo", seed=seed, max_trials=60)
        study.run(lambda config: config["rate"] + config["depth"])
        shares = importance([row for row in study.history() if row["told"]], study.space.described())
        assert sum(shares.values()) == pytest.approx(1)
    assert set(
        importance([{"value": 1.0, "config_same": True}], {"same": SPACE["same"].described()}).values()
    ) == {0}


def test_studies_without_a_limit_are_listed_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'study.db'}"
    study = create_study(study_name="open", storage=url)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    assert main(["studies", url]) == 0
    assert capsys.readouterr().out.endswith("at the end\n")
