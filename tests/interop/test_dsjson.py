"""Events to decision-service logs and back."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import InputError, Workspace, convert, read
from onlineauto.interop import event_dsjson, event_text, from_dicts, read_named, write_dsjson
from tests.formats.odd_lines import odd_text

pytestmark = pytest.mark.lane("quick")

ADF: dict[str, Any] = {"cb_explore_adf": True}
NAME = st.text(st.sampled_from([*"ab01_", "é", '"', "\\", " ", "\t", "=", "/"]), max_size=5)
NAMESPACE = NAME.filter(lambda name: not name.startswith("_"))
FEATURES = st.dictionaries(NAME, st.floats(-100, 100, width=32), max_size=3)
ACTIONS = st.lists(st.dictionaries(NAMESPACE, FEATURES, max_size=3), min_size=1, max_size=3)
EVENTS = st.fixed_dictionaries(
    {"context": st.dictionaries(NAMESPACE, FEATURES, max_size=3), "actions": ACTIONS},
    optional={"tag": st.text(st.sampled_from("ab'1"), max_size=3)},
)


def learnt(text: str, **options: Any) -> tuple[list[float], bytes]:
    """Predictions of a run, and the weights it ends with."""
    workspace = Workspace(**ADF, quadratic=["::"], bit_precision=10, **options)
    scores = [outcomes.score for _, outcomes in workspace.stream(text.encode())]
    return np.concatenate([*scores, [0.0]]).tolist(), workspace.weights.tobytes()


def features_of(text: str, **options: Any) -> list[list[Any]]:
    """Lines of each event that have a feature, a tag or a label, feature by feature."""
    return [
        [
            (line.shared, line.tag, line.costs and line.costs[0][1:], sorted(flat(line)))
            for line in event.lines
            if line.features or not line.shared
        ]
        for event in read(text.encode(), **ADF, **options).events()
    ]


def flat(line: Any) -> list[tuple[str, int, float]]:
    return [(name, hash_, x) for name, found in line.features.items() for hash_, x in found]


@settings(max_examples=60)
@given(EVENTS, st.integers(0, 9), st.sampled_from([0, 7]))
def test_dicts_are_read_back_as_from_text(event: dict[str, Any], chosen: int, seed: int) -> None:
    chosen %= len(event["actions"])
    event = event | {"chosen": chosen, "cost": -0.3, "probability": 0.7}
    event["context"] |= {"u": {"always": 1}}  # else the log has a shared line and the text has none
    log = event_dsjson(event, hash_seed=seed)
    msgspec.json.decode(log)
    try:
        text = event_text(event, hash_seed=seed)
    except InputError:
        return  # of a namespace that only JSON can have
    assert features_of(log, dsjson=True, hash_seed=seed) == features_of(text, hash_seed=seed)


@given(draw=st.randoms(use_true_random=False))
def test_text_to_log_to_text(draw: Random) -> None:
    text = odd_text(draw, "cb_adf", lines=8)
    for event in read_named(text, **ADF):
        try:
            log = event_dsjson(event)
        except InputError as error:
            assert "label" in str(error) or "namespace" in str(error) or "no UTF-8" in str(error)  # noqa: PT017
            continue
        back = "".join(event_text(each) for each in read(log.encode(), **ADF, dsjson=True).events())
        assert features_of(back) == features_of(event_text(event))


@given(drop=st.floats(0, 1, exclude_max=True, width=32), slots=st.booleans())
def test_the_weight_of_an_event_is_written_and_read_back(drop: float, slots: bool) -> None:
    kind = {"ccb_explore_adf": True} if slots else ADF
    context = {"_multi": [{"a": 1}]} | ({"_slots": [{}]} if slots else {})
    log = msgspec.json.encode({"c": context, "a": [1], "pdrop": drop})
    [event] = read(log, **kind, dsjson=True).events()
    [again] = read(event_dsjson(event).encode(), **kind, dsjson=True).events()
    weight = np.float32(1) / (np.float32(1) - np.float32(drop))
    assert {line.weight for line in (*event.lines, *again.lines)} == {weight}
    if weight != 1:
        with pytest.raises(InputError, match="which text has for numeric labels only"):
            event_text(event)


@given(weight=st.floats(1, 1e4, width=32))
def test_a_weighed_mapping_is_written_to_a_float32s_precision(weight: float) -> None:
    event = {"actions": [{"a": 1}], "chosen": 0, "cost": 1, "probability": 0.5, "weight": weight}
    [block] = from_dicts([event])
    assert block.weight.tolist() == [weight]
    [again] = read(event_dsjson(event).encode(), **ADF, dsjson=True).events()
    assert again.lines[-1].weight == pytest.approx(weight, rel=weight * 1e-7)


def test_blocks_keep_names_that_text_cannot_have(tmp_path: Path) -> None:
    log = b'{"c":{"_multi":[{"a":1}]},"a":[1]}\n{"c":{"_multi":[{"a":1}]},"a":[1],"pdrop":0.5}\n'
    convert(log, tmp_path / "blocks", **ADF, dsjson=True)
    [block] = read(tmp_path / "blocks", **ADF)
    assert block.weight.tolist() == [1, 1, 2, 2]
    with pytest.raises(InputError, match=r"line 2: its event has the weight 2.0, which text has for"):
        convert(tmp_path / "blocks", tmp_path / "text", **ADF)


def test_a_log_is_learnt_as_its_text(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    text = "".join(
        f"shared |u user{draw.integers(3)} age:{draw.random():.3f} | free:2 |_u x\n".replace(" |_u x", "")
        + "".join(f"{f'0:{-draw.random():.3f}:0.5 ' if k == 1 else ''}|a a{k} 7:0.5\n" for k in range(2))
        + "\n"
        for _ in range(50)
    )
    assert write_dsjson(read_named(text.encode(), **ADF), tmp_path / "log.json") == 50
    log = (tmp_path / "log.json").read_text()
    assert learnt(log, dsjson=True) == learnt(text)
    first = msgspec.json.decode(log.splitlines()[0])
    assert (first["EventId"], first["a"], first["_label_Action"], first["_labelIndex"]) == ("0", [2, 1], 2, 1)
    hashed = read(text.encode(), **ADF).events()
    again = "".join(event_dsjson(event) for event in hashed)
    assert learnt(again, dsjson=True) == learnt(text)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"context": {"u": {"a": 1}}, "label": 1}, "it has no actions"),
        ({"context": {"_u": {"a": 1}}, "actions": [{}]}, "namespace '_u' begins with '_'"),
        ({"actions": [{"a": {"x": 1}}], "tag": "a\0b"}, "has a NUL"),
        ({"actions": [{"a": {"x": 1}}], "weight": 0.5}, "its weight is 0.5"),
    ],
)
def test_events_that_a_log_cannot_have_are_refused(event: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        event_dsjson(event)


def test_the_event_that_cannot_be_written_is_named_and_no_file_is_left(tmp_path: Path) -> None:
    events = [{"actions": [{"a": {"x": 1}}]}, {"actions": [{"_a": {"x": 1}}]}]
    with pytest.raises(InputError, match=r"^event 1: namespace '_a'"):
        write_dsjson(events, tmp_path / "log.json")
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_a_log_of_dicts_has_their_rule(tmp_path: Path) -> None:
    event = {"context": {"user": "x"}, "actions": [{"arm": 1}, {"arm": 2}], "chosen": 0, "cost": 1}
    write_dsjson([event | {"probability": 0.5}] * 3, tmp_path / "log")
    workspace = Workspace(**ADF, dsjson=True).fit(tmp_path / "log")
    assert workspace.name_rules["names"] == "columns"
    assert workspace.name_rules["number_columns"] == ("arm^arm",)
    of_text = event_dsjson(next(iter(read_named(b"shared |u x\n|a y\n", **ADF))))
    assert "NameColumns" not in of_text
