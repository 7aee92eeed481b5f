"""Numbers of any library: in values, steps, details, spaces, settings, checkpoints, Optuna's attributes."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import Choice, Float, Int, Space, State, Study
from onlineauto.tune.plain import as_json, number, scalar, whole
from onlineauto.tune.store.checkpoints import packed, unpacked
from onlineauto.tune.store.urls import without_password

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NUMBERS = [
    np.float16(0.5),
    np.float32(0.5),
    np.float64(0.5),
    np.longdouble(0.5),
    np.array(0.5),
    np.array(0.5, dtype=np.float32),
    Decimal("0.5"),
    Fraction(1, 2),
]
WHOLE = [np.int8(3), np.uint64(3), np.array(3), np.float32(3.0), Decimal(3), Fraction(3), 3.0]


@pytest.mark.parametrize("value", NUMBERS, ids=lambda each: type(each).__name__)
def test_what_python_calls_a_number_is_one_everywhere(value: Any, url: str) -> None:
    def trains(config: Any, resource: int, report: Callable[..., None]) -> None:
        for step in range(1, resource + 1):
            details = {"a": value, "b": [value, {"c": value}]}
            report(value, step=np.int64(step), details=details, save={"loss": value})

    study = Study({"x": Float(0, value)}, "fifo", storage=url, max_trials=1, max_resource=2)
    best = study.run(trains)
    assert best is not None
    assert best.value == 0.5
    assert type(best.value) is float
    rows = study.history()
    assert [(row["resource"], row["value"], row["a"]) for row in rows] == [(1, 0.5, 0.5), (2, 0.5, 0.5)]
    assert study.saved(0) == {"loss": 0.5}
    other = Study({"x": Float(0, 1)}, "fifo", storage=url, name="asked", max_trials=1, max_resource=2)
    other.enqueue({"x": value})
    job = other.ask()
    assert job is not None
    assert job.config == {"x": 0.5}
    other.report(
        job,
        np.int32(1),  # type: ignore[arg-type]
        value,
        {"a": value},
    )
    other.tell(job, value, {"a": value})
    assert [row["a"] for row in other.history()] == [0.5, 0.5]


@pytest.mark.parametrize("three", WHOLE, ids=lambda each: type(each).__name__)
def test_whole_numbers_of_any_type_are_whole_numbers(three: Any) -> None:
    assert whole(three) == 3
    space = {
        "n": Int(three, np.int64(9)),  # type: ignore[arg-type]
        "word": Choice([three, "x"], when={"n": three}),
    }
    study = Study(
        space, "hyperband", max_resource=three * 3, min_resource=three, max_trials=three, retries=three
    )
    assert study.space.check({"n": three, "word": three}) == {"n": 3, "word": 3}
    study.run(lambda *_: three)
    assert len(study.trials) == 3
    assert Study({"x": Float(0, 1)}, lease=three)._claims.lease == 3.0


def test_what_is_no_number_is_none() -> None:
    assert all(np.isnan(number(each)) for each in (None, "0.5", b"1", object(), nan, 1j, [1], 10**400))
    assert [whole(each) for each in (1.5, nan, True, "3", None, np.bool_(True))] == [None] * 6
    assert scalar(object) is object


class Strange:
    """Nothing that JSON knows."""


@pytest.mark.parametrize(
    "strange", [Strange(), {1, 2}, 1j, {(1, 2): 3}], ids=lambda each: type(each).__name__
)
@pytest.mark.parametrize("workers", [0, 1])
def test_what_cannot_be_stored_fails_its_trial_alone(strange: Any, workers: int, tmp_path: Path) -> None:
    if workers and isinstance(strange, Strange):
        pytest.skip("one is enough")
    url = f"sqlite:///{tmp_path}/s.db"
    study = Study({"n": Int(0, 3)}, "fifo", "grid", storage=url, max_resource=1)
    study.run(Reports(strange) if not workers else "tests.tune.test_plain:reports_a_set", workers=workers)
    states = [trial.state for trial in study.trials]
    assert states == [State.TERMINATED, State.ERRORED, State.TERMINATED, State.TERMINATED]
    assert "cannot be stored" in study.trials[1].error
    assert "Traceback" in study.trials[1].traceback
    job = Study({"n": Int(0, 3)}, storage=url, name="asked").ask()
    assert job is not None


class Reports:
    """A function whose second trial reports what cannot be stored."""

    def __init__(self, strange: Any) -> None:
        self.strange = strange

    def __call__(self, config: Any, resource: int, report: Callable[..., None]) -> None:
        del resource
        report(1.0, details={"bad": self.strange} if config["n"] == 1 else None)


def reports_a_set(config: Any, resource: int, report: Callable[..., None]) -> None:
    Reports({1, 2})(config, resource, report)


def test_details_that_cannot_be_stored_are_refused_before_they_are_written(url: str) -> None:
    study = Study({"x": Float(0, 1)}, "fifo", storage=url, max_trials=1)
    job = study.ask()
    assert job is not None
    with pytest.raises(OptionError, match="a value's details cannot be stored: a part is of type Strange"):
        study.report(job, 1, 0.5, {"bad": Strange()})
    with pytest.raises(OptionError, match="cannot be stored"):
        study.tell(job, 0.5, {"bad": Strange()})
    study.tell(job, 0.5, {"good": 1})
    assert study.is_done or study.ask() is None
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(OptionError, match="cannot be stored"):
        as_json(cycle, "a cycle")


def test_a_checkpoint_may_have_numpys_numbers() -> None:
    assert unpacked(packed({"a": np.float32(0.5), "b": np.arange(3)})) == {"a": 0.5, "b": [0, 1, 2]}


def test_optunas_attributes_may_be_numpys_numbers(url: str) -> None:
    optuna = pytest.importorskip("optuna")
    from onlineauto.tune.optuna_storage import optuna_storage

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=optuna_storage(url))

    def objective(trial: Any) -> float:
        trial.set_user_attr("accuracy", np.float32(0.5))
        return float(trial.suggest_float("x", 0, 1))

    study.optimize(objective, n_trials=2)
    assert [trial.user_attrs for trial in study.trials] == [{"accuracy": 0.5}] * 2
    with pytest.raises(OptionError, match="what Optuna writes cannot be stored"):
        study.optimize(lambda trial: trial.set_user_attr("bad", Strange()), n_trials=1)
    study.optimize(objective, n_trials=1)


def test_options_of_parts_may_be_numpys_numbers(url: str) -> None:
    from onlineauto.tune.schedulers.pbt import Pbt

    study = Study({"x": Float(0, 1)}, Pbt(share=np.float32(0.5)), storage=url)  # type: ignore[arg-type]
    assert Study.load("study", storage=url).settings.scheduler[1]["share"] == 0.5
    assert study.settings.scheduler[1]["share"] == 0.5


def test_nan_is_no_value_of_a_choice() -> None:
    for values in ([nan, 1.0], [np.float32("nan"), "x"], [Decimal("NaN")]):
        with pytest.raises(OptionError, match="NaN does not equal itself"):
            Choice(values)  # type: ignore[arg-type]


def test_a_range_beyond_that_of_floats_is_sampled() -> None:
    wide = Float(1e-300, 1e300, log=True)
    assert [wide.decode([at]) for at in (0.0, 0.5, 1.0)] == pytest.approx([1e-300, 1.0, 1e300])
    assert wide.encode(1e150) == pytest.approx([0.75])
    linear = Float(-1.7e308, 1.7e308)
    assert linear.decode([0.5]) == 0.0
    assert linear.encode(0.85e308) == pytest.approx([0.75])
    tiny = Float(5e-324, 1.0, log=True)
    assert 0 < tiny.decode([0.5]) < 1e-150
    assert tiny.encode(tiny.decode([0.5])) == pytest.approx([0.5], abs=1e-3)


def test_a_code_within_a_value_is_uniform() -> None:
    space = Space({"n": Int(0, 3), "l": Int(1, 50, log=True), "w": Choice(["a", "b", "c"])})
    rng = np.random.default_rng(0)
    codes = []
    for _ in range(2000):
        config = space.decode(rng.random(space.width))
        codes.append(space.encode_within(config, rng))
        assert space.decode(codes[-1]) == config
    assert np.mean(codes, axis=0) == pytest.approx(np.full(space.width, 0.5), abs=0.03)
    assert np.std(codes, axis=0) == pytest.approx(np.full(space.width, 12**-0.5), abs=0.02)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:secret@host/db",
        "nowhere://me:se/cr@et@host",
        "postgresql://me:secret@host:notaport/db",
        "postgresql+x://me:secret@host/db",
        "sqlite://me:secret@host/db",
        "postgresql://me@127.0.0.1:1/db?password=secret",
        "postgresql://me:secret@127.0.0.1:1/db",
    ],
)
def test_no_message_has_a_password(url: str) -> None:
    calls: list[Callable[[], Study]] = [
        lambda: Study({"x": Float(0, 1)}, storage=url),
        lambda: Study.load("study", storage=url),
    ]
    for call in calls:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - whichever error it is
            call()
        assert "secret" not in str(caught.value).replace("secret_", "")
        assert "et@" not in str(caught.value)
    assert "secret" not in without_password(url)
