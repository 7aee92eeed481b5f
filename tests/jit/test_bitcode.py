"""Bitcode of the package: machine code is generated from it without Numba, or else kernels are compiled."""

from __future__ import annotations

import hashlib
import json
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from onlineauto.jit import bitcode
from onlineauto.jit.levels import compiles_for, levels, runnable_levels
from tests import compile_budget
from tests.jit.scripts import KERNELS, compiled, finish, start

pytestmark = pytest.mark.skipif(
    not runnable_levels() or levels()[0] != runnable_levels()[0],
    reason="kernels cannot be compiled for the best level of such processors here",
)

MAKE = """
from own_kernels import *
from pathlib import Path
from onlineauto.jit import bitcode
from tools.bitcode import collect
bitcode._FOLDER = Path(sys.argv[1])
programs = collect(lambda: (total(np.arange(4.0)), total(np.arange(4.0, dtype=np.float32))))
bitcode.write(bitcode.file_for(sys.argv[2]), programs, 1)
"""
USE = """
from own_kernels import *
from pathlib import Path
from onlineauto.jit import bitcode
bitcode._FOLDER = Path(sys.argv[1])
{before}
print(total(np.arange(4.0)), total(np.arange(4.0, dtype=np.float32)), "numba" in sys.modules)
"""
GENERATED, COMPILED = "50.0 50.0 False\n", "50.0 50.0 True\n"
ANNOUNCED = "compiling kernels, once ({}): usually about"


def use(folder: Path, cache: str = "cache", before: str = "", **environment: str) -> tuple[str, str]:
    """Run two programs in a process of their own, with the bitcode of a folder."""
    script = folder / "use.py"
    script.write_text(USE.format(before=before))
    process = start(
        script, folder / cache, str(folder / "bitcode"), **{"ONLINEAUTO_KERNELS": ""} | environment
    )
    return finish(process)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with kernels and their bitcode."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "own_kernels.py").write_text(KERNELS)
    (folder / "make.py").write_text(MAKE)
    words = str(folder / "bitcode"), levels()[0]
    finish(start(folder / "make.py", folder / "made", *words, **compiles_for(levels()[0])))
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """Return a copy of that folder, without the cache."""
    (tmp_path / "bitcode").mkdir()
    (tmp_path / "own_kernels.py").write_text(KERNELS)
    (path(tmp_path)).write_bytes(path(made).read_bytes())
    return tmp_path


def path(folder: Path) -> Path:
    return folder / "bitcode" / bitcode.file_for(levels()[0]).name


def test_a_first_run_generates_machine_code_without_numba_and_the_next_one_loads_it(folder: Path) -> None:
    assert use(folder) == (GENERATED, "")
    entries = {each: each.read_bytes() for each in compiled(folder)}
    assert len(entries) == 2
    path(folder).unlink()
    assert use(folder, before="sys.modules['llvmlite'] = None") == (GENERATED, "")
    assert {each: each.read_bytes() for each in compiled(folder)} == entries


def test_machine_code_for_a_level_is_that_of_the_compiler(made: Path, folder: Path) -> None:
    chosen = compiles_for(levels()[0])
    assert use(folder, **chosen) == (GENERATED, "")
    assert [each.read_bytes() for each in compiled(folder / "cache")] == [
        each.read_bytes() for each in compiled(made / "made")
    ]


def test_a_listener_hears_of_each_program_that_is_generated(folder: Path) -> None:
    before = "heard = watch_compiling(lambda *told: print(*told))\nheard.__enter__()"
    assert use(folder, before=before) == ("total 3 3\ntotal 3 3\n" + GENERATED, "")


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda file: file[:0],
    "truncated": lambda file: file[: len(file) // 2],
    "without its end": lambda file: file[:-1],
    "a flipped bit": lambda file: file[:-99] + bytes([file[-99] ^ 1]) + file[-98:],
    "another digest": lambda file: b"0" * 64 + file[64:],
    "no digest": lambda file: file.partition(b"\n")[2],
    "other bytes": lambda file: bytes(range(256)) + file[256:],
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_not_read(name: str, folder: Path) -> None:
    path(folder).write_bytes(DAMAGES[name](path(folder).read_bytes()))
    with pytest.raises(ValueError, match="the file is damaged, so install onlineauto again"):
        bitcode.read(path(folder))


def test_a_damaged_file_is_reported_once_and_kernels_are_compiled(folder: Path) -> None:
    path(folder).write_bytes(path(folder).read_bytes()[:-1])
    out, err = use(folder)
    assert out == COMPILED
    first, second = err.splitlines()
    assert first == (
        f"kernels are compiled, since the bitcode in {folder / 'bitcode'} cannot be used: "
        "the file is damaged, so install onlineauto again"
    )
    assert second.startswith(ANNOUNCED.format("the package's bitcode cannot be used"))
    assert use(folder) == (COMPILED.replace("True", "False"), ""), "the cache has them now"


def test_bitcode_that_llvm_cannot_read_is_reported_once_and_kernels_are_compiled(folder: Path) -> None:
    _, programs = bitcode.read(path(folder))
    bitcode.write(path(folder), dict.fromkeys(programs, (b"no bitcode", '"d"')), 1)
    out, err = use(folder)
    assert out == COMPILED
    assert [line.partition(":")[0].partition(" (")[0] for line in err.splitlines()] == [
        f"kernels are compiled, since the bitcode in {folder / 'bitcode'} cannot be used",
        "compiling kernels, once",
    ]


def rewrite(folder: Path, llvm: int) -> None:
    bitcode.write(path(folder), bitcode.read(path(folder))[1], llvm)


def change_source(folder: Path) -> None:
    (folder / "own_kernels.py").write_text(KERNELS.replace("x * squared(x)", "squared(x) * x"))


@pytest.mark.parametrize(
    ("change", "before", "reason"),
    [
        (change_source, "", "their sources are not those of the package's bitcode"),
        (lambda folder: rewrite(folder, 99), "", "which needs LLVM 99"),
        (None, "bitcode.runnable_levels = lambda: ('x86-64-v2',)", "has no bitcode for this processor"),
        (None, "sys.modules['lzma'] = None", "the package's bitcode cannot be used"),
    ],
    ids=["other sources", "newer LLVM", "lower processor", "no lzma"],
)
def test_unusable_bitcode_is_compiled_and_the_reason_is_logged(
    change: Callable[[Path], None] | None, before: str, reason: str, folder: Path
) -> None:
    if change is not None:
        change(folder)
    out, err = use(folder, before=before)
    assert out == COMPILED
    assert f"{reason}): usually about" in err


@pytest.mark.parametrize("switch", ["NUMBA_BOUNDSCHECK", "NUMBA_CPU_FEATURES", "ONLINEAUTO_KERNELS"])
def test_settings_that_change_machine_code_are_obeyed(switch: str, folder: Path) -> None:
    value = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CPU_FEATURES": "", "ONLINEAUTO_KERNELS": "none"}[switch]
    assert use(folder, **{switch: value})[0] == COMPILED


def test_a_cache_that_cannot_be_written_is_reported_and_code_is_generated_without_numba(folder: Path) -> None:
    (folder / "cache").write_text("a file where the directory would be")
    out, err = use(folder)
    assert out == GENERATED
    assert err.startswith("kernels are compiled for this run only: ")
    assert len(err.splitlines()) == 1


def test_bitcode_in_other_folders_is_not_used(made: Path, tmp_path: Path) -> None:
    """Neither the cache nor the current directory is a place for code that somebody else may have written."""
    (tmp_path / "own_kernels.py").write_text(KERNELS)
    for place in ("cache", "_bitcode", "."):
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / path(made).name).write_bytes(path(made).read_bytes())
    assert use(tmp_path)[0] == COMPILED


def test_without_llvm_there_is_no_bitcode(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setattr(bitcode, "_FOLDER", made / "bitcode")
    monkeypatch.delenv("ONLINEAUTO_KERNELS", raising=False)
    bitcode.bitcode.cache_clear()
    assert bitcode.bitcode() == ({}, "llvmlite is not installed")
    bitcode.bitcode.cache_clear()


def test_the_same_programs_are_the_same_file(made: Path, tmp_path: Path) -> None:
    llvm, programs = bitcode.read(path(made))
    bitcode.write(tmp_path / "file", dict(reversed(programs.items())), llvm)
    assert (tmp_path / "file").read_bytes() == path(made).read_bytes()


def test_a_file_names_what_it_contains(made: Path) -> None:
    digest, _, packed = path(made).read_bytes().partition(b"\n")
    assert digest.decode() == hashlib.sha256(packed).hexdigest()
    head = json.loads(lzma.decompress(packed).partition(b"\n")[0])
    assert head["llvm"] == 1
    assert [(name.rpartition("_total_")[0], kind) for name, _, kind in head["programs"]] == [
        ("own_kernels", '"d"')
    ] * 2


def test_the_budget_warns_of_programs_without_bitcode(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    symbols = set(bitcode.read(path(made))[1])
    monkeypatch.setattr(bitcode, "_FOLDER", made / "none")
    assert compile_budget.bitcode_warning(symbols | {"new"}) == ""
    monkeypatch.setattr(bitcode, "_FOLDER", made / "bitcode")
    assert compile_budget.bitcode_warning(symbols) == ""
    assert compile_budget.bitcode_warning(symbols | {"new"}).startswith(
        "warning: a first run compiles 1 of 3 programs, since the package's bitcode is of other sources"
    )


def test_the_files_of_the_package_are_whole_and_for_known_processors() -> None:
    files = sorted(bitcode._FOLDER.glob("*.xz"))
    assert [path.name for path in files] == ["linux-aarch64-generic.xz", "linux-x86_64-x86-64-v3.xz"]
    for path in files:
        _, programs = bitcode.read(path)
        assert any("run_events" in symbol for symbol in programs)
