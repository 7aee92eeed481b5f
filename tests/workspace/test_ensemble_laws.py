"""Laws of an ensemble that predicts: nothing hangs on when a model is saved or copied, nor on blocks."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from onlineauto import Workspace, read
from onlineauto.cli.main import main
from onlineauto.engine.ensemble.ensemble import ensemble_state
from onlineauto.engine.ensemble.members.crosses import MEMBER, SPREAD
from onlineauto.engine.ensemble.product_kernels import learn_cells
from onlineauto.engine.ensemble.states import states_of
from tests.engine.ensemble_streams import bent, embedded, in_turn, odd, renewed, repeated
from tests.engine.test_threads import at_once, shuffled
from tests.naive.native_search.streams import slots

BANDIT: dict[str, Any] = {"cb_explore_adf": True, "automl": 3, "default_lease": 60, "bit_precision": 12}
LINES: dict[str, Any] = {"automl": 3, "default_lease": 60, "predict_with": "ensemble", "bit_precision": 12}
SLOTS: dict[str, Any] = {"ccb_explore_adf": True, "automl": 3, "default_lease": 60, "bit_precision": 12}

STREAMS: list[Any] = [
    pytest.param(BANDIT, lambda: odd(1300, numbers=2), 900, id="numbers"),
    pytest.param(BANDIT, lambda: odd(300, actions=60, numbers=1), 200, id="many actions"),
    pytest.param(BANDIT, lambda: odd(150, actions=129), 75, id="more actions than regressions"),
    pytest.param(BANDIT, lambda: late_numbers(400), 200, id="numbers come late"),
    pytest.param(BANDIT, lambda: odd(300, numbers=1, ids=900), 200, id="many ids"),
    pytest.param(BANDIT, lambda: renewed(1100), 700, id="inputs are replaced"),
    pytest.param(BANDIT, lambda: embedded(420), 310, id="vectors"),
    pytest.param(LINES, lambda: bent(900), 600, id="lines"),
    pytest.param(SLOTS, lambda: slots(300), 150, id="slots"),
]
each_stream = pytest.mark.parametrize(("options", "stream", "middle"), STREAMS)


def late_numbers(n: int) -> bytes:
    return odd(n // 2) + odd(n // 2, numbers=1)


def events_of(text: bytes) -> list[str]:
    gap = "\n\n" if b"\n\n" in text else "\n"
    return [each + gap for each in text.decode().split(gap) if each.strip()]


def joined(events: list[str]) -> bytes:
    return "".join(events).encode()


def saved(workspace: Workspace) -> bytes:
    file = io.BytesIO()
    workspace.save(file)
    return file.getvalue()


def again(workspace: Workspace) -> Workspace:
    return Workspace.load(saved(workspace))


def watched(workspace: Workspace, journal: list[Any]) -> Workspace:
    workspace.observe(lambda entry: journal.append(msgspec.to_builtins(entry)))
    return workspace


def learnt(workspace: Workspace, events: list[str]) -> list[bytes]:
    """Return the prediction of each event before it was learnt."""
    return [workspace.learn(event).tobytes() for event in events]


def serves(workspace: Workspace) -> bool:
    return workspace.searching.live_configs.arrays.ensemble.serves


@each_stream
@pytest.mark.parametrize(
    "interrupted", [again, copy.deepcopy, Workspace.fork], ids=["saved", "copied", "forked"]
)
def test_learning_continues_after_an_error(
    options: dict[str, Any],
    stream: Callable[[], bytes],
    middle: int,
    interrupted: Callable[[Workspace], Workspace],
) -> None:
    events = events_of(stream())
    first, second = joined(events[:middle]), events[middle:]
    whole = Workspace(**options).fit(first)
    other = interrupted(whole)
    assert saved(other) == saved(whole)
    journals: tuple[list[Any], list[Any]] = [], []
    if "ccb_explore_adf" in options:  # an event has the predictions of many slots
        for workspace, journal in zip((whole, other), journals, strict=True):
            watched(workspace, journal).fit(joined(second))
    else:
        assert learnt(watched(whole, journals[0]), second) == learnt(watched(other, journals[1]), second)
    assert journals[0] == journals[1]
    assert saved(other) == saved(whole)


def test_the_ensemble_predicts_in_the_middle_of_these_streams() -> None:
    for options, stream, middle in (STREAMS[0].values, STREAMS[7].values):
        workspace = Workspace(**options).fit(joined(events_of(stream())[:middle]))
        assert serves(workspace)
        assert workspace.searching.live_configs.arrays.ensemble.members.inputs.numbers.bins.any()


@each_stream
def test_blocks_of_any_size_predict_the_same(
    options: dict[str, Any], stream: Callable[[], bytes], middle: int
) -> None:
    events = events_of(stream())[:middle]
    whole = Workspace(**options)
    (block,) = read(joined(events), **reading(options))
    together = whole.learn_block(block)
    draw = np.random.default_rng(3)
    cut = Workspace(**options)
    parts = []
    while events:
        size = int(draw.integers(1, 80))
        (block,) = read(joined(events[:size]), **reading(options))
        parts.append(cut.learn_block(block))
        events = events[size:]
    for name in ("score", "prediction", "action"):
        apart = np.concatenate([getattr(each, name) for each in parts])
        assert apart.tobytes() == getattr(together, name).tobytes()
    assert saved(cut) == saved(whole)


def reading(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("cb_explore_adf", "ccb_explore_adf") if name in options}


def test_mappings_are_learnt_as_texts_are() -> None:
    draw = np.random.default_rng(1)
    of_text, of_mappings = Workspace(**BANDIT), Workspace(**BANDIT)
    for _ in range(900):
        x, word, shown = float(np.float32(draw.normal())), int(draw.integers(3)), int(draw.integers(4))
        cost = -float((abs(x) > 0.67) == (shown % 2 == 0))
        actions = [f"{f'0:{cost}:0.25 ' if k == shown else ''}|a a{k}\n" for k in range(4)]
        text = f"shared |w w{word} |n x:{x}\n" + "".join(actions)
        mapping = {
            "context": {"w": {f"w{word}": 1.0}, "n": {"x": x}},
            "actions": [{"a": {f"a{k}": 1.0}} for k in range(4)],
            "chosen": shown,
            "cost": cost,
            "probability": 0.25,
        }
        assert of_text.learn(text).tobytes() == of_mappings.learn(mapping).tobytes()
    assert serves(of_text)


@pytest.mark.parametrize(("options", "stream", "middle"), STREAMS[:-1])
def test_predictors_predict_as_the_workspace_does(
    options: dict[str, Any], stream: Callable[[], bytes], middle: int
) -> None:
    events = events_of(stream())
    workspace = Workspace(**options).fit(joined(events[:middle]))
    asked = events[middle : middle + 40]
    before = saved(workspace)
    expected = {event: workspace.predict(event).tobytes() for event in asked}
    assert saved(workspace) == before
    predictor = workspace.predictor()

    def ask(seed: int) -> int:
        texts = shuffled(seed, asked * 2)
        return sum(predictor.predict(event).tobytes() != expected[event] for event in texts)

    workspace.fit(joined(asked))
    assert at_once(*(partial(ask, seed) for seed in range(3))) == [0, 0, 0]


def test_an_ensemble_that_leads_predicts_before_it_is_proved() -> None:
    workspace, events = Workspace(**BANDIT), iter(events_of(odd(900, numbers=2)))
    for event in events:
        workspace.learn(event)
        ensemble = workspace.searching.live_configs.arrays.ensemble
        if serves(workspace) or ensemble.test.leads[0] > 0:
            break
    since = int(ensemble.test.leads[0])
    assert not serves(workspace)
    assert workspace.searching.predicts == ("ensemble", since)
    assert since == workspace.searching.n_events
    asked = [next(events) for _ in range(30)]
    expected = [workspace.predict(event).tobytes() for event in asked]
    spun = io.BytesIO()
    workspace.save(spun, predict_only="ensemble")
    for other in (workspace.predictor(), again(workspace), Workspace.load(spun.getvalue(), testonly=True)):
        assert [other.predict(event).tobytes() for event in asked] == expected


@each_stream
def test_a_replayed_journal_gives_the_same_model(
    options: dict[str, Any], stream: Callable[[], bytes], middle: int, tmp_path: Path
) -> None:
    journal, text = tmp_path / "journal.jsonl", joined(events_of(stream())[:middle])
    (tmp_path / "events.txt").write_bytes(text)
    words = [f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items()]
    assert main(["-d", str(tmp_path / "events.txt"), *words, "--journal", str(journal), "--quiet"]) == 0
    one, other = Workspace(**options).fit(text), Workspace(**options, replay=str(journal)).fit(text)
    assert serves(one) == serves(other)
    assert serves(one) <= (b'"predict_with"' in journal.read_bytes())
    assert other.weights.tobytes() == one.weights.tobytes()
    kept, replayed = (
        ensemble_state(each.searching.live_configs.arrays.ensemble, tests=0) for each in (one, other)
    )
    assert msgspec.msgpack.encode(kept, enc_hook=np.ndarray.tobytes) == msgspec.msgpack.encode(
        replayed, enc_hook=np.ndarray.tobytes
    )


@pytest.mark.parametrize(
    ("times", "words", "actions", "bits"),
    [(8, 2, 3, 18), (22, 2, 3, 18), (1, 20, 3, 6), (1, 8, 40, 6)],
    ids=["repeated", "often repeated", "a small table", "a small table of many actions"],
)
def test_weights_of_products_do_not_grow_without_bound(
    times: int, words: int, actions: int, bits: int
) -> None:
    options = {**BANDIT, "bit_precision": bits}
    workspace = Workspace(**options).fit(repeated(500, times=times, words=words, actions=actions))
    crosses = states_of(workspace.searching.live_configs.arrays.ensemble).state_of("crosses")
    assert 0.0 < np.abs(crosses.weights).max() < 1.0
    assert saved(again(workspace)) == saved(workspace)


def test_products_that_all_share_a_cell_leave_finite_weights() -> None:
    weights, spread = np.zeros(2**14, np.float32), np.zeros(2**14, np.float32)
    cells = MEMBER.make_scratch().cells
    for event in range(2000):
        learn_cells(weights, spread, cells, 64, (float(event % 2), 1.0), SPREAD)
    assert np.isfinite(weights).all()
    assert np.isfinite(spread).all()


def test_events_that_come_in_turn_are_all_learnt() -> None:
    text, means = in_turn(4000, 24)
    workspace = Workspace(**LINES).fit(text)
    weights = (
        states_of(workspace.searching.live_configs.arrays.ensemble).state_of("features").regression.weights[0]
    )
    off = weights[0] + weights[1:25] - means  # inputs are in the order in which they were met
    assert float(np.mean(off**2)) < 0.006  # 0.03 where the covariance learns each fourth event
