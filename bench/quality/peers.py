"""Peers on bandit logs: Vowpal Wabbit's search, LightGBM refitted now and then, river's random forest."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import onlineauto
from bench.peer_process import PeerError, ask
from bench.quality import columns
from bench.quality.logs import unlabelled, write
from bench.quality.runs import VW_FLAGS, Run

if TYPE_CHECKING:
    from bench.quality.logs import BanditLog

LIGHTGBM = ("LightGBM", "LightGBM each")
"""One model of contexts and actions, and one model for each action."""

_WORKER = Path(__file__).with_name("peer_worker.py")
_LOOKED_AT = 200
_PACKAGES = {"LightGBM": "lightgbm", "LightGBM each": "lightgbm", "ARF": "river"}


def digest_of(paths: Iterable[Path]) -> str:
    """Return a short digest of the contents of files."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def code_version() -> str:
    """Return a digest of the source of onlineauto."""
    return digest_of(sorted(Path(onlineauto.__file__).parent.rglob("*.py")))


class Results:
    """Results by key, in a file with one line of JSON for each; several processes may add to it."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, Any] = {}
        if path is not None and path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            self._known = {each["key"]: each["result"] for each in map(json.loads, lines)}

    def of(self, *key: str, measure: Callable[[], Any]) -> Any:
        """Return the cached result of a key, or measure and cache it; results are values of JSON."""
        joined = " | ".join(key)
        if joined not in self._known:
            self._known[joined] = measure()
            if self._path is not None:
                line = json.dumps({"key": joined, "result": self._known[joined]}) + "\n"
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(line)
        return self._known[joined]


class Peers:
    """The peers that there are."""

    def __init__(self, python: str, directory: Path, vw: str = "--automl 4") -> None:
        self._python, self._directory = python, directory
        self._vw = vw.split()
        self.versions: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        settings = digest_of([_WORKER, Path(columns.__file__)])
        for who, package in {f"VW {vw}": "vowpalwabbit", **_PACKAGES}.items():
            try:
                version = ask(self._interpreter(who), _WORKER, **{"import": package})["version"]
            except PeerError as error:
                self.missing[who] = str(error).strip().splitlines()[-1]
            else:
                self.versions[who] = f"{package} {version}, {settings}"

    def _interpreter(self, who: str) -> str:
        return self._python if who in _PACKAGES else sys.executable

    def suit(self, who: str, log: BanditLog) -> bool:
        """Return whether a peer can learn a log: a model for each action wants the same actions always."""
        if who != "LightGBM each":
            return True
        return len({unlabelled(event).partition(b"\n")[2] for event in log.events[:_LOOKED_AT]}) == 1

    def run(self, log: BanditLog, who: str) -> Run:
        """Run a peer on a log."""
        if who in _PACKAGES:
            path = self._directory / "columns.npz"
            columns.save_columns(log, path)
            answer = ask(self._python, _WORKER, peer=who, file=str(path), seed=0)
        else:
            text, printed = (self._directory / f"peer.{kind}" for kind in ("txt", "predictions"))
            write(log, text)
            argv = [*VW_FLAGS, *self._vw, "-d", str(text), "-p", str(printed)]
            answer = ask(sys.executable, _WORKER, peer="VW", argv=argv)
        return Run(np.array(answer["greedy"], np.int64), answer["seconds"])
