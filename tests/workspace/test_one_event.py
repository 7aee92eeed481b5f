"""One event at a time, given as a mapping, beside the same events in blocks: equal to the bit."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onlineauto import Block, Workspace
from onlineauto.errors import EventTypeError, InputError
from onlineauto.interop import event_text, from_dicts
from tests.property.snapshot import model_of, saved_of

pytestmark = pytest.mark.lane("quick")

_ADF: dict[str, Any] = {"cb_explore_adf": True}
_ACTIONS: dict[str, dict[str, Any]] = {
    "automl": _ADF | {"automl": 3, "oracle_type": "one_diff"},
    "automl without a search yet": _ADF | {"automl": 2, "default_lease": 40},
    "epsilon and squares": _ADF | {"quadratic": ["::"], "cubic": ["uab"]},
    "bag": _ADF | {"bag": 3},
    "cover": _ADF | {"cover": 2},
    "first": _ADF | {"first": 30},
    "squarecb": _ADF | {"squarecb": True, "elim": True},
    "softmax": _ADF | {"softmax": True},
    "draws": _ADF | {"cb_sample": True},
    "doubly robust": _ADF | {"cb_type": "dr"},
    "costs": {"cb_adf": True, "noconstant": True},
    "exact": _ADF | {"vw_exact": True, "quadratic": ["ua"]},
}
_LINES: dict[str, dict[str, Any]] = {
    "regression": {"quadratic": ["::"]},
    "regression with a search": {"automl": 3},
    "logistic": {"loss_function": "logistic", "link": "logistic"},
}


def _features(random: np.random.Generator, i: int) -> dict[str, Any]:
    made: dict[str, Any] = {
        "user": {"name": f"u{random.integers(9)}", "age": int(random.integers(80))},
        "hour": float(random.random()),
    }
    if i > 60:
        made["late"] = [f"t{j}" for j in range(random.integers(0, 2 + i // 20))]
    if i % 50 == 49:
        made["array"] = np.float32(2)  # which is read by Python
    return made


def _decisions(n: int = 160) -> list[dict[str, Any]]:
    random, made = np.random.default_rng(3), []
    for i in range(n):
        k = int(random.integers(2, 3 + i // 16))
        event: dict[str, Any] = {
            "context": _features(random, i),
            "actions": [
                {"article": f"a{random.integers(5)}", "size": float(random.random())} for _ in range(k)
            ],
        }
        if i % 7:
            cost = -float(random.integers(2))
            event |= {"chosen": int(random.integers(k)), "cost": cost, "probability": 1 / k}
        made.append(event)
    return made


def _lines(n: int = 160) -> list[dict[str, Any]]:
    random = np.random.default_rng(4)
    return [
        {"context": _features(random, i)} | ({"label": float(random.integers(2)) * 2 - 1} if i % 7 else {})
        for i in range(n)
    ]


def _compare(options: dict[str, Any], events: list[dict[str, Any]]) -> None:
    """Compare events learnt one at a time, as mappings and as texts, with the same events in blocks."""
    lines, reader = [event_text(event) for event in events], Workspace(**options)
    blocks = (block for line in lines for block in reader.read(line.encode()))
    _compare_each(options, events, from_dicts(events, events_per_block=1))
    _compare_each(options, lines, blocks)


def _compare_each(options: dict[str, Any], events: Iterable[Any], read: Iterable[Block]) -> None:
    one, blocks = Workspace(**options), Workspace(**options)
    for event, block in zip(events, read, strict=True):
        expected = blocks.predict_block(block).one_prediction()
        np.testing.assert_array_equal(one.predict(event), expected)
        expected = blocks.learn_block(block).one_prediction()
        np.testing.assert_array_equal(one.learn(event), expected)
    assert model_of(one) == model_of(blocks)


@pytest.mark.parametrize("options", _ACTIONS.values(), ids=_ACTIONS)
def test_decisions_one_at_a_time(options: dict[str, Any]) -> None:
    _compare(options, _decisions())


@pytest.mark.parametrize("options", _LINES.values(), ids=_LINES)
def test_lines_one_at_a_time(options: dict[str, Any]) -> None:
    _compare(options, _lines())


def test_numbered_actions_one_at_a_time() -> None:
    events = [
        {"context": {"u": f"x{i % 3}"}, "action": i % 4 + 1, "cost": i % 2, "probability": 0.25}
        for i in range(60)
    ]
    _compare({"cb": 4}, events)
    _compare({"cb_explore": 4}, events)


def test_wide_events_whose_namespaces_come_in_any_order() -> None:
    """A search that screens many interactions; what asks has other numbers of namespaces than what learns."""
    random, same = np.random.default_rng(1), {f"w{j}": 0.1 for j in range(10)}
    for seed in range(2):
        one = Workspace(automl=3, random_seed=seed)
        for i in range(150):
            names = [f"n{j}" for j in random.permutation(18)]
            event = {
                "context": {name: {f"v{random.integers(9)}": 1.0, "x": i / 9} | same for name in names[:-3]}
            }
            [block] = from_dicts([event])
            expected = one.predict_block(block).one_prediction()
            np.testing.assert_allclose(one.predict(event), expected, rtol=1e-5)
            one.learn(event | {"context": dict.fromkeys(names, same), "label": float(random.random())})


@pytest.mark.parametrize("options", [{}, {"vw_exact": True}], ids=["native", "exact"])
def test_texts_of_all_sizes(options: dict[str, Any]) -> None:
    """Short and very long texts by turns, some with something odd in them."""
    random, texts = np.random.default_rng(7), []
    for i, size in enumerate([1, 5, 3000, 2, 60_000, 4, 150_000, 1, 7, 150_000, 3]):
        words = " ".join(f"w{random.integers(10_000)}:{random.random():.3f}" for _ in range(size))
        odd = "" if i % 2 else " x:1e99"
        texts += [f"{i % 3} |a {words}\n", f"{i % 3} |a {words}{odd} |b c\n", "1 |a one two\n"]
    one, blocks = Workspace(**options), Workspace(**options)
    for text in texts:
        read = [block for block in blocks.read(text.encode()) if len(block)]
        if not read:
            with pytest.raises(InputError):
                one.learn(text)
            continue
        np.testing.assert_array_equal(one.predict(text), blocks.predict_block(read[0]).one_prediction())
        np.testing.assert_array_equal(one.learn(text), blocks.learn_block(read[0]).one_prediction())
    assert model_of(one) == model_of(blocks)


def test_a_search_decides_on_the_way() -> None:
    """A long stream, on which leases end and configs change while one event is learnt."""
    random, events = np.random.default_rng(5), []
    for _ in range(3000):
        user, chosen = int(random.integers(3)), int(random.integers(3))
        events.append(
            {
                "context": {"user": f"u{user}"},
                "actions": [{"article": f"a{j}"} for j in range(3)],
                "chosen": chosen,
                "cost": -float(user == chosen),
                "probability": 1 / 3,
            }
        )
    options = _ADF | {"automl": 3}
    one, blocks = Workspace(**options), Workspace(**options)
    heard: list[object] = []
    with one.observe(heard.append):
        for event in events:
            one.learn(event)
    blocks.fit(from_dicts(events))
    assert len(heard) > 3
    assert model_of(one) == model_of(blocks)


def test_copies_go_on_by_themselves() -> None:
    events = _decisions()
    one = Workspace(**_ACTIONS["automl"])
    for event in events[:80]:
        one.learn(event)
    copies = [copy.deepcopy(one), pickle.loads(pickle.dumps(one)), one.fork()]  # noqa: S301 - its own bytes
    for event in events[80:]:
        expected = one.learn(event)
        for each in copies:
            np.testing.assert_array_equal(each.learn(event), expected)


def test_threads_ask_a_predictor_with_mappings() -> None:
    events = _decisions()
    one = Workspace(**_ACTIONS["automl"])
    for event in events:
        one.learn(event)
    predictor = one.predictor()
    expected = [predictor.predict(event) for event in events]

    def ask(_: int) -> list[NDArray[np.float32]]:
        return [predictor.predict(event) for event in events]

    with ThreadPoolExecutor(8) as pool:
        for answers in pool.map(ask, range(8)):
            for answer, other in zip(answers, expected, strict=True):
                np.testing.assert_array_equal(answer, other)


def test_events_of_another_kind_are_refused() -> None:
    bandit, regression = Workspace(cb_explore_adf=True), Workspace()
    with pytest.raises(InputError, match="no actions"):
        bandit.learn({"context": {"a": 1}})
    with pytest.raises(InputError, match="it has actions"):
        regression.predict({"context": {"a": 1}, "actions": [{"b": 1}]})
    with pytest.raises(EventTypeError, match=r"each a text \(str or bytes\); element 1 is of type int"):
        regression.learn(["1 |a x", 1])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a list of its lines, or a mapping, not int"):
        regression.learn(1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unknown key 'contxt'"):
        regression.learn({"contxt": {"a": 1}})


LINES = ["shared |user tom", "0:-1:0.5 |page a", "|page b"]


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("as_bytes", [False, True])
def test_an_event_may_be_a_list_of_its_lines(end: str, kind: type, as_bytes: bool) -> None:
    lines = kind((line + end).encode() if as_bytes else line + end for line in LINES)
    by_lines, by_text = Workspace(cb_explore_adf=True), Workspace(cb_explore_adf=True)
    for _ in range(3):
        by_lines.learn(lines)
        by_text.learn("\n".join(LINES))
    for asked in (by_lines, by_lines.predictor()):
        assert asked.predict(lines).tolist() == by_text.predict("\n".join(LINES)).tolist()


def test_lines_of_two_events_are_refused() -> None:
    with pytest.raises(InputError, match="it has 2 events"):
        Workspace(cb_explore_adf=True).learn([*LINES, "", *LINES])


def test_a_label_that_is_not_finite_is_counted() -> None:
    workspace = Workspace()
    assert workspace.learn("nan |a x").tolist() == workspace.learn("|a x").tolist()
    assert str(workspace.diagnostics.kept[0]).endswith(
        "label 'nan' is infinite, NaN or too large; label not used"
    )
    assert workspace.diagnostics.total == 1


def test_json_for_a_workspace_of_text_is_named() -> None:
    bandit, event = Workspace(cb_explore_adf=True), '{"c": {"_multi": [{"a": 1}]}}'
    for method, source in ((bandit.learn, event), (Workspace().predict, event), (bandit.fit, event.encode())):
        with pytest.raises(InputError, match=r"looks like JSON: add json=True, or dsjson=True"):
            method(source)


def test_a_search_reviews_and_finds_drift_in_single_events_as_in_blocks() -> None:
    """Events go on after reviews, and a copy goes on with the same losses and finds the same drift."""
    random, events = np.random.default_rng(5), []
    for i in range(5000):
        chosen, user = int(random.integers(2)), f"u{random.integers(3)}"
        cost = float(random.normal()) * (0.1 if i < 3900 else 1.5)
        actions = [{"article": f"a{j}", "size": float(random.random())} for j in range(2)]
        events.append(
            {"context": {"user": user}, "actions": actions}
            | {"chosen": chosen, "cost": cost, "probability": 0.5}
        )
    one, blocks = Workspace(automl=3, **_ADF), Workspace(automl=3, **_ADF)
    for block in from_dicts(events):
        blocks.learn_block(block)
    for event in events[:4500]:
        one.predict(event)
        one.learn(event)
    copied = copy.deepcopy(one)
    for event in events[4500:]:
        one.learn(event)
        copied.learn(event)
    assert model_of(one) == model_of(blocks)
    assert saved_of(one) == saved_of(copied)
    assert one.searching.changes == blocks.searching.changes
    assert one.searching.n_alarms == blocks.searching.n_alarms > 0
    assert one.searching.n_events == len(events)
