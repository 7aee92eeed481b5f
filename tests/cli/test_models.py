"""Models on the command line: what is saved, gone on with and resumed, whatever stops a run."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import pytest

from onlineauto.cli.outputs import Saving
from onlineauto.errors import InputError
from onlineauto.interop import write_vw_model
from onlineauto.workspace.conversion import convert
from onlineauto.workspace.workspace import Workspace
from tests.cli.conftest import Command
from tests.property.model_draws import draw_stream
from tests.waiting import PATIENCE

pytestmark = pytest.mark.lane("ci")

SEARCH = "--cb_explore_adf --automl 4 --default_lease 100 -b 12"
OUTPUTS = ("-p", "--journal", "--extra_metrics")


class Killed(BaseException):
    """An exception that no run catches."""


def events(n: int, options: str = SEARCH) -> list[str]:
    configuration = Workspace(cb_explore_adf="--cb_explore_adf" in options).configuration
    return draw_stream(random.Random(1), configuration, n=n)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.txt"
    path.write_text("".join(events(3000)))
    return path


def outputs() -> str:
    """Options that write the model and whatever else there is into the working directory."""
    return " ".join(["-f m.model", *(f"{flag} {flag.strip('-')}" for flag in OUTPUTS)])


def written(path: Path) -> dict[str, bytes]:
    """Return the contents of the files in a folder."""
    return {each.name: each.read_bytes() for each in path.iterdir()}


@contextmanager
def within(path: Path) -> Iterator[Path]:
    """Work in a directory, which is made."""
    path.mkdir()
    with chdir(path):
        yield path


def test_a_continued_model_equals_one_uninterrupted_run(run: Command, log: Path, tmp_path: Path) -> None:
    whole = events(3000)
    for name, part in [("first.txt", whole[:1100]), ("rest.txt", whole[1100:])]:
        (tmp_path / name).write_text("".join(part))
    run(f"-d first.txt {SEARCH} -f half.model --quiet")
    run("-d rest.txt -i half.model -f both.model -p rest.p --quiet")
    run(f"-d {log} {SEARCH} -p all.p --quiet")
    assert (tmp_path / "all.p").read_bytes().endswith((tmp_path / "rest.p").read_bytes())
    model = Workspace.load(tmp_path / "half.model")
    model.fit(tmp_path / "rest.txt").save(tmp_path / "again.model")
    assert Workspace.load(tmp_path / "again.model").searching.n_events == 3000
    assert Workspace.load(tmp_path / "both.model").state()["options"] == model.state()["options"]


def test_predicting_does_not_change_the_model_file(run: Command, log: Path, tmp_path: Path) -> None:
    search = f"{SEARCH} --predict_with champion"  # a predict-only model of the champion has no ensemble
    run(f"-d {log} {search} -f m.model --quiet")
    run(f"-d {log} {search} -f alone.model --predict_only_model --quiet")
    before = (tmp_path / "m.model").read_bytes()
    run(f"-t -i m.model -d {log} -p t.p --quiet")
    run(f"-t -i alone.model -d {log} -p alone.p --quiet")
    assert (tmp_path / "m.model").read_bytes() == before
    assert (tmp_path / "alone.p").read_bytes() == (tmp_path / "t.p").read_bytes()
    assert (tmp_path / "alone.model").stat().st_size < len(before) / 4


def test_counters_continue_if_requested(run: Command, log: Path) -> None:
    def example_count(words: str) -> float:
        (line,) = [line for line in run(words).err.splitlines() if line.startswith("weighted ex")]
        return float(line.split("=")[1])

    assert example_count(f"-d {log} {SEARCH} -f m.model") == 3000
    assert example_count(f"-d {log} -i m.model") == 3000
    assert example_count(f"-d {log} -i m.model --preserve_performance_counters") == 6000


def stop_after(saves: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the next run end without a message after a number of saves."""
    save = Saving.save
    done: list[Saving] = []

    def save_and_die(self: Saving) -> None:
        save(self)
        done.append(self)
        if len(done) == saves:
            raise Killed

    monkeypatch.setattr(Saving, "save", save_and_die)


@pytest.mark.parametrize("saves", [1, 2, 5])
@pytest.mark.parametrize(
    "options",
    [
        SEARCH,
        "--cb_explore_adf --bag 3 -b 10",
        "--cb_explore_adf --passes 3 -b 10 -q ut --decay_learning_rate 0.9",
    ],
)
def test_a_run_is_resumed(
    run: Command, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saves: int, options: str
) -> None:
    if "--automl" not in options:
        monkeypatch.setattr(sys.modules[__name__], "OUTPUTS", ("-p", "--extra_metrics"))
    with within(tmp_path / "whole") as path:
        run(f"-d {log} {options} {outputs()} --quiet")
        whole = written(path)
    words = f"-d {log} {options} {outputs()} --save_every 300 --resume --quiet"
    with within(tmp_path / "part") as path:
        with pytest.MonkeyPatch.context() as patch:
            stop_after(saves, patch)
            with pytest.raises(Killed):
                run(words)
        with (path / "p").open("ab") as file:
            file.write(b"what was written behind the last save\n")
        run(words)
        assert written(path) == whole
        run(words)  # nothing is left to do
        assert written(path) == whole


def test_outputs_are_not_mixed_up(run: Command, log: Path, tmp_path: Path) -> None:
    words = f"-d {log} {SEARCH} -f m.model --save_every 300 --resume --quiet"
    run(f"-d {log} {SEARCH} -p whole.p --quiet")
    for saves, output in [(2, "-p m.p"), (3, "")]:
        with pytest.MonkeyPatch.context() as patch:
            stop_after(saves, patch)
            with pytest.raises(Killed):
                run(f"{words} {output}")
    (tmp_path / "other.p").write_bytes(b"precious\n" * 100_000)
    run(f"{words} -p other.p", code=2, err="the resumed run has written to m.p")
    assert (tmp_path / "other.p").read_bytes() == b"precious\n" * 100_000
    (tmp_path / "m.p").unlink()
    run(f"{words} -p m.p", code=1, err="m.p has 0 bytes, but the resumed run had written")


def test_resuming_a_complete_run_causes_a_warning(run: Command, log: Path) -> None:
    for _ in range(2):
        printed = run(f"-d {log} --cb_explore_adf -f m.model --resume")
    assert "the run was complete already" in printed.err


def killed_and_resumed(
    run: Command, log: Path, path: Path, chance: random.Random, whole: dict[str, bytes]
) -> bool:
    """Kill a run at some instant, and resume it; say whether there was a model."""
    words = f"-d {log} {SEARCH} {outputs()} --save_every 100 --resume --quiet"
    with within(path):
        with subprocess.Popen([sys.executable, "-m", "onlineauto", *words.split()]) as process:
            model = path / "m.model"
            begin = time.monotonic()
            while not model.exists() and process.poll() is None and time.monotonic() < begin + PATIENCE:
                time.sleep(0.002)
            time.sleep(chance.random() * 0.5)
            process.kill()
        if not model.exists():
            return False
        Workspace.load(model)
        run(words)
        assert written(path) == whole  # and no part of a save that did not end
        return True


@pytest.mark.parametrize("times", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_a_run_that_is_killed_at_any_instant_is_resumed(
    run: Command, log: Path, tmp_path: Path, times: int
) -> None:
    log.write_text("".join(events(12_000)))
    with within(tmp_path / "whole") as path:
        run(f"-d {log} {SEARCH} {outputs()} --quiet")
        whole = written(path)
    chance = random.Random(times)
    found = [killed_and_resumed(run, log, tmp_path / f"part{i}", chance, whole) for i in range(times)]
    assert sum(found) >= times * 0.9


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("-i m.model -d log.txt -b 13", 2, "cannot use --bit_precision 13: m.model was made with"),
        ("-i m.model -d log.txt --bag 3", 2, "cannot use --bag 3: m.model was made without it; leave it out"),
        ("-i alone.model -d log.txt", 2, "saved to predict only: load it with --testonly (-t)"),
        ("merge alone.model alone.model -f both", 2, "it cannot learn, be merged or be converted"),
        ("convert alone.model alone.vw", 2, "it cannot learn, be merged or be converted"),
        ("-i log.txt -d log.txt", 1, "log.txt is not a model file of onlineauto"),
        ("-i none.model -d log.txt", 1, "cannot read the model none.model: No such file or directory"),
        ("-d log.txt -f log.txt", 2, "--final_regressor log.txt is the input: it would be lost"),
        ("-d log.txt -f no/m.model", 1, "cannot write no/m.model: the folder"),
        ("-d log.txt -f .", 1, "cannot write .: it is a directory"),
        ("-d log.txt -f x -p x", 2, "x is named for two outputs"),
        ("-d log.txt --save_every 9", 2, "--save_every needs -f, which names the file for the model"),
        ("-d short.txt --resume -f m.model", 1, "the input has 10 events, but the resumed run"),
        ("-d log.txt -t --resume -f alone.model", 1, "alone.model was not saved by a run"),
    ],
)
def test_refusals(run: Command, log: Path, tmp_path: Path, words: str, code: int, message: str) -> None:
    options = "--cb_explore_adf --quiet -b 12"
    Workspace(cb_explore_adf=True, bit_precision=12).fit(log).save(
        tmp_path / "alone.model", predict_only=True
    )
    with pytest.MonkeyPatch.context() as patch:
        stop_after(1, patch)
        with pytest.raises(Killed):
            run(f"-d {log} {options} -f m.model --save_every 1000")
    (tmp_path / "short.txt").write_text("".join(events(10)))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    run(words if "-i" in words else f"{words} {options}", code=code, err=message)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_failed_save_keeps_the_old_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.model"
    Workspace().fit(["1 |a x"]).save(path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("onlineauto.workspace.model_file.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        Workspace().fit(["2 |a y"]).save(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["m.model"]


def test_a_fatal_line_keeps_the_events_before_it(run: Command, log: Path, tmp_path: Path) -> None:
    log.write_text("1 |a x\n0 |a y\nx |a\n")
    run(f"-d {log} --strict_parse -f m.model --quiet", code=1)
    expected = Workspace().fit(["1 |a x", "0 |a y"])
    assert Workspace.load(tmp_path / "m.model").predict("|a x") == expected.predict("|a x")


def test_a_file_that_is_not_a_model_is_rejected(log: Path) -> None:
    with pytest.raises(InputError, match="not a model file of onlineauto: it begins with b'"):
        Workspace.load(log)
    blocks, of_vw = log.with_name("log.blocks"), log.with_name("vw.model")
    convert(log, blocks)
    with pytest.raises(InputError, match="not a model file of onlineauto: it is a file of blocks"):
        Workspace.load(blocks)
    write_vw_model(Workspace(), of_vw)
    with pytest.raises(InputError, match=r"is a model of Vowpal Wabbit 9.11.9: .*AutoML\(names=…\)"):
        Workspace.load(of_vw)


def test_passes_of_a_model_of_vw_are_unknown(run: Command, log: Path) -> None:
    model = Workspace().fit(b"1 | a\n0 | b\n" * 20)
    write_vw_model(model, log.with_name("vw.model"))
    model.save(log.with_name("our.model"))
    assert "pass" not in run("inspect vw.model").out
    assert ", 1 pass\n" in run("inspect our.model").out


def test_a_search_begins_with_a_model_that_did_not_search(run: Command, log: Path) -> None:
    log.with_name("second").write_text("".join(events(50, "--cb_explore_adf")))
    run("-d log.txt --cb_explore_adf --epsilon 0.05 -q :: -f old.model --quiet")
    run("-t -i old.model -d second -p tested --quiet")
    run("-i old.model --automl 2 -d second -p learnt -f new.model --quiet")
    tested, learnt = (log.with_name(name).read_text().split("\n\n") for name in ("tested", "learnt"))
    assert learnt[0] == tested[0]
    assert learnt != tested
    assert (
        Workspace.load("new.model").configuration.command(kept=True)
        == "--cb_explore_adf --epsilon 0.05 --automl 2"
    )
    run("-i new.model --automl 2 -d second --quiet")
    run("-i old.model --automl 2 -b 10 -d second --quiet", code=2)


def test_a_search_of_vw_is_continued_with_a_note(run: Command, log: Path) -> None:
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    vw = vowpalwabbit.Workspace("--quiet --cb_explore_adf --automl 2 -b 10")
    vw.save(str(log.with_name("vw.model")))
    vw.finish()
    begin = "-d log.txt -i vw.model --automl 2"
    run(begin, err="vw.model is a search of Vowpal Wabbit, which --vw_exact continues")
    assert run(f"{begin} --quiet").err == ""
