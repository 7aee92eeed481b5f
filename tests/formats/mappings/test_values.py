"""Values of any library: the table of the guide, row by row."""

from __future__ import annotations

import datetime
import enum
import math
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from onlineauto import AutoML, AutoMLRegressor, InputError
from onlineauto.formats.mappings.identities import has_new_numbers, numbers_in
from onlineauto.formats.mappings.named_event import spans_of
from onlineauto.formats.mappings.values import plain, whole_number

pytestmark = pytest.mark.lane("sampled")

ONE_AND_A_HALF: list[Any] = [
    1.5,
    Decimal("1.5"),
    Fraction(3, 2),
    np.float32(1.5),
    np.float64(1.5),
    np.longdouble(1.5),
    np.array(1.5),
    np.array(Decimal("1.5"), object),
    pyarrow.scalar(1.5),
    pyarrow.scalar(Decimal("1.5")),
    polars.Series([1.5])[0],
    pandas.Series([1.5])[0],
]
THREE: list[Any] = [3, np.int8(3), np.uint64(3), np.array(3), Decimal(3), Fraction(3), pyarrow.scalar(3)]
MISSING: list[Any] = [
    None,
    math.nan,
    np.float32("nan"),
    np.array(math.nan),
    np.datetime64("NaT", "s"),
    np.timedelta64("NaT", "s"),
    np.ma.masked,
    pandas.NA,
    pandas.NaT,
    Decimal("NaN"),
    Decimal("sNaN"),
    pyarrow.scalar(None),
    pyarrow.scalar(None, pyarrow.float64()),
]


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize("value", ONE_AND_A_HALF, ids=repr)
def test_numbers_of_every_library_are_numbers(value: Any) -> None:
    assert spans_of({"f": value, "g": {"x": value}, "h": [value]}) == (
        ("f", (("f", 1.5),)),
        ("g", (("x", 1.5),)),
        ("h", ((0, 1.5),)),
    )


@pytest.mark.parametrize("value", THREE, ids=repr)
def test_whole_numbers_of_every_library_are_whole(value: Any) -> None:
    assert whole_number(value) == 3
    assert spans_of({"f": value}) == (("f", (("f", 3.0),)),)


@pytest.mark.parametrize("value", MISSING, ids=repr)
def test_missing_values_are_no_features(value: Any) -> None:
    assert spans_of({"f": value, "g": {"x": value}, "h": [1, value, 2]}) == (("h", ((0, 1.0), (2, 2.0))),)


@pytest.mark.parametrize("value", [True, np.bool_(True), np.array(True), pyarrow.scalar(True)], ids=repr)
def test_true_is_1_and_false_is_no_feature(value: Any) -> None:
    assert spans_of({"f": value, "h": [value]}) == (("f", (("f", 1.0),)), ("h", ((0, 1.0),)))
    assert plain(type(value)(False) if type(value) is np.bool_ else False) is False


@pytest.mark.parametrize("value", ["red", np.str_("red"), Colour.RED, pyarrow.scalar("red")], ids=repr)
def test_strings_of_every_kind_are_names(value: Any) -> None:
    assert spans_of({"f": value, "h": [value]}) == (("f", (("f=red", 1.0),)), ("h", (("red", 1.0),)))


@pytest.mark.parametrize(
    "value",
    [
        [0.5, None, "a", True],
        (0.5, math.nan, "a", 1),
        np.array([0.5, None, "a", 1], object),
        pandas.Series([0.5, pandas.NA, "a", 1], dtype=object),
        pyarrow.scalar([0.5, 0.0, 0.0, 1.0]),
        polars.Series([0.5, None, 0.0, 1.0]),
        np.array([0.5, math.nan, 0, 1]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_list_has_numbers_by_index_and_names(value: Any) -> None:
    features = dict(spans_of({"v": value})[0][1])
    assert features.pop("a", 1.0) == 1.0
    assert features == {0: 0.5, 3: 1.0}


def test_mappings_and_lists_within_are_namespaces() -> None:
    spans = spans_of({"u": {"a": 1, "v": [2, 3], "w": {"b": "x"}}, "w": {"c": 1}, "l": [{"d": 1}, {"e": 2}]})
    assert dict(spans) == {
        "u": (("a", 1.0),),
        "v": ((0, 2.0), (1, 3.0)),
        "w": (("b=x", 1.0), ("c", 1.0)),
        "l": (("d", 1.0), ("e", 2.0)),
    }


def test_an_endless_mapping_is_rejected() -> None:
    endless: dict[str, Any] = {"a": 1}
    endless["b"] = endless
    with pytest.raises(InputError, match="more than 250 nested mappings and lists"):
        spans_of(endless)


@pytest.mark.parametrize("value", [Decimal("1.5"), [0.1, -0.2], pandas.NA, np.array(1), Fraction(1, 2)])
def test_a_bandit_accepts_values_of_every_library(value: Any) -> None:
    bandit: Any = AutoML(seed=1)
    choice = bandit.rank({"f": value}, {"a": {"t": "x", "v": value}, "b": {"t": "y"}})
    bandit.learn(choice, reward=np.float32(1))
    bandit.learn(
        {"f": value}, [{"t": "x"}], action=np.int64(0), probability=Decimal(1), reward=Fraction(1, 2)
    )
    assert bandit.events == 2


def test_a_regressor_scales_numbers_of_every_library() -> None:
    own, other = AutoMLRegressor(), AutoMLRegressor()
    kinds = [Decimal, Fraction, np.float32, np.array, pyarrow.scalar]
    for i in range(50):
        own.learn({"x": i / 4, "seen": True, "gone": None}, i)
        other.learn({"x": kinds[i % 5](i / 4), "seen": np.bool_(True), "gone": pandas.NA}, Decimal(i))
    assert own.predict({"x": 2.0}) == other.predict({"x": Fraction(2)})


@pytest.mark.parametrize(
    "value", [datetime.datetime(2026, 1, 2), pandas.Timestamp(2026, 1, 2), np.timedelta64(1, "s")]
)
def test_a_date_is_rejected_with_advice(value: Any) -> None:
    advice = r"when: .* is a date or a time.*such as the weekday and the hour"
    with pytest.raises(InputError, match=advice):
        AutoML().rank({"when": value}, [{"a": 1}])
    with pytest.raises(InputError, match=advice):
        AutoMLRegressor().learn({"when": value}, 1.0)


def test_columns_of_numbers_are_found_in_nested_mappings() -> None:
    features = {"u": {"a": {"b": 1, "c": "x"}, "d": math.nan, "e": np.float32(2)}, "f": True, "g": "y"}
    assert numbers_in(features) == ["a^b", "u^d", "u^e", "f^f"]
    assert numbers_in({"u": [1], "v": None, "w": MappingProxyType({"x": Decimal(1)})}) == ["w^x"]


def test_noted_columns_of_numbers_need_not_be_listed_again() -> None:
    noted: set[tuple[str, str, type]] = set()
    features = {"u": {"a": 1, "b": "x", "c": None}, "f": True, "g": "y", "h": [1]}
    assert has_new_numbers(features, noted)
    assert noted == {(*column, kind) for column in ("ua", "ff") for kind in (bool, int, float)}
    assert not has_new_numbers(features, noted)
    assert not has_new_numbers({"u": {"a": None, "b": "y"}, "f": 2.5}, noted)
    for new in ({"u": {"b": 1}}, {"a": 1}, {"u": {"a": {"b": 1}}}, {"u": {"a": Decimal(1)}}, {"u": 1}):
        assert has_new_numbers(new, noted)
    assert has_new_numbers(MappingProxyType({}), noted)
