"""Arrays, dense and sparse, beside text with the same names and values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from onlineauto import InputError
from onlineauto.interop import from_arrays
from tests.interop.learnt import ADF, lines_of, lines_of_text, predictions

MAKERS: dict[str, Callable[[Any], Any]] = {
    "dense": np.asarray,
    "csr_array": sparse.csr_array,
    "csc_array": sparse.csc_array,
    "coo_matrix": sparse.coo_matrix,
}
each_kind = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
NUMBERS = st.sampled_from([0.0, 0.0, 1.0, -2.5, 0.1, 1e-20])


@st.composite
def matrices(draw: st.DrawFn, *, columns: int = 3) -> np.ndarray[Any, Any]:
    rows = draw(st.lists(st.lists(NUMBERS, min_size=columns, max_size=columns), min_size=1, max_size=5))
    return np.array(rows)


def words(name: str, row: Any) -> str:
    features = [f" {i}:{np.float32(value)}" for i, value in enumerate(row) if value]
    return f"|{name}{''.join(features)}"


@each_kind
@given(x=matrices(), data=st.data(), size=st.integers(1, 3))
def test_single_lines(make: Callable[[Any], Any], x: Any, data: st.DataObject, size: int) -> None:
    y = data.draw(st.lists(st.floats(-2, 2, width=32), min_size=len(x), max_size=len(x)))
    blocks = list(from_arrays(make(x), label=y, namespaces=("x", ""), events_per_block=size))
    text = "".join(f"{label} {words('x', row)}\n" for label, row in zip(y, x, strict=True))
    assert lines_of(blocks) == lines_of_text(text, "simple")
    assert predictions(blocks) == predictions(text.encode())


@each_kind
@pytest.mark.parametrize("shape", ["number", "shared", "each"])
@given(x=matrices(), data=st.data(), size=st.integers(1, 3), seed=st.sampled_from([0, 7]))
def test_bandit_events(
    make: Callable[[Any], Any], shape: str, x: Any, data: st.DataObject, size: int, seed: int
) -> None:
    n, k = len(x), 3
    chosen = data.draw(st.lists(st.integers(-1, k - 1), min_size=n, max_size=n))
    cost = data.draw(st.lists(st.floats(-2, 2, width=32), min_size=n, max_size=n))
    actions = np.arange(n * k * 2).reshape(n, k, 2) % 5
    given_ = {"number": k, "shared": make(actions[0]), "each": actions}[shape]
    features = {"number": np.eye(k)[None].repeat(n, 0), "shared": actions[:1].repeat(n, 0), "each": actions}[
        shape
    ]
    blocks = list(
        from_arrays(
            make(x),
            actions=given_,
            chosen=chosen,
            cost=cost,
            probability=np.full(n, 0.25),
            events_per_block=size,
            hash_seed=seed,
        )
    )
    text = ""
    for i in range(n):
        text += f"shared {words('context', x[i])}\n"
        for j in range(k):
            label = f"0:{cost[i]}:0.25 " if chosen[i] == j else ""
            text += f"{label}{words('action', features[i, j])}\n"
        text += "\n"
    assert lines_of(blocks) == lines_of_text(text, "cb_adf", hash_seed=seed)
    assert predictions(blocks, **ADF, hash_seed=seed) == predictions(text.encode(), **ADF, hash_seed=seed)


def test_columns_may_have_names() -> None:
    blocks = from_arrays(np.eye(2), namespaces=("u", "a"), names=(["age", "x y"], None), label=[1, 0])
    assert lines_of(blocks)[0] == lines_of_text("1 |u age\n", "simple")[0]


def test_sparse_input_is_left_as_it_is_and_its_duplicates_add_up() -> None:
    x = sparse.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2)).tocsr()
    x = sparse.csr_array((np.array([1.0, 2.0, 0.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    [block] = from_arrays(x)
    assert block.value.tolist() == [3.0]
    assert x.nnz == 3


@pytest.mark.parametrize(
    ("context", "options", "message"),
    [
        ([1, 2], {}, "context has the shape (2,): give a matrix with a row of features for each"),
        ([["a"]], {}, "context has the type <U1, not numbers"),
        (
            [[1], [np.inf]],
            {},
            "row 1: context has the value inf, which is infinite or too large for a float32",
        ),
        (
            sparse.csr_array([[1.0, np.inf]]),
            {},
            "row 0: context has the value inf, which is infinite or too large for a float32",
        ),
        ([[1]], {"names": (["a", "b"], None)}, "there are 2 names, but 1 columns of context"),
        ([[1]], {"label": [1, 2]}, "label has the shape (2,), but context has 1 rows"),
        ([[1]], {"label": ["x"]}, "label has the type <U1, not numbers"),
        ([[1]], {"label": [np.inf]}, "row 0: label 'inf' is infinite, NaN or too large"),
        ([[1]], {"label": [1], "weight": [-1]}, "row 0: weight: importance weight '-1' is negative"),
        ([[1]], {"chosen": [0]}, "chosen is for events with actions"),
        ([[1]], {"actions": 2, "label": [0]}, "label is for single lines, without actions"),
        ([[1]], {"actions": 2, "chosen": [0]}, "chosen, cost and probability go together"),
        ([[1]], {"actions": 0}, "there are 0 actions; an event needs at least one"),
        ([[1]], {"actions": np.zeros((0, 2))}, "there is no action: actions has no rows"),
        ([[1]], {"actions": np.zeros((2, 2, 2))}, "actions has the shape (2, 2, 2), but context has 1 rows"),
    ],
)
def test_what_is_refused(context: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        list(from_arrays(context, **options))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("logs", "message"),
    [
        (([2], [1.0], [1.0]), "row 0: chosen is 2, but there are 2 actions, numbered from 0"),
        (([-2], [1.0], [1.0]), "row 0: chosen is -2, but there are 2 actions"),
        (([0.0], [1.0], [1.0]), "chosen has the type float64, not whole numbers"),
        (([0], [np.nan], [1.0]), "row 0: cost is NaN; chosen is -1 where nothing was logged"),
        (([0], [1.0], [0.0]), "row 0: probability '0' is 0: the logged action cannot have been chosen"),
    ],
)
def test_logs_that_are_refused(logs: tuple[Any, Any, Any], message: str) -> None:
    chosen, cost, probability = logs
    with pytest.raises(InputError) as caught:
        list(from_arrays([[1]], actions=2, chosen=chosen, cost=cost, probability=probability))
    assert str(caught.value).startswith(message)


def test_events_have_weights() -> None:
    logs: dict[str, Any] = {"chosen": [0, 1, -1], "cost": [1, 2, 0], "probability": [0.5, 0.5, 0.5]}
    blocks = from_arrays([[1], [2], [3]], actions=2, **logs, weight=[1, 2.5, 4], events_per_block=2)
    assert [block.weight.tolist() for block in blocks] == [[1, 1, 1, 2.5, 2.5, 2.5], [4, 4, 4]]
    with pytest.raises(InputError, match="row 1: weight: importance weight '-2' is negative"):
        list(from_arrays([[1], [2]], actions=2, weight=[1, -2]))


def test_arrays_need_no_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    [block] = from_arrays(np.eye(2), actions=2, chosen=[0, 1], cost=[1, 0], probability=[0.5, 0.5])
    assert (len(block), block.n_lines) == (2, 6)
