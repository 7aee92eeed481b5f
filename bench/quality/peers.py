"""Peers on bandit logs: Vowpal Wabbit's search, LightGBM refitted now and then, river's random forest."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.peer_process import PeerError, ask
from bench.quality import columns
from bench.quality.logs import unlabelled, write
from bench.quality.results_cache import digest_of
from bench.quality.runs import WHEEL_FLAGS, Run

if TYPE_CHECKING:
    from bench.quality.logs import BanditLog

LIGHTGBM = ("LightGBM", "LightGBM each")
"""One model of contexts and actions, and one model for each action."""

_WORKER = Path(__file__).with_name("peer_worker.py")
_LOOKED_AT = 200
_PACKAGES = {"LightGBM": "lightgbm", "LightGBM each": "lightgbm", "ARF": "river"}


class Peers:
    """The peers that there are."""

    def __init__(self, python: str, directory: Path, wheel: str = "--automl 4") -> None:
        self._python, self._directory = python, directory
        self._wheel = wheel.split()
        self.versions: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        settings = digest_of([_WORKER, Path(columns.__file__)])
        for who, package in {f"VW {wheel}": "vowpalwabbit", **_PACKAGES}.items():
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
        """Let a peer learn a log.

        Raises
        ------
        PeerError
            The run failed.
        """
        if who in _PACKAGES:
            path = self._directory / "columns.npz"
            columns.save_columns(log, path)
            answer = ask(self._python, _WORKER, peer=who, file=str(path), seed=0)
        else:
            text, printed = (self._directory / f"peer.{kind}" for kind in ("txt", "predictions"))
            write(log, text)
            argv = [*WHEEL_FLAGS, *self._wheel, "-d", str(text), "-p", str(printed)]
            answer = ask(sys.executable, _WORKER, peer="VW", argv=argv)
        return Run(np.array(answer["greedy"], np.int64), answer["seconds"])
