"""The process that runs CapyMOA: MOA's generators of streams, and its classifiers on ARFF files.

Reads one JSON object from its standard input and answers with one. With ``parts``, which are generators and
their options, it writes a stream of these parts, equally long, to ``file``. With ``learners`` it reads
``file``, and answers with accuracy, Cohen's kappa and seconds of each. With neither, the answer is
``{"versions": {...}}``. Each may be ``{"error": ...}``. It imports CapyMOA alone, which needs Java.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any


def generate(file: str, parts: list[tuple[str, dict[str, Any]]], events: int) -> dict[str, Any]:
    """Write a stream; each part has different events."""
    generators = import_module("capymoa.stream.generator")
    lines: list[str] = []
    for number, (name, options) in enumerate(parts, 1):
        stream = getattr(generators, name)(instance_random_seed=number, **options)
        lines = lines or str(stream.moa_stream.getHeader().toString()).splitlines()
        for _ in range(events // len(parts)):
            lines.append(str(stream.next_instance().java_instance.getData().toString()).rstrip(","))
    Path(file).write_text("\n".join(lines) + "\n", "utf-8")
    return {}


def run(file: str, learners: list[str], seed: int) -> dict[str, Any]:
    """Predict and learn each event in MOA's own loop; times include reading the file."""
    stream = import_module("capymoa.stream").ARFFStream(file)
    evaluate = import_module("capymoa.evaluation").prequential_evaluation
    runs = {}
    for name in learners:
        seeded = {} if name in ("NoChange", "MajorityClass") else {"random_seed": seed}
        model = getattr(import_module("capymoa.classifier"), name)(schema=stream.get_schema(), **seeded)
        found = evaluate(stream, model)
        runs[name] = {
            "right": found.cumulative.accuracy() / 100,
            "kappa": found.cumulative.kappa() / 100,
            "wall": found.wallclock(),
            "cpu": found.cpu_time(),
        }
    return runs


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Handle a request."""
    try:
        if "file" not in request:
            import_module("capymoa.classifier")
            java = import_module("jpype").java.lang.System.getProperty("java.version")
            return {"versions": {"capymoa": importlib.metadata.version("capymoa"), "java": str(java)}}
        return generate(**request) if "parts" in request else run(**request)
    except Exception:  # to be reported by who asked
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    print(json.dumps(answer(json.loads(sys.stdin.readline()))), flush=True)
