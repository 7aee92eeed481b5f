"""Single events as text, read by a reader that is kept between events and files."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import Workspace
from onlineauto.errors import InputError, ParseError
from onlineauto.features.block import Block
from onlineauto.formats.text_reader import TextReader
from tests.formats.reading import text_reader
from tests.naive.blocks import Event, as_text
from tests.naive.lines import Line, unpack
from tests.property.snapshot import model_of, named
from tests.property.strategies import bandit_events, simple_events

Options = dict[str, Any]

KINDS: list[Options] = [
    {"quadratic": ["::"]},
    {"quadratic": ["aa", "ac"], "ignore_linear": ["b"]},
    {"cb_explore_adf": True, "cb_type": "dr", "interactions": [":::"]},
    {"cb_explore_adf": True, "automl": 3, "default_lease": 2},
]
FIT, LEARN, BLOCK, ASK = range(4)
WAYS = st.lists(st.tuples(st.sampled_from([FIT, LEARN, BLOCK, ASK]), st.integers(1, 3)), max_size=8)


def texts_of(events: Sequence[Event], options: Options) -> list[bytes]:
    bandit = "cb_explore_adf" in options
    return [as_text([event], bandit=bandit, multiline=bandit).encode() for event in events]


@pytest.mark.ci
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "native"])
@pytest.mark.parametrize("options", KINDS, ids=named)
@settings(max_examples=25)
@given(data=st.data(), ways=WAYS)
def test_events_of_files_texts_and_blocks_are_learnt_the_same(
    options: Options, exact: bool, data: st.DataObject, ways: list[tuple[int, int]]
) -> None:
    """Files, texts and blocks in turn, with predictions between them, equal one text."""
    strategy = bandit_events(max_size=8) if "cb_explore_adf" in options else simple_events(max_size=8)
    texts = texts_of(data.draw(strategy), options)
    if exact and "automl" in options:  # VW meets the namespaces of what it predicts
        ways = [(way, n) for way, n in ways if way != ASK]
    mixed, whole = (Workspace(**options, vw_exact=exact, bit_precision=8) for _ in range(2))
    for _ in whole.stream(b"".join(texts)):
        pass
    rest = list(texts)
    for way, n in [*ways, (FIT, len(texts))]:
        if way == ASK:
            before = model_of(mixed)
            for text in reversed(texts[-n:]):
                mixed.predict(text)
            assert model_of(mixed) == before
            continue
        some, rest = rest[:n], rest[n:]
        if way == FIT:
            mixed.fit(b"".join(some))
        for text in some if way == LEARN else []:
            mixed.learn(text)
        for block in mixed.read(b"".join(some)) if way == BLOCK else []:
            mixed.learn_block(block)
    assert model_of(mixed) == model_of(whole)
    for text in texts:
        assert mixed.predict(text).tobytes() == whole.predict(text).tobytes()


def test_readers_number_names_independently() -> None:
    model = Workspace(quadratic="ab", bit_precision=8)
    model.learn("1 |a x |b y")
    asked = model.predict("|a x |b y")
    assert model.fit(b"|z z |b w\n").predict("|b y |a x").tolist() == pytest.approx(asked.tolist(), rel=1e-6)
    assert asked[0] > 0.1


@pytest.mark.parametrize("strict", [True, False])
def test_rejected_text_changes_nothing(strict: bool) -> None:
    model, other = (Workspace(strict_parse=strict, bit_precision=8) for _ in range(2))
    for bad in ("one |a x", "1 |a x:1e99", "1 |a x\n0 |b y", ""):
        for way in (model.learn, model.predict):
            with pytest.raises(InputError) as caught:
                way(bad)
            assert isinstance(caught.value, ParseError) == (strict and "|" in bad and "\n" not in bad)
        assert model.learn("1 |a x") == other.learn("1 |a x")
    assert model_of(model) == model_of(other)
    assert model.diagnostics.total == 0


def test_text_larger_than_all_before_is_learnt() -> None:
    text = "1 |a " + " ".join(f"x{i}" for i in range(150_000))
    assert len(text) > 1 << 19
    model = Workspace()
    model.learn("0 |a x0")
    model.learn(text)
    assert model_of(model) == model_of(Workspace().fit(["0 |a x0", text]))


# -- the reader behind it ------------------------------------------------------------------------------

LINES = [
    b"1 |a x",
    b"0 'tag|b y:2 z |c",
    b"|a x\n1 |d w",
    b"one |a x",
    b"1 |e f:x\n0 |a |b q",
    b"| x\none |a y\n1 |c",
]
EVENTS = [
    b"shared |u a\n0:-1:0.5 |b c\n|b d\n",
    b"0:1:0.5 |b c\n\n|b e\n|u a\n\n",
    b"|b c\na:1:1:1 |b d\n|b e",
    b"0:1:2 |b c\n|n d",
    b"|b c\n\n|b d\n0:graph |c f\n",
]


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "native"])
@settings(max_examples=60)
@given(
    data=st.data(),
    multiline=st.booleans(),
    strict=st.booleans(),
    block_bytes=st.sampled_from([4, 16, 1 << 19]),
)
def test_each_text_is_read_independently(
    exact: bool, data: st.DataObject, multiline: bool, strict: bool, block_bytes: int
) -> None:
    """Lines are numbered from 1 in each text, and problems and errors do not affect the next text."""
    label: Any = "cb" if multiline else "simple"
    options: Options = {
        "label": label,
        "multiline": multiline,
        "exact": exact,
        "strict": strict,
        "name": "file",
    }
    kept = text_reader(b"", **options, block_bytes=block_bytes)
    pool = st.sampled_from([*(EVENTS if multiline else LINES), b"", b"\n"])
    for text in data.draw(st.lists(pool, max_size=8)):
        alone = text_reader(text, **options)
        expected, error = outcome(iter(alone))
        got, again = outcome(parsed(kept, text))
        assert again == error
        if error is None:
            assert got == expected
        assert kept.diagnostics.counts == alone.diagnostics.counts
        assert list(map(str, kept.diagnostics.kept)) == list(map(str, alone.diagnostics.kept))


def parsed(reader: TextReader, text: bytes) -> Iterator[Block]:
    yield from reader.parse(text)


def outcome(blocks: Iterator[Block]) -> tuple[list[list[Line]], str | None]:
    """Return the events of the blocks, or what error there was."""
    try:
        return unpack(blocks), None
    except InputError as error:
        return [], str(error)


def test_namespaces_keep_their_numbers() -> None:
    reader = text_reader(b"")
    blocks = [
        block for text in (b"1 |a x |b y", b"|c z |a x", b"|b y | q\n|d w") for block in reader.parse(text)
    ]
    assert {id(block.namespaces) for block in blocks} == {id(reader.namespaces)}
    assert reader.namespaces.names == [b"a", b"b", b"c", b" ", b"d"]
    assert [block.span_namespace.tolist() for block in blocks] == [[0, 1], [2, 0], [1, 3, 4]]
    assert [block.line_number.tolist() for block in blocks] == [[1], [1], [1, 2]]


def test_table_of_names_grows_over_many_texts() -> None:
    reader = text_reader(b"")
    for i in range(1500):
        (block,) = reader.parse(b"1 |n%d x |n%d y" % (i, i // 2))
        assert block.span_namespace.tolist() == [i, i // 2]
    assert reader.namespaces.names == [b"n%d" % i for i in range(1500)]


def test_later_texts_do_not_change_earlier_blocks() -> None:
    reader = text_reader(b"")
    (block,) = reader.parse(b"1 first|a x:2")
    before = unpack([block])
    reader.parse(b"0 another|b y:3 z:4")
    assert unpack([block]) == before
    assert np.shares_memory(block.value, block.features)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])  # noqa: S301
def test_copy_learns_independently(clone: Callable[[Workspace], Workspace]) -> None:
    event = "shared |a x\n0:-1:0.5 |b y\n|b z\n"
    one = Workspace(cb_explore_adf=True, automl=3)
    one.learn(event)
    other = clone(one)
    before = one.weights.copy()
    other.learn(event)
    assert one.weights.tobytes() == before.tobytes()
    one.learn(event)
    assert other.weights.tobytes() == one.weights.tobytes() != before.tobytes()
