"""``Race``: a rung closes early, and retains its best trial with the stated probability."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray

from onlineauto.errors import OptionError
from onlineauto.tune import Float, Setting, Space, Study
from onlineauto.tune.live import tune_stream
from onlineauto.tune.live.tuning import used_resource
from onlineauto.tune.schedulers import Decision
from onlineauto.tune.schedulers.hyperband import Hyperband
from onlineauto.tune.schedulers.race import Race
from onlineauto.tune.searchers import SEARCHERS, Searcher
from tests.tune.live.streams import numbers
from tests.tune.studies import asked

pytestmark = pytest.mark.lane("ci")

TRIALS, BATCHES, REPORTS = 9, 144, 16
SETTING = Setting(space=Space({"rate": Float(0, 1)}), min_resource=BATCHES, max_resource=9 * BATCHES)


def rung(losses: NDArray[np.float64], *, alpha: float = 0.05, reloads: bool = False) -> list[int]:
    """Return the number of batches of each trial of a first rung; `losses` are by trial and batch."""
    race, searcher = new_race(alpha)
    given = []
    for means in losses:
        job = race.suggest(searcher)
        assert job is not None
        size = BATCHES // REPORTS
        for end in range(size, BATCHES + 1, size):
            race.on_details(
                job.trial, {"batch": 1, "first": end - size, "losses": means[end - size : end].tolist()}
            )
            if reloads:
                state = json.loads(json.dumps(race.state_dict()))
                race = new_race(alpha)[0]
                race.load_state_dict(state)
            if race.on_report(job.trial, end, float(means[:end].mean())) is Decision.STOP:
                break
        given.append(end)
        race.on_result(job.trial, end, float(means[:end].mean()))
    return given


def new_race(alpha: float) -> tuple[Race, Searcher]:
    race, searcher = Race(brackets=1, alpha=alpha), SEARCHERS["random"]()
    race.begin(SETTING)
    searcher.begin(SETTING.space, seed=0)
    return race, searcher


@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_the_best_trial_is_dropped_no_more_often_than_promised(gap: float) -> None:
    alpha, studies, draw = 0.2, 150, np.random.default_rng(4)
    dropped = 0
    for _ in range(studies):
        shared = draw.normal(size=BATCHES)  # an event is hard, or easy, for all
        losses = 1 + shared + draw.normal(size=(TRIALS, BATCHES))
        losses[-1] -= gap  # the best one comes last, and meets all others
        dropped += rung(losses, alpha=alpha)[-1] < BATCHES
    assert dropped <= alpha * studies + 3 * np.sqrt(alpha * (1 - alpha) * studies)


def test_a_rule_that_compares_means_drops_the_best_more_often() -> None:
    """The previous test can fail: it does with a naive rule on the same losses."""
    draw, dropped = np.random.default_rng(4), 0
    for _ in range(150):
        losses = draw.normal(size=BATCHES) + draw.normal(size=(TRIALS, BATCHES))
        means = losses.cumsum(axis=1)[:, BATCHES // REPORTS - 1 :: BATCHES // REPORTS]
        dropped += ((means[:-1] < means[-1]).sum(axis=0) >= 3).any()
    assert dropped > 100


def test_bad_trials_end_early_and_good_ones_do_not() -> None:
    draw = np.random.default_rng(1)
    losses = draw.normal(size=BATCHES) + 0.3 * draw.normal(size=(TRIALS, BATCHES))
    losses[3:] += 1
    given = rung(losses)
    assert given[:3] == [BATCHES] * 3
    assert max(given[3:]) < BATCHES
    assert sum(given) < 0.85 * TRIALS * BATCHES


def test_differences_and_not_losses_decide() -> None:
    draw = np.random.default_rng(1)
    losses = 100 * draw.normal(size=BATCHES) + 0.3 * draw.normal(size=(TRIALS, BATCHES))
    losses[3:] += 1
    assert max(rung(losses)[3:]) < BATCHES


def test_decisions_are_the_same_after_the_state_was_written_and_read() -> None:
    draw = np.random.default_rng(2)
    losses = draw.normal(size=(TRIALS, BATCHES)) + np.arange(TRIALS)[:, None] * 0.2
    assert rung(losses) == rung(losses, reloads=True)


def test_without_details_it_is_hyperband() -> None:
    studies = [
        Study({"rate": Float(0, 1)}, scheduler, max_resource=9, max_trials=20)
        for scheduler in (Race(brackets=None), Hyperband())
    ]
    for study in studies:
        study.run(lambda config, resource: config["rate"] + 1 / resource)
    assert studies[0].history() == studies[1].history()


def test_a_study_of_live_learners_learns_less_and_finds_the_same() -> None:
    events, costs, values = numbers(2700), [], []
    for scheduler in (Race(brackets=1), Hyperband(brackets=1)):
        study = tune_stream(events, scheduler=scheduler, searcher="random")
        costs.append(used_resource(study))
        values.append(study.best_value)
        dropped = [trial for trial in study.trials if trial.resource not in (100, 300, 900, 2700)]
        assert bool(dropped) is (scheduler.name == "race")
        assert {str(trial.state) for trial in dropped} <= {"TERMINATED"}  # and so none was resumed
    assert costs[0] < costs[1]
    assert values[0] == values[1]


@pytest.mark.parametrize(
    "details",
    [{"batch": 0, "first": 0, "losses": [1.0]}, {"losses": "low"}, {"batch": 1, "first": 0, "losses": ["a"]}],
)
def test_race_ignores_details_of_other_trainables(details: dict[str, object]) -> None:
    study = Study({"rate": Float(0, 1)}, "race", max_resource=9, max_trials=20)
    job = asked(study)
    assert study.report(job, 1, 0.5, details) is Decision.STOP
    study.tell(job, 0.5, details)
    assert study.trials[0].values == {1: 0.5}


def test_alpha_is_a_probability() -> None:
    with pytest.raises(OptionError, match=r"alpha = 1\.5: give a probability"):
        Race(alpha=1.5)
