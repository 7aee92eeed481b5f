"""The laws of every operation on state, for random records."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from onlineauto.state.codec import describe, restore_tree
from onlineauto.state.schema import (
    Field,
    Sparse,
    add,
    between,
    by_entry,
    copied,
    copy,
    counts,
    declare,
    field,
    fields_of,
    finite,
    jointly,
    keep,
    largest,
    latest,
    lower_triangle,
    make,
    merge,
    nested,
    pack,
    put,
    read,
    read_entries,
    rebuild,
    receive,
    record,
    save,
    scratch,
    send,
    smallest,
    symmetric,
    take,
    to_predict,
    unpack,
)
from onlineauto.state.stored import Stored

SIZES = {"actions": 3, "inputs": 4}
KINDS: dict[str, Any] = {"float64": finite, "float32": finite, "int64": counts(100), "bool_": None}
RULES = [None, keep, add, latest, largest, smallest]


@st.composite
def descriptions(draw: st.DrawFn) -> tuple[str, Field]:
    """Draw the type and the description of an array."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    axes: list[Any] = draw(st.lists(st.sampled_from(["actions", "inputs", 2]), min_size=1, max_size=3))
    saved = draw(st.booleans())
    described = {
        "merge": draw(st.sampled_from([rule for rule in RULES if kind != "bool_" or rule is not add])),
        "predicts": saved and draw(st.booleans()),
        "saved": saved,
        "forgets": draw(st.booleans()),
        "waits": draw(st.booleans()),
        "initial": draw(st.integers(0, 1)),
    }
    if KINDS[kind] is not None:
        described["read"] = KINDS[kind]
    return kind, field(*axes, **described)


def record_class(parts: list[tuple[str, Field]], inner: type | None = None) -> type:
    """Return a described NamedTuple class of arrays, the last of which may be in a record of its own."""
    start = "" if inner is None else "outer_"
    names = [f"{start}array_{index}" for index in range(len(parts))]
    space: dict[str, Any] = {"__annotations__": {}, "__module__": __name__}
    for name, (kind, described) in zip(names, parts, strict=True):
        space["__annotations__"][name] = f"NDArray[np.{kind}]"
        space[name] = described
    if inner is not None:
        space["__annotations__"]["inner"] = Any
        space["inner"] = nested(inner)
    cls = NamedTuple("Random", list(space["__annotations__"].items()))  # type: ignore[misc]
    declare(cls, **{name: space[name] for name in space["__annotations__"]})
    return cls


@st.composite
def records(draw: st.DrawFn) -> Any:
    """Draw a record of random arrays, with a record in it."""
    inner = record_class(draw(st.lists(descriptions(), min_size=1, max_size=3)))
    outer = record_class(draw(st.lists(descriptions(), min_size=1, max_size=4)), inner)
    result: Any = make(outer, SIZES)
    fill(result, draw(st.integers(0, 2**32 - 1)))
    return result


def arrays(of_record: Any) -> dict[str, NDArray[Any]]:
    """Return all arrays of a record and of the records in it, by name."""
    result: dict[str, NDArray[Any]] = {}
    for name, value in of_record._asdict().items():
        result |= {name: value} if isinstance(value, np.ndarray) else arrays(value)
    return result


def fill(of_record: Any, seed: int) -> None:
    """Put random valid numbers into all arrays."""
    random = np.random.default_rng(seed)
    for array in arrays(of_record).values():
        array[...] = random.integers(0, 2 if array.dtype == bool else 9, array.shape)


def like(of_record: Any, seed: int) -> Any:
    """Return a record of the same class with other numbers."""
    result = make(type(of_record), SIZES)
    fill(result, seed)
    return result


def equal(one: dict[str, NDArray[Any]], other: dict[str, NDArray[Any]]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def through_bytes(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a tree after its way through a file."""
    described = describe(tree, owner="a test")
    data = b"".join(described.parts(b""))
    result: dict[str, Any] = restore_tree(data, 0, len(described.description), limit=len(data))
    return result


USED = st.fixed_dictionaries({"actions": st.integers(0, 3), "inputs": st.integers(0, 4)})


@given(records(), USED)
def test_a_saved_record_is_read_as_it_was_in_its_used_part(state: Any, used: dict[str, int]) -> None:
    section = save(state, used)
    again = make(type(state), SIZES)
    read(Stored(through_bytes(section)), again, used)
    assert equal(save(again, used), section)
    for name, description in fields_of(type(state)).items():
        array = arrays(again)[name]
        description.used(array, used)[...] = description.initial
        assert (array == description.initial).all()


def test_two_nested_records_with_the_same_names_cannot_be_saved() -> None:
    inner = record_class([("float64", field(2))])

    class Outer(NamedTuple):
        one: Any
        other: Any

    declare(Outer, one=nested(inner), other=nested(inner))
    with pytest.raises(ValueError, match="Outer has two arrays array_0"):
        save(make(Outer))


@given(records())
def test_a_record_that_predicts_shares_what_it_needs_and_saves_no_more(state: Any) -> None:
    small, described = to_predict(state), fields_of(type(state))
    for name, array in arrays(small).items():
        assert array is arrays(state)[name] if described[name].predicts else array.size == 0
    assert equal(save(small), save(state, predicts=True))
    again = to_predict(make(type(state), SIZES))
    read(Stored(through_bytes(save(small))), again)
    assert equal(save(again), save(small))


@given(records(), st.data())
def test_a_forged_array_is_rejected_by_its_name(state: Any, data: st.DataObject) -> None:
    section = save(state)
    if not section:
        return
    name = data.draw(st.sampled_from(sorted(section)))
    forged: Callable[[NDArray[Any]], object] = data.draw(
        st.sampled_from(
            [
                lambda array: array[..., None],
                lambda array: array.astype(np.uint16),
                lambda array: np.full_like(array, -1) if array.dtype == np.int64 else array.astype(np.int64),
                lambda array: np.full_like(array, np.nan) if array.dtype.kind == "f" else None,
                lambda array: array.tolist(),
            ]
        )
    )
    values = forged(section[name])
    before = section[name]
    if isinstance(values, np.ndarray) and values.dtype == before.dtype and np.array_equal(values, before):
        return
    with pytest.raises(ValueError, match=f"^{name} "):
        read(Stored(section | {name: values}), like(state, 1))
    del section[name]
    with pytest.raises(ValueError, match=f"^{name} is missing"):
        read(Stored(section), like(state, 1))


@given(records(), USED)
def test_a_message_puts_the_used_part_into_another_record(state: Any, used: dict[str, int]) -> None:
    message = through_bytes(send(state, "part", used))
    assert equal(send(rebuild(like(state, 1), "part", message), "part"), message)
    target = like(state, 2)
    receive(target, "part", message)
    assert equal(send(target, "part", used), message)
    kept = {name for name, each in fields_of(type(state)).items() if each.merge is None}
    assert all(np.array_equal(arrays(target)[name], arrays(like(state, 2))[name]) for name in kept)


@given(records(), st.integers(1, 3))
def test_branches_that_learnt_nothing_change_nothing(state: Any, n: int) -> None:
    assert equal(arrays(merge(state, [state] * n)), arrays(state))


@given(records(), st.integers(0, 99), st.integers(0, 99))
def test_each_array_merges_by_its_rule(state: Any, first: int, second: int) -> None:
    ends = like(state, first), like(state, second)
    before = {name: array.copy() for name, array in arrays(state).items()}
    merged = arrays(merge(state, ends))
    base, (one, other) = arrays(state), map(arrays, ends)
    assert equal(base, before)
    for name, description in fields_of(type(state)).items():
        expected: dict[Any, NDArray[Any]] = {
            None: base[name],
            keep: base[name],
            latest: other[name],
            largest: np.maximum(np.maximum(base[name], one[name]), other[name]),
            smallest: np.minimum(np.minimum(base[name], one[name]), other[name]),
        }
        if description.merge is add:
            assert np.array_equal(merged[name], one[name] + other[name] - base[name])
        else:
            assert np.array_equal(merged[name], expected[description.merge])


@given(records(), st.booleans())
def test_a_copy_is_equal_and_separate(state: Any, forgets: bool) -> None:
    target = like(state, 1)
    copy(state, target, forgets=forgets)
    for name, description in fields_of(type(state)).items():
        source = state if description.forgets or not forgets else like(state, 1)
        assert np.array_equal(arrays(target)[name], arrays(source)[name])
        assert not np.shares_memory(arrays(target)[name], arrays(state)[name])


@given(records(), st.integers(0, 2))
def test_entries_of_an_axis_are_put_where_they_belong(state: Any, index: int) -> None:
    target, described = like(state, 1), fields_of(type(state))
    entries = take(state, "waits", actions=[index])
    assert entries.keys() == {
        name for name, part in described.items() if part.waits and "actions" in part.axes
    }
    stored = read_entries(Stored(through_bytes(entries)), target, "waits", actions=[0])
    put(target, "waits", stored, actions=[2])
    assert equal(take(target, "waits", actions=[2]), entries)
    others = [take(record, "waits", actions=[0, 1]) for record in (target, like(state, 1))]
    assert equal(*others)
    left = [name for name in described if name not in entries]
    assert all(np.array_equal(arrays(target)[name], arrays(like(state, 1))[name]) for name in left)


def test_entries_merge_by_rules_of_their_own() -> None:
    rule = by_entry(add, {0: keep, 2: largest})
    base = np.array([[1, 2, 3]])
    merged = rule(base, [np.array([[9, 5, 1]]), np.array([[7, 3, 8]])], None)
    assert merged.tolist() == [[1, 6, 8]]
    assert base.tolist() == [[1, 2, 3]]


@given(records())
def test_the_same_tree_gives_the_same_bytes_with_aligned_arrays(state: Any) -> None:
    section = save(state)
    one = describe(section, owner="a test")
    other = describe(dict(reversed(section.items())), owner="a test")
    data = b"".join(one.parts(b"head"))
    assert data == b"".join(other.parts(b"head"))
    assert len(data) % 64 == 0
    for array in restore_tree(data, 4, 4 + len(one.description), limit=len(data)).values():
        start = array.__array_interface__["data"][0] - np.frombuffer(data, np.uint8).ctypes.data
        assert start % 64 == 0 or array.size == 0


class Weighed(NamedTuple):
    """A record with a rule for two of its arrays, as members have."""

    weights: NDArray[np.float32] = field("inputs", merge=jointly, predicts=True)
    spread: NDArray[np.float32] = field(
        "inputs", "inputs", write=lower_triangle, read=symmetric, merge=jointly
    )
    level: NDArray[np.float64] = field(1, read=between(0.0, 1.0), initial=0.5, since=2)
    memory: NDArray[np.float64] = scratch("inputs")


record(Weighed)
declare(
    Weighed,
    merge=lambda base, ends, context: {
        "weights": base.weights + context,
        "spread": np.maximum.reduce([end.spread for end in ends]),
    },
)


def test_a_described_class_needs_all_its_arrays() -> None:
    with pytest.raises(TypeError, match="missing"):
        Weighed()


def test_arrays_merge_jointly_by_the_rule_of_their_record() -> None:
    base, end = make(Weighed, SIZES), make(Weighed, SIZES)
    end.spread[...] = 2.0
    merged = merge(base, [end], np.float32(3.0))
    assert (merged.weights == 3.0).all()
    assert (merged.spread == 2.0).all()


def test_a_covariance_is_stored_as_a_triangle_and_read_whole() -> None:
    state, again = make(Weighed, SIZES), make(Weighed, SIZES)
    square = np.arange(9.0, dtype=np.float32).reshape(3, 3)
    state.spread[:3, :3] = square + square.T
    section = save(state, {"inputs": 3})
    assert section["spread"].shape == (6,)
    read(Stored(section), again, {"inputs": 3})
    assert np.array_equal(again.spread, state.spread)


def test_an_array_that_a_file_of_an_earlier_version_lacks_has_the_initial_number() -> None:
    section = save(make(Weighed, SIZES))
    del section["level"]
    again = make(Weighed, SIZES)
    read(Stored(section), again)
    assert again.level[0] == 0.5


class Cells(NamedTuple):
    """A record of hashed tables, with their sparse axis first and last."""

    weights: NDArray[np.float32] = field(Sparse("cells"), 2, read=finite, predicts=True)
    spread: NDArray[np.float32] = field(3, Sparse("cells"), read=between(0.0, 1.0))


record(Cells)


@pytest.mark.parametrize(
    ("used", "dtype"), [([], "uint32"), ([3, 60], "uint32"), ([*range(0, 64, 2)], "uint8")]
)
def test_used_entries_of_a_sparse_axis_are_stored_with_their_indices(used: list[int], dtype: str) -> None:
    state, again = make(Cells, {"cells": 64}), make(Cells, {"cells": 64})
    state.weights[used], state.spread[:, used] = 3.0, 0.5
    section = save(state, {"cells": np.array(used, np.int64)})
    assert section["cells"].dtype == dtype
    assert section["spread"].shape == (3, len(used))
    read(Stored(section), again)
    assert all(map(np.array_equal, state, again))
    assert save(state, {"cells": np.array(used, np.int64)}, predicts=True).keys() == {"cells", "weights"}


@pytest.mark.parametrize("cells", [[64], [2, 1], [1, 1]])
def test_stored_indices_that_are_not_ascending_or_too_large_are_rejected(cells: list[int]) -> None:
    section = {"cells": np.array(cells, np.uint32), "weights": np.zeros((len(cells), 2), np.float32)}
    with pytest.raises(ValueError, match=r"cells is .* and not numbers below 64 in ascending order"):
        read(Stored(section), make(Cells, {"cells": 64}), predicts=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": "<c8"}, "there is no array of '<c8'"),
        ({"dtype": ["<f8"]}, "there is no array of"),
        ({"shape": [-1]}, "there is no array of the shape"),
        ({"shape": [1 << 40]}, "ends beyond the end"),
        ({"at": -64}, "there is no array of the shape"),
        ({"at": 1 << 40}, "ends beyond the end"),
    ],
)
def test_a_forged_description_of_an_array_is_rejected(change: dict[str, object], message: str) -> None:
    tree = {"array": {"dtype": "<f8", "shape": [1], "at": 0} | change}
    described = describe(tree, owner="a test")
    data = b"".join(described.parts(b"")) + bytes(8)
    with pytest.raises(ValueError, match=message):
        restore_tree(data, 0, len(described.description), limit=len(data))


class _Odd:
    """A class that no tree can hold."""


def test_an_object_that_is_no_plain_value_cannot_be_encoded() -> None:
    with pytest.raises(TypeError, match="a model cannot hold _Odd"):
        describe({"a": _Odd()}, owner="a model")


class Undeclared(NamedTuple):
    """The state of a member from outside the package, whose class nobody has described."""

    sums: NDArray[np.float64]
    n: int
    inner: Weighed


def test_every_array_of_an_undeclared_class_is_saved_sent_and_needed() -> None:
    state = Undeclared(np.ones(2), 3, make(Weighed, SIZES))
    assert {"sums", "weights"} <= save(state).keys()
    assert set(send(state, "a")) == {"a.sums", "a.inner.weights", "a.inner.spread"}
    assert to_predict(state).sums is state.sums
    rebuilt = rebuild(state, "a", {"a.sums": np.zeros(2), "a.inner.weights": np.zeros(4, np.float32)})
    assert (rebuilt.n, rebuilt.sums.tolist()) == (3, [0.0, 0.0])


class Table(NamedTuple):
    """A record that says itself what is used."""

    rows: NDArray[np.float64] = field("rows", initial=1, merge=keep)
    n: NDArray[np.int64] = field(1, merge=keep)


record(Table)
declare(Table, used=lambda table: {"rows": int(table.n[0])})


def test_a_message_clears_what_a_record_used_beyond_it() -> None:
    state, other = make(Table, {"rows": 5}), make(Table, {"rows": 5})
    state.n[0], state.rows[:4] = 4, 7.0
    other.n[0], other.rows[:2] = 2, 8.0
    receive(state, "a", send(other, "a"))
    assert state.rows.tolist() == [8.0, 8.0, 1.0, 1.0, 1.0]


def test_a_copy_clears_what_only_the_target_used() -> None:
    state, other = make(Table, {"rows": 5}), make(Table, {"rows": 5})
    state.n[0], state.rows[:4] = 4, 7.0
    other.n[0], other.rows[:2] = 2, 8.0
    copy(other, state)
    assert equal(arrays(state), arrays(other))


@given(records())
def test_a_copied_record_is_equal_and_shares_no_memory(state: Any) -> None:
    result = copied(state, {})
    assert equal(arrays(result), arrays(state))
    pairs = zip(arrays(result).values(), arrays(state).values(), strict=True)
    assert not any(np.shares_memory(new, old) for new, old in pairs)


@given(records())
def test_a_packed_record_is_unpacked_as_it_was(state: Any) -> None:
    assert equal(arrays(unpack(pack(state))), arrays(state))


def test_a_packed_record_has_only_what_is_used() -> None:
    state = make(Table, {"rows": 1 << 20})
    state.n[0], state.rows[:4] = 4, 7.0
    packed = pack(state)
    assert len(pickle.dumps(packed)) < 1000
    assert equal(arrays(unpack(packed)), arrays(state))


def test_memory_of_an_array_that_grows_is_taken_where_it_is_written() -> None:
    growing = field("rows", 1 << 20, grows=True)
    kind = record_class([("float64", growing)])
    state: Any = make(kind, {"rows": 3})
    (array,) = arrays(state).values()
    array[1, 7] = 2.0
    assert array.shape == (3, 1 << 20)
    assert np.flatnonzero(array).tolist() == [(1 << 20) + 7]
    assert equal(arrays(unpack(pack(state))), arrays(state))
