"""Files of text, whose events workers read themselves: the result is that of a coordinator that reads all."""

from __future__ import annotations

import io
import itertools
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from datasets.generate import text
from onlineauto import InputError, Workspace
from onlineauto.cli.main import main
from onlineauto.cluster.partitions import run as run_module
from onlineauto.cluster.partitions import text_file
from onlineauto.cluster.partitions.coordinator import RoundSchedule
from onlineauto.cluster.partitions.run import PartitionedRun
from onlineauto.cluster.partitions.text_file import (
    TextFile,
    UnreadBlock,
    find_events,
    text_paths,
)
from onlineauto.engine.ensemble.branches import Branch
from onlineauto.engine.ensemble.combiner_kernels import PRIOR_VARIANCE
from onlineauto.engine.ensemble.regression import merge_regression, settle
from onlineauto.engine.ensemble.regression_kernels import KEEPS
from onlineauto.engine.stream.source import read_blocks
from onlineauto.errors import WorkersError
from onlineauto.features.block import Block
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.workspace.options import REGISTRY
from tests.cluster.partitions.servers import NodePool

OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "live_configs": 3, "bit_precision": 14}
OF_LINES: dict[str, Any] = {"live_configs": 3, "bit_precision": 14}
SHORT = RoundSchedule(alone=256, head=8, shortest=128, longest=128, growth=4)
EVENTS = 1100
BANDIT = text("planted", events=EVENTS, seed=5)
LINES = text("regression", events=EVENTS, seed=2)


class Learnt:
    """The result of a run: the error, the model, predictions, blocks and problems."""

    def __init__(self, run: PartitionedRun, *, handed: bool = False) -> None:
        if handed:
            run.read = partial(read_blocks)  # what another reader reads is handed over
        self.error, scores = "", []
        self.blocks: list[Block] = []
        with run:
            try:
                for block, outcomes in run:
                    self.blocks.append(block)
                    scores.append(outcomes.score.tobytes() + outcomes.prediction.tobytes())
                    scores += [outcomes.weight.tobytes(), outcomes.label.tobytes()]
            except InputError as error:
                self.error = str(error)
            file = io.BytesIO()
            run.checkpoint(file)
        self.model, self.scores = file.getvalue(), b"".join(scores)
        self.n_unread = sum(isinstance(each, UnreadBlock) for each in self.blocks)
        self.problems = list(map(str, run.diagnostics.kept)), run.diagnostics.counts

    def assert_same(self, other: Learnt) -> None:
        assert self.error == other.error
        assert self.problems == other.problems
        assert self.scores == other.scores
        assert self.model == other.model


def run_of(source: Any, workers: int = 1, *, messages: bool = False, **options: Any) -> PartitionedRun:
    """Return a run with workers that are threads, or that receive and send messages."""
    run = PartitionedRun(Workspace(**(options or OPTIONS)), source, workers=workers, schedule=SHORT)
    if messages:
        run.pool = NodePool(run, workers, 0)
    return run


def file_of(folder: Path, content: bytes, name: str = "events.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(("content", "options"), [(BANDIT, OPTIONS), (LINES, OF_LINES)])
def test_workers_that_read_learn_what_is_handed_over(
    tmp_path: Path, content: bytes, options: dict[str, Any]
) -> None:
    path = file_of(tmp_path, content)
    expected = Learnt(run_of(path, **options), handed=True)
    assert not expected.n_unread
    for workers, messages in ((1, False), (2, False), (2, True)):
        learnt = Learnt(run_of(path, workers, messages=messages, **options))
        learnt.assert_same(expected)
        assert learnt.n_unread >= 4 * 3


def test_an_unread_block_has_the_arrays_of_the_file(tmp_path: Path) -> None:
    content = BANDIT.replace(b"shared |", b"shared tag|")
    path = file_of(tmp_path, content)
    expected, learnt = Learnt(run_of(path), handed=True), Learnt(run_of(path))
    assert learnt.n_unread
    for name in ("tag", "hash", "value", "line_number", "weight", "cost"):
        one, other = (
            np.concatenate([getattr(block, name) for block in each.blocks]) for each in (learnt, expected)
        )
        assert (one == other).all()
    assert sum(map(len, learnt.blocks)) == EVENTS


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[None]:
    """Return a list that grows with each call of a function of the module of text files."""
    function, calls = getattr(text_file, name), list[None]()

    def counted(*arguments: Any, **named: Any) -> Any:
        calls.append(None)
        return function(*arguments, **named)

    monkeypatch.setattr(text_file, name, counted)
    return calls


def spoilt(change: str) -> bytes:
    events = BANDIT.split(b"\n\n")
    if change == "malformed":
        events.insert(700, b"shared |a x\nbad |b y\n|b z")
    elif change == "two costs":
        events.insert(700, b"shared |a x\n0:1:0.5 |b y\n1:1:0.5 |b z")
    elif change == "namespace":
        events[700:] = [each.replace(b"|Z", b"|other") for each in events[700:]]
    elif change == "empty":
        events[650] += b"\n  \t\n\r\n\n \n"
    elif change == "mark":
        events[650] += b"\n\xef\xbb\xbf\n" + events[650]
    elif change == "outlier":
        at = next(at for at in range(700, len(events)) if b"\n0:-" in events[at])
        events[at] = re.sub(rb"\n0:-[^:]+:", b"\n0:-9e9:", events[at])
    return b"\n\n".join(events)


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        ("malformed", ["label 'bad' has no cost"]),
        ("two costs", ["on a second line of the event"]),
        ("namespace", []),
        ("empty", []),
        ("mark", []),
        ("outlier", ["label or cost '-9e+09 (a reward of 9e+09)' is thousands of times beyond"]),
    ],
)
def test_what_a_worker_does_not_expect_is_handed_over(
    tmp_path: Path, change: str, messages: list[str]
) -> None:
    path = file_of(tmp_path, spoilt(change))
    expected = Learnt(run_of(path), handed=True)
    assert len(expected.problems[0]) == len(messages)
    for problem, message in zip(expected.problems[0], messages, strict=True):
        assert message in problem
    for workers in (1, 2):
        learnt = Learnt(run_of(path, workers))
        learnt.assert_same(expected)
        assert learnt.n_unread


def test_a_namespace_without_features_is_read_by_workers(tmp_path: Path) -> None:
    events = BANDIT.replace(b"shared |a", b"shared |zz |a").split(b"\n\n")
    events[700:] = [each.replace(b"|Z", b"|later |Z") for each in events[700:]]
    path = file_of(tmp_path, b"\n\n".join(events))
    expected = Learnt(run_of(path), handed=True)
    for workers in (1, 2):
        learnt = Learnt(run_of(path, workers))
        learnt.assert_same(expected)
        assert learnt.n_unread >= 4 * 3


def test_more_rounds_are_handed_over_after_each_rejected_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "_READ_HERE", 1)
    monkeypatch.setattr(run_module, "_MOST_READ_HERE", 4)
    events = BANDIT.split(b"\n\n")[:-1]
    lines = [event + b"\n\nbad |a" if at < 800 and at % 5 == 0 else event for at, event in enumerate(events)]
    path = file_of(tmp_path, b"\n\n".join(lines))
    schedule = RoundSchedule(alone=64, head=4, shortest=32, longest=8, growth=4)
    run = PartitionedRun(Workspace(**OPTIONS), path, schedule=schedule)
    learn, rejected, learnt = run._learn_unread, list[int](), list[int]()
    for number in range(EVENTS):

        def count_and_learn(number: int = number) -> bool:
            is_learnt = learn()
            (learnt if is_learnt else rejected).append(number)
            return is_learnt

        run._learn_unread = count_and_learn  # type: ignore[method-assign]
        if not run.learn_round():
            break
    assert np.diff(rejected)[:5].tolist() == [1, 2, 4, 4, 4]
    assert learnt[0] == rejected[-1] + 4
    assert learnt == list(range(learnt[0], number))


def test_crlf_and_a_missing_last_newline_are_read(tmp_path: Path) -> None:
    path = file_of(tmp_path, BANDIT.rstrip(b"\n").replace(b"\n", b"\r\n"))
    learnt = Learnt(run_of(path))
    learnt.assert_same(Learnt(run_of(path), handed=True))
    assert learnt.n_unread


def test_several_files_are_learnt_like_handed_over_ones(tmp_path: Path) -> None:
    events = BANDIT.split(b"\n\n")
    first = file_of(tmp_path, b"\n\n".join(events[:600]), "first")
    other = [b"\n".join(reversed(each.split(b"\n"))) for each in events[600:900]]
    second = file_of(tmp_path, b"\n\n".join([*other[:3], b"bad |x y", *events[600:]]), "second")
    expected = Learnt(run_of([first, second]), handed=True)
    learnt = Learnt(run_of([first, second], 2))
    learnt.assert_same(expected)
    assert learnt.n_unread
    assert any("second:" in each for each in learnt.problems[0])


def test_a_resumed_run_of_a_file_has_the_same_model(tmp_path: Path) -> None:
    path, saved = file_of(tmp_path, BANDIT), io.BytesIO()
    expected = Learnt(run_of(path), handed=True)
    with run_of(path) as run:
        while run.position.events < 600:
            run.learn_round()
        run.checkpoint(saved)
    resumed = PartitionedRun.resume(saved.getvalue(), path, workers=2, schedule=SHORT)
    learnt = Learnt(resumed)
    assert learnt.model == expected.model
    assert learnt.n_unread
    with pytest.raises(InputError, match="is it another input"):
        PartitionedRun.resume(
            saved.getvalue(), file_of(tmp_path, BANDIT[:2000], "short"), schedule=SHORT
        ).step()


def test_workers_that_read_and_die_are_replaced(tmp_path: Path) -> None:
    path = file_of(tmp_path, BANDIT)
    expected = Learnt(run_of(path), handed=True)
    run = run_of(path)
    run.pool = pool = NodePool(run, 2, 0, deaths=0.2, seed=2)
    learnt = Learnt(run)
    learnt.assert_same(expected)
    assert learnt.n_unread
    assert pool.killed > 1


@pytest.mark.parametrize("change", ["", "malformed"])
@pytest.mark.parametrize("number", [0, 3, 4, 5])
def test_a_run_of_a_file_goes_on_after_its_workers_have_failed(
    tmp_path: Path, change: str, number: int
) -> None:
    path = file_of(tmp_path, spoilt(change))
    expected = Learnt(run_of(path), handed=True)
    run, calls = run_of(path), itertools.count()
    learn = run.pool.learn

    def fail(coordinator: Any, chunks: Any) -> Any:
        if next(calls) == number:
            raise WorkersError("the workers have died")
        return learn(coordinator, chunks)

    run.pool.learn = fail  # type: ignore[method-assign]
    with pytest.raises(WorkersError):
        run.step()
    assert run.step() > 0
    assert run.workspace.searching.n_learnt == EVENTS
    saved = io.BytesIO()
    run.checkpoint(saved)
    assert saved.getvalue() == expected.model


def random_text(rng: np.random.Generator) -> bytes:
    lines = [
        b"0:1:0.5 |a b",
        b"|a b",
        b" |c d",
        b"\t |c",
        b"",
        b"",
        b" ",
        b"\r",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf|a",
        b"\xef",
        b"\xef\xbb",
        b" \t" * 20,
        b" \t" * 20 + b"|c",
    ]
    return b"\n".join(lines[at] for at in rng.integers(len(lines), size=rng.integers(1, 40)))


@pytest.mark.parametrize("options", [{"cb_explore_adf": True}, {}])
def test_events_are_found_like_by_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    configuration, rng, n_fine = REGISTRY.from_keywords(**options), np.random.default_rng(3), 0
    for number in range(500):
        content = random_text(rng) if options else random_text(rng).replace(b"0:1:0.5", b"1")
        monkeypatch.setattr(text_file, "_WINDOW", int(rng.integers(1, 60)))
        path = file_of(tmp_path, content, f"{number}.txt")
        problems = Diagnostics()
        expected = list(read_blocks(path, configuration, problems))
        numbers = [block.line_number[start] for block in expected for start in block.event_start[:-1]]
        file, found = TextFile(str(path), configuration, Diagnostics()), []
        while len(stretch := file.take(int(rng.integers(1, 4)))):
            file.move_back(stretch)
            blocks = file.read(len(stretch))
            assert problems.total or sum(map(len, blocks)) == len(stretch)
            found += [block.line_number[start] for block in blocks for start in block.event_start[:-1]]
        assert found == numbers
        n_fine += not problems.total
    assert n_fine > 50


@pytest.mark.parametrize("options", [{"cb_explore_adf": True}, {}])
def test_a_part_of_a_byte_order_mark_at_the_end_is_a_line(tmp_path: Path, options: dict[str, Any]) -> None:
    configuration = REGISTRY.from_keywords(**options)
    for content in (b"|a b\n\n\xef", b"|a b\n\n\xef\n", b"|a b\n\n\xef\xbb", b"|a b\n\n\xef\xbb\xbf"):
        file = TextFile(str(file_of(tmp_path, content)), configuration, Diagnostics())
        ends = file.take(5).ends.tolist()
        is_empty = content.endswith(b"\xbf")
        assert ends == [5 + bool(options)] + [len(content)] * (not is_empty)


def test_a_long_line_of_blanks_takes_few_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    text = np.frombuffer(b"a\n" + b" \t" * 100_000 + b"\nb\n" + b" " * 9 + b"c\n\n", np.uint8)
    passes = count_calls(monkeypatch, "_first_bytes")
    newline = text == ord("\n")
    n = len(text)
    assert find_events(text, newline, multiline=True, is_open=False)[0].tolist() == [200_003, n]
    assert find_events(text, newline, multiline=False, is_open=False)[0].tolist() == [2, 200_005, n - 1]
    assert len(passes) < 50


def test_only_plain_text_is_read_by_workers(tmp_path: Path) -> None:
    plain, configuration = file_of(tmp_path, BANDIT), REGISTRY.from_keywords(**OPTIONS)
    packed = file_of(tmp_path, b"\x1f\x8b\x08\x00" + bytes(20), "packed")
    assert text_paths(plain, configuration) == text_paths([plain], configuration) == [str(plain)]
    assert text_paths(str(plain), configuration) == [str(plain)]
    for source in (packed, [plain, packed], BANDIT, [str(plain)], tmp_path / "none", "-", io.BytesIO(BANDIT)):
        assert text_paths(source, configuration) == []
    for options in ({"examples": 5}, {"json": True}):
        assert text_paths(plain, REGISTRY.from_keywords(**OPTIONS, **options)) == []


def test_a_small_file_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of(tmp_path, BANDIT)
    flags = ["-d", str(path), "--cb_explore_adf", "--automl", "2", "-b", "12"]
    assert main([*flags, "--workers", "2"]) == 0
    warned = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(warned) == 1
    assert f"--workers does not pay for about {EVENTS:,} events" in warned[0]
    assert main(flags) == 0
    assert "warning" not in capsys.readouterr().err
    assert PartitionedRun(Workspace(**OPTIONS), path, schedule=SHORT).warning == ""
    assert PartitionedRun(Workspace(**OPTIONS), BANDIT).warning == ""
    empty, blank = file_of(tmp_path, b"", "empty"), file_of(tmp_path, b"\n \n", "blank")
    sources = [[empty, path], [path, empty], [blank, empty, path, blank]]
    assert {PartitionedRun(Workspace(**OPTIONS), each).warning.split(":")[0] for each in sources} == {
        f"--workers does not pay for about {EVENTS:,} events"
    }
    assert PartitionedRun(Workspace(**OPTIONS), [empty, blank]).warning == ""


def test_a_settled_regression_merges_to_the_same_bits() -> None:
    """A worker inverts covariances before it sends them; the coordinator would do the same."""
    workspace = Workspace(**OPTIONS)
    for _ in workspace.stream(BANDIT):
        pass
    states: Any = workspace.searching.live_configs.arrays.ensemble.members.states
    state = next(
        state.regression
        for member, state in zip(states.members, states.records, strict=True)
        if member.name == "features"
    )
    inputs = workspace.searching.live_configs.arrays.ensemble.members.inputs
    n, actions = state.prepared.tolist()
    counts = np.stack([inputs.seen // 2, inputs.seen], axis=1)
    base = Branch(state, np.arange(n), np.arange(0), np.arange(actions), counts, ordered=True)
    branches = [base._replace(state=each) for each in (state, settle(state, PRIOR_VARIANCE, KEEPS))]
    merged = [merge_regression(base, [each, base], inputs, PRIOR_VARIANCE, n) for each in branches]
    assert (state.n_waiting[:actions] > 0).any()
    for one, other in zip(*merged, strict=True):
        assert one.tobytes() == other.tobytes()
