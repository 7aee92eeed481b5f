"""``serve``: the application under uvicorn, until a signal ends it."""

from __future__ import annotations

import ipaddress
import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import uvicorn

from onlineauto.errors import OptionError
from onlineauto.service.http.app import application
from onlineauto.service.http.tokens import Tokens
from onlineauto.service.http.waiting import Waiting
from onlineauto.service.loop.loop import Every, Loop
from onlineauto.service.loop.warm import warm_up
from onlineauto.service.ranking.question import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from onlineauto.options import Configuration

__all__ = ["Serving", "serve"]

_LOG = logging.getLogger("onlineauto.service")
_SWITCH: Final = 0.0005
"""Seconds after which a thread of Python lets another one go on: a rank does not wait for the learner."""
_GRACE: Final = 10


class Serving(msgspec.Struct, kw_only=True):
    """Arguments of `serve`; the fields are the flags of the command line."""

    folder: str
    configuration: Configuration
    settings: Mapping[str, Any]
    host: str = "127.0.0.1"
    port: int = 8001
    app: str = "default"
    tokens: str | None = None
    publish_every: float = 0.5
    snapshot_every: float = 30.0
    keep_every: float = 3600.0
    keep_models: int = 10
    keep_log: float | None = None
    max_pending: int = 200_000
    max_actions: int = 256
    max_body: int = 65_536
    max_requests: int = 1000


def serve(serving: Serving) -> None:
    """Serve until a signal ends it; then what was taken is learnt and saved.

    Raises
    ------
    OptionError
        The address is open to others and there are no tokens, or an option is wrong.
    InputError
        The folder cannot be used.
    """
    path = Path(serving.tokens) if serving.tokens is not None else Path(serving.folder) / "tokens"
    if serving.tokens is not None and not path.exists():
        raise OptionError(f"--tokens {serving.tokens}: there is no such file")
    tokens, waiting = Tokens(path), Waiting()
    if not tokens and not _is_own(serving.host):
        raise OptionError(
            f"{serving.host} is open to others, and there are no tokens: "
            f"onlineauto loop {serving.folder} --new_token rank,reward"
        )
    loop = Loop(
        serving.folder,
        serving.configuration,
        settings=serving.settings,
        limits=Limits(body_bytes=serving.max_body, actions=serving.max_actions, pending=serving.max_pending),
        every=Every(serving.publish_every, serving.snapshot_every, serving.keep_every),
        app=serving.app,
        keep=serving.keep_models,
        keep_log=None if serving.keep_log is None else serving.keep_log * 86400.0,
        deliver=waiting.deliver,
    )
    warm_up(loop.learner.workspace.configuration)
    _LOG.info(
        "serving",
        extra={
            "event": "serving",
            "address": f"http://{serving.host}:{serving.port}/",
            "folder": str(serving.folder),
            "options": loop.join.settings.options,
            "tokens": bool(tokens),
            "learnt": loop.learner.learnt,
            "torn_bytes": loop.log.torn,
            "loss_window_seconds": 0.0,
        },
    )
    sys.setswitchinterval(_SWITCH)
    config = uvicorn.Config(
        application(loop, waiting, tokens=tokens, most=serving.max_requests),
        host=serving.host,
        port=serving.port,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    server = uvicorn.Server(config)

    def ended(number: int, frame: FrameType | None) -> None:
        """Leave at once before the server has begun; uvicorn repeats the signal once it has ended."""
        del frame
        if not server.started:
            raise SystemExit(128 + number)

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, ended)
    server.run()
    _LOG.info("stopped", extra={"event": "stopped", "learnt": loop.learner.learnt})


def _is_own(host: str) -> bool:
    """Return whether an address is one of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
