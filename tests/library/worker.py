"""Run cases in this process and print the digests of their outputs.

Run as ``python -m tests.library.worker [--no-compiler]``. A line has a case and the digests of all that the
run printed and wrote. With ``--no-compiler`` Numba and LLVM cannot be imported.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

from bench import native_digests
from onlineauto import AutoML, AutoMLClassifier, AutoMLRegressor
from tests.conftest import is_smoke
from tests.parity import automl_cases, automl_streams, case, flag_sets
from tests.parity.exact import command_line

EVENTS = 200
"""Events of a stream of native mode."""
SINGLE_EVENTS = 1000
"""Events that are learnt one at a time, in which each search stops for decisions."""
_OUTPUTS = ("predictions", "model", "journal")


def runs() -> Iterator[tuple[str, bytes, str]]:
    """Yield the name of each case, the stream and the flags: the smoke of the catalogue, and native mode."""
    for each in flag_sets.CASES:
        if is_smoke(f"test_results_equal_those_of_vw[{each.id}]"):
            for mode in ("", " --vw_exact"):
                yield each.id + mode, case.content(each.stream), each.flags + mode
    for search in automl_cases.CASES:
        if is_smoke(f"test_search_equals_that_of_vw[{search.id}]"):
            for mode in ("", " --vw_exact"):
                stream = automl_streams.content(search.stream, events=search.events)
                yield search.id + mode, stream, search.flags + mode
    for path, flags in native_digests.runs():
        if "-e." in path.name or is_smoke(path.name):
            stream = case.content(f"dataset/{path.name}", events=EVENTS)
            yield f"{path.name} {flags}", stream, flags + " --lease 20" * ("--automl" in flags)


def digests(stream: bytes, flags: str) -> dict[str, str]:
    """Return the digests of all that one run of the command line leaves."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "stream").write_bytes(stream)
        argv = [*flags.split(), "-d", "stream", "-p", "predictions", "-f", "model"]
        if "--automl" in argv:
            argv += ["--journal", "journal"]
        code, out, err = command_line(argv, directory=folder)
        err = "".join(line for line in err.splitlines(True) if not line.startswith("compiling kernels"))
        found = {
            "code": str(code),
            "out": _digest(out.encode()),
            "err": err if code else _digest(err.encode()),
        }
        written = [path for path in map(folder.joinpath, _OUTPUTS) if path.exists()]
        return found | {path.name: _digest(path.read_bytes()) for path in written}


def one_at_a_time() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the name of each class of Python, and the digest of a model that has learnt single events."""
    draw = Random(1)
    names = [draw.choice("abc") for _ in range(SINGLE_EVENTS)]
    bandit, regressor, classifier = AutoML(seed=1), AutoMLRegressor(), AutoMLClassifier()
    for name in names:
        choice = bandit.rank({"user": name}, [{"item": item} for item in "abcd"])
        bandit.learn(choice, reward=float(choice.action == ord(name) - ord("a")))
        regressor.learn({"user": name}, float(ord(name)))
        classifier.learn({"user": name}, name)
    for model in (bandit, regressor, classifier):
        target = io.BytesIO()
        model.save(target)
        yield type(model).__name__, {"code": "0", "model": _digest(target.getvalue())}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


if __name__ == "__main__":
    if sys.argv[1:] == ["--no-compiler"]:
        sys.modules.update(dict.fromkeys(("numba", "llvmlite")))  # type: ignore[arg-type]
    for name, stream, flags in runs():
        print(json.dumps([name, digests(stream, flags)]), flush=True)
    for case_ in one_at_a_time():
        print(json.dumps(case_), flush=True)
