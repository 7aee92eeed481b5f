"""Count the files of the package that a journey passes: ``python -m tests.house.walk [--list]``.

Kernels run as plain Python (``NUMBA_DISABLE_JIT``), so that their files are counted, too. A file is passed if
one of its functions is called, not if it is only imported. ``--list`` prints the files by their first call.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from inspect import CO_OPTIMIZED
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, Final

PACKAGE: Final = f"{Path(__file__).parents[2] / 'onlineauto'}{os.sep}"
EVENTS: Final = "".join(f"shared |user u{i}\n0:{-(i % 2)}:0.5 |article a\n|article b\n\n" for i in range(4))


def walk_command(folder: Path) -> list[str]:
    """Return the files on the way of the default command with ``--automl``, over four events."""
    from onlineauto.cli.main import main

    (folder / "log.txt").write_text(EVENTS)
    paths = record_passed_files()
    main(["-d", f"{folder / 'log.txt'}", "--cb_explore_adf", "--automl", "-p", f"{folder / 'out'}"])
    return paths


def walk_rank(folder: Path) -> list[str]:
    """Return the files on the way of a rank and its reward through a service, until they are learnt."""
    from onlineauto.service.http.app import application
    from onlineauto.service.http.endpoint import Waiting
    from onlineauto.service.loop.loop import Every, Loop
    from onlineauto.workspace.options import REGISTRY
    from tests.service.in_process import InProcessClient
    from tests.waiting import until

    waiting = Waiting()
    model = REGISTRY.parse("--cb_explore_adf --automl 4 --bit_precision 12")
    loop = Loop(
        folder / "loop",
        model,
        settings={"learn_at": "reward"},
        every=Every(publish=0.0),
        deliver=waiting.deliver,
    )
    actions = [{"id": name, "features": [{"b": {name: 1}}]} for name in ("a", "b")]
    request = {"eventId": "e", "contextFeatures": [{"a": {"x": 1}}], "actions": actions}
    paths = record_passed_files()
    with InProcessClient(application(loop, waiting), loop) as client:
        paths.clear()
        assert client.post("/personalizer/v1.0/rank", json=request).is_success
        assert client.post("/personalizer/v1.0/events/e/reward", json={"value": 1}).is_success
        until(lambda: loop.learner.workspace.searching.n_events == 1)
        return [*paths]


def record_passed_files() -> list[str]:
    """Record the files whose functions this thread and new threads call; return the list, which grows."""
    paths: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(PACKAGE):
            path = code.co_filename.removeprefix(PACKAGE)
            if path not in paths:
                paths.append(path)

    sys.setprofile(note)
    threading.setprofile(note)
    return paths


if __name__ == "__main__":
    if "NUMBA_DISABLE_JIT" not in os.environ:
        for name in ("command", "rank"):
            words = [sys.executable, "-m", "tests.house.walk", name, *sys.argv[1:]]
            subprocess.run(words, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, check=True)
    else:
        with TemporaryDirectory() as name:
            walked = {"command": walk_command, "rank": walk_rank}[sys.argv[1]](Path(name))
        if "--list" in sys.argv:
            print(*walked, sep="\n")
        print(f"{sys.argv[1]}: {len(walked)} files")
