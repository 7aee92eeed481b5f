"""AutoVW, LightGBM and river, in processes of their own, as seen by who asks them."""

from __future__ import annotations

from pathlib import Path

from bench.peer_process import ask

PEERS = {"AutoVW NI": False, "AutoVW NI+LR": True}
"""What AutoVW searches: interactions, and whether learning rates as well."""

TABLE_PEERS = ("LightGBM", "river linear", "river tree", "river forest")
"""Peers that take columns of names and numbers."""

_TABLE_WORKER = Path(__file__).with_name("table_worker.py")
_WORKER = Path(__file__).with_name("peer_worker.py")


class Peer:
    """AutoVW in the environment of an interpreter."""

    def __init__(self, python: str) -> None:
        self._python = python
        self.versions: dict[str, str] = ask(python, _WORKER)["versions"]

    def run(self, path: Path, contender: str, *, seed: int) -> tuple[list[float], float]:
        """Predict and learn each line of a file; the predictions, and the seconds of CPU that it took.

        Raises
        ------
        PeerError
            The run failed.
        """
        options = {"learning_rate": PEERS[contender], "seed": seed}
        answer = ask(self._python, _WORKER, file=str(path), **options)
        return answer["predictions"], answer["seconds"]


class TablePeer:
    """LightGBM and river in the environment of an interpreter."""

    def __init__(self, python: str) -> None:
        self._python = python
        self.versions: dict[str, str] = ask(python, _TABLE_WORKER)["versions"]

    def run(self, path: Path, contender: str) -> tuple[list[float], float]:
        """Predict and learn each line of a file; the predictions, and the seconds of CPU that it took.

        Raises
        ------
        PeerError
            The run failed.
        """
        answer = ask(self._python, _TABLE_WORKER, file=str(path), who=contender)
        return answer["predictions"], answer["seconds"]
