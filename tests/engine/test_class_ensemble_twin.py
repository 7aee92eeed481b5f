"""The ensemble of classes beside its reference implementation: probabilities of each event, and weights.

The regressions, their covariances and the waves of the kernels are float32, those of the reference float64:
over the streams here, probabilities differ by less than `TOLERANCE`, in most of them by less than 2e-6.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

from onlineauto.engine.ensemble.class_ensemble import ClassEnsemble, rows_of
from onlineauto.features.block import Block
from onlineauto.formats.mappings.mapping_reader import MappingReader
from onlineauto.interop.dicts import from_dicts
from tests.bounds_checked import run_tests
from tests.engine.ensemble_streams import make_class_ensemble as make_ensemble
from tests.naive import class_ensemble as naive

TOLERANCE = 1e-5
ODD = [np.nan, np.inf, 1e30, -1e30, 1.0, 0.0]


class Case(NamedTuple):
    """A stream, and what is special about its events."""

    n_events: int
    n_classes: int
    numbers: int = 2
    words: int = 3
    values: int = 4
    """Number of values of each word."""
    hash_bits: int = 14
    searched: bool = False
    late: int = 0
    """The event before which the last class is added; a search ends there."""
    odd: bool = False
    """Some values are NaN, infinite or huge, some weights are 0, and some events are not learnt."""


CASES = {
    "two classes": Case(700, 2),
    "four classes": Case(700, 4),
    "two classes and a search": Case(300, 2, searched=True),
    "a third class ends the search": Case(300, 3, searched=True, late=150),
    "a fifth class is late": Case(300, 5, late=200),
    "words only": Case(300, 4, numbers=0),
    "numbers only": Case(300, 2, numbers=5, words=0),
    "odd values and weights": Case(300, 4, odd=True),
    "a table that is too small": Case(200, 4, hash_bits=3),
    "more numbers than fit": Case(120, 2, numbers=70, words=1),
    "more words than fit": Case(150, 2, values=900),
    "one word more than is crossed, now and then": Case(80, 2, words=64, values=2),
}


def stream(case: Case) -> tuple[Block, list[int]]:
    """Return events whose class depends on a number and on two words together, and their codes."""
    draw = np.random.default_rng(37)
    events: list[dict[str, Any]] = []
    codes: list[int] = []
    for at in range(case.n_events):
        numbers = draw.normal(3.0, 2.0, case.numbers)
        words = draw.integers(case.values, size=case.words)
        context: dict[str, Any] = {f"n{i}": value for i, value in enumerate(numbers.tolist())}
        context |= {f"w{i}": f"v{value}" for i, value in enumerate(words.tolist())}
        if case.numbers:
            context["n0 bins"] = f"b{int(numbers[0])}"
        if at % 3 == 0:
            context["now and then"] = "here"
        weight = [1.0, 0.5, 3.0, 0.0][at % 4] if case.odd else 1.0
        events.append({"context": context, "label": 0, "weight": weight})
        open_classes = case.n_classes - (at < case.late)
        signal = int(words[:2].sum()) + int(numbers[:1].sum() > 3)
        codes.append((signal if draw.random() < 0.95 else int(draw.integers(9))) % open_classes)
    [block] = from_dicts(events)
    if case.odd:
        codes = [-1 if at % 7 == 0 else code for at, code in enumerate(codes)]
        block.features["value"][::11] = np.resize(ODD, len(block.features[::11]))
    return block, codes


@pytest.mark.ci
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_probabilities_are_those_of_the_reference(case: Case) -> None:
    block, codes = stream(case)
    rows, weights = rows_of(block), block.lines["weight"].astype(float)
    keys, values, crossed = (
        (rows.hash.astype(np.int64) + 1).tolist(),
        rows.value.tolist(),
        rows.crossed.tolist(),
    )
    features = list(zip(keys, values, crossed, strict=True))
    ensemble = make_ensemble(case.hash_bits, searched=case.searched)
    twin = naive.ClassEnsemble(hash_bits=case.hash_bits, searched=case.searched)
    both: tuple[ClassEnsemble, naive.ClassEnsemble] = ensemble, twin
    for each in both:
        for _ in range(case.n_classes - (case.late > 0)):
            each.add_class()
    draw = np.random.default_rng(1)
    for begin, end in pairwise(sorted({0, case.late, case.n_events})):
        if begin:
            for each in both:
                each.add_class()
                each.end_search()
        search = draw.dirichlet(np.ones(ensemble.n_classes), end - begin) if case.searched else None
        searched = np.ones((end - begin, ensemble.n_classes)) if search is None else search
        found = ensemble.run(block.tail(begin).head(end - begin), codes[begin:end], search)
        expected = np.empty_like(found)
        for at in range(begin, end):
            event = features[rows.start[at] : rows.start[at + 1]]
            expected[at - begin] = twin.run(event, codes[at], weights[at], searched[at - begin])
        np.testing.assert_allclose(found, expected, atol=TOLERANCE)
    assert np.ptp(found, axis=1).max() > 0.4  # something was learnt
    state = ensemble.state()
    weights = [each.weights for each in twin.linear.classes]
    np.testing.assert_allclose(state["members"]["features"]["weights"], weights, atol=TOLERANCE)
    np.testing.assert_allclose(state["mix"], twin.combiner.weights, atol=TOLERANCE)
    np.testing.assert_allclose(state["share"], twin.shares)


def test_an_event_in_the_records_of_a_reader_is_run_like_its_block() -> None:
    reader, (one, other) = MappingReader(actions=False), (make_ensemble(12) for _ in range(2))
    for ensemble in (one, other):
        ensemble.add_class()
        ensemble.add_class()
    for at in range(300):
        context: dict[str, Any] = {"w": "abc"[at % 3], "n": at % 7, "n bins": {"bin": str(at % 4)}}
        context |= {f"late{i}": 1.0 for i in range(at)} if at % 50 == 9 else {}  # more than all before
        event = {"context": context, "label": 0, "weight": 0.5 + at % 2}
        assert reader.read(event)
        [block] = from_dicts([event])
        code, search = at % 3 - 1, np.array([[0.25, 0.75]]) if at % 2 else None
        found = one.run_one(reader, code, search)
        assert found.tobytes() == other.run(block, [code], search).tobytes()
    assert one.state()["mix"].tobytes() == other.state()["mix"].tobytes()


@pytest.mark.bounds
def test_the_ensemble_of_classes_stays_within_its_arrays() -> None:
    assert f"{len(CASES)} passed" in run_tests("reference", __file__)
