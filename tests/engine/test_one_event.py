"""Single events are learnt by a loop that is kept, with the same results as blocks."""

from __future__ import annotations

from typing import Any

import pytest

from onlineauto import InputError, Workspace
from onlineauto.engine.loop.one_event import OneEvent
from onlineauto.features.block import Block
from onlineauto.formats.mappings.encoded_event import EncodedEvent
from onlineauto.interop import from_dicts

pytestmark = pytest.mark.lane("quick")

Event = dict[str, Any]


def _wide(n: int) -> Event:
    """Return an event whose context and actions have `n` features each, in one namespace."""
    context, *actions = ({"a": {f"{line}{i}": 1.0 + i % 3 for i in range(n)}} for line in "sxy")
    return {"context": context, "actions": actions, "chosen": 0, "cost": 1.0, "probability": 0.5}


def _block(event: Event) -> Block:
    return next(iter(from_dicts([event])))


@pytest.mark.parametrize("n", [120, 250, 600])
def test_event_wider_than_all_before_is_learnt_like_a_block(n: int) -> None:
    """The features of context and action are crossed with one another."""
    one, twin = (Workspace(cb_explore_adf=True, interactions=["aa"]) for _ in range(2))
    for size in (1, 1, 1, n, n, 1, 2 * n):
        event, block = _wide(size), _block(_wide(size))
        asked = twin.predict_block(block).one_prediction()
        assert one.predict(event).tobytes() == asked.tobytes()
        learnt = twin.learn_block(block).one_prediction()
        assert one.learn(event).tobytes() == learnt.tobytes()


@pytest.mark.parametrize("order", [2, 3])
def test_buffers_are_kept_for_many_products(order: int) -> None:
    """Different products of many namespaces have no more features than one product of all of them."""
    model = Workspace(interactions=[":" * order])
    event = {"context": {f"n{i}": 1.0 for i in range(80 // order)}, "label": 1.0}
    for _ in range(3):
        model.learn(event)
    kept = model._runner._one
    model.learn(event)
    assert kept is not None
    assert model._runner._one is kept
    assert kept.run()
    buffers = model._runner._memory._buffers
    assert buffers is not None
    assert len(buffers.cell) == 1 << 16


def test_new_namespace_is_learnt_like_a_block() -> None:
    one, twin = (Workspace(cb_explore_adf=True, automl=3) for _ in range(2))
    for step in range(60):
        event = _wide(2) | {"cost": float(step % 2)}
        event["context"] |= {f"late{step // 9}": "x"}
        block = _block(event)
        assert one.predict(event).tobytes() == twin.predict_block(block).one_prediction().tobytes()
        assert one.learn(event).tobytes() == twin.learn_block(block).one_prediction().tobytes()
    assert one.weights.tobytes() == twin.weights.tobytes()
    assert one.searching.n_events == twin.searching.n_events == 60


def _text(step: int) -> bytes:
    """Return a line of dsjson; some events have features outside of all namespaces."""
    outside = b'"hour":%d,' % (step % 5) if step > 30 and step % 7 == 0 else b""
    outside += b'"late%d":{"n":1},' % (step // 9)
    label = b'"_label_cost":%d,"_label_probability":0.5,"_label_Action":1,"_labelIndex":0,' % -(step % 2)
    actions = b'[{"a":{"x%d":1}},{"a":{"y":1}}]' % (step % 3)
    return b'{%b"a":[1,2],"p":[0.5,0.5],"c":{%b"u":{"n":%d},"_multi":%b}}\n' % (label, outside, step, actions)


def test_json_is_learnt_and_predicted_like_a_block() -> None:
    one, twin = (Workspace(cb_explore_adf=True, automl=3, dsjson=True) for _ in range(2))
    for step in range(60):
        text = _text(step)
        (block,) = twin.read(text)
        assert one.predictor().predict(text).tobytes() == twin.predict_block(block).one_prediction().tobytes()
        assert one.learn(text).tobytes() == twin.learn_block(block).one_prediction().tobytes()
    assert one.weights.tobytes() == twin.weights.tobytes()


def test_json_without_nameless_features_is_learnt_without_a_block() -> None:
    model = Workspace(cb_explore_adf=True, dsjson=True)
    for step in range(4):
        model.learn(_text(step))
        kept = model._runner._one
    assert kept is not None
    assert kept.run()


def test_an_encoded_event_is_read_and_run_in_one_call() -> None:
    """The reader takes events with a new namespace, or with more features than the arrays hold."""
    model = Workspace(cb_explore_adf=True, automl=3)
    for _ in range(3):
        model.learn(_wide(2))
    kept = model._runner._one
    assert kept is not None
    assert kept.read_and_run(_wide(2))
    assert kept.read_and_run(_wide(5))
    late = _wide(2)
    late["context"] |= {"late": "x"}
    many_lines = _wide(2) | {"actions": [{}] * 2_500}  # more lines than fit into the reader's records
    for event in (late, _wide(2000), many_lines, _wide(2) | {"cost": "x"}):
        assert not kept.read_and_run(event)


def test_an_outcome_is_learnt_like_an_event_with_its_label() -> None:
    """Also if the search decides, a namespace is new, an action is missing or a cost is an outlier."""
    one, twin = (Workspace(cb_explore_adf=True, automl=3, keep_unrewarded=0.5) for _ in range(2))
    left_out = outliers = 0
    for step in range(400):
        event = _wide(2 + step % 3) | {"cost": 1e30 if step == 300 else -float(step % 5 == 0)}
        event["context"] |= {f"late{step // 90}": "x"}
        encoded = EncodedEvent(event["context"], event["actions"])
        known = encoded.with_outcome(step % 2, cost=event["cost"], probability=0.5)
        predicted, usual = one.learn_outcome(known, step % 2)
        before, learnt = sum(twin.outliers.values()), twin.learn(event | {"chosen": step % 2})
        assert predicted == (learnt[step % 2] if len(learnt) else 0.0)
        assert sum(twin.outliers.values()) == before or not usual
        left_out, outliers = left_out + (len(learnt) == 0), outliers + (not usual)
    assert one.weights.tobytes() == twin.weights.tobytes()
    assert left_out > 100
    assert 0 < outliers < 20


@pytest.mark.parametrize("action", [-1, 2, 3])
def test_outcome_of_a_missing_action_is_rejected(action: int) -> None:
    workspace = Workspace(cb_explore_adf=True)
    for n in (4, 2):
        event = EncodedEvent({"u": "a"}, [{"x": str(each)} for each in range(n)])
        known = event.with_outcome(1, cost=0.5, probability=0.5)
        workspace.learn(known)
    with pytest.raises(IndexError, match="the event has 2 actions"):
        workspace.learn_outcome(known, action)


def test_an_outcome_alone_is_read_after_its_event() -> None:
    """The event must be the last one that was read, and the outcome valid."""
    workspace = Workspace(cb_explore_adf=True, automl=3)
    event, other = (EncodedEvent({"u": name}, [{"x": "a"}, {"x": "b"}]) for name in ("tom", "ann"))
    for known in (event, other, event, other):
        workspace.learn(known.with_outcome(0, cost=1.0, probability=0.5))
    reader, one = workspace._asked.readers.mapping, workspace._runner._one
    assert one is not None
    for asked, outcome in ((event, (1, -1.0, 0.5)), (event, (0, 2, 1)), (other, (1, -1.0, 0.5))):
        workspace.predict(asked)
        known = event.with_outcome(outcome[0], cost=outcome[1], probability=outcome[2])
        assert (known.asked is reader.last) == (asked is event)
        assert one.read_and_run(known)
        alone = reader.make_block()
        assert reader.read(known)
        assert alone.lines.tobytes() == reader.make_block().lines.tobytes()
        assert alone.costs.tobytes() == reader.make_block().costs.tobytes()


@pytest.mark.parametrize(("action", "probability"), [(2, 0.5), (1, 1.5), (1, 0.0)])
def test_an_invalid_outcome_alone_is_rejected_like_an_invalid_event(action: int, probability: float) -> None:
    workspace = Workspace(cb_explore_adf=True, automl=3)
    event = EncodedEvent({"u": "tom"}, [{"x": "a"}, {"x": "b"}])
    for _ in range(3):
        workspace.learn(event.with_outcome(0, cost=1.0, probability=0.5))
    workspace.predict(event)
    assert workspace._asked.readers.mapping.last is event.data
    with pytest.raises(InputError):
        workspace.learn(event.with_outcome(action, cost=1.0, probability=probability))
    assert workspace.searching.n_events == 3


@pytest.mark.parametrize("bandit", [True, False])
def test_a_stop_without_a_decision_continues_the_kept_loop(
    *, bandit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, twin = (Workspace(cb_explore_adf=bandit, automl=2, hash_bits=10) for _ in range(2))
    resume, resumed = OneEvent.resume, list[OneEvent]()

    def counted(self: OneEvent) -> None:
        resumed.append(self)
        resume(self)

    monkeypatch.setattr(OneEvent, "resume", counted)
    for step in range(600):
        context = {"a": {f"x{step % 3}": 1.0}, "b": {f"y{step % 2}": 1.0}}
        event: Event = {"context": context, "label": float(step % 3)}
        if bandit:
            actions = [{"c": "z"}, {"c": f"z{step % 5}"}]
            cost = -float(step % 5 == 0)
            event = {"context": context, "actions": actions, "chosen": 0, "cost": cost, "probability": 0.5}
        assert one.learn(event).tobytes() == twin.learn_block(_block(event)).one_prediction().tobytes()
    assert resumed
    assert one.weights.tobytes() == twin.weights.tobytes()
    assert one.searching.n_events == twin.searching.n_events == 600
