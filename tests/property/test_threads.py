"""Results depend neither on threads nor on the ends of blocks."""

from __future__ import annotations

import gzip
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import Workspace
from onlineauto.engine.stream import read_ahead
from onlineauto.errors import InputError, ParseError
from onlineauto.features import layout
from onlineauto.formats.text_reader import TextReader
from tests.property.snapshot import model_of, predictions_of

pytestmark = pytest.mark.lane("ci")

Options = dict[str, Any]
Result = dict[str, Any]

SIMPLE = [
    b"1 |a x:2 |b y\n",
    b"0 2 0.5 tag| x |a x:0.5 y\n",
    b"|a x |ab y:3 |a z\n",
    b"-1 |late w |empty |b y\n",
    b"1 |empty e |a x |a y:2\n",
    b"\n",
    b"one |a x\n",
    b"1 |a x:1e99 |skipped y\n",
    b"0 |a d:2020-01-01\n",
]
"""Lines, of which the last ones are bad or doubtful."""

ADF = [
    b"shared |User tom |Time t1\n0:-1:0.5 |Act p\n|Act q:2\n\n",
    b"shared |User anna |Time t2\n|Act p\n0:0:0.25 |Act q\n|Act r\n\n",
    b"|Act p\n0:-1:0.5 |Act q |User x\n\n",
    b"shared |User tom |Late l |Empty\n0:-0.5:0.5 |Act p\n|Act r\n\n",
    b"shared |User tom |Empty e\n|Act p\n|Act q\n\n",
    b"0:-1:0.125 'tag|Act r\n\n\n",
    b"shared |User tom\n0:x:0.5 |Act p\n|Act q |Skipped s\n\n",
    b"shared |User tom\n0:-1:0.5 |Act p\n0:-1:0.5 |Act q\n\n",
    b"|Act p:1e99\n|Act q\n\n",
]
"""Events of several lines; of the last ones, native mode skips all, and exact mode stops at one."""

LINES = [
    b"1:-1:0.5 |a x |b y\n",
    b"2:0.5:0.25 |a x:2 |late l\n",
    b"|a x\n",
    b"3:1:0.7 |b y |empty\n",
    b"1:x:0.5 |a x\n",
]
"""Events of one line for ``--cb N``."""

SEARCH: Options = {"automl": 3, "default_lease": 3, "automl_significance_level": 0.9}
KINDS: list[tuple[list[bytes], Options]] = [
    (SIMPLE, {"quadratic": ["::"]}),
    (SIMPLE, {"sgd": True, "passes": 3, "holdout_period": 3}),
    (ADF, {"cb_adf": True, "cb_type": "dr", "interactions": [":::"]}),
    (ADF, {"cb_explore_adf": True, **SEARCH, "oracle_type": "one_diff_inclusion"}),
    (ADF, {"cb_explore_adf": True, **SEARCH, "fixed_significance_level": True, "oracle_type": "rand"}),
    (LINES, {"cb_explore": 3, "quadratic": ["::"]}),
]
SIZES = st.sampled_from([64, 100, 333, 1024, 4096])


def named(value: object) -> str:
    return " ".join(f"{name}={each}" for name, each in value.items()) if isinstance(value, dict) else ""


def run(source: bytes, options: Options, *, threads: int, block_bytes: int) -> Result:
    """Everything that comes of a source, which the second of two threads reads ahead."""
    workspace = Workspace(**options, bit_precision=8)
    entries: list[object] = []
    workspace.observe(entries.append)
    outcomes, error = [], None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_ahead, "_SMALL", 1 << 30 if threads == 1 else -1)
        patch.setitem(cast("Options", TextReader.__init__.__kwdefaults__), "block_bytes", block_bytes)
        try:
            for _, outcome in workspace.stream(source):
                outcomes.append(outcome)
        except InputError as caught:
            error = (type(caught), str(caught))
    found = workspace.diagnostics
    live = workspace.searching.live_configs.arrays
    return {
        "blocks": len(outcomes),
        "events": sum(map(len, outcomes)),
        "predictions": predictions_of(outcomes) if outcomes else [],
        "model": model_of(workspace),
        "search": [
            live.tests.evidence.tobytes(),
            live.schedule.updates.tobytes(),
            workspace.searching.n_learnt,
        ],
        "decisions": entries,
        "error": error,
        "counts": dict(found.counts),
        "kept": [str(each) for each in found.kept],
    }


def results(result: Result, *, diagnostics: bool) -> Result:
    """Return the results that must not depend on block boundaries."""
    left_out = {"blocks"} if diagnostics else {"blocks", "counts", "kept"}
    return {name: each for name, each in result.items() if name not in left_out}


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "native"])
@pytest.mark.parametrize(("pool", "options"), KINDS, ids=named)
@settings(max_examples=40)
@given(data=st.data(), strict=st.sampled_from([False, False, True]), examples=st.sampled_from([-1, -1, 9]))
def test_results(
    pool: list[bytes], options: Options, exact: bool, data: st.DataObject, strict: bool, examples: int
) -> None:
    events = data.draw(st.lists(st.sampled_from(pool[:5]), max_size=30))
    events += data.draw(st.lists(st.sampled_from(pool), max_size=10))
    options = {**options, "vw_exact": exact, "strict_parse": strict, "examples": examples}
    text = b"".join(events)
    small = data.draw(SIZES)
    expected = run(text, options, threads=1, block_bytes=1 << 19)
    single = run(text, options, threads=1, block_bytes=small)
    assert run(text, options, threads=2, block_bytes=small) == single
    read = examples < 0 and (expected["error"] is None or expected["error"][0] is ParseError)
    assert results(single, diagnostics=read) == results(expected, diagnostics=read)


def test_compared_streams_have_many_blocks_and_decisions() -> None:
    result = run(b"".join(ADF[:5] * 20), {"cb_explore_adf": True, **SEARCH}, threads=2, block_bytes=100)
    assert result["events"] == 100
    assert result["blocks"] > 50
    assert len(result["decisions"]) > 10


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "native"])
def test_error_in_the_middle_is_raised_after_the_same_events(exact: bool) -> None:
    """Exact: two costs, found when it is learnt. Native: a bad label, found when it is read."""
    options = {"cb_adf": True, "vw_exact": exact, "strict_parse": True}
    text = b"".join([*ADF[:5] * 8, ADF[7 if exact else 6], *ADF[:5] * 8])
    expected = run(text, options, threads=1, block_bytes=1 << 19)
    assert expected["events"] == 40
    assert expected["error"] is not None
    for size in (64, 200, 700, 3000):
        for threads in (1, 2):
            again = run(text, options, threads=threads, block_bytes=size)
            assert results(again, diagnostics=not exact) == results(expected, diagnostics=not exact)


@settings(max_examples=40)
@given(events=st.lists(st.sampled_from(ADF[:6]), min_size=1, max_size=30), size=SIZES, data=st.data())
def test_gzip_that_breaks_off(events: list[bytes], size: int, data: st.DataObject) -> None:
    packed = gzip.compress(b"".join(events))
    broken = packed[: data.draw(st.integers(2, len(packed) - 1))]
    options = {"cb_explore_adf": True, **SEARCH}
    single = run(broken, options, threads=1, block_bytes=size)
    assert run(broken, options, threads=2, block_bytes=size) == single
    assert single["error"] is not None
    assert "the gzip data end too early" in single["error"][1]


def test_gzip_that_breaks_off_gives_the_same_in_blocks_of_any_size() -> None:
    text = b"".join(b"%d |a x:%d\n" % (i % 2, i) for i in range(300))
    packed = gzip.compress(text)
    for end in range(20, len(packed), 7):
        expected = run(packed[:end], {}, threads=1, block_bytes=1 << 19)
        for size in (64, 100, 333):
            assert run(packed[:end], {}, threads=1, block_bytes=size)["events"] == expected["events"]


def test_left_out_interactions_do_not_depend_on_blocks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(layout, "MAX_PRODUCTS", 3)
    text = b"1 |empty |a x |b y\n" + b"1 |a x |b y\n0 |a z |b w\n" * 20 + b"1 |empty e |a x\n" * 3
    expected = run(text, {"quadratic": "::"}, threads=1, block_bytes=1 << 19)
    assert "more than 3 interactions" in caplog.text
    again = run(text, {"quadratic": "::"}, threads=1, block_bytes=64)
    assert results(again, diagnostics=True) == results(expected, diagnostics=True)
