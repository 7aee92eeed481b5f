"""The streams that drift, what is found on them, and how a change of champion is judged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bench.drift.__main__ import flip, main, returning, stationary
from bench.drift.report import Flip, Judged, Stationary, tail, verdicts
from bench.drift.runs import Spell, fixed, search, spells
from bench.drift.streams import Light, Regimes, written

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.ci
def test_regimes_return() -> None:
    text = written(Regimes(1, pairs=("ab", "cd", "ab"), length=3000), 9000)
    assert text.text.count(b"shared") == len(text) == 9000
    assert (
        text.text == written(Regimes(1, pairs=("ab", "cd", "ab"), length=3000), 12_000).text[: len(text.text)]
    )
    only = written(Regimes(1, pairs=("ab",), length=1), 9000)
    same = (text.truth == only.truth).all(axis=1)
    assert same[:3000].all()
    assert same[6000:].all()
    assert not same[3000:6000].any()


@pytest.mark.ci
def test_a_light_stream_pays_or_does_not() -> None:
    assert np.ptp(written(Light(1, pays=True), 500).truth) > 0
    assert (written(Light(1, pays=False), 500).truth == 0.5).all()


@pytest.mark.ci
def test_what_pays_is_learnt() -> None:
    text = written(Regimes(1, pairs=("ab",), length=1), 6000)
    own, other = fixed(text, ((b"Z", b"a", b"b"),)), fixed(text, ((b"Z", b"c", b"d"),))
    assert own.rewards[3000:].mean() > other.rewards[3000:].mean() + 0.1
    assert own.losses[3000:].mean() < other.losses[3000:].mean() / 2
    found = search(text)
    assert found.rewards.shape == (6000,)
    assert found.champion_at(0) != found.champion_at(6000) == found.last


@pytest.mark.ci
def test_the_stack_is_compared_with_the_champion_where_it_predicts() -> None:
    text = written(Light(1, pays=True), 2000)
    found = spells(text)
    assert found
    assert all(0 < spell.begin < spell.end <= 2000 for spell in found)
    assert found[0].loss != 0


@pytest.mark.ci
def test_a_flip_is_found() -> None:
    found = flip(1, before=10_000, after=10_000, vw=False)
    assert not found.had
    assert found.delays["ours"] < 10_000
    assert found.changes["ours"] == len(found.told)


@pytest.mark.ci
def test_wrong_changes_and_alarms_count() -> None:
    better, worse = (Judged("", "loss", 0.0, loss, loss >= 0) for loss in (-0.1, 0.1))
    quiet = [Stationary(seed, True, 10, [better], 0) for seed in range(99)]
    wrong = [Stationary(seed, True, 10, [worse, worse], 1) for seed in range(10)]
    assert list(verdicts([], [*quiet, wrong[0]]).values()) == [True, True, True]
    assert list(verdicts([], [*quiet[8:], *wrong[:9]]).values()) == [True, True, False]
    assert list(verdicts([], [*quiet[9:], *wrong]).values()) == [False, True, False]
    assert list(verdicts([], [Stationary(1, True, 10, [], None)]).values()) == [True, True]
    lost = [Stationary(seed, True, 10, [], 0, [Spell(1, 9, "reward", -0.1, -0.1)]) for seed in range(10)]
    assert list(verdicts([], [*quiet[9:], *lost]).values()) == [True, False, True]


@pytest.mark.ci
def test_more_wrong_runs_than_the_level_allows_are_rare() -> None:
    draw = np.random.default_rng(0).binomial(40, 0.05, 100_000)
    assert tail(0, 40) == 1.0
    assert all(tail(n, 40) == pytest.approx((draw >= n).mean(), abs=0.005) for n in range(1, 8))


@pytest.mark.ci
@pytest.mark.parametrize(("ours", "met"), [(10, True), (11, False)])
def test_a_quarter_of_the_delay(ours: int, met: bool) -> None:
    one = Flip(1, 40, False, {"ours": ours, "VW": 40}, {"ours": 1, "VW": 0}, None, [])
    had = Flip(2, 40, True, {"ours": 40, "VW": 40}, {"ours": 0, "VW": 0}, None, [])
    assert list(verdicts([one, had], []).values()) == [met]
    assert list(verdicts([had], []).values()) == [False]


@pytest.mark.ci
def test_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.json"
    sizes = ["--before", "1000", "--after", "1000", "--regime", "1000", "--runs", "2", "--events", "2000"]
    assert main(["--seeds", "1", *sizes, "--json", str(path)]) in (0, 1)
    rows = json.loads(path.read_text())
    assert set(rows["flip"][0]["delays"]) == {"ours", "VW", "VW qbase_cubic"}
    assert [len(rows[part]) for part in ("flip", "return", "stationary")] == [1, 1, 2]
    shown = capsys.readouterr().out
    assert "VW never changed its champion" in shown
    assert "2 stationary runs of 2,000 events" in shown


@pytest.mark.bench
def test_delays_and_regimes() -> None:
    assert main(["--only", "flip", "return", "--seeds", "3", "--no-vw"]) == 0
    ours = returning(1, length=30_000).rewards["ours"]
    assert min(ours) > 0.65
    assert stationary(1, events=100_000).wrong == 0
