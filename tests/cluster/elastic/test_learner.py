"""The sharded learner: the result depends on how the stream is cut, and on nothing else."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.cluster.elastic import ShardedLearner
from onlineauto.cluster.elastic.running import counting
from onlineauto.errors import OnlineautoError, OptionError
from onlineauto.formats.lines.diagnostics import ProblemCode
from tests.cluster.elastic.streams import BANDIT, EXPLORING, FINE, LINES, bits_of

if TYPE_CHECKING:
    from pathlib import Path

JSON = (
    b'{"_label_cost":0,"_label_probability":0.5,"_label_Action":1,"_labelIndex":0,"a":"x",'
    b'"_multi":[{"b":1},{"b":2}]}\n'
)


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (BANDIT, EXPLORING),
        (BANDIT, {"cb_explore_adf": True, "squarecb": True, "quadratic": ["ab"]}),
        (BANDIT, {"cb_adf": True, "cb_type": "dr", "cubic": [":::"], "bit_precision": 20}),
        (BANDIT, {"cb_adf": True, "cb_type": "ips", "ignore_linear": ["a"]}),
        (LINES, {"quadratic": ["::"]}),
        (LINES, {"quadratic": ["::"], "max_crossed": 2}),
        (BANDIT, {"cb_adf": True, "cubic": [":::"], "max_crossed": 30}),
        (LINES, {"loss_function": "quantile", "quantile_tau": 0.3, "noconstant": True}),
        (LINES, {"sgd": True, "learning_rate": 0.01, "power_t": 0.3}),
        (LINES, {"adaptive": True, "learning_rate": 0.1, "initial_t": 3}),
        (LINES, {"normalized": True, "initial_weight": 0.1}),
    ],
)
def test_with_one_part_it_is_a_workspace(source: bytes, options: dict[str, Any]) -> None:
    learner = ShardedLearner(parts=1, part_events=50, warm_up=0, blocks=4, **options)
    run = learner.run(source, workers=2, servers=2)
    alone = Workspace(**options)
    loss = weight = 0.0
    for _, outcomes in alone.stream(source):
        loss += float(outcomes.loss.sum(dtype=np.float64))
        weight += float(outcomes.weight[outcomes.labelled].sum(dtype=np.float64))
    assert bits_of(run.workspace()) == bits_of(alone)
    assert run.loss() == pytest.approx(loss / weight, rel=1e-9)
    assert run.progress() == (len(list(alone.stream(source))) and run.snapshot().events,) * 2


def test_a_wide_event_takes_no_more_memory_than_others() -> None:
    """Its cells are listed before it is learnt, by the same interactions."""
    wide = "1 |a " + " ".join(f"x{i}" for i in range(3000)) + "\n"
    lines = [f"{i % 2} |a x{i % 7} y{i % 5}\n" for i in range(60)]
    source = "".join([*lines[:30], wide, *lines[30:]]).encode()
    learner = ShardedLearner(parts=1, part_events=20, warm_up=0, blocks=4, cubic=["aaa"])
    run, alone = learner.run(source, workers=2, servers=2), Workspace(cubic=["aaa"])
    for _ in alone.stream(source):
        pass
    assert alone.diagnostics.counts == {ProblemCode.TOO_WIDE: 1}
    assert bits_of(run.workspace()) == bits_of(alone)


@pytest.mark.parametrize("source", [BANDIT, LINES])
def test_the_number_of_workers_and_servers_changes_nothing(source: bytes) -> None:
    options = EXPLORING if source is BANDIT else {"quadratic": ["::"]}
    learner = ShardedLearner(**FINE, **options)
    expected = bits_of(learner.fit(source))
    for workers, servers in [(2, 1), (3, 5), (7, 2)]:
        assert bits_of(learner.fit(source, workers=workers, servers=servers)) == expected
    assert bits_of(ShardedLearner(**FINE | {"parts": 3}, **options).fit(source)) != expected
    assert bits_of(ShardedLearner(**FINE | {"blocks": 2}, **options).fit(source)) == expected


def test_it_learns() -> None:
    """Averages of parts predict about as well as one model that learns every event."""
    alone = Workspace(**EXPLORING)
    losses = [float(loss) for _, outcomes in alone.stream(BANDIT) for loss in outcomes.loss]
    run = ShardedLearner(**FINE, **EXPLORING).run(BANDIT, workers=2)
    first, whole = run.wait().loss(), sum(losses) / len(losses)
    assert first < whole + 0.05
    event = BANDIT.split(b"\n\n")[0]
    assert run.workspace().predict(event).argmax() == alone.predict(event).argmax()


def test_a_model_is_saved_and_goes_on_as_any_other(tmp_path: Path) -> None:
    model = ShardedLearner(**FINE, **EXPLORING).fit(BANDIT)
    model.save(tmp_path / "model")
    event = BANDIT.split(b"\n\n")[5]
    loaded = Workspace.load(tmp_path / "model")
    assert (loaded.predict(event) == model.predict(event)).all()
    assert (model.predictor().predict(event) == model.predict(event)).all()


def test_sources_of_all_kinds(tmp_path: Path) -> None:
    path = tmp_path / "stream.gz"
    path.write_bytes(gzip.compress(BANDIT))
    learner = ShardedLearner(**FINE, **EXPLORING)
    expected = bits_of(learner.fit(BANDIT))
    assert bits_of(learner.fit(path)) == expected
    assert bits_of(learner.fit(str(path))) == expected
    with gzip.open(path) as file:
        assert bits_of(learner.run(cast("BinaryIO", file), workers=3, servers=2).workspace()) == expected


def test_json_is_cut_by_lines() -> None:
    learner = ShardedLearner(parts=2, part_events=3, warm_up=4, blocks=2, cb_explore_adf=True, json=True)
    run = learner.run(JSON * 40, workers=2)
    assert run.wait().snapshot().events == 40


def test_a_stream_without_events() -> None:
    run = ShardedLearner(**FINE).run(b"", workers=2, servers=2).wait(60)
    assert run.progress() == (0, 0)
    assert np.isnan(run.loss())
    assert not run.workspace().weights.any()


def test_malformed_lines_are_skipped_and_counted() -> None:
    lines = LINES.splitlines(keepends=True)
    spoilt = b"".join([*lines[:200], b"1 |a:z x\n", *lines[200:]])
    run = ShardedLearner(**FINE).run(spoilt, workers=2).wait()
    other = ShardedLearner(**FINE).run(spoilt, workers=3, servers=2).wait()
    assert run.snapshot().skipped == other.snapshot().skipped > 0
    assert bits_of(run.workspace()) == bits_of(other.workspace())


def test_parts_without_a_good_line_change_nothing() -> None:
    """Malformed lines fill whole parts of ticks; who learns them may not show in a rounded sum."""
    lines = LINES.splitlines(keepends=True)[:400]
    lines[100:108] = lines[130:150] = lines[-8:] = [b"1 |a:z x\n"] * 8
    learner = ShardedLearner(parts=4, part_events=4, warm_up=16, blocks=4)
    expected = learner.run(b"".join(lines)).wait().snapshot()
    for workers in (2, 4, 7):
        found = learner.run(b"".join(lines), workers=workers).wait().snapshot()
        assert bits_of(found.workspace()) == bits_of(expected.workspace())
        assert found.header.account.tolist() == expected.header.account.tolist()


def test_what_cannot_be_learnt_ends_the_run() -> None:
    run = ShardedLearner(**FINE, **EXPLORING).run("nowhere/stream.txt", workers=2)
    with pytest.raises(OnlineautoError, match=r"nowhere/stream\.txt"):
        run.wait(60)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"automl": 2, "cb_explore_adf": True}, "automl"),
        ({"bag": 3, "cb_explore_adf": True}, "bag"),
        ({"first": 3, "cb_explore_adf": True}, "first"),
        ({"ccb_explore_adf": True}, "ccb"),
        ({"l1": 0.1}, "l1"),
        ({"passes": 2}, "passes"),
        ({"testonly": True}, "testonly"),
        ({"vw_exact": True}, "vw_exact"),
        ({"examples": 2}, "examples"),
        ({"blocks": 3}, "power of two"),
        ({"blocks": 1 << 20}, "at most"),
        ({"parts": 0}, "parts"),
        ({"parts": 2.5}, "whole numbers"),
        ({"warm_up": "many"}, "whole numbers"),
    ],
)
def test_options_that_it_does_not_have(options: dict[str, Any], what: str) -> None:
    with pytest.raises(OptionError, match=what):
        ShardedLearner(**options)


def test_requests_that_make_no_sense() -> None:
    learner = ShardedLearner(**FINE)
    with pytest.raises(OptionError, match="backend"):
        learner.run(LINES, backend="cloud")
    with pytest.raises(OptionError, match="worker"):
        learner.run(LINES, workers=0)
    with pytest.raises(OptionError, match="worker"):
        learner.run(LINES).resize(1, 0)
    running = learner.run(LINES).start()
    with pytest.raises(OptionError, match=r"1\.5"):
        running.resize(cast("int", 1.5), 1)
    assert running.wait(60).ended
    with pytest.raises(OptionError, match="margin"):
        learner.run(LINES, margin=-1)
    with pytest.raises(OptionError, match="snapshot_every"):
        learner.run(LINES, snapshot_every=0)
    taken = learner.run(LINES).wait().snapshot()
    with pytest.raises(OptionError, match="other options"):
        ShardedLearner(**FINE, learning_rate=0.1).run(LINES, begin=taken)


def test_a_large_stream_is_not_read_to_count_its_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "_SOME", 10_000)
    (tmp_path / "lines").write_bytes(LINES)
    (tmp_path / "packed").write_bytes(gzip.compress(LINES))

    def counted(source: Any) -> tuple[int, bool] | None:
        return counting.events_of(ShardedLearner().run(source)._recipe)

    for plain in (LINES, tmp_path / "lines"):
        about, is_exact = counted(plain) or (0, True)
        assert about == pytest.approx(1500, rel=0.1)
        assert not is_exact
    assert counted(LINES[:5000]) == (LINES[:5000].count(b"\n") + 1, True)
    for source in (tmp_path / "packed", gzip.compress(LINES), io.BytesIO(LINES)):
        assert counted(source) is None
    assert counted(b"") == (0, True)
