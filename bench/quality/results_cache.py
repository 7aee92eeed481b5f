"""Results that are kept in a file, so that a bench that runs again measures only what has changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import onlineauto


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
        """Return what is known under a key, or measure it and keep it; a result is what JSON can write."""
        joined = " | ".join(key)
        if joined not in self._known:
            self._known[joined] = measure()
            if self._path is not None:
                line = json.dumps({"key": joined, "result": self._known[joined]}) + "\n"
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(line)
        return self._known[joined]
