"""Write model files and a service folder of release 0.1, and the predictions that later releases repeat.

Run with the code of the release whose files are wanted: ``python -m tests.data.make_v0_1_files FOLDER``.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onlineauto import Workspace
from onlineauto.service.learning import learner as learning
from onlineauto.service.log.segment_log import SegmentLog
from onlineauto.workspace.inspection.inspection import inspection
from tests.engine.ensemble_streams import bent, odd
from tests.naive.native_search.streams import slots
from tests.service.traffic import CONFIGURATION, decision, records

if TYPE_CHECKING:
    from collections.abc import Callable

CONTINUED = 40
"""Events that a loaded model predicts, and then learns."""

SEARCH: dict[str, Any] = {"automl": 3, "default_lease": 60, "bit_precision": 10}
BANDIT: dict[str, Any] = SEARCH | {"cb_explore_adf": True, "squarecb": True}
MODELS: dict[str, tuple[dict[str, Any], Callable[[], bytes]]] = {
    "bandit": (BANDIT, lambda: odd(1400, actions=2, numbers=1)),
    "many_actions": (BANDIT, lambda: odd(300, actions=34, numbers=1)),
    "lines": (SEARCH, lambda: bent(700)),
    "slots": (SEARCH | {"ccb_explore_adf": True, "softmax": True}, lambda: slots(400)),
}
"""Options and stream of each model; their probabilities change with every small difference of scores."""


def events_of(text: bytes, *, lines: bool) -> list[str]:
    """Return the events of a stream: its lines, or what empty lines separate."""
    if lines:
        return text.decode().splitlines(keepends=True)
    return [f"{event}\n\n" for event in text.decode().strip().split("\n\n")]


def write(file: Path, content: bytes) -> None:
    """Write a compressed file; the same content makes the same bytes."""
    file.write_bytes(gzip.compress(content, mtime=0))


def saved(workspace: Workspace, **options: Any) -> bytes:
    """Return the bytes of the model file of a workspace."""
    file = io.BytesIO()
    workspace.save(file, **options)
    return file.getvalue()


def make_models(folder: Path) -> dict[str, dict[str, Any]]:
    """Write the models; return the next events, and what each model predicts before and while it learns."""
    figures: dict[str, dict[str, Any]] = {}
    of_champion: list[list[float]] = []
    for name, (options, stream) in MODELS.items():
        events = events_of(stream(), lines=name == "lines")
        workspace = Workspace(**options)
        for event in events[:-CONTINUED]:
            workspace.learn(event)
        write(folder / f"v0_1_{name}.model.gz", saved(workspace))
        if name == "bandit":
            write(folder / "v0_1_bandit_stack.model.gz", saved(workspace, predict_only="stack"))
            write(folder / "v0_1_bandit_champion.model.gz", saved(workspace, predict_only="champion"))
            champion = workspace.fork(predict_with="champion")
            of_champion = [champion.predict(event).tolist() for event in events[-CONTINUED:]]
        figures[name] = {
            "events": events[-CONTINUED:],
            "who": workspace.searching.predicts[0],
            "predicted": [workspace.predict(event).tolist() for event in events[-CONTINUED:]],
            "learnt": [workspace.learn(event).tolist() for event in events[-CONTINUED:]],
            "weights": {each["who"]: each["weight"] for each in inspection(workspace, names={})["stack"]},
        }
    figures["bandit"]["champion"] = of_champion
    return figures


def make_service(folder: Path) -> dict[str, Any]:
    """Write the folder of a service that has learnt half of its log; return what it predicts at the end."""
    learning.MOST_RECORDS = 350  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as place:
        log = SegmentLog(Path(place, "log"), segment_bytes=40_000)
        for line in records(300):
            log.append([line])
        log.sync()
        state = Path(place, "state")
        state.mkdir()
        learner = learning.LogLearner(state, log, CONFIGURATION)
        learner.step()
        learner.snapshot()
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path in sorted(Path(place).rglob("*")):
                if path.is_file():
                    entry = archive.gettarinfo(path, str(path.relative_to(place)))
                    entry.mtime = entry.uid = entry.gid = 0
                    entry.uname = entry.gname = ""
                    archive.addfile(entry, io.BytesIO(path.read_bytes()))
        write(folder / "v0_1_service.tar.gz", packed.getvalue())
        before = learner.learnt
        while learner.step():
            pass
        event = decision("asked", 0.0).decode()
        found = {
            "learnt_at_snapshot": before,
            "learnt": learner.learnt,
            "event": event,
            "predicted": learner.workspace.predict(event).tolist(),
            "weights": float(abs(learner.workspace.weights).sum()),
        }
        learner.close(snapshot=False)
        return found


def main(folder: Path) -> None:
    """Write all files."""
    figures = make_models(folder) | {"service": make_service(folder)}
    write(folder / "v0_1_figures.json.gz", json.dumps(figures).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
