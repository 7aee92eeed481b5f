"""The verb ``doctor``: print the installed versions, run a self-test, and report problems."""

from __future__ import annotations

import importlib
import io
import os
import platform
import sys
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from onlineauto.cli.terminal import show_compiling
from onlineauto.cli.verb import Verb, VerbOptions
from onlineauto.errors import OnlineautoError, install_hint
from onlineauto.jit.bitcode import bitcode
from onlineauto.jit.cache import cache_directory
from onlineauto.jit.levels import processor_lines, runnable_levels
from onlineauto.jit.library import library_file
from onlineauto.options import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from onlineauto.options import Configuration

_REQUIRED: Final = ("numpy", "msgspec")
_OPTIONAL: Final = (
    ("numba", "kernels that no library has", "compiler"),
    ("matplotlib", "pictures", "plot"),
    ("pyarrow", "data frames, Parquet", "frames"),
    ("xxhash", "files of blocks", "blocks"),
    ("rich", "tables on a terminal: inspect, tune", "inspect"),
)
"""Packages for optional features: the name, the purpose, and the extra that installs the package."""
_EVENTS: Final = "".join(
    f"shared |user u{i % 5}\n0:{-(i % 2)}:0.5 |article a\n|article b{i % 3}\n\n" for i in range(2000)
).encode()


@dataclass(frozen=True, slots=True)
class _Finding:
    """A line of the report."""

    name: str  # The subject of the check, and its result.
    text: str
    problem: str = ""  # The problem and its remedy; "" if there is none.


def run(_: Configuration) -> int:
    """Print the versions and the results of the checks; return 0 if there is no problem, else 1."""
    problems = []
    for look in (_versions, _processor, _kernels, _self_test):
        for finding in look():
            print(f"{finding.name + ':':22}{finding.text}", flush=True)
            if finding.problem:
                problems.append(finding.problem)
    print()
    for problem in problems:
        print(f"problem: {problem}")
    print("onlineauto does not work as it should, see above" if problems else "all is well")
    return int(bool(problems))


def _versions() -> Iterator[_Finding]:
    yield _Finding("onlineauto", _version("onlineauto") or "not installed as a package")
    yield _Finding("Python", f"{platform.python_version()}, {sys.executable}")
    for name in _REQUIRED:
        yield _check_import(name, "")
    for name, use, extra in _OPTIONAL:
        if _version(name) is None:
            yield _Finding(name, f"not installed; {use}: {install_hint(extra)}")
        else:
            yield _check_import(name, f", for {use}" if use else "")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _check_import(name: str, use: str) -> _Finding:
    """Return the version of a package, and whether it can be imported."""
    if name == "numba":  # the self-test imports it if needed; the import alone takes a second
        return _Finding(name, f"{_version(name)}{use}")
    try:
        importlib.import_module(name)
    except Exception as error:
        return _Finding(name, "broken", f"{name} cannot be imported: {error}; install it again")
    return _Finding(name, f"{_version(name)}{use}")


def _processor() -> Iterator[_Finding]:
    lines = dict(line.split(":", 1) for line in processor_lines() if ":" in line)
    named = {name.strip(): value.strip() for name, value in lines.items()}
    name = named.get("model name") or platform.processor() or platform.machine()
    levels = runnable_levels()
    level = f", {levels[0]}" if levels else ""
    yield _Finding("processor", f"{name}{level}, {os.cpu_count()} cores")


def _kernels() -> Iterator[_Finding]:
    library, directory = library_file(), cache_directory()
    if library is not None:
        yield _Finding("kernels", f"ahead of time, in {library}")
    else:
        how = "compiled" if bitcode().reason else "generated from bitcode"
        yield _Finding("kernels", f"{how} at first use; onlineauto warmup prepares all of them now")
        if _version("numba") is None:
            yield _Finding(
                "compiler",
                "none",
                f"there are neither kernels nor a compiler: {install_hint('compiler')}",
            )
    paths = [path for path in directory.glob("*.o") if path.is_file()] if directory.is_dir() else []
    size = sum(path.stat().st_size for path in paths)
    description = f"{len(paths)} kernels, {size / 1e6:.1f} MB"
    nearest = next((ancestor for ancestor in (directory, *directory.parents) if ancestor.exists()), directory)
    if os.access(nearest, os.W_OK | os.X_OK):
        yield _Finding("cache", f"{directory}, {description}")
        return
    problem = ""
    if library is None:
        problem = (
            f"{directory} cannot be written, so each process compiles again; name another folder in "
            "ONLINEAUTO_CACHE_DIR"
        )
    yield _Finding("cache", f"{directory}, not writable, {description}", problem)


def _self_test() -> Iterator[_Finding]:
    """Learn a small log twice, save and load the model, and compare the predictions."""
    try:
        with show_compiling():
            begin = time.perf_counter()
            learnt = _learn()
            first = time.perf_counter() - begin
            begin = time.perf_counter()
            equal = learnt() == _learn()()
            warm_seconds = time.perf_counter() - begin
    except (OnlineautoError, OSError, ImportError) as error:
        yield _Finding("self-test", "failed", f"learning fails: {error}")
        return
    if not equal:
        yield _Finding(
            "self-test", "failed", "the same events have different predictions: please report this"
        )
        return
    speed = 2 * len(_EVENTS.split(b"\n\n")) / warm_seconds
    loading = (
        f", after {first - warm_seconds / 2:.1f} s of loading or compiling" if first > warm_seconds else ""
    )
    yield _Finding("self-test", f"learns and predicts, {speed:,.0f} events a second{loading}")


def _learn() -> Callable[[], bytes]:
    """Learn the events; return a function that saves and loads the model, and predicts with it."""
    from onlineauto.workspace.workspace import Workspace

    workspace = Workspace(cb_explore_adf=True, live_configs=2, hash_bits=12).fit(_EVENTS)

    def predict() -> bytes:
        file = io.BytesIO()
        workspace.save(file)
        loaded = Workspace.load(file.getvalue(), testonly=True)
        return b"".join(outcomes.score.tobytes() for _, outcomes in loaded.stream(_EVENTS))

    return predict


VERB: Final = Verb(
    Registry((VerbOptions,)),
    run,
    "Usage: onlineauto doctor",
    "Check this installation. Exit code 0: all is well; 1: it is not.",
)
