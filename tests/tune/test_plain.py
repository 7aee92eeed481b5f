"""Numbers of any library: in values, steps, details, spaces, settings, checkpoints, Optuna's attributes.

Values that no study can have are rejected with an error of this package that names them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto.cluster import Cluster, Demand
from onlineauto.cluster.jobs.job import check_demand
from onlineauto.errors import OnlineautoError, OptionError
from onlineauto.tune import Callback, Categorical, Float, Headcount, Int, Space, State, Study
from onlineauto.tune.plain import as_int, as_json, number, scalar
from onlineauto.tune.store.checkpoints import pack_checkpoint, unpack_checkpoint
from onlineauto.tune.store.open_store import without_password
from tests.tune.studies import asked

pytestmark = pytest.mark.lane("quick")

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
def test_all_types_of_numbers_are_accepted(value: Any, url: str) -> None:
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
    job = asked(other)
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
    assert as_int(three) == 3
    space = {
        "n": Int(three, np.int64(9)),  # type: ignore[arg-type]
        "word": Categorical([three, "x"], when={"n": three}),
    }
    study = Study(
        space, "hyperband", max_resource=three * 3, min_resource=three, max_trials=three, retries=three
    )
    assert study.space.check({"n": three, "word": three}) == {"n": 3, "word": 3}
    study.run(lambda *_: three)
    assert len(study.trials) == 3
    assert Study({"x": Float(0, 1)}, lease=three).settings.lease == 3.0


def test_number_and_as_int_reject_other_types() -> None:
    assert all(np.isnan(number(each)) for each in (None, "0.5", b"1", object(), nan, 1j, [1], 10**400))
    assert [as_int(each) for each in (1.5, nan, True, "3", None, np.bool_(True))] == [None] * 6
    assert scalar(object) is object


class Strange:
    """An object that JSON cannot represent."""


@pytest.mark.parametrize(
    "strange", [Strange(), {1, 2}, 1j, {(1, 2): 3}], ids=lambda each: type(each).__name__
)
@pytest.mark.parametrize("workers", [0, 1])
def test_details_that_cannot_be_stored_fail_only_their_trial(
    strange: Any, workers: int, tmp_path: Path
) -> None:
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
    """A function whose second trial reports details that cannot be stored."""

    def __init__(self, strange: Any) -> None:
        self.strange = strange

    def __call__(self, config: Any, resource: int, report: Callable[..., None]) -> None:
        del resource
        report(1.0, details={"bad": self.strange} if config["n"] == 1 else None)


def reports_a_set(config: Any, resource: int, report: Callable[..., None]) -> None:
    Reports({1, 2})(config, resource, report)


def test_details_that_cannot_be_stored_are_rejected_before_they_are_written(url: str) -> None:
    study = Study({"x": Float(0, 1)}, "fifo", storage=url, max_trials=1)
    job = asked(study)
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
    assert unpack_checkpoint(pack_checkpoint({"a": np.float32(0.5), "b": np.arange(3)})) == {
        "a": 0.5,
        "b": [0, 1, 2],
    }


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
            Categorical(values)  # type: ignore[arg-type]


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
    space = Space({"n": Int(0, 3), "l": Int(1, 50, log=True), "w": Categorical(["a", "b", "c"])})
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


SPACE = {"x": Float(0, 1)}
ODD: list[Any] = [
    *(None, True, -1, 0, 1.5, float("nan"), float("inf"), 2**60, 10**30, 10**400, -(10**400)),
    *("x", "", b"x", [], [1], {}, {"a": 1}, (1, 2), object(), int, len, 1j, "\ud800", "a\0b"),
    *(np.float32("nan"), Decimal("NaN"), Decimal("1e999999"), Fraction(10**400, 3)),
]


def used(**options: Any) -> None:
    study = Study(**{"space": SPACE, "scheduler": "fifo", **options})
    job = asked(study)
    study.tell(job, 0.5)


def with_job(call: Callable[[Study, Any, Any], object]) -> Callable[[Any], object]:
    """Return a call of a study with one running job."""

    def called(odd: Any) -> object:
        study = Study(SPACE, "fifo", max_resource=5)
        return call(study, study.ask(), odd)

    return called


CALLS: dict[str, Callable[[Any], object]] = {
    "Float.high": lambda odd: Float(0, odd),
    "Float.low": lambda odd: Float(odd, 1),
    "Float.low of a log": lambda odd: Float(odd, 1, log=True),
    "Float.when": lambda odd: Float(0, 1, when=odd),
    "Int.high": lambda odd: Int(0, odd),
    "Int.low": lambda odd: Int(odd, 1),
    "Categorical": Categorical,
    "a value of Categorical": lambda odd: Categorical([odd, "other"]),
    "space": Space,
    "a parameter": lambda odd: Space({"x": odd}),
    **{
        f"{name} of {scheduler}": lambda odd, name=name, scheduler=scheduler: used(  # type: ignore[misc]
            scheduler=scheduler, **{name: odd}
        )
        for name in ("min_resource", "max_resource", "eta")
        for scheduler in ("fifo", "hyperband", "asha", "dehb", "pbt", "race", "median")
    },
    **{
        name: lambda odd, name=name: used(**{name: odd})  # type: ignore[misc]
        for name in (
            *("scheduler", "searcher", "mode", "seed", "name", "max_trials", "lease", "retries", "storage"),
        )
    },
    "tell": with_job(lambda study, _, odd: study.tell(odd, 0.5)),
    "fail": with_job(lambda study, _, odd: study.fail(odd, "why")),
    "release": with_job(lambda study, _, odd: study.release(odd)),
    "report.job": with_job(lambda study, _, odd: study.report(odd, 1, 0.5)),
    "report.step": with_job(lambda study, job, odd: study.report(job, odd, 0.5)),
    "report.value": with_job(lambda study, job, odd: study.report(job, 1, odd)),
    "tell.value": with_job(lambda study, job, odd: study.tell(job, odd)),
    "history": with_job(lambda study, _, odd: study.history(odd)),
    "enqueue": with_job(lambda study, _, odd: study.enqueue(odd)),
    "enqueue.x": with_job(lambda study, _, odd: study.enqueue({"x": odd})),
    "extend": with_job(lambda study, _, odd: study.extend(max_trials=odd)),
    **{
        f"run.{name}": with_job(lambda study, _, odd, name=name: study.run(max, **{name: odd}, **ends(name)))  # type: ignore[misc]
        for name in ("jobs", "rounds", "checkpoint_every", "executor", "stoppers", "callbacks")
    },
}
"""Calls with a value that may be odd."""


def ends(name: str) -> dict[str, Any]:
    return {} if name == "jobs" else {"jobs": 0}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_unusual_argument_is_used_or_rejected_by_name(call: Callable[[Any], object]) -> None:
    for odd in ODD:
        with suppress(OnlineautoError):  # anything else fails the test
            call(odd)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Study(SPACE, max_resource=10**30), "max_resource = 10+: give a whole number from 1 to"),
        (
            lambda: Study(SPACE, max_resource=2**52),
            "first rung would have .* trials.*increase min_resource",
        ),
        (lambda: Study(SPACE, "dehb", max_resource=2**52), "the first rung would have"),
        (lambda: Study(SPACE, max_trials=10**30), "max_trials = 10+: give a whole number"),
        (lambda: Study(SPACE, retries=2**60), "retries = "),
        (lambda: Study(SPACE, seed=10**400), r"seed = 10+\.\.\.: give a whole number of at most"),
        (lambda: Study(SPACE, seed=10**5000), "seed = a whole number of 16610 bits: give"),
        (lambda: Study(SPACE, max_trials=10**5000), "max_trials = a whole number of 16610 bits: give"),
        (lambda: Study(SPACE).extend(max_trials=10**5000), "max_trials = a whole number of 16610 bits: give"),
        (lambda: Study(SPACE, lease=10**5000), "lease = a whole number of 16610 bits: give"),
        (lambda: Study(SPACE).enqueue({"x": 10**5000}), "x = a whole number of 16610 bits is outside"),
        (lambda: Float(0, 10**400), "Float: the bounds must be finite, and up to 1.797e308"),
        (lambda: Int(-(10**400), 1), "Int: the bounds must be finite, and up to 1e300"),
        (lambda: Study(SPACE).enqueue(None), "config = None: give values by names; the space has x"),  # type: ignore[arg-type]
        (lambda: Study(SPACE).tell(None, 1), "job = None: give a job that Study.ask returned"),  # type: ignore[arg-type]
        (lambda: Study(SPACE).run(max, callbacks=Callback()), "callbacks = .*: give a list of Callback"),  # type: ignore[arg-type]
        (lambda: Study(SPACE).saved(3), "there is no trial 3; the study 'study' has 0"),
        (lambda: check_demand(Demand({"CPU": 1}, most_workers=2**60)), "most_workers = .* to 1,000,000"),
        (lambda: Cluster(places=2**60), "places = .* from 1 to 10,000"),
        (lambda: Headcount(2**60), "workers = .* from 0 to 100,000"),
    ],
)
def test_excessive_sizes_are_rejected_by_name(call: Callable[[], object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        call()


def test_asha_accepts_a_large_maximum_resource() -> None:
    job = Study(SPACE, "asha", max_resource=2**52).ask()
    assert job is not None
    assert job.resource == 1


def test_a_value_with_too_many_digits_fails_its_trial() -> None:
    study = Study(SPACE, "fifo", max_resource=1, max_trials=1)
    job = asked(study)
    study.tell(job, 10**5000)
    assert study.trials[0].error == "the value is a whole number of 16610 bits, which is not a number"
