"""A decision that is learnt right after it was made is not read again, which changes no bit of a model.

*reuses* is a bandit as users have it. *rereads* reads every event. *blocks*, the reference, is a workspace
that learns each event as a block.
"""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onlineauto import AutoML, Workspace
from onlineauto.interop import from_dicts

_NAMES = st.sampled_from(["user", "page", "user", "page", "late"])
_VALUES = st.one_of(
    st.sampled_from(["tom", "ann"]),
    st.sampled_from([3, -0.5, True, None, 0, ["x", "y"], [0.5, 2.0], Decimal("1.5")]),
    st.builds(lambda x: np.array([x, 1.0]), st.floats(-2, 2)),
    st.dictionaries(st.sampled_from("abc"), st.sampled_from(["x", 2, 0.25, None]), max_size=3),
)
_FEATURES = st.dictionaries(_NAMES, _VALUES, max_size=3)
_EVENTS = st.tuples(_FEATURES, st.lists(_FEATURES, min_size=1, max_size=4))
_REWARDS = st.sampled_from([0.0, 1.0, -0.5, 3, 1e30])
_STEPS = st.one_of(
    st.tuples(st.just("rank"), _EVENTS),
    st.tuples(st.sampled_from(["newest", "oldest"]), _REWARDS),
    st.tuples(st.just("newest"), st.just(1.0)),
    st.tuples(st.just("predict"), _EVENTS),
    st.tuples(st.just("elsewhere"), _EVENTS),
    st.tuples(st.just("text"), st.sampled_from("xyz")),
    st.tuples(st.just("load"), st.none()),
)
_OPTIONS: dict[str, Any] = {"hash_bits": 10, "live_configs": 3, "seed": 1}
_LIKES = ({"user": "tom"}, [{"page": "a"}, {"page": "b"}])
_HATES = ({"user": "ann"}, [{"page": "c"}, {"page": "a"}, {"page": "b"}])
_BEGINNING = [("rank", _LIKES), ("newest", 1.0), ("rank", _HATES), ("newest", 0.0)] * 2


class _Blocks:
    """The reference: every event is a block."""

    def __init__(self) -> None:
        self.workspace = Workspace(cb_explore_adf=True, **_OPTIONS)

    def learn(self, event: Any, action: int, probability: float, reward: float) -> None:
        mapping = {"context": event[0], "actions": event[1], "chosen": action, "cost": -float(reward)}
        (block,) = from_dicts([mapping | {"probability": probability}])
        self.workspace.learn_block(block)

    def predict(self, event: Any) -> bytes:
        (block,) = from_dicts([{"context": event[0], "actions": event[1]}])
        return self.workspace.predict_block(block).one_prediction().tobytes()


def _saved(bandit: AutoML) -> bytes:
    file = io.BytesIO()
    bandit.save(file)
    return file.getvalue()


def _forget(bandit: AutoML) -> None:
    bandit.workspace._asked.readers.mapping.last = None


def _is_valid(event: Any) -> bool:
    try:
        (_,) = from_dicts([{"context": event[0], "actions": event[1]}])
    except ValueError:
        return False
    return True


@pytest.mark.filterwarnings("ignore:event")
@pytest.mark.filterwarnings("ignore:the actions have the same")
@settings(max_examples=40)
@given(st.lists(_STEPS, max_size=40))
@example([("rank", _LIKES), ("newest", 1.0)] * 20)
@example([("rank", _LIKES), ("rank", _HATES), ("oldest", 1.0), ("newest", 0.0)] * 6)
@example([("rank", _LIKES), ("predict", _HATES), ("newest", 1.0)] * 6)
@example([("rank", _LIKES), ("elsewhere", _HATES), ("newest", 1.0)] * 6)
@example([("rank", _LIKES), ("newest", 1.0), ("predict", ({"late": "x"}, _LIKES[1]))] * 6)
def test_learning_without_reading_again_gives_the_same_model(steps: list[Any]) -> None:
    reuses, rereads, blocks = AutoML(**_OPTIONS), AutoML(**_OPTIONS), _Blocks()
    waiting: list[Any] = []
    for kind, value in _BEGINNING + steps:
        _forget(rereads)
        if kind in ("rank", "predict", "elsewhere") and not _is_valid(value):
            continue
        if kind == "rank":
            choice, twin = reuses.rank(*value), rereads.rank(*value)
            assert choice.pmf.tobytes() == twin.pmf.tobytes() == blocks.predict(value)
            assert choice.action == twin.action
            waiting.append((value, choice, twin))
        elif kind in ("newest", "oldest") and waiting:
            event, choice, twin = waiting.pop(-1 if kind == "newest" else 0)
            reuses.learn(choice, reward=value)
            rereads.learn(twin, reward=value)
            blocks.learn(event, choice.action, choice.probability, value)
        elif kind == "predict":
            assert reuses.predict(*value).tobytes() == rereads.predict(*value).tobytes()
        elif kind == "elsewhere":
            for bandit in (reuses, rereads):
                bandit.learn(*value, action=0, probability=0.5, reward=1)
            blocks.learn(value, 0, 0.5, 1)
        elif kind == "text":
            text = f"shared |user {value}\n0:-1:0.5 |page a\n|late b\n"
            for workspace in (reuses.workspace, rereads.workspace, blocks.workspace):
                workspace.learn(text)
        elif kind == "load" and not waiting:
            reuses = AutoML.load(_saved(reuses))
    assert _saved(reuses) == _saved(rereads)
    assert reuses.workspace.weights.tobytes() == blocks.workspace.weights.tobytes()
    assert reuses.workspace.searching.n_events == blocks.workspace.searching.n_events
