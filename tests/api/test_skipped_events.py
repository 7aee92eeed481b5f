"""Events that cannot be learnt are skipped, counted, and located in the caller's own terms."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from onlineauto import AutoML, AutoMLClassifier, AutoMLRegressor, InputError, Workspace
from onlineauto.errors import OnlineautoError
from onlineauto.formats.lines.diagnostics import Diagnostics, ProblemCode
from onlineauto.interop import from_arrays, from_dicts, from_frame
from tests.api.events import saved

EVENT: dict[str, Any] = {
    "context": {"u": "x"},
    "actions": [{"a": 1}, {"b": 1}],
    "chosen": 0,
    "probability": 0.5,
    "reward": 1,
}
COST = {name: value for name, value in EVENT.items() if name != "reward"} | {"cost": 1}
SEEN = {name: EVENT[name] for name in ("context", "actions")}
LOG: dict[str, Any] = {"actions": "took", "reward": "r", "probability": "p"}
COLUMNS = {"reward": "r", "probability": "p", "chosen": "took"}
PAIRS = [({"a": i % 3}, float(i % 7)) for i in range(40)]


def pandas_frame(**changed: tuple[int, Any]) -> Any:
    """Return a log of 20 decisions; of some columns, the value of one row is another."""
    pandas = pytest.importorskip("pandas")
    rows = {"u": ["x", "y"] * 10, "took": ["a", "b"] * 10, "r": [1.0, 0.0] * 10, "p": [0.5] * 20}
    frame = pandas.DataFrame(rows)
    for name, (row, value) in changed.items():
        frame[name] = frame[name].astype(object)
        frame.loc[row, name] = value
    return frame


def missing(kind: str) -> Any:
    if kind == "NA":
        return pytest.importorskip("pandas").NA
    return {"None": None, "nan": math.nan, "Decimal": Decimal("NaN")}[kind]


# -- what is missing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["None", "nan", "NA", "Decimal"])
@pytest.mark.parametrize("key", ["reward", "probability", "chosen"])
def test_events_with_an_incomplete_label_are_skipped_and_located(key: str, kind: str) -> None:
    bandit = AutoML()
    with pytest.warns(UserWarning, match=rf"^1 problem .*\n.* event 5: the label is missing: {key} "):
        bandit.fit([*[EVENT] * 5, EVENT | {key: missing(kind)}, *[EVENT] * 3])
    assert bandit.events == 8
    if key == "reward":
        with pytest.warns(UserWarning, match="event 0: the label is missing: cost "):
            AutoML().fit([{**COST, "cost": missing(kind)}, COST])
    of_frame, column = AutoML(), COLUMNS[key]
    with pytest.warns(UserWarning, match=rf"^1 problem .*\n.* row 5: the label is missing: {column};"):
        of_frame.fit_table(pandas_frame(**{column: (5, missing(kind))}), **LOG)
    assert of_frame.events == 19


def test_an_event_that_was_only_seen_is_not_counted() -> None:
    with warnings.catch_warnings(action="error"):
        assert AutoML().fit([SEEN, EVENT]).events == 1


def test_missing_values_of_other_frames_are_counted() -> None:
    polars = pytest.importorskip("polars")
    rows = {"u": ["x", "y", "x"], "took": ["a", "b", "a"], "p": [0.5, 0.5, None], "r": [1, None, 1]}
    for frame in (polars.DataFrame(rows), polars.DataFrame(rows).to_arrow()):
        bandit = AutoML()
        with pytest.warns(UserWarning, match=r"^2 problems .*\n.* row 1: the label is missing: r;"):
            bandit.fit_table(frame, **LOG)
        assert bandit.events == 1


def test_events_of_several_rows_are_located_by_their_first_row() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [
        {"id": i, "x": j, "u": "q", "r": 1e12 if i == 50 else 1.0, "p": 0.5} for i in range(99) for j in "ab"
    ]
    frame = pandas.DataFrame(rows)
    frame.loc[frame.index % 2 == frame.id % 2, ["r", "p"]] = None
    frame.loc[frame.id == 3, "r"] = None
    with pytest.warns(UserWarning, match="2 problems") as told:
        AutoML().fit_table(
            frame, context=["u"], actions=["x"], event="id", reward="r", probability="p", progress=False
        )
    text = str(told[0].message)
    assert "row 6: the label is missing: r" in text
    assert "row 100: label or cost '-1e+12 (a reward of 1e+12)'" in text


def test_a_reader_of_frames_counts_what_is_missing_if_asked() -> None:
    frame, found = pandas_frame(p=(3, None)), Diagnostics()
    [block] = from_frame(frame, **LOG, problems=found)
    assert (len(block), len(block.cost)) == (20, 19)
    assert [str(each) for each in found.kept] == ["row 3: the label is missing: p; not learnt"]
    with pytest.raises(InputError, match="cost and reward exclude each other"):
        list(from_frame(frame, **LOG, cost="r"))


def test_rewards_of_unsigned_numbers_are_negated() -> None:
    polars = pytest.importorskip("polars")
    rows = {"u": ["x", "y"], "took": ["a", "b"], "p": [0.5, 0.5]}
    frame = polars.DataFrame(rows | {"r": polars.Series([3, 0], dtype=polars.UInt8)})
    assert AutoML().fit_table(frame, **LOG).average_reward == 1.5


@pytest.mark.parametrize("kind", ["None", "nan", "NA"])
def test_none_is_no_class(kind: str) -> None:
    for model in (AutoMLClassifier(), AutoMLRegressor()):
        with pytest.raises(InputError, match="the label is missing"):
            model.learn({"a": 1}, missing(kind))
        with pytest.warns(UserWarning, match="event 1: the label is missing"):
            model.fit([({"a": 1}, 1), ({"a": 2}, missing(kind)), ({"a": 3}, 2)])
        assert model.events == 2


# -- outliers, and where they are ----------------------------------------------------------------------


def test_an_outlier_is_located_by_its_event_and_told_as_a_reward() -> None:
    events = [EVENT | {"chosen": i % 2, "reward": i // 2 % 2} for i in range(100)]
    events[57]["reward"] = -1e12
    told = r"label or cost '1e\+12 \(a reward of -1e\+12\)' is thousands of times"
    with pytest.warns(UserWarning, match=f" event 57: {told}"):
        AutoML().fit(events)
    with pytest.warns(UserWarning, match=f" event 67: {told}"):
        AutoML().fit(["shared |u x\n0:-1:0.5 |a x\n|a y\n"] * 10 + [*events])
    costs = [{key: event[key] for key in event if key != "reward"} for event in events]
    blocks = from_dicts(
        [each | {"cost": -event["reward"]} for each, event in zip(costs, events, strict=True)]
    )
    with pytest.warns(UserWarning, match=f" event 57: {told}"):
        Workspace(cb_explore_adf=True).fit(blocks)


def test_an_outlier_of_a_frame_is_located_by_its_row() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.concat([pandas_frame()] * 10, ignore_index=True)
    frame.loc[150, "r"] = -1e12
    with pytest.warns(UserWarning, match=r" row 150: label or cost '1e\+12 \(a reward of -1e\+12\)'"):
        AutoML().fit_table(frame, **LOG)


def test_a_restart_of_learning_causes_a_warning() -> None:
    began = "learning began again with this event"

    def bandit() -> None:
        model = AutoML(seed=1)
        for i in range(40):
            choice = model.rank({"u": 1}, [{"a": 1}, {"b": 1}], event_id=f"e{i}")
            model.learn(choice, reward=1e12 if i == 0 else 1.0)

    def one_by_one(model: Any, labels: Any, weight: Callable[[int], float] = lambda _: 1.0) -> None:
        for i in range(60):
            model.learn({"a": i % 3}, labels(i), weight=weight(i))

    def first_absurd(i: int) -> float:
        return 1e12 if i == 0 else 1.0 + i % 7

    with pytest.warns(UserWarning, match=f"^event 'e2': .*{began}"):
        bandit()
    for loss in ("squared", "quantile"):
        with pytest.warns(UserWarning, match=f"^numbers of the first events .*{began}"):
            one_by_one(AutoMLRegressor(loss=loss), first_absurd)
    with pytest.warns(UserWarning, match=f"^numbers of the first events .*{began}"):
        one_by_one(AutoMLClassifier(), lambda i: "xy"[i % 2], first_absurd)
    with pytest.warns(UserWarning, match=r"event 2: .* began again"):
        AutoMLRegressor().fit([({"a": i % 3}, first_absurd(i)) for i in range(40)])
    with pytest.warns(UserWarning, match=r"event 2: .* began again"):
        AutoMLClassifier().fit([({"a": i % 3}, "xy"[i % 2], first_absurd(i)) for i in range(40)])


# -- messages ------------------------------------------------------------------------------------------


def learnt_with(**changed: Any) -> Callable[[], Any]:
    given: dict[str, Any] = {"action": 0, "probability": 0.5, "reward": 1, **changed}
    return lambda: AutoML().learn({"u": 1}, [{"a": 1}], **given)


_DIGITS: Any = 10**5000  # Python refuses to print it
_FRACTION: Any = Fraction(_DIGITS)
_NONE: Any = None

MESSAGES: dict[str, tuple[Callable[[], Any], str]] = {
    "decimal": (lambda: AutoML().rank({"u": Decimal("1e400")}, [{"a": 1}]), r"Decimal\('1E\+400'\) is inf"),
    "digits": (lambda: AutoML().rank({"u": {"v": 10**5000}}, [{"a": 1}]), "u: v: value a whole number of"),
    "small": (learnt_with(probability=1e-300), "probability 1e-300 is too small for a float32"),
    "small in a fit": (
        lambda: AutoML().fit([EVENT | {"probability": 1e-300}]),
        "event 0: probability 1e-300",
    ),
    "no probability": (learnt_with(probability=math.nan), "the probability is missing: nan"),
    "above": (learnt_with(probability=2), "probability 2 is not above 0 and at most 1"),
    "weight": (lambda: AutoMLRegressor().learn({"a": 1}, 1, weight=10**400), "weight 1000.*too large"),
    "large weight": (lambda: AutoMLRegressor().learn({"a": 1}, 1, weight=1e39), "weight 1e\\+39 .*too large"),
    "label": (lambda: AutoMLRegressor().fit([({"a": 1}, 1e300)]), "event 0: the label 1e\\+300 is too large"),
    "value": (lambda: AutoMLRegressor().fit([({"a": 1e300}, 1)]), "event 0: a: 1e\\+300 is infinite, or too"),
    "array": (lambda: list(from_arrays([[1e39]], actions=2)), "row 0: context has the value 1e\\+39"),
    "array of costs": (
        lambda: list(from_arrays([[1.0]], actions=2, chosen=[0], cost=[1e39], probability=[0.5])),
        "row 0: cost '1e\\+39' is infinite",
    ),
    "weights": (lambda: AutoMLRegressor().fit([{}], [1.0], sample_weight=2), "weights of the rows, .*: 2"),
    "epsilon": (lambda: AutoML(epsilon=_DIGITS), "--epsilon cannot be a whole number of 16610 bits; it"),
    "many digits": (lambda: AutoML(epsilon=10**400), "--epsilon cannot be 1000+\\.\\.\\.; it takes a number"),
    "fraction": (lambda: AutoML(epsilon=_FRACTION), "--epsilon cannot be a Fraction; it takes a"),
    "seed": (lambda: AutoML(seed=_DIGITS), "--random_seed cannot be a whole number of 16610 bits; it takes"),
    "hash_bits": (lambda: AutoMLRegressor(hash_bits=_DIGITS), "cannot be a whole number of 16610 bits"),
    "cost_range": (lambda: AutoML(cost_range=(0, _DIGITS)), "--cost_range cannot be a tuple; it takes LOW"),
    "explorer": (lambda: AutoML(explorer=_DIGITS), "explorer cannot be a whole number of 16610 bits"),
    "time_to_live": (lambda: AutoML(time_to_live=_DIGITS), "time_to_live cannot be a whole number of 16610"),
    "max_pending": (lambda: AutoML(max_pending=_DIGITS), "max_pending cannot be a whole number of 16610 b"),
    "event_id": (
        lambda: AutoML().rank({"u": 1}, [{"a": 1}], event_id=_DIGITS),
        "event_id is a str .* and not a whole number of 16610 bits",
    ),
    "action": (learnt_with(action=_DIGITS), "the action is a whole number of 16610 bits, and there are 1"),
    "negative": (learnt_with(probability=-_DIGITS), "event: probability a whole number of 16610 bits is"),
    "no weight": (
        lambda: AutoMLRegressor().learn({"a": 1}, 1, weight=_NONE),
        "event: weight None is missing",
    ),
    "no weight in a fit": (
        lambda: AutoMLRegressor().fit([{"context": {"a": 1}, "label": 1, "weight": None}]),
        "event 0: weight None is missing",
    ),
    "object": (lambda: AutoMLRegressor().learn({"a": object()}, 1), "a: value <object .*> is an object, wh"),
    "no source": (lambda: AutoML().fit(None), "None is not a source of events: give a path"),
    "no source of lines": (lambda: AutoMLRegressor().fit(None), "None is not a source of events"),
    "nothing in a list": (lambda: AutoMLRegressor().fit(list[Any]([None])), "event 0: .* not NoneType"),
    "lists": (lambda: AutoMLRegressor().fit(list[Any]([[1.0]]), [1]), "are a matrix: numpy.array"),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_messages_have_the_value_that_was_given(case: str) -> None:
    call, message = MESSAGES[case]
    with warnings.catch_warnings(action="error"), pytest.raises(OnlineautoError, match=message):
        call()


def test_messages_about_frames_have_the_value_that_was_given() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, 2.0], "y": [1.0, 2.0]})
    for call, message in (
        (
            lambda: AutoML().fit_table(pandas_frame(r=(19, 1e39)), **LOG),
            r"row 19: r: cost '1e\+39' is infinite",
        ),
        (
            lambda: AutoML().fit_table(pandas_frame(p=(19, 1e-300)), **LOG),
            "row 19: p: probability '1e-300' is 0",
        ),
        (lambda: AutoML().fit_table(pandas_frame().assign(z=1e39), **LOG), r"row 0: z: value '1e\+39' of a"),
        (lambda: AutoMLRegressor().fit(table[["a"]], table[["y"]]), r"DataFrame of shape \(2, 1\): give one"),
        (
            lambda: AutoMLRegressor().fit(table[["a"]], "y"),
            r"to name a column: fit_table\(frame, label='y'\)",
        ),
    ):
        with warnings.catch_warnings(action="error"), pytest.raises(InputError, match=message):
            call()


def test_a_missing_label_of_scikit_learn_is_located() -> None:
    pytest.importorskip("sklearn")
    from onlineauto import sklearn as adapters

    for estimator in (adapters.AutoMLClassifier(), adapters.AutoMLRegressor()):
        with pytest.raises(InputError, match="the label of row 1 is missing: None"):
            estimator.fit(np.ones((4, 1)), ["a", None, "b", "a"])


def test_a_file_with_the_class_none_is_read() -> None:
    """Earlier versions took None as a class like any other."""
    model = AutoMLClassifier().fit([({"a": i % 2}, "xy"[i % 2]) for i in range(20)])
    model._codes = {None: 0, "y": 1}
    again = AutoMLClassifier.load(saved(model))
    assert again.labels == [None, "y"]
    assert again.predict({"a": 1}) == "y"


def test_lines_of_a_block_have_their_event() -> None:
    [block] = from_dicts([EVENT | {"cost": 0} if key == "cost" else {"actions": [{"a": 1}]} for key in "ab"])
    assert [block.place_of(line) for line in range(2)] == ["event 0", "event 1"]
    assert ProblemCode.NO_LABEL not in Workspace(cb_explore_adf=True).diagnostics.counts
