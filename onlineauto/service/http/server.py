"""``serve``: the application over a socket, until a signal ends it."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import signal
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
from onlineauto.service.http.loops import loops_application
from onlineauto.service.http.standby import wait_for_lease
from onlineauto.service.http.tokens import Tokens
from onlineauto.service.join.join import BYTES_PER_DECISION
from onlineauto.service.loop.folder import FolderCopy
from onlineauto.service.loop.lease import Standby, check_shared, is_same_folder
from onlineauto.service.loop.loop import Every, Loop, service_configuration
from onlineauto.service.loop.loops import Loops, loop_names
from onlineauto.service.loop.telemetry import end_telemetry
from onlineauto.service.loop.warm_up import warm_up
from onlineauto.service.options import Limits
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.options import Configuration
    from onlineauto.service.http.app import Application, Handlers
    from onlineauto.service.http.status import ServiceMetrics
    from onlineauto.service.learning.rounds import Learners
    from onlineauto.service.log.log_copier import LogCopier
    from onlineauto.service.loop.lease import Lease
    from onlineauto.service.loop.loops import Deliver
    from onlineauto.service.loop.rank_server import RankServer
    from onlineauto.service.options import ServeOptions

_LOG = logging.getLogger("onlineauto.service")
_SWITCH: Final = 0.0005
"""Seconds after which a Python thread yields to another one, so that a rank does not wait for the learner."""
_FEW: Final = 100_000
_FEWEST: Final = 1000
"""Minimum number of decisions that may wait in one of many loops."""
_NO_LARGE_PAGES: Final = 41
_FILES: Final = 8
"""File descriptors of an open loop."""

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


def trim_memory() -> None:
    """Return freed memory to the system, also in small blocks, if the allocator can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def use_small_pages() -> None:
    """Let the system give this process pages of 4 KB only, because tables of many loops are sparse."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None
    if prctl is not None:
        prctl(_NO_LARGE_PAGES, 1, 0, 0, 0)


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
    folder: str,
    model: Configuration,
    options: ServeOptions,
    *,
    learners: Learners | None = None,
    inherited: str = "",
    make_handlers: Callable[[Loop, ServiceMetrics], Handlers] | None = None,
) -> None:
    """Serve until a signal arrives; then learn and save every accepted record.

    `learners` are threads that learn together, if there are several. `inherited` are the options of a loop
    that is created without options. With `make_handlers`, which returns the handlers of a loop, there are no
    other loops.
    """
    return_memory()  # before the first large block
    path = Path(options.tokens) if options.tokens is not None else Path(folder) / "tokens"
    if options.tokens is not None and not path.exists():
        raise OptionError(f"--tokens {options.tokens}: there is no such file")
    if options.ship is not None and not Path(options.ship).is_dir():
        raise OptionError(f"--ship {options.ship}: there is no such folder; make it on the second disk first")
    tokens, waiting = Tokens(path), Waiting()
    if not tokens and not is_own(options.host):
        raise OptionError(
            f"{options.host} is reachable from other machines, but there are no tokens: "
            f"onlineauto loop {folder} --new_token rank,reward"
        )
    alone = _only_for_default(folder, options)
    reserved = _FILES * (options.max_open_loops + 1)
    limits = ConnectionLimits(most=most_connections(options.max_connections, reserved))
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
        app: Application
        if options.follow is not None:
            front = _rank_server(folder, options, waiting)
            app = application(front, waiting, tokens=tokens, most=most, hosts=hosts)
        elif make_handlers is not None:
            front = _loop(folder, model, options, learners, waiting, lease)
            app = application(
                front, waiting, tokens=tokens, most=most, hosts=hosts, make_handlers=make_handlers
            )
        else:
            loops = Loops(folder, partial(_named_loop, most=options.max_open_loops), inherited=inherited)
            front = _loop(folder, model, options, learners, waiting, lease)
            app = loops_application(
                front,
                waiting,
                loops,
                tokens=tokens,
                most=most,
                hosts=hosts,
                max_open=options.max_open_loops,
                close_idle=options.close_idle,
                trim=trim_memory,
                alone=alone,
            )
        if isinstance(front, Loop):
            front.checks.append(lambda: tokens.problem)
        app.connections.limits = limits
        sys.setswitchinterval(_SWITCH)
        gc.collect()
        trim_memory()  # a warm-up has learnt and ranked with another model
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


def _only_for_default(folder: str, options: ServeOptions) -> str:
    """Return the option with which a service has no other loops than the default, or ""."""
    names = ("follow", "ship", "log_topic", "standby")
    alone = next((f"--{name}" for name in names if getattr(options, name) is not None), "")
    if alone and (loops := loop_names(folder)):
        raise OptionError(
            f"{alone} is for the loop 'default' only, but {folder} has the loops {', '.join(loops[:5])}: "
            f"serve them without {alone}"
        )
    return alone


def _named_loop(
    folder: Path, model: Configuration, options: ServeOptions, *, applies: bool, deliver: Deliver, most: int
) -> Loop:
    """Return a loop of many; `most` of them share the memory that waiting decisions may use."""
    use_small_pages()
    _warm_up_once(service_configuration(model).command())
    if options.max_pending is None:
        options = replace(options, max_pending=max(_most_pending() // most, _FEWEST))
    return open_loop(folder, model, options, settings=options.settings() if applies else {}, deliver=deliver)


@lru_cache(maxsize=1024)
def _warm_up_once(command: str) -> None:
    """Warm up for options of a model, since loops are opened often."""
    warm_up(REGISTRY.parse(command))


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
    while lease is None or lease.problem:  # a lease is lost if this process was suspended
        _LOG.info("waits as a standby", extra={"event": "standby", "holder": standby.holder})
        warm_up(service_configuration(model))
        lease = wait(standby, check=check)
        if lease is None:
            return None
    before = {"holder": standby.holder} if standby.holder else {}
    _LOG.info("has the lease", extra={"event": "lease", "epoch": lease.epoch, **before})
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
    """Return the loop of a service that decides and learns."""
    settings, deliver = options.settings(), waiting.deliver
    loop = open_loop(
        folder, model, options, settings=settings, deliver=deliver, learners=learners, lease=lease
    )
    warm_up(loop.learner.workspace.configuration)
    return loop


def open_loop(
    folder: str | Path,
    model: Configuration,
    options: ServeOptions,
    *,
    settings: Mapping[str, Any],
    deliver: Deliver,
    learners: Learners | None = None,
    lease: Lease | None = None,
) -> Loop:
    """Return a loop with the options of `serve`; `settings` replace those in its log."""
    return Loop(
        folder,
        model,
        settings=settings,
        limits=_limits(options),
        every=Every(options.publish_every, options.snapshot_every, options.keep_every),
        app=options.app,
        keep=options.keep_models,
        keep_log=None if options.keep_log is None else options.keep_log * 86400.0,
        learners=learners,
        compares=True,
        lease=lease,
        deliver=deliver,
    )


def _rank_server(folder: str, options: ServeOptions, waiting: Waiting) -> RankServer:
    """Return a rank server; its token for the learner is read from the environment."""
    from onlineauto.service.loop.rank_server import HttpUpstream, RankServer

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
