from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from itertools import islice
from math import isfinite
from pathlib import Path

import numpy as np
import pytest

from datasets.convert import FOLDER, NOT_COMMITTED
from datasets.llm_routes import load

SUMS = dict(line.split("  ")[::-1] for line in (FOLDER / "SHA256SUMS").read_text().splitlines())
EVENTS = {"penbased": 10_992, "letter": 12_000, "surveys": 31_147, "flights": 30_000, "diamonds": 30_000}
BOTH = tuple(EVENTS)
EVENTS |= {f"{name}-n": EVENTS[name] for name in ("penbased", "letter", "surveys", "diamonds")}
EVENTS |= {"satimage": 6435, "diseases": 14_228, "routes": 10_000}
EVENTS |= {"weather": 12_983, "storms": 18_284, "birds": 17_429}
EVENTS |= {"route": 3609, "headlines": 2126}
BOTH_LOGS = (*BOTH, "route")
ACTIONS = {"letter": 26, "letter-n": 26, "satimage": 6, "diseases": 8, "routes": 8, "storms": 8, "birds": 6}
ACTIONS |= {"route": 3, "headlines": 4}
LOGS = [f"cb-{name}-{suffix}" for name in EVENTS for suffix in ("ue" if name in BOTH_LOGS else "u")]
LINES = {
    "reg-bikeshare": (8645, "hwmetuds"),
    "reg-diamonds": (20_000, "cuoltx"),
    "reg-flights": (20_000, "otchmg"),
}


def committed() -> list[Path]:
    files = [*FOLDER.glob("*.gz"), *FOLDER.glob("*.npz")]
    return [file for file in files if not file.name.startswith(NOT_COMMITTED)]


def test_checksums_match_and_none_is_missing() -> None:
    assert {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in committed()} == SUMS
    assert {file.split(".")[0] for file in SUMS} == {*LOGS, *LINES, "llm-routes"}


def test_the_readme_lists_every_file() -> None:
    readme = (FOLDER / "README.md").read_text()
    for file, digest in SUMS.items():
        row = next(line for line in readme.splitlines() if line.startswith(f"| `{file}`"))
        assert digest in row
        assert f"{(FOLDER / file).stat().st_size:,}" in row


def test_the_files_are_small() -> None:
    assert sum(file.stat().st_size for file in committed()) < 6_600_000


def test_the_scores_and_costs_of_language_models() -> None:
    routes = load()
    assert len(routes.models) == 4
    assert (routes.test.sum(), (~routes.test).sum()) == (1793, 1766)
    assert routes.reward[routes.test].mean(axis=0) == pytest.approx(
        [0.7945, 0.9244, 0.9247, 0.9332], abs=1e-4
    )
    assert routes.cost[routes.test].mean(axis=0) == pytest.approx(
        [2.843e-5, 5.134e-4, 8.821e-4, 1.505e-2], rel=1e-3
    )
    assert routes.words.shape == (3559, 64)


def test_gzip_headers_hold_neither_time_nor_name() -> None:
    for file in FOLDER.glob("*.gz"):
        header = file.read_bytes()[:8]
        assert header == b"\x1f\x8b\x08\x00\x00\x00\x00\x00", file.name


def test_uncommitted_files_are_ignored() -> None:
    ignored = set((FOLDER / ".gitignore").read_text().splitlines())
    for name in NOT_COMMITTED:
        assert ignored & {f"{name}.txt.gz", f"{name}-*"}
        assert not any(file.startswith(name) for file in SUMS)


def events(name: str) -> Iterator[list[str]]:
    with gzip.open(FOLDER / f"{name}.txt.gz", "rt", encoding="ascii") as file:
        event: list[str] = []
        for line in file:
            if line == "\n":
                yield event
                event = []
            else:
                event.append(line.rstrip("\n"))
    assert event == []


def actions_of(log: str) -> int:
    return ACTIONS.get(log.removeprefix("cb-")[:-2], 10)


@pytest.mark.parametrize("name", LOGS)
def test_text_is_well_formed_and_agrees_with_the_truth(name: str) -> None:
    count = actions_of(name)
    with np.load(FOLDER / f"{name}.npz") as truth:
        rewards, logged, probabilities, namespaces = truth["R"], truth["a"], truth["p"], str(truth["ns"])
        assert int(truth["K"]) == count
    for number, (shared, *lines) in enumerate(islice(events(name), 1500)):
        assert shared.startswith("shared |")
        assert "".join(part[0] for part in shared.split("|")[1:]) == namespaces
        bare = [line[line.index("|") :] for line in lines]
        if name.startswith(("cb-route", "cb-storms", "cb-headlines")):  # their actions have names or features
            assert len(set(bare)) == count
            assert all(line.startswith(("|Z ", "|t ")) for line in bare)
        else:
            assert bare == [f"|Z {action}" for action in range(count)]
        assert [action for action, line in enumerate(lines) if line[0] != "|"] == [logged[number]]
        action, cost, probability = lines[logged[number]].split(" ")[0].split(":")
        assert action == "0"
        assert cost[0] == "-"
        assert abs(-float(cost) - rewards[number, logged[number]]) < 5e-5
        assert abs(float(probability) - probabilities[number]) < 5e-7


@pytest.mark.parametrize("name", LOGS)
def test_whole_files_have_the_right_numbers(name: str) -> None:
    count, total = actions_of(name), EVENTS[name.removeprefix("cb-")[:-2]]
    text = gzip.decompress((FOLDER / f"{name}.txt.gz").read_bytes())
    assert text.count(b"\n\n") == text.count(b"shared |") == text.count(b"\n0:-") == total
    assert text.count(b"\n") == total * (count + 2)
    with np.load(FOLDER / f"{name}.npz") as truth:
        rewards, logged, probabilities = truth["R"], truth["a"], truth["p"]
    assert rewards.shape == (total, count)
    assert rewards.min() == 0
    assert (rewards.max(axis=1) == 1).all() or name.startswith("cb-route-")
    assert len(logged) == len(probabilities) == total
    # importance weights of honest probabilities average to the number of actions
    weights = 1 / probabilities
    assert abs(weights.mean() - count) <= max(1e-9, 5 * weights.std() / np.sqrt(total))
    assert set(logged) == set(range(count))
    smallest = 1 / count if name.endswith("-u") else 0.2 / count
    assert probabilities.min() == pytest.approx(smallest)
    # inverse propensity scoring finds the true value of a constant policy
    for action in range(0, count, 5):
        terms = np.where(logged == action, rewards[:, action] / probabilities, 0)
        assert abs(terms.mean() - rewards[:, action].mean()) < 5 * terms.std() / np.sqrt(total)


@pytest.mark.parametrize("name", [name for name in EVENTS if name.endswith("-n")])
def test_numbers_for_bins_change_nothing_else(name: str) -> None:
    binned = name.removesuffix("-n")
    with np.load(FOLDER / f"cb-{name}-u.npz") as one, np.load(FOLDER / f"cb-{binned}-u.npz") as other:
        assert all(np.array_equal(one[key], other[key]) for key in ("R", "a", "p", "K", "ns"))
    pairs = list(islice(zip(events(f"cb-{name}-u"), events(f"cb-{binned}-u"), strict=True), 500))
    assert all(numbers[1:] == bins[1:] for numbers, bins in pairs)
    assert any(":" in numbers[0] for numbers, _ in pairs)
    assert not any(":" in bins[0] for _, bins in pairs)


@pytest.mark.parametrize("name", BOTH)
def test_both_logs_are_of_the_same_events(name: str) -> None:
    uniform, greedy = (next(zip(*islice(events(f"cb-{name}-{log}"), 300), strict=True)) for log in "ue")
    assert uniform == greedy
    with np.load(FOLDER / f"cb-{name}-u.npz") as one, np.load(FOLDER / f"cb-{name}-e.npz") as other:
        assert np.array_equal(one["R"], other["R"])
        rows = np.arange(len(one["a"]))
        value = {"u": one["R"][rows, one["a"]].mean(), "e": other["R"][rows, other["a"]].mean()}
    assert value["e"] > 1.3 * value["u"]  # the rule is weak, not useless


def test_surveys_and_flights_are_in_the_order_of_time() -> None:
    years = [int(event[0].split("|y ")[1].split(" ")[0]) for event in events("cb-surveys-u")]
    assert (years[0], years[-1]) == (1977, 2002)
    assert years == sorted(years)
    hours = [int(event[0].split("|h ")[1].split(" ")[0]) for event in islice(events("cb-flights-u"), 800)]
    assert hours == sorted(hours)


@pytest.mark.parametrize("name", LINES)
def test_regression_lines_are_well_formed(name: str) -> None:
    total, namespaces = LINES[name]
    lines = gzip.decompress((FOLDER / f"{name}.txt.gz").read_bytes()).decode("ascii").splitlines()
    assert len(lines) == total
    labels = [float(line.split(" ", 1)[0]) for line in lines]
    assert all(0 < label < 11 for label in labels)
    assert 0.4 < np.std(labels) < 2
    for line in lines:
        label, *parts = line.split(" |")
        assert label
        assert "".join(part[0] for part in parts) == namespaces
        for part in parts:
            letter, *features = part.split(" ")
            assert len(letter) == 1
            assert features
            assert all(isfinite(float(feature.split(":")[1])) for feature in features if ":" in feature)
