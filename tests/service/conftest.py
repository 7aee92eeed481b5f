from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from onlineauto.service.log.segment_log import SegmentLog
from tests.service.traffic import records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from onlineauto.service.http.tokens import Tokens
    from onlineauto.service.options import Limits
    from tests.service.in_process import InProcessClient


@pytest.fixture
def log(tmp_path: Path) -> SegmentLog:
    """A log of 400 decisions, most of them with rewards, in several segments."""
    made = SegmentLog(tmp_path / "log", segment_bytes=40_000)
    for line in records(400):
        made.append([line])
    made.sync()
    return made


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., InProcessClient]]:
    """Return a function that starts a service in this process, over one folder, and returns its client."""
    from onlineauto.service.http.app import application
    from onlineauto.service.http.endpoint import Waiting
    from onlineauto.service.loop.loop import Every, Loop
    from onlineauto.workspace.options import REGISTRY
    from tests.service.in_process import InProcessClient

    configuration = REGISTRY.parse("--cb_explore_adf --automl 4 --bit_precision 12 --epsilon 0.2")
    clients: list[InProcessClient] = []

    def make(
        *, tokens: Tokens | None = None, limits: Limits | None = None, **settings: Any
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
        client = InProcessClient(application(loop, waiting, tokens=tokens), loop)
        clients.append(client)
        return client.__enter__()

    yield make
    for client in clients:
        client.__exit__(None, None, None)
