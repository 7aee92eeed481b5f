"""Predictors: immutable snapshots that threads ask at once, while the workspace learns on."""

from __future__ import annotations

import copy
import gc
import pickle
import resource
import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto import InputError, OptionError, Predictor, Workspace
from tests.engine.event_texts import FORMATS, bandit
from tests.engine.test_threads import THREADS, at_once, shuffled
from tests.workspace.test_predicting import asked, bytes_of, each_kind, learnt

EVENTS = [bandit(n % 13) for n in range(150)]
OPTIONS: dict[str, Any] = {
    "cb_explore_adf": True,
    "squarecb": True,
    "automl": 2,
    "lease": 20,
    "bit_precision": 8,
}
QUESTIONS = [*(bandit(n) for n in (0, 3, 40, 500)), "shared |unknown x\n|b y1\n|other z\n"]


def answers(asks: Workspace | Predictor) -> list[bytes]:
    return [asks.predict(text).tobytes() for text in QUESTIONS]


@each_kind
def test_a_predictor_predicts_as_the_workspace_did_when_it_was_taken(
    options: dict[str, Any], text: str, label: str
) -> None:
    workspace = learnt(options, text, label)
    expected = [workspace.predict(each).tolist() for each in asked(text)]
    before = bytes_of(workspace)
    predictor = workspace.predictor()
    assert bytes_of(workspace) == before
    for _ in range(2):
        assert [predictor.predict(each).tolist() for each in asked(text)] == expected
        for a in ("a", "x9"):
            workspace.learn(text.format(a=a, b="b", label=label))
    assert bytes_of(workspace) != before


def test_a_predictor_is_the_same_whether_few_or_most_cells_were_learnt() -> None:
    for bits in (4, 18):
        workspace = Workspace(cb_explore_adf=True, bit_precision=bits, initial_weight=0.5).fit(EVENTS)
        assert answers(workspace.predictor()) == answers(workspace)


@pytest.mark.parametrize("bits", [4, 18])
@pytest.mark.parametrize("regcb", [False, True])
def test_a_predictor_has_more_than_weights_only_for_an_explorer_that_needs_it(bits: int, regcb: bool) -> None:
    workspace = Workspace(cb_explore_adf=True, regcb=regcb, bit_precision=bits).fit(EVENTS)
    predictor = workspace.predictor()
    assert answers(predictor) == answers(workspace)
    assert predictor._model.parts.model.statistics.any() == regcb


def test_predictors_of_exact_models_are_refused_since_predictions_change_those() -> None:
    with pytest.raises(OptionError, match="a model of --vw_exact changes when it predicts"):
        Workspace(cb_explore_adf=True, vw_exact=True).predictor()


def test_a_text_that_is_no_event_is_refused_and_the_next_one_is_predicted() -> None:
    workspace = Workspace(**OPTIONS).fit(EVENTS)
    predictor = workspace.predictor()
    with pytest.raises(InputError, match="the text is not one event"):
        predictor.predict("shared |a x\n|b y\n\nshared |a x\n|b y\n")
    assert answers(predictor) == answers(workspace)


def test_blocks_are_predicted_as_by_the_workspace() -> None:
    workspace = Workspace(**OPTIONS).fit(EVENTS)
    (block,) = workspace.read("".join(f"{event}\n" for event in QUESTIONS).encode())
    one, other = workspace.predictor().predict_block(block), workspace.predict_block(block)
    assert one.score.tolist() == other.score.tolist()


@pytest.mark.parametrize(("options", "event"), FORMATS)
def test_threads_get_the_answers_of_one(options: dict[str, Any], event: Callable[[int], str]) -> None:
    workspace = Workspace(**options, bit_precision=12)
    for n in (5, 1, 12):
        workspace.learn(event(n))
    texts = [event(n) for n in (*range(25), 300, 2000)]
    expected = {text: workspace.predict(text).tobytes() for text in texts}
    predictor = workspace.predictor()

    def ask(seed: int) -> int:
        return sum(predictor.predict(text).tobytes() != expected[text] for text in shuffled(seed, texts * 4))

    assert at_once(*(partial(ask, seed) for seed in range(THREADS))) == [0] * THREADS


@pytest.mark.ci
def test_threads_ask_predictors_while_one_learns_and_publishes_new_ones() -> None:
    serial = Workspace(**OPTIONS)
    moments = [answers(serial)]
    for event in EVENTS:
        serial.learn(event)
        moments.append(answers(serial))
    workspace, ended = Workspace(**OPTIONS), threading.Event()
    published = (0, workspace.predictor())

    def learn() -> int:
        nonlocal published
        try:
            for n, event in enumerate(EVENTS, 1):
                workspace.learn(event)
                published = (n, workspace.predictor())
        finally:
            ended.set()
        return 0

    def ask(_: int) -> int:
        wrong, last = 0, False
        while not last:
            last = ended.is_set()
            moment, predictor = published
            wrong += answers(predictor) != moments[moment]
        return wrong

    assert at_once(learn, *(partial(ask, seed) for seed in range(THREADS))) == [0] * (THREADS + 1)
    assert bytes_of(workspace) == bytes_of(serial)


def resident() -> float:
    """Mebibytes of memory in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc here")
@pytest.mark.ci
def test_neither_predictors_nor_questions_take_more_and_more_memory() -> None:
    workspace = Workspace(cb_explore_adf=True, quadratic=["::"], bit_precision=18).fit(EVENTS)

    def go_on(rounds: int) -> float:
        for n in range(rounds):
            predictor = workspace.predictor()
            for k in range(5):
                predictor.predict(f"shared |u{n}_{k} x\n|b y\n")
        predictor = workspace.predictor()
        for n in range(20 * rounds):
            predictor.predict(f"shared |v{n} x\n|b y\n")
        gc.collect()
        return resident()

    begin = go_on(30)
    assert go_on(90) < begin + 12


def test_a_predictor_takes_its_own_copy_of_the_weights() -> None:
    workspace = Workspace(**OPTIONS).fit(EVENTS)
    predictor = workspace.predictor()
    before = answers(predictor)
    workspace.learner.model.table[:] = np.float32(7)
    assert answers(predictor) == before


def test_copies_of_a_predictor_answer_the_same() -> None:
    predictor = Workspace(**OPTIONS).fit(EVENTS).predictor()
    expected = answers(predictor)
    for copied in (copy.copy(predictor), copy.deepcopy(predictor), pickle.loads(pickle.dumps(predictor))):  # noqa: S301 - its own bytes
        assert answers(copied) == expected


def test_predictors_that_share_their_working_memory_stay_apart() -> None:
    bandit = Workspace(cb_explore_adf=True, automl=3, dsjson=True, bit_precision=10)
    event = b'{"c":{"u":{"%s":1},"_multi":[{"a":{"x":1}},{"a":{"y":1}}]}}'
    label = b'{"_label_cost":-1,"_label_probability":0.5,"_labelIndex":%d,'
    asked = [event.replace(b"%s", name) for name in (b"tom", b"ann", b"new")]
    shared, apart = [bandit.predictor()], [bandit.predictor()]
    for step in range(60):
        bandit.learn(label % (step % 2) + asked[step % 2][1:])
        if step % 20 == 19:
            shared.append(bandit.predictor().like(shared[-1]))
            apart.append(bandit.predictor())
    for each in asked * 2:
        for one, other in zip(shared, apart, strict=True):
            assert one.predict(each).tolist() == other.predict(each).tolist()


def test_predictors_that_share_memories_do_not_retain_an_earlier_model() -> None:
    workspace = Workspace(**OPTIONS).fit(EVENTS)
    earlier = workspace.predictor()
    answers(earlier)
    table = weakref.ref(earlier._model.parts.model.table)
    workspace.fit(EVENTS)
    predictor = workspace.predictor().like(earlier)
    del earlier
    assert table() is None
    assert answers(predictor) == answers(workspace)
    table = weakref.ref(predictor._model.parts.model.table)
    del predictor
    assert table() is None


def test_snapshots_stay_the_same_to_the_bit_while_the_workspace_learns() -> None:
    workspace = Workspace(**OPTIONS | {"squarecb": False, "softmax": True}).fit(EVENTS[:3])
    taken: list[tuple[Predictor, list[bytes]]] = []
    wrong: list[int] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            wrong.extend(n for n, (predictor, expected) in enumerate(taken) if answers(predictor) != expected)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for step in range(5):
        for text in EVENTS[10 * step : 10 * (step + 1)]:
            workspace.learn(text)
        workspace.fit(EVENTS[10 * step : 10 * (step + 3)])
        predictor = workspace.predictor()
        taken.append((predictor.like(taken[-1][0]) if taken else predictor, answers(workspace)))
    ended.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert all(answers(predictor) == expected for predictor, expected in taken)
    assert len({tuple(expected) for _, expected in taken}) == len(taken)
