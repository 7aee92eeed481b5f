"""``serve``: the application over a socket, until a signal ends it."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onlineauto.errors import OnlineautoError, OptionError
from onlineauto.options import Configuration
from onlineauto.service.http.app import application, rank_server_application
from onlineauto.service.http.memory import memory_bytes, return_memory
from onlineauto.service.http.protocol.connections import ConnectionLimits, most_connections
from onlineauto.service.http.protocol.serving import (
    OWN_HOSTS,
    address_of,
    bind_socket,
    is_own,
    run_until_signal,
)
from onlineauto.service.http.tokens import Tokens
from onlineauto.service.http.waiting import Waiting
from onlineauto.service.join.decision import BYTES_PER_DECISION
from onlineauto.service.learning.rounds import Learners
from onlineauto.service.loop.folder_copy import FolderCopy
from onlineauto.service.loop.loop import Every, Loop
from onlineauto.service.loop.rank_server import RankServer
from onlineauto.service.loop.telemetry import end_telemetry
from onlineauto.service.loop.upstream import HttpUpstream
from onlineauto.service.loop.warm import warm_up
from onlineauto.service.ranking.rank_request import Limits

if TYPE_CHECKING:
    from onlineauto.service.http.app import Application
    from onlineauto.service.log.log_copier import LogCopier

_LOG = logging.getLogger("onlineauto.service")
_SWITCH: Final = 0.0005
"""Seconds after which a Python thread yields to another one, so that a rank does not wait for the learner."""
_FEW: Final = 100_000


class Serving(msgspec.Struct, kw_only=True):
    """Arguments of `serve`; the fields are the flags of the command line."""

    folder: str
    configuration: Configuration
    settings: Mapping[str, Any]
    host: str = "127.0.0.1"
    port: int = 8001
    follow: str | None = None
    app: str = "default"
    tokens: str | None = None
    publish_every: float = 0.5
    snapshot_every: float = 30.0
    keep_every: float = 3600.0
    keep_models: int = 10
    keep_log: float | None = None
    learners: Learners | None = None
    max_pending: int | None = None
    max_actions: int = 256
    max_features: int = 1024
    max_namespaces: int = 128
    namespaces: tuple[str, ...] | None = None
    max_body: int = 65_536
    max_requests: int = 1000
    max_connections: int | None = None
    ship: str | None = None
    log_topic: str | None = None
    client_settings: str | None = None


def serve(serving: Serving) -> None:
    """Serve until a signal arrives; then learn and save every accepted record."""
    path = Path(serving.tokens) if serving.tokens is not None else Path(serving.folder) / "tokens"
    if serving.tokens is not None and not path.exists():
        raise OptionError(f"--tokens {serving.tokens}: there is no such file")
    tokens, waiting = Tokens(path), Waiting()
    if not tokens and not is_own(serving.host):
        raise OptionError(
            f"{serving.host} is reachable from other machines, but there are no tokens: "
            f"onlineauto loop {serving.folder} --new_token rank,reward"
        )
    limits = ConnectionLimits(most=most_connections(serving.max_connections))
    with bind_socket(serving.host, serving.port) as opened:
        make = _learner if serving.follow is None else _rank_server
        front, app = make(serving, waiting, tokens)
        app.connections.limits = limits
        return_memory()
        sys.setswitchinterval(_SWITCH)
        gc.collect()
        gc.freeze()  # later collections skip today's objects, so they pause a rank for less time
        about = {
            "event": "serving",
            "address": address_of(serving.host, opened),
            "folder": serving.folder,
            "follows": serving.follow,
            "options": front.join.settings.options,
            "tokens": bool(tokens),
            "model": front.published.name,
            "torn_bytes": front.log.torn,
            "loss_window_seconds": 0.0,
            "max_pending": front.limits.pending,
            "max_connections": limits.most,
        }
        with ExitStack() as copying:
            try:
                for each in _copies_of(serving, front):
                    copying.enter_context(each)
            except OnlineautoError:
                front.close()
                raise
            run_until_signal(app, opened, partial(_LOG.info, "serving", extra=about))
    _LOG.info("stopped", extra={"event": "stopped", "ranked": front.join.counts.ranked})
    end_telemetry()
    if app.is_abandoned:
        _LOG.warning(
            "the service ends while kernels are compiled; the next start learns from the log",
            extra={"event": "unsaved"},
        )
        sys.stderr.flush()
        os._exit(0)


def _limits(serving: Serving) -> Limits:
    return Limits(
        body_bytes=serving.max_body,
        actions=serving.max_actions,
        namespaces=serving.max_namespaces,
        only=serving.namespaces,
        features=serving.max_features,
        pending=_most_pending() if serving.max_pending is None else serving.max_pending,
    )


def _most_pending() -> int:
    """Return the number of decisions that may wait, so that their two tables use two fifths of the memory."""
    room = int(0.4 * memory_bytes() / (2 * BYTES_PER_DECISION))
    return min(max(room, _FEW), Limits().pending)


def _learner(serving: Serving, waiting: Waiting, tokens: Tokens) -> tuple[Loop, Application]:
    """Return a loop that decides and learns, and its application."""
    loop = Loop(
        serving.folder,
        serving.configuration,
        settings=serving.settings,
        limits=_limits(serving),
        every=Every(serving.publish_every, serving.snapshot_every, serving.keep_every),
        app=serving.app,
        keep=serving.keep_models,
        keep_log=None if serving.keep_log is None else serving.keep_log * 86400.0,
        learners=serving.learners,
        compares=True,
        deliver=waiting.deliver,
    )
    warm_up(loop.learner.workspace.configuration)
    hosts = (*OWN_HOSTS, serving.host)  # in force while there are no tokens
    return loop, application(loop, waiting, tokens=tokens, most=serving.max_requests, hosts=hosts)


def _rank_server(serving: Serving, waiting: Waiting, tokens: Tokens) -> tuple[RankServer, Application]:
    """Return a rank server and its application; its token for the learner is read from the environment."""
    assert serving.follow is not None
    rank_server = RankServer(
        serving.folder,
        HttpUpstream(serving.follow, token=os.environ.get("ONLINEAUTO_TOKEN")),
        limits=_limits(serving),
        app=serving.app,
        deliver=waiting.deliver,
    )
    hosts, most = (*OWN_HOSTS, serving.host), serving.max_requests
    return rank_server, rank_server_application(rank_server, waiting, tokens=tokens, most=most, hosts=hosts)


def _copies_of(serving: Serving, front: Loop | RankServer) -> list[LogCopier]:
    """Return the copies of the log that are asked for; the loop reports their states."""
    copies: list[LogCopier] = []
    if serving.ship is not None:
        copies.append(FolderCopy(serving.folder, front.log, serving.ship))
    if serving.log_topic is not None:
        from onlineauto.service.topics.brokers import read_client_settings
        from onlineauto.service.topics.log_topic import LogTopic

        settings = None if serving.client_settings is None else read_client_settings(serving.client_settings)
        copies.append(LogTopic(serving.folder, front.log, serving.log_topic, settings))
    if isinstance(front, Loop):
        front.copies = copies
    return copies
