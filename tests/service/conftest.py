from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from onlineauto.service.http.tokens import Tokens
from onlineauto.service.log.segment_log import SegmentLog
from onlineauto.service.loop.loop import Loop
from onlineauto.service.options import Limits
from onlineauto.workspace.options import REGISTRY
from tests.service.in_process import InProcessClient
from tests.service.traffic import records


@pytest.fixture
def log(tmp_path: Path) -> SegmentLog:
    """Return a log of 400 decisions, most of them with rewards, in several segments."""
    made = SegmentLog(tmp_path / "log", segment_bytes=40_000)
    for line in records(400):
        made.append([line])
    made.sync()
    return made


@pytest.fixture
def open_loop(tmp_path: Path) -> Iterator[Callable[..., Loop]]:
    """Return a function that opens the loop of a folder, after closing the last one that it has opened."""
    from onlineauto.service.loop.loop import Loop
    from tests.service.traffic import CONFIGURATION

    class TestedLoop(Loop):
        is_closed = False

        def close(self) -> None:
            if not self.is_closed:
                self.is_closed = True
                super().close()

    loops: list[TestedLoop] = []

    def open_it(options: str = "", **keywords: Any) -> Loop:
        for loop in loops:
            loop.close()
        configuration = REGISTRY.parse(options) if options else CONFIGURATION
        loops.append(TestedLoop(keywords.pop("folder", tmp_path / "loop"), configuration, **keywords))
        return loops[-1]

    yield open_it
    for loop in loops:
        loop.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., InProcessClient]]:
    """Return a function that starts a service in this process, over one folder, and returns its client."""
    from onlineauto.service.http.app import Handlers, application
    from onlineauto.service.http.endpoint import Waiting
    from onlineauto.service.loop.loop import Every, Loop
    from tests.service.in_process import InProcessClient

    configuration = REGISTRY.parse("--cb_explore_adf --automl 4 --bit_precision 12 --epsilon 0.2")
    clients: list[InProcessClient] = []

    def make(
        *,
        tokens: Tokens | None = None,
        limits: Limits | None = None,
        make_handlers: Any = Handlers,
        **settings: Any,
    ) -> InProcessClient:
        waiting = Waiting()
        loop = Loop(
            tmp_path / "loop",
            configuration,
            settings={"learn_at": "reward", **settings},
            limits=limits,
            every=Every(publish=0.0),
            deliver=waiting.deliver,
        )
        client = InProcessClient(application(loop, waiting, tokens=tokens, make_handlers=make_handlers), loop)
        clients.append(client)
        return client.__enter__()

    yield make
    for client in clients:
        client.__exit__()


@pytest.fixture
def client(serve: Callable[..., InProcessClient]) -> InProcessClient:
    """Return a client of a service with the default settings."""
    return serve()
