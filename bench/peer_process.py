"""Peers in processes of their own, of any interpreter: one request of JSON, one answer."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any


class PeerError(RuntimeError):
    """A peer is not there, or a run of it failed."""


def ask(python: str, worker: Path, **request: Any) -> dict[str, Any]:
    """Run a worker in an interpreter, give it the request and return its answer.

    Without a request, the worker only imports the peer and says its version.
    """
    words = [python, "-P", str(worker)]
    done = subprocess.run(words, input=json.dumps(request), capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout:
        raise PeerError(f"{python} ended with code {done.returncode}: {done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if "error" in answer:
        why = str(answer["error"]).strip()
        raise PeerError(why if request else f"{python} cannot import it ({why.splitlines()[-1]})")
    return answer
