"""``LiveLearner``: values of one window, checkpoints that continue exactly, and missed events."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.errors import InputError, OptionError
from onlineauto.tune import Float, Study
from onlineauto.tune.live import LiveLearner, tune_stream
from onlineauto.tune.live.live_learner import model_of
from onlineauto.workspace.run import Run
from tests.tune.live.streams import bandits, numbers, take

pytestmark = pytest.mark.lane("ci")

RATE = {"learning_rate": 0.3}


@pytest.mark.parametrize(("events", "base"), [(numbers(600), ""), (bandits(400), "--cb_explore_adf")])
def test_a_value_is_the_progressive_loss_that_a_run_has(events: list[str], base: str) -> None:
    taken = take(LiveLearner(events, base), RATE, 333)
    run = Run(Workspace(learning_rate=0.3, cb_explore_adf=bool(base)), events)
    run.step(333)
    losses = run.progress
    assert taken.steps[-1] == 333
    assert taken.values[-1] == pytest.approx(losses.sum_loss / losses.weighted_labelled, rel=1e-6)


@pytest.mark.parametrize("stops", [[100], [1, 77, 299], [128, 256]])
@pytest.mark.parametrize(("events", "base"), [(numbers(300), ""), (bandits(300), "--cb_explore_adf --bag 3")])
def test_a_resumed_trial_continues_byte_for_byte(events: list[str], base: str, stops: list[int]) -> None:
    learner = LiveLearner(events, base)
    whole = take(learner, RATE, 300)
    step, saved = 0, None
    for stop in [*stops, 300]:
        part = take(learner, RATE, stop, step=step, saved=saved)
        step, saved = stop, part.saved
    assert part.values[-1] == whole.values[-1]
    assert saved == whole.saved


def test_all_values_at_a_resource_are_about_the_same_events() -> None:
    study = Study(
        {"learning_rate": Float(0.01, 1, log=True)},
        scheduler="race",
        min_resource=30,
        max_resource=270,
        max_trials=12,
    )
    study.run(LiveLearner(numbers(270), window=25))
    told = [row for row in study.history() if row["told"]]
    windows: dict[int, set[tuple[int, int]]] = {}
    for row in told:
        windows.setdefault(row["resource"], set()).add((row["offset_from"], row["offset_to"]))
    assert {30, 90, 270} <= set(windows)
    assert all(seen == {(resource - 25, resource)} for resource, seen in windows.items())


def test_a_window_has_the_mean_loss_of_its_events_alone() -> None:
    events = numbers(400)
    taken = take(LiveLearner(events, window=100, every=50), RATE, 400)
    run = Run(Workspace(learning_rate=0.3), events)
    run.step(300)
    before = run.progress.sum_loss
    run.step()
    assert taken.values[-1] == pytest.approx((run.progress.sum_loss - before) / 100, rel=1e-5)
    assert {**taken.details[0], "losses": [], "first": 0} == {
        "offset_from": 0,
        "offset_to": 50,
        "missed": "caught_up",
        "batch": 1,
        "first": 0,
        "losses": [],
    }


def test_missed_events_are_learnt_or_left_out_and_recorded() -> None:
    events = numbers(300)
    caught, matched = LiveLearner(events, window=60), LiveLearner(events, window=60, missed="match")
    saved = take(caught, RATE, 100).saved
    both = [take(learner, RATE, 300, step=100, saved=saved) for learner in (caught, matched)]
    assert [each.details[-1]["missed"] for each in both] == ["caught_up", "matched"]
    assert [each.details[-1]["offset_from"] for each in both] == [240, 240]
    assert [each.details[-1]["offset_to"] for each in both] == [300, 300]
    assert [each.details[0]["first"] for each in both] == [100, 240]
    alone = Workspace(learning_rate=0.3).fit(events)
    assert (model_of(both[0].saved)[0].weights == alone.weights).all()
    skipping = Workspace(learning_rate=0.3).fit([*events[:100], *events[240:]])
    assert np.allclose(model_of(both[1].saved)[0].weights, skipping.weights, atol=1e-6)


def test_all_events_are_learnt_without_a_window() -> None:
    learner = LiveLearner(numbers(100), missed="match")
    first = take(learner, RATE, 50)
    second = take(learner, RATE, 100, step=50, saved=first.saved)
    assert {each["missed"] for each in (*first.details, *second.details)} == {"nothing"}


def test_a_copy_with_other_flags_has_the_state_of_its_donor() -> None:
    events = numbers(200)
    donor = take(LiveLearner(events), RATE, 100)
    flags = {"learning_rate": 0.05, "a*b": True}
    copy = take(LiveLearner(events), flags, 200, step=100, saved=donor.saved)
    other = Workspace(learning_rate=0.05, experimental_full_name_interactions=["a|b"])
    other.restore(model_of(donor.saved)[0].state())
    other.fit(events[100:])
    made, offset = model_of(copy.saved)
    assert offset == 200
    assert (made.weights == other.weights).all()
    assert made.configuration.get("learning_rate") == 0.05
    fresh = take(LiveLearner(events), flags, 200)
    assert not (model_of(fresh.saved)[0].weights == made.weights).all()


def test_losses_in_batches_are_those_of_the_events() -> None:
    learner = LiveLearner(numbers(230), every=70, batch=20)
    taken = take(learner, RATE, 230)
    assert [each["first"] for each in taken.details] == [0, 60, 140, 200]
    means = [mean for each in taken.details for mean in each["losses"]]
    assert len(means) == 11
    assert np.mean(means) == pytest.approx(take(LiveLearner(numbers(230)), RATE, 220).values[-1], rel=1e-6)


def test_a_process_gets_the_arguments_and_not_the_events() -> None:
    learner = LiveLearner(["1 |a x"] * 50, window=10)
    assert len(learner.events) == 50
    sent = pickle.dumps(learner)
    assert b"Block" not in sent
    again = pickle.loads(sent)  # noqa: S301 - our own
    assert take(again, RATE, 50).values == take(learner, RATE, 50).values


def test_a_source_is_read_once() -> None:
    events = numbers(100)
    learner = LiveLearner(iter(events))  # there is no second time
    first = take(learner, RATE, 50)
    assert take(learner, RATE, 100).values == take(LiveLearner(events), RATE, 100).values
    assert take(learner, RATE, 50).saved == first.saved


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"base": "--passes 2"}, "reads its stream once"),
        ({"base": "-f model"}, "for the command line"),
        ({"missed": "forget"}, "valid are catch_up, match"),
        ({"window": 0}, "window = 0: give a positive whole number of events"),
        ({"every": True}, "every = True"),
    ],
)
def test_resources_beyond_the_cluster_are_rejected(given: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        LiveLearner(["1 |a x"], **given)  # type: ignore[arg-type]


def test_a_stream_shorter_than_the_resource_is_an_error() -> None:
    with pytest.raises(InputError, match="the stream has 9 events, but a trial should learn 10"):
        take(LiveLearner(["1 |a x"] * 9), RATE, 10)
    with pytest.raises(InputError, match="has no events"):
        take(LiveLearner([]), RATE, 10)
    with pytest.raises(InputError, match="not a checkpoint of a live learner"):
        model_of(b"nothing of the kind")


def test_a_study_goes_on_with_the_same_stream_and_flags_alone(tmp_path: Path) -> None:
    url, space = f"sqlite:///{tmp_path}/s.db", {"learning_rate": Float(0.01, 1, log=True)}
    events = [f"{i % 2} |a x{i % 2}" for i in range(90)]

    def study() -> Study:
        return Study(space, min_resource=30, max_resource=90, name="s", storage=url)

    study().run(LiveLearner(events, every=30), jobs=2)
    study().run(LiveLearner(iter(events), every=30), jobs=1)
    for other in (
        LiveLearner(events[::-1], every=30),
        LiveLearner(events, "--l2 0.1"),
        LiveLearner(events, window=30),
    ):
        with pytest.raises(OptionError, match="give the study another name"):
            study().run(other, jobs=1)
    with pytest.raises(OptionError, match="has no trainable: pass one"):
        study().run(jobs=1)


def test_skipped_lines_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="onlineauto"):
        assert len(LiveLearner([b"1 |a b\nx |a\n2 |a c\n"]).events) == 2
    assert "1 problem in the input" in caplog.text


def test_a_stream_of_another_kind_says_why_it_has_no_events() -> None:
    with pytest.raises(InputError, match="has no cost and no probability"):
        _ = LiveLearner([b"1 |a b\n"], "--cb_explore_adf").events


@pytest.mark.parametrize(
    ("flags", "event", "message"),
    [
        ("--cb_explore_adf", "shared |u x\n0:0:0.5 |a b\n|a c\n\n", "every logged cost or reward .* is 0"),
        ("--cb_explore_adf", "shared |u x\n|a b\n|a c\n\n", "no event .* a logged cost or reward"),
        ("--cb 2", "1:0:0.5 |u x\n", "every logged cost or reward .* is 0"),
        ("", "|u x\n", "no event of the stream has a label"),
    ],
)
def test_a_stream_by_which_no_trial_is_better_is_rejected(flags: str, event: str, message: str) -> None:
    with pytest.raises(InputError, match=f"{message}, so there is nothing to compare trials by"):
        tune_stream(event.encode() * 300, flags, ["learning_rate"])


def test_one_cost_is_enough_to_compare_trials() -> None:
    events = [b"shared |u x\n0:0:0.5 |a b\n|a c\n\n"] * 50 + [b"shared |u x\n0:-1:0.5 |a b\n|a c\n\n"]
    study = tune_stream(b"".join(events), "--cb_explore_adf", ["learning_rate"], max_trials=2)
    assert study.best is not None
