"""``serve``: the application over a socket, until a signal ends it."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import signal
import sys
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onlineauto.errors import InputError, OnlineautoError, OptionError
from onlineauto.service.http.app import application
from onlineauto.service.http.endpoint import Waiting
from onlineauto.service.http.http_protocol import (
    OWN_HOSTS,
    ConnectionLimits,
    address_of,
    bind_socket,
    is_own,
    most_connections,
    run_until_signal,
)
from onlineauto.service.http.standby import wait_for_lease
from onlineauto.service.http.tokens import Tokens
from onlineauto.service.join.join import BYTES_PER_DECISION
from onlineauto.service.loop.folder import FolderCopy
from onlineauto.service.loop.lease import Standby, check_shared, is_same_folder
from onlineauto.service.loop.loop import Every, Loop, service_configuration
from onlineauto.service.loop.rank_server import HttpUpstream, RankServer, warm_up
from onlineauto.service.loop.telemetry import end_telemetry
from onlineauto.service.options import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.options import Configuration
    from onlineauto.service.learning.rounds import Learners
    from onlineauto.service.log.log_copier import LogCopier
    from onlineauto.service.loop.lease import Lease
    from onlineauto.service.options import ServeOptions

_LOG = logging.getLogger("onlineauto.service")
_SWITCH: Final = 0.0005
"""Seconds after which a Python thread yields to another one, so that a rank does not wait for the learner."""
_FEW: Final = 100_000

_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
_LARGE: Final = 1 << 20
_ARENAS: Final = 2


def return_memory() -> bool:
    """Make the allocator return freed blocks of 1 MB or more to the system; return False if it cannot.

    Otherwise glibc keeps them: once a large block was freed, blocks of up to its size come from a heap, and
    each thread has a separate heap. The memory of a process with a large snapshot every 30 seconds grows for
    an hour, and is never returned.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    wanted = ((_MMAP_THRESHOLD, _LARGE), (_ARENA_MAX, _ARENAS))
    taken = [mallopt(name, value) == 1 for name, value in wanted]
    return all(taken)


def memory_bytes() -> int:
    """Return the memory that the process may use: that of its container, or of the machine.

    >>> memory_bytes() > 1 << 26
    True
    """
    limits = [1 << 33]
    with suppress(OSError, ValueError, AttributeError):
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # the file is missing, or says "max"
            limits.append(int(Path(path).read_text()))
    return min(limits)


def serve(
    folder: str, model: Configuration, options: ServeOptions, *, learners: Learners | None = None
) -> None:
    """Serve until a signal arrives; then learn and save every accepted record.

    `learners` are threads that learn together, if there are several.
    """
    return_memory()  # before the first large block
    path = Path(options.tokens) if options.tokens is not None else Path(folder) / "tokens"
    if options.tokens is not None and not path.exists():
        raise OptionError(f"--tokens {options.tokens}: there is no such file")
    tokens, waiting = Tokens(path), Waiting()
    if not tokens and not is_own(options.host):
        raise OptionError(
            f"{options.host} is reachable from other machines, but there are no tokens: "
            f"onlineauto loop {folder} --new_token rank,reward"
        )
    limits = ConnectionLimits(most=most_connections(options.max_connections))
    with bind_socket(options.host, options.port) as opened, ExitStack() as ending:
        hosts, most = (*OWN_HOSTS, options.host), options.max_requests  # hosts: while there are no tokens
        lease = None
        if options.standby is not None:
            wait = partial(wait_for_lease, opened=opened, tokens=tokens, hosts=hosts)
            lease = _lease_of(Path(folder), model, options, wait)
            if lease is None:  # a signal has ended the standby
                return
            ending.callback(lease.release)
        front: Loop | RankServer
        if options.follow is None:
            front = _loop(folder, model, options, learners, waiting, lease)
        else:
            front = _rank_server(folder, options, waiting)
        app = application(front, waiting, tokens=tokens, most=most, hosts=hosts)
        app.connections.limits = limits
        sys.setswitchinterval(_SWITCH)
        gc.collect()
        gc.freeze()  # later collections skip today's objects, so they pause a rank for less time
        about = {
            "event": "serving",
            "address": address_of(options.host, opened),
            "folder": folder,
            "follows": options.follow,
            "epoch": 0 if lease is None else lease.epoch,
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
                for each in _copies_of(folder, options, front):
                    copying.enter_context(each)
            except OnlineautoError:
                front.close()
                raise
            run_until_signal(app, opened, partial(_LOG.info, "serving", extra=about))
        if lease is not None and lease.lost:
            raise InputError(f"this process no longer serves: {lease.problem}")
    _LOG.info("stopped", extra={"event": "stopped", "ranked": front.join.counts.ranked})
    end_telemetry()
    if app.is_abandoned:
        _LOG.warning(
            "the service ends while kernels are compiled; the next start learns from the log",
            extra={"event": "unsaved"},
        )
        sys.stderr.flush()
        os._exit(0)


def _lease_of(
    folder: Path,
    model: Configuration,
    options: ServeOptions,
    wait: Callable[..., Lease | None],
) -> Lease | None:
    """Return the lease of the shared folder, once no other process has it; None after a signal."""
    assert options.standby is not None
    shared = Path(options.standby)
    standby = Standby(shared, seconds=options.lease_seconds)
    check = partial(check_shared, folder, shared)
    check()
    lease = standby.poll()
    if lease is None:
        _LOG.info("waits as a standby", extra={"event": "standby", "holder": standby.holder})
        warm_up(service_configuration(model))
        lease = wait(standby, check=check)
    if lease is not None:
        _LOG.info("has the lease", extra={"event": "lease", "epoch": lease.epoch, "holder": standby.holder})
        lease.keep(partial(os.kill, os.getpid(), signal.SIGTERM))
    return lease


def _limits(options: ServeOptions) -> Limits:
    return Limits(
        body_bytes=options.max_body,
        actions=options.max_actions,
        namespaces=options.max_namespaces,
        only=None if options.namespaces is None else tuple(options.namespaces.split(",")),
        features=options.max_features,
        pending=_most_pending() if options.max_pending is None else options.max_pending,
    )


def _most_pending() -> int:
    """Return the number of decisions that may wait, so that their two tables use two fifths of the memory."""
    room = int(0.4 * memory_bytes() / (2 * BYTES_PER_DECISION))
    return min(max(room, _FEW), Limits().pending)


def _loop(
    folder: str,
    model: Configuration,
    options: ServeOptions,
    learners: Learners | None,
    waiting: Waiting,
    lease: Lease | None,
) -> Loop:
    """Return a loop that decides and learns."""
    loop = Loop(
        folder,
        model,
        settings=options.settings(),
        limits=_limits(options),
        every=Every(options.publish_every, options.snapshot_every, options.keep_every),
        app=options.app,
        keep=options.keep_models,
        keep_log=None if options.keep_log is None else options.keep_log * 86400.0,
        learners=learners,
        compares=True,
        lease=lease,
        deliver=waiting.deliver,
    )
    warm_up(loop.learner.workspace.configuration)
    return loop


def _rank_server(folder: str, options: ServeOptions, waiting: Waiting) -> RankServer:
    """Return a rank server; its token for the learner is read from the environment."""
    assert options.follow is not None
    return RankServer(
        folder,
        HttpUpstream(options.follow, token=os.environ.get("ONLINEAUTO_TOKEN")),
        limits=_limits(options),
        app=options.app,
        deliver=waiting.deliver,
    )


def _copies_of(folder: str, options: ServeOptions, front: Loop | RankServer) -> list[LogCopier]:
    """Return the copies of the log that are asked for; the loop reports their states."""
    copies: list[LogCopier] = []
    shared = options.standby
    if shared is not None and not is_same_folder(Path(folder), Path(shared)):
        copies.append(FolderCopy(folder, front.log, shared, fence=front.log.fence))
    if options.ship is not None and options.ship != shared:
        copies.append(FolderCopy(folder, front.log, options.ship))
    if options.log_topic is not None:
        from onlineauto.service.topics.log_topic import LogTopic
        from onlineauto.service.topics.partitions import read_client_settings

        settings = None if options.client_settings is None else read_client_settings(options.client_settings)
        copies.append(LogTopic(folder, front.log, options.log_topic, settings))
    if isinstance(front, Loop):
        front.copies = copies
    return copies
