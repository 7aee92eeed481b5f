"""Events to text and back: Events of a text, names that text cannot have, all or nothing."""

from __future__ import annotations

import io
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto import InputError, OptionError, Workspace, convert, read
from onlineauto.interop import event_text, from_dicts, read_named, write_text
from tests.formats.odd_lines import KINDS, odd_text
from tests.formats.reading import SHAPES
from tests.interop.learnt import ADF, lines_of, lines_of_text, predictions

FLAGS: dict[str, dict[str, Any]] = {
    "simple": {},
    "cb": {"cb": 5},
    "cb_adf": {"cb_explore_adf": True},
    "ccb": {"ccb_explore_adf": True},
}
HARD = st.text(st.sampled_from([*"ab01", " ", ":", "|", "\n", "\t", "é", "\x00", "'"]), max_size=6)


@given(draw=st.randoms(use_true_random=False), kind=st.sampled_from(KINDS))
def test_text_to_events_to_text_to_blocks(draw: Random, kind: str) -> None:
    text = odd_text(draw, kind, lines=8).decode("utf-8", "ignore").encode()
    reading = read(text, **FLAGS[kind])
    events = list(reading.events())
    shape: dict[str, Any] = {"multiline": SHAPES[kind]["multiline"], "slots": kind == "ccb"}
    written = "".join(event_text(event, **shape) for event in events)
    expected = lines_of(read(text, **FLAGS[kind]))
    assert [list(map(_by_namespace, event)) for event in lines_of_text(written, kind)] == [
        list(map(_by_namespace, event)) for event in expected
    ]
    again = list(read(written.encode(), **FLAGS[kind]).events())
    assert "".join(event_text(event, **shape) for event in again) == written


@given(draw=st.randoms(use_true_random=False), kind=st.sampled_from(KINDS), seed=st.sampled_from([0, 3]))
def test_text_to_named_events_to_text_to_blocks(draw: Random, kind: str, seed: int) -> None:
    text = odd_text(draw, kind, lines=8)
    written = "".join(
        event_text(event, hash_seed=seed) for event in read_named(text, **FLAGS[kind], hash_seed=seed)
    )
    expected = lines_of(read(text, **FLAGS[kind], hash_seed=seed))
    assert [list(map(_but_number, event)) for event in lines_of_text(written, kind, hash_seed=seed)] == [
        list(map(_but_number, event)) for event in expected
    ]


def _but_number(line: Any) -> str:
    return repr({**vars(line), "number": 0})


def test_names_are_kept(tmp_path: Path) -> None:
    text = (
        "shared 'x |s a 7 |u b:0.3 |s c |ü é\n0:-1.0:0.5 |a x |b y:2.0\n|a z\n\n"
        "shared |s a | q\n|a x |\r\n0:1.0:0.25 'bad 1:1:1 |a y\n|a no\n\n|a last:-1.5\n\n"
    )
    bad = "shared |s a | q\n|a x |\r\n0:1.0:0.25 'bad 1:1:1 |a y\n|a no\n\n"
    path = tmp_path / "t"
    assert write_text(read_named(text.encode(), cb_adf=True), path) == 2
    assert path.read_text() == text.replace(bad, "")
    assert (
        write_text(read_named(io.BytesIO(text.encode()), cb_adf=True, missing_probability="uniform"), path)
        == 2
    )


def test_string_values_and_nameless_features_become_numbers() -> None:
    [event] = read_named(b"|d day:monday :3 x:0 y:1\n")
    [line] = event.lines
    (_, features) = line.spans[0]
    assert [str(name).isdigit() for name, _ in features] == [True, True, False]
    assert features[-1] == ("y", 1.0)


@pytest.mark.parametrize("options", [{"vw_exact": True}, {"hash": "all"}])
def test_names_cannot_be_read_in_exact_mode(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="names cannot be read"):
        next(read_named(b"|a x\n", **options))


def test_names_cannot_be_read_from_json() -> None:
    with pytest.raises(OptionError, match="names can be read only from VW text"):
        list(read_named(b'{"_multi":[{"a":1}]}', cb_adf=True, json=True))


def _by_namespace(line: Any) -> str:
    """Return a line without its number, with the features of each namespace together, like an Event."""
    spans: dict[bytes, list[Any]] = {}
    for name, features in line.spans:
        spans.setdefault(name, []).extend(features)
    return repr({**vars(line), "spans": spans, "number": 0})


def test_events_of_a_text_predict_as_it_does(tmp_path: Path) -> None:
    text = b"shared 'x|s a |u b:0.3 |s c\n0:-1:0.5 |a x |b y:2\n|a z\n\n" * 20
    path = tmp_path / "events.txt"
    assert write_text(read(text, cb_adf=True).events(), path) == 20
    assert predictions(path, **ADF) == predictions(text, **ADF)


@given(
    namespace=st.sampled_from(["a", "7", " "]), names=st.lists(HARD, max_size=4), seed=st.sampled_from([0, 5])
)
def test_names_that_text_cannot_have_keep_their_hashes(namespace: str, names: list[str], seed: int) -> None:
    event = {"context": {namespace: names}, "label": 1}
    text = event_text(event, hash_seed=seed)
    assert text.count("\n") == 1
    assert lines_of_text(text, "simple", hash_seed=seed) == lines_of(from_dicts([event], hash_seed=seed))


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"context": {"a b": 1}}, "event 1: namespace 'a b' has a blank, a colon, a bar or a control byte"),
        ({"context": {"a": 1}, "tag": "a|b"}, r"event 1: tag 'a\|b' has a blank, a bar or a control byte"),
        ({"label": "x"}, "event 1: label 'x' is not a number"),
    ],
)
def test_events_that_text_cannot_have_are_refused(
    tmp_path: Path, event: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        write_text([{"label": 1}, event], tmp_path / "text")
    assert list(tmp_path.iterdir()) == []


def test_infinity_of_exact_mode_cannot_be_written() -> None:
    [event] = read(b"1 |a x:inf\n", vw_exact=True).events()
    with pytest.raises(InputError, match="inf is infinite or NaN"):
        event_text(event)


@given(
    arms=st.lists(st.sampled_from(["a", "b c", "7"]), min_size=1, max_size=5),
    cost=st.floats(-2, 2),
    probability=st.floats(0.01, 1),
)
def test_dicts_to_text_to_blocks_to_text_lose_nothing(
    tmp_path_factory: pytest.TempPathFactory, arms: list[str], cost: float, probability: float
) -> None:
    directory = tmp_path_factory.mktemp("round")
    actions = [{"arm": arm, "x": {"size": len(arm) / 3}} for arm in arms]
    events = [
        {"context": {"u": arms[0]}, "actions": actions, "chosen": 0, "cost": cost, "probability": probability}
    ]
    write_text(events, directory / "1.txt")
    convert(directory / "1.txt", directory / "2.blocks", cb_explore_adf=True)
    convert(directory / "2.blocks", directory / "3.txt", cb_explore_adf=True)
    convert(from_dicts(events), directory / "4.blocks", cb_explore_adf=True)
    models = [Workspace(**ADF).fit(path).weights.tobytes() for path in sorted(directory.iterdir())]
    assert len(models) == 4
    assert len({*models, Workspace(**ADF).fit(from_dicts(events)).weights.tobytes()}) == 1
