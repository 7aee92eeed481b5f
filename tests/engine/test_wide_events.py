"""Wide events, which have too many crossed features, take little time and memory and stop no stream."""

from __future__ import annotations

import json
import resource
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import AutoML, OptionError, ParseError, Workspace, read
from onlineauto.cli.main import main
from onlineauto.engine.loop.wide_events import _without_widest
from onlineauto.features.records import Interactions
from onlineauto.formats.lines.diagnostics import ProblemCode
from onlineauto.workspace.run import Run
from tests.naive.native_search import NativeSearch, Options, events_of
from tests.property.snapshot import saved_of

WIDE = {"u": 1200, "t": 600}
"""Features of the context and of each action that make 865 million triples u*u*t."""


def event(sizes: dict[str, int], number: int, *, actions: int = 2, labelled: bool = True) -> str:
    """Return a choice with a number of features of the context `u`, and of each action in `t`."""
    context = " ".join(f"u{(number + i) % max(5, sizes['u'])}" for i in range(sizes["u"]))
    lines = [f"shared |u {context} |v v{number % 3}"]
    for action in range(actions):
        own = " ".join(f"t{action}_{i}" for i in range(sizes["t"]))
        label = f"0:{-(number % 2)}:0.5 " if labelled and action == number // 2 % 2 else ""
        lines.append(f"{label}|t {own}")
    return "\n".join(lines) + "\n\n"


def stream_of(n: int, wide: dict[int, dict[str, int]]) -> list[str]:
    return [event(wide.get(i, {"u": 2, "t": 1}), i) for i in range(n)]


def probabilities(text: list[str], **options: Any) -> list[Any]:
    """Predictions of all events, learnt one by one."""
    workspace = Workspace(cb_explore_adf=True, **options)
    return [workspace.learn(each) for each in text]


# -- the command line ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags", [["--cubic", "uut"], ["--interactions", "uuttt"], ["-q", "::", "--cubic", ":::"]]
)
def test_wide_event_does_not_stop_a_stream(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, metrics, printed = (tmp_path / name for name in ("data.txt", "metrics.json", "said.txt"))
    data.write_text("".join(stream_of(60, {30: WIDE})))
    began = time.monotonic()
    assert (
        main([str(data), "--cb_explore_adf", *flags, "--extra_metrics", str(metrics), "-p", str(printed)])
        == 0
    )
    assert time.monotonic() - began < 60  # kernels may have to be compiled
    assert json.loads(metrics.read_bytes())["onlineauto"]["diagnostics"] == {"too_wide": 1}
    assert len(printed.read_text().split("\n\n")) == 61
    told = capsys.readouterr().err
    assert f"{data}:121:1: the interactions of the event make '" in told
    assert "learnt without the widest ones" in told
    assert "number of examples = 60" in told


def test_strict_parse_stops_at_a_wide_event_after_learning_those_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, predictions = tmp_path / "data.txt", tmp_path / "said.txt"
    data.write_text("".join(stream_of(60, {30: WIDE})))
    words = [str(data), "--cb_explore_adf", "--cubic", "uut", "--strict_parse", "-p", str(predictions)]
    assert main(words) != 0
    told = capsys.readouterr().err
    assert f"{data}:121:1: the interactions of the event make" in told
    assert "reading stopped" in told
    assert len(predictions.read_text().split("\n\n")) == 31


@pytest.mark.parametrize(
    ("flags", "crossed"),
    [(["--cubic", "uut"], 0), (["--cubic", "uut", "-q", "vt"], 600), (["-q", "vt", "-q", "vu"], 600 + 1200)],
)
def test_an_audit_lists_the_features_that_a_wide_event_has(
    flags: list[str], crossed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, limit = tmp_path / "data.txt", str(2 * 1800)
    data.write_text(event({"u": 2, "t": 1}, 0) + event(WIDE, 1, labelled=False))
    words = [str(data), "--cb_explore_adf", "--max_crossed", limit, *flags, "--audit", "--quiet"]
    assert main(words) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("\t")]
    assert [line.count("\t") for line in lines[-2:]] == [1200 + 1 + 600 + 1 + crossed] * 2


def test_exact_mode_locates_an_event_that_is_too_wide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exact mode crosses all features, like Vowpal Wabbit, so it has to reject such an event."""
    data, predictions = tmp_path / "data.txt", tmp_path / "said.txt"
    data.write_text("".join(stream_of(60, {30: WIDE})))
    words = [str(data), "--cb_explore_adf", "--cubic", "uut", "--vw_exact", "-p", str(predictions)]
    assert main(words) != 0
    told = capsys.readouterr().err
    assert f"{data}:121:1: the interactions of a line make" in told
    assert "more than 134,217,728, the most that --vw_exact keeps" in told
    assert "--max_crossed" not in told
    assert len(predictions.read_text().split("\n\n")) == 31
    with pytest.raises(OptionError, match="max_crossed"):
        Workspace(vw_exact=True, max_crossed=5)


# -- in process ----------------------------------------------------------------------------------------


def test_wide_events_of_a_bandit_take_little_time_and_memory() -> None:
    bandit = AutoML(seed=1)
    context, actions = {"u": {"a": 1}, "v": {"b": 1}}, [{"t": {"x": 1}}, {"t": {"y": 1}}]
    for i in range(100):
        bandit.learn(context, actions, action=i % 2, probability=0.5, cost=-(i % 2))
    bandit.predict(context, actions)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    for i in range(5):
        wide = {"u": {f"f{k}": 1 for k in range(1200)}}
        offered = [{"t": {f"{name}{k}": 1 for k in range(600)}} for name in "gh"]
        bandit.learn(wide, offered, action=i % 2, probability=0.5, cost=-1)
    assert time.process_time() - began < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 * 1024
    bandit.learn(context, actions, action=0, probability=0.5, cost=-1)


def test_a_report_of_a_model_counts_wide_events() -> None:
    bandit = AutoML(seed=1, max_crossed=0, default_lease=10)
    events = [
        {
            "context": {"u": f"a{i % 3}"},
            "actions": [{"t": "x"}, {"t": "y"}],
            "action": i % 2,
            "cost": -(i % 2),
        }
        | {"probability": 0.5}
        for i in range(100)
    ]
    with pytest.warns(UserWarning, match="event 0: .*crossed features"):
        bandit.fit(events, progress=False)
    assert "events, learnt without their widest interactions" in bandit.report()


def test_the_largest_events_that_are_crossed_in_full_take_little_memory() -> None:
    workspace = Workspace(cb_explore_adf=True, cubic=["uut"])
    workspace.learn(event({"u": 3, "t": 2}, 0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert np.isfinite(workspace.learn(event({"u": 220, "t": 200}, 1))).all()  # 9.7 million
    assert workspace.diagnostics.total == 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 * 1024


def test_too_wide_challenger_does_not_change_the_others() -> None:
    """A challenger crosses u*t after a while; events of 1,200 x 600 features then exceed the limit."""
    workspace = Workspace(cb_explore_adf=True, automl=4, default_lease=50, max_crossed=100_000)
    text = stream_of(500, {400: WIDE, 450: WIDE})
    for _ in workspace.stream("".join(text).encode()):
        pass
    assert workspace.diagnostics.counts == {ProblemCode.TOO_WIDE: 2}
    assert [each.line for each in workspace.diagnostics.kept] == [1601, 1801]
    assert np.isfinite(workspace.predict(event({"u": 2, "t": 1}, 3))).all()


def test_counts_of_features_do_not_overflow() -> None:
    workspace = Workspace(cb_explore_adf=True, interactions=["u" * 9])
    workspace.learn(event({"u": 3, "t": 1}, 0))
    assert np.isfinite(workspace.learn(event({"u": 9000, "t": 1}, 1))).all()
    assert workspace.diagnostics.counts == {ProblemCode.TOO_WIDE: 1}


def test_strict_parse_rejects_a_wide_event_in_process() -> None:
    workspace = Workspace(cb_explore_adf=True, cubic=["uut"], strict_parse=True)
    workspace.learn(event({"u": 3, "t": 2}, 0))
    with pytest.raises(ParseError, match="--max_crossed"):
        workspace.learn(event(WIDE, 1))
    block = next(iter(read("".join(stream_of(3, {1: WIDE})).encode(), cb_explore_adf=True)))
    with pytest.raises(ParseError, match=":5:1: the interactions"):
        workspace.learn_block(block)
    assert np.isfinite(workspace.learn(event({"u": 3, "t": 2}, 2))).all()


# -- what is learnt ------------------------------------------------------------------------------------

SIZES = st.fixed_dictionaries({"u": st.integers(0, 6), "t": st.integers(1, 4)})


@pytest.mark.ci
@given(
    sizes=st.lists(SIZES, min_size=20, max_size=60),
    most=st.integers(0, 60),
    lease=st.integers(2, 20),
    automl=st.integers(1, 4),
)
@settings(max_examples=20, deadline=None)
def test_events_of_any_width_are_learnt_like_the_reference(
    sizes: list[dict[str, int]], most: int, lease: int, automl: int
) -> None:
    options: dict[str, Any] = {
        "cb_explore_adf": True,
        "automl": automl,
        "default_lease": lease,
        "max_crossed": most,
    }
    options |= {"predict_with": "champion", "epsilon": 0.05}
    text = "".join(event(each, i, actions=1 + i % 3) for i, each in enumerate(sizes)).encode()
    twin, workspace = NativeSearch(Options.of(**options)), Workspace(**options)
    steps = [twin.learn(each) for each in events_of(read(text, cb_explore_adf=True).events(), twin.options)]
    found = [np.sort(outcomes.score) for _, outcomes in workspace.stream(text, every=1)]
    for step, scores in zip(steps, found, strict=True):
        assert sorted(step.prediction.values()) == scores.tolist()


KINDS = [
    {"cubic": ["uut"]},
    {"quadratic": ["::"], "cb_type": "ips"},
    {"quadratic": ["::"], "cb_type": "dr", "l1": 1e-6},
    {"quadratic": ["::"], "bag": 3},
    {"quadratic": ["::"], "cover": 3},
    {"quadratic": ["::"], "regcb": True},
    {"quadratic": ["::"], "epsilon_decay": True, "model_count": 3},
    {"quadratic": ["::"], "adaptive": False, "normalized": False, "invariant": False, "sgd": True},
    {"automl": 3, "default_lease": 10},
    {"automl": 3, "default_lease": 10, "cb_type": "ips"},
]


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_blocks_single_events_and_resumed_runs_agree_on_wide_events(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    wide = {i: {"u": int(rng.integers(9, 30)), "t": int(rng.integers(1, 9))} for i in range(5, 80, 7)}
    text, given = stream_of(80, wide), {"max_crossed": 100, **options}
    one_by_one = probabilities(text, **given)
    whole = "".join(text).encode()
    workspace = Workspace(cb_explore_adf=True, **given)
    together = next(iter(workspace.stream(whole)))[1]
    assert workspace.diagnostics.counts[ProblemCode.TOO_WIDE] > 0
    for i, expected in enumerate(one_by_one):
        entries = slice(*together.action_start[i : i + 2])
        assert together.score[entries][np.argsort(together.action[entries])].tolist() == expected.tolist()
    through, begun = (Run(Workspace(cb_explore_adf=True, **given), whole) for _ in range(2))
    through.step()
    begun.step(33)
    file = BytesIO()
    begun.checkpoint(file)
    resumed = Run.resume(file.getvalue(), whole)
    resumed.step()
    assert resumed.progress.counts() == through.progress.counts()
    narrow, broad = event({"u": 2, "t": 1}, 1, labelled=False), event({"u": 20, "t": 8}, 1, labelled=False)
    others = Workspace(cb_explore_adf=True, **given)
    for each in text:
        others.learn(each)
    for each in (narrow, broad):
        expected = workspace.predict(each).tolist()
        assert others.predict(each).tolist() == expected
        assert resumed.workspace.predict(each).tolist() == expected
        assert workspace.predictor().predict(each).tolist() == expected


def test_wide_slots_are_learnt() -> None:
    def text(n: int, size: int) -> str:
        context = " ".join(f"u{i}" for i in range(size))
        return (
            f"ccb shared |u {context}\nccb action |t a\nccb action |t b\nccb action |t c\n"
            f"ccb slot {n % 3}:-1:0.5 |s x\nccb slot {(n + 1) % 3}:0:0.5 |s y\n\n"
        )

    given: dict[str, Any] = {"ccb_explore_adf": True, "quadratic": ["uu"], "max_crossed": 1000}
    stream = [text(i, 40 if i in (7, 8) else 3) for i in range(12)]
    workspace, single = Workspace(**given), Workspace(**given)
    for _ in workspace.stream("".join(stream).encode()):
        pass
    for each in stream:
        single.learn(each)
    assert workspace.diagnostics.counts == single.diagnostics.counts == {ProblemCode.TOO_WIDE: 2}
    for each in (text(0, 3), text(0, 40)):
        assert workspace.predict(each).tolist() == single.predict(each).tolist()
    blocks = Workspace(strict_parse=True, **given).stream("".join(stream).encode())
    block, outcomes = next(blocks)
    assert (len(block), len(outcomes)) == (7, 14)
    with pytest.raises(ParseError, match=":50:1: "):
        next(blocks)


def test_the_interactions_of_the_champion_do_not_depend_on_challengers() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(1, 8))
        held, sizes = rng.random((1 + n, 6)) < 0.5, rng.integers(1, 20, n).astype(float)
        held[0] = True
        factors = rng.integers(0, 9, 2 * n).astype(np.int32)
        start = np.arange(0, 2 * n + 1, 2)
        made = Interactions(start=start, factor=factors, permutations=False, n_slots=3, holders=held)
        most = int(rng.integers(0, 60))
        both = _without_widest(made, sizes, most)
        own = held[1:, 0]
        fewer = made._replace(
            start=np.arange(0, 2 * own.sum() + 1, 2),
            factor=factors.reshape(n, 2)[own].ravel(),
            holders=held[np.append(True, own)],
        )
        by_itself = _without_widest(fewer, sizes[own], most)
        champions = both.factor.reshape(-1, 2)[both.holders[1:, 0]]
        assert champions.tolist() == by_itself.factor.reshape(-1, 2).tolist()


def test_saved_model_accepts_another_limit() -> None:
    file = saved_of(Workspace(cb_explore_adf=True, quadratic=["uu"], max_crossed=7))
    assert Workspace.load(file).layout.max_crossed == 7
    assert Workspace.load(file, max_crossed=9).layout.max_crossed == 9
