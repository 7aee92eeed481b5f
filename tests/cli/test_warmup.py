"""The verb ``warmup``, and ``--threads``, which is no option any more."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from onlineauto import OptionError, Workspace
from onlineauto.cli import warmup
from onlineauto.jit import cache_directory
from onlineauto.jit.compiling import _listeners
from tests.cli.conftest import Command
from tests.processes import python

pytestmark = pytest.mark.lane("ci")

SIMPLE = "1 |a x:0.5 y |b z\n0 |a z |b y:2\n"
EVENTS = "shared |s a b\n0:-1:0.1 |x one\n|x two |z three\n\nshared |s c\n|x one\n1:-0.5:0.25 |x two\n\n"


def test_compiled_kernels_are_not_compiled_again(run: Command) -> None:
    warmup.warm_up()
    assert run("warmup") == (f"the kernels are compiled already, in {cache_directory()}\n", "")


@pytest.mark.parametrize(
    ("compiles", "seconds", "words"),
    [
        (0, 12.4, "the kernels are compiled already, in "),
        (1, 0.2, "compiled the kernels in 0 s, into "),
        (200, 12.4, "compiled the kernels in 12 s, into "),
    ],
)
def test_warmup_reports_the_number_of_seconds(
    run: Command, compiles: int, seconds: float, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warm_up() -> None:
        for listener in compiles * _listeners:
            listener("program", 1, 2)

    clock = iter([5.0, 5.0 + seconds])
    monkeypatch.setattr(warmup, "warm_up", warm_up)
    monkeypatch.setattr(warmup, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    assert run("warmup") == (f"{words}{cache_directory()}\n", "")


def test_warmup_displays_progress_on_a_terminal(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def warm_up() -> None:
        for done in (3, 17):
            for listener in _listeners:
                listener("run_events", done, 17)

    monkeypatch.setattr(warmup, "warm_up", warm_up)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    shown, _, last = run("warmup").err.rpartition("\r\x1b[K")
    assert last == "", "the line is cleared in the end"
    lines = [line.rpartition(",")[0] for line in shown.split("\r\x1b[K")[1:]]
    assert lines == [f"onlineauto: compiling run_events, first run only: {done} of 17" for done in (3, 17)]


UNUSED = """
from onlineauto.cli.warmup import warm_up
from onlineauto.engine.ensemble.registry import MEMBERS, member_of

warm_up()
members = [(name, entry, member_of(name)) for name, entry in MEMBERS.items()]
kernels = [(name, member.kernels()) for name, entry, member in members if entry.costs]
kernels += [(name, member.class_kernels) for name, entry, member in members if entry.classes]
print([name for name, each in kernels if not all(kernel._codes for kernel in each)])
"""


def test_the_kernels_of_all_members_are_compiled() -> None:
    assert python("-c", UNUSED).stdout == "[]\n"


COLD = """
import sys
import numpy as np
from onlineauto.cli import learn
from onlineauto.cli.main import main
from onlineauto.errors import InputError
from onlineauto.jit import entry_kernel, kernel

@kernel
def squared(x):
    return x * x

@entry_kernel
def square_of(x):
    return squared(x)

def open_workspace(configuration):
    raise InputError(f"{square_of(3)} is enough")

learn.open_workspace = open_workspace
sys.exit(main(sys.argv[1:]))
"""


def own_cache(folder: Path) -> dict[str, str]:
    """Return the environment of a process that compiles its kernels into a folder of its own."""
    return {"ONLINEAUTO_KERNELS": "none", "ONLINEAUTO_CACHE_DIR": str(folder / "cache")}


@pytest.mark.parametrize("quiet", [False, True])
def test_without_a_terminal_a_line_says_that_kernels_are_compiled_unless_the_run_is_quiet(
    quiet: bool, tmp_path: Path
) -> None:
    (tmp_path / "cold.py").write_text(COLD)
    (tmp_path / "s.txt").write_text(SIMPLE)
    words = [str(tmp_path / "cold.py"), "-d", str(tmp_path / "s.txt"), *["--quiet"] * quiet]
    for cold in (True, False):
        done = python(*words, code=1, **own_cache(tmp_path))
        *lines, last = done.stderr.splitlines()
        assert last == "onlineauto: error: 9 is enough"
        assert [line.split(",")[0] for line in lines] == ["compiling kernels"] * (cold and not quiet)


def test_the_option_that_replaces_threads_is_named(run: Command) -> None:
    out, err = run("--threads", "3", code=2)
    assert out == ""
    assert err == (
        "onlineauto: error: --threads is no option any more: large files are always read ahead, and "
        "--workers N learns with N threads\n"
    )
    options: Any = {"threads": 3}
    with pytest.raises(OptionError, match=r"--threads is no option any more: .* --workers N"):
        Workspace(**options)


@pytest.mark.slow
def test_after_warming_up_nothing_more_is_compiled(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (tmp_path / "s.txt").write_text(SIMPLE)
    (tmp_path / "adf.txt").write_text(EVENTS)

    def run(words: str) -> str:
        return python("-m", "onlineauto", *words.split(), code=0, **own_cache(tmp_path)).stdout

    def compiled() -> set[Path]:
        return {path.relative_to(cache) for path in cache.rglob("*.o")}

    assert run("warmup").startswith("compiled the kernels in ")
    before = compiled()
    assert before
    simple, adf = tmp_path / "s.txt", tmp_path / "adf.txt"
    for words in (
        f"{simple} -q ab --link logistic",
        f"{simple} --sgd --l1 0.01 --interactions abc",
        f"{adf} --cb_adf --cb_type dr --cubic :::",
        f"{adf} --cb_explore_adf --automl 4 --oracle_type qbase_cubic",
    ):
        run(f"{words} --quiet")
        run(f"{words} --quiet --vw_exact")
    assert compiled() == before
    assert run("warmup").startswith("the kernels are compiled already, in ")
