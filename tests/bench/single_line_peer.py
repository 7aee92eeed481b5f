"""AutoVW, in processes of its own, as seen by who asks it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

__all__ = ["PEERS", "Peer", "PeerError"]

PEERS = {"AutoVW NI": False, "AutoVW NI+LR": True}
"""What AutoVW searches: interactions, and whether learning rates as well."""

_WORKER = Path(__file__).with_name("single_line_peer_worker.py")


class PeerError(RuntimeError):
    """AutoVW is not there, or a run of it failed."""


class Peer:
    """AutoVW in the environment of an interpreter.

    Parameters
    ----------
    python : str
        The interpreter.

    Attributes
    ----------
    versions : dict
        Of FLAML and of the wheel.

    Raises
    ------
    PeerError
        AutoVW cannot be imported there.
    """

    def __init__(self, python: str) -> None:
        self._python = python
        self.versions: dict[str, str] = self._ask()["versions"]

    def run(self, path: Path, contender: str, *, seed: int) -> tuple[list[float], float]:
        """Predict and learn each line of a file; the predictions, and the seconds of CPU that it took.

        Raises
        ------
        PeerError
            The run failed.
        """
        answer = self._ask(file=str(path), learning_rate=PEERS[contender], seed=seed)
        return answer["predictions"], answer["seconds"]

    def _ask(self, **request: Any) -> dict[str, Any]:
        words = [self._python, "-P", str(_WORKER)]
        done = subprocess.run(words, input=json.dumps(request), capture_output=True, text=True, check=False)
        if done.returncode or not done.stdout:
            raise PeerError(f"{self._python} ended with code {done.returncode}: {done.stderr}")
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        if "error" in answer:
            why = str(answer["error"]).strip()
            raise PeerError(why if request else f"{self._python} cannot import it ({why.splitlines()[-1]})")
        return answer
