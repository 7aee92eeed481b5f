"""Measure predict-only models: bytes of their files, processor time to save, to load and to predict.

    python -m bench.speed.predict_only [cb-surveys-u cb-diamonds-n-u …]

Each log is learnt once with ``--automl 4``; the whole model, all that predicts (``--predict_only_ensemble``)
and the champion alone (``--predict_only_model``) then predict it in turn, in blocks, without a look at its
text. The least of five rounds counts. It is an error if the first two do not predict the same, bit for bit.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from bench import kit
from onlineauto import Workspace
from onlineauto.features.block import Block

_ROUNDS = 5
_KINDS: dict[str, dict[str, Any]] = {
    "whole": {},
    "ensemble": {"predict_only": "ensemble"},
    "champion": {"predict_only": "champion"},
}


def timed(do: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor seconds that a call takes, and what it returns."""
    begin = time.process_time()
    found = do()
    return time.process_time() - begin, found


def saved(workspace: Workspace, how: dict[str, Any]) -> bytes:
    """Return the bytes of a model file."""
    file = io.BytesIO()
    workspace.save(file, **how)
    return file.getvalue()


def predicted(model: Workspace, blocks: Sequence[Block]) -> list[bytes]:
    """Return the scores of the actions of each block."""
    return [model.predict_block(block).score.tobytes() for block in blocks]


def measure(name: str) -> Iterator[dict[str, Any]]:
    """Yield the figures of each kind of model of a log."""
    path = f"datasets/{name}.txt.gz"
    workspace = Workspace(cb_explore_adf=True, automl=4).fit(path)
    blocks = list(workspace.read(path))
    files = {kind: timed(partial(saved, workspace, how)) for kind, how in _KINDS.items()}
    loaded = {kind: timed(partial(Workspace.load, data, testonly=True)) for kind, (_, data) in files.items()}
    runs = kit.samples(_KINDS, _ROUNDS, lambda kind: timed(partial(predicted, loaded[kind][1], blocks)))
    assert runs["whole"][0][1] == runs["ensemble"][0][1]
    for kind, taken in runs.items():
        seconds = min(seconds for seconds, _ in taken)
        size, each = len(files[kind][1]) / 1e6, seconds / sum(map(len, blocks)) * 1e6
        row = {"log": name, "predicts": workspace.searching.predicts[0], "model": kind, "MB": size}
        yield row | {"save ms": files[kind][0] * 1e3, "load ms": loaded[kind][0] * 1e3, "µs an event": each}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the logs that are named."""
    parser = kit.parser(__doc__)
    parser.add_argument("logs", nargs="*", default=["cb-surveys-u", "cb-diamonds-n-u"])
    kit.printed(row for name in parser.parse_args(arguments).logs for row in measure(name))


if __name__ == "__main__":
    main()
