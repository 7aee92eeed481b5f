"""The process that runs FLAML's AutoVW; it imports only FLAML and the `vowpalwabbit` package.

Reads one JSON object, ``{"file": ..., "learning_rate": bool, "seed": int}``, from its standard input and
answers with one: ``{"seconds": ..., "predictions": [...]}``, the seconds of CPU, without imports and reading.
Without ``file`` it only imports AutoVW and answers ``{"versions": {...}}``. Either may be ``{"error": ...}``.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import time
import traceback
import warnings
from importlib import import_module
from typing import Any

warnings.simplefilter("ignore")

LIVE = 5
"""Live models, as in FLAML's documentation."""


def make(*, learning_rate: bool, seed: int) -> Any:
    """Make an AutoVW as FLAML's documentation does: interactions alone, or learning rates as well."""
    auto, loguniform = import_module("flaml").AutoVW, import_module("flaml.tune").loguniform
    space: dict[str, Any] = {"interactions": auto.AUTOMATIC, "quiet": ""}
    if not learning_rate:
        return auto(max_live_model_num=LIVE, search_space=space, random_seed=seed)
    return auto(
        max_live_model_num=LIVE,
        search_space={**space, "learning_rate": loguniform(lower=2e-10, upper=1.0)},
        init_config={"interactions": set(), "learning_rate": 0.5},
        random_seed=seed,
    )


def allow_no_interactions() -> None:
    """Leave ``--interactions`` out where it has no value, which VW 9 refuses (FLAML's issue 893)."""
    pyvw: Any = import_module("vowpalwabbit.pyvw")

    def without_empty(**options: Any) -> Any:
        given = {name: each for name, each in options.items() if not (isinstance(each, list) and not each)}
        return pyvw.Workspace(**given)

    pyvw.vw = without_empty


def run(lines: list[str], *, learning_rate: bool, seed: int) -> dict[str, Any]:
    """Predict and learn each line."""
    allow_no_interactions()
    auto = make(learning_rate=learning_rate, seed=seed)
    predictions = []
    begin = time.process_time()
    for line in lines:
        predictions.append(float(auto.predict(line)))
        auto.learn(line)
    return {"seconds": time.process_time() - begin, "predictions": predictions}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Handle a request."""
    try:
        file = request.pop("file", None)
        if file is None:
            make(learning_rate=True, seed=0)
            names = ("flaml", "vowpalwabbit")
            return {"versions": {name: importlib.metadata.version(name) for name in names}}
        with open(file, encoding="utf-8") as source:  # noqa: PTH123 - as short as it gets
            return run(source.read().splitlines(), **request)
    except Exception:  # to be reported by who asked
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    print(json.dumps(answer(json.loads(sys.stdin.readline()))), flush=True)
