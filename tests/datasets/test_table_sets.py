"""Sets made from tables by one recipe: what it makes of small tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest

from datasets import sources, table_sets

Columns = dict[str, list[Any]]
NAN = float("nan")


def given(monkeypatch: pytest.MonkeyPatch, columns: Columns) -> None:
    monkeypatch.setattr(sources, "rdatasets", lambda *_: pandas.DataFrame(columns))


def test_a_set_of_keel_has_its_numbers_in_one_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [["1.50", "2", "g"], ["3", "0", "h"], ["4", "<null>", "h"]]
    monkeypatch.setattr(sources, "keel", lambda _: rows)
    data = table_sets.TABLE_SETS["magic"]()
    found = dict(zip(data.contexts, data.rewards.tolist(), strict=True))
    assert found == {"|n n0:1.5 n1:2": [1, 0], "|n n0:3 n1:0": [0, 1]}
    assert data.logs == "ue"


def test_loans_do_not_reveal_later_values(monkeypatch: pytest.MonkeyPatch) -> None:
    columns: Columns = {"rownames": [1, 2], "state": ["NJ", NAN], "income": [9.5, NAN]}
    columns |= {"paid_total": [7.0, 8.0], "sub_grade": ["C1", "A2"], "interest_rate": [1.0, 2.0]}
    given(monkeypatch, columns | {"grade": ["C", "A"]})
    data = table_sets.loans()
    found = dict(zip(data.contexts, data.rewards.argmax(axis=1).tolist(), strict=True))
    assert found == {"|a NJ |n n0:9.5": 2, "|a na |n na": 0}
    assert data.rewards.max() == 1


def test_a_film_may_have_several_genres(monkeypatch: pytest.MonkeyPatch) -> None:
    columns: Columns = {name: [5] * 4 for name in ("length", "rating", "votes", "r1", "r5", "r10")}
    columns |= {"title": ["New Film", "Old: a Film", "Nothing", "Middle"], "year": [2001, 1950, 1940, 1990]}
    for name in table_sets._GENRES:
        columns[name] = [int(name == "Comedy"), int(name in {"Comedy", "Short"}), 0, 1]
    given(monkeypatch, columns | {"mpaa": ["PG", NAN, NAN, NAN]})
    data = table_sets.movies()
    assert data.contexts[0] == "|a Old |b na |n n0:1950 n1:5 n2:5 n3:5 n4:5 n5:5 n6:5"
    assert data.rewards.tolist() == [[0, 0, 1, 0, 0, 0, 1], [0, 0, 1, 0, 0, 0, 0]]  # every second one


def test_ratings_are_in_the_order_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    columns: Columns = {
        "userId": [4, 3],
        "movieId": [31, 32],
        "genres": ["(no genres listed)", "Drama|Sci-Fi"],
    }
    given(monkeypatch, columns | {"year": [1995.0, NAN], "rating": [0.5, 4.5], "timestamp": [9, 8]})
    data = table_sets.ratings()
    assert data.contexts == [
        "|u u3 |m m32 |g Drama Sci-Fi |n na",
        "|u u4 |m m31 |g no_genres_listed |n y:1995",
    ]
    assert data.rewards.argmax(axis=1).tolist() == [3, 0]


def test_stops_are_those_of_the_commonest_quarters(monkeypatch: pytest.MonkeyPatch) -> None:
    quarters = [f"q{i:02d}" for i in range(25)]
    columns: Columns = {name: ["NO"] * 51 for name in ("problem", "MDC", "citationIssued", "personSearch")}
    columns |= {name: ["x"] * 51 for name in ("vehicleSearch", "race", "gender")}
    dates = [f"2017-01-01T{i % 24:02d}" for i in range(51)]
    given(monkeypatch, columns | {"neighborhood": [*quarters, "rare", *quarters], "date": dates})
    data = table_sets.stops()
    assert data.rewards.shape == (50, 25)
    assert data.contexts[0] == "|a NO |b NO |c NO |d NO |e x |f x |g x |h h00"


@pytest.mark.parametrize(("make", "bands"), [(table_sets.hotel, 10), (table_sets.checks, 6)])
def test_bands_have_equal_numbers_of_rows(monkeypatch: pytest.MonkeyPatch, make: Any, bands: int) -> None:
    values = [i * i for i in range(60)]
    shared: Columns = {"arrival_date": ["2017-01-01"] * 60, "kind": ["a"] * 60}
    given(monkeypatch, shared | {"avg_price_per_room": values, "check_time": values})
    data = make()
    assert np.bincount(data.rewards.argmax(axis=1)).tolist() == bands * [60 // bands]
