"""``Loops``: the named loops of a service, each in a folder ``FOLDER/NAME``, and what their files say.

``loop.json`` has the options and the state of a loop; a folder with this file is a loop. ``closed.json`` is
written when a loop is closed: until when its decisions wait, and how many there were. So a service knows its
loops without opening them. The loop ``default`` has the folder of the service itself, and is not in `Loops`.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, Protocol

import msgspec

from onlineauto.engine.options.registry import ModelOptions, OutputOptions
from onlineauto.errors import InputError, OptionError
from onlineauto.formats.options import InputOptions
from onlineauto.options import Registry, options_of
from onlineauto.service.log.segment_log import SEGMENTS, call_all, sync_path
from onlineauto.service.loop.folder import SERVICE_FILES
from onlineauto.service.loop.telemetry import LOOP
from onlineauto.service.options import DEFAULT_LOOP, LOOP_NAME, ServeOptions
from onlineauto.service.refused import RefusedError
from onlineauto.workspace.model_file import replace_file
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    import os

    from onlineauto.options import Configuration, Group
    from onlineauto.service.log.segment_log import Done
    from onlineauto.service.loop.loop import Loop

_LOG = logging.getLogger("onlineauto.service")
_FILE: Final = "loop.json"
_CLOSED: Final = "closed.json"
_REMOVED: Final = "removed"
_TAKEN: Final = frozenset(
    {DEFAULT_LOOP, _REMOVED, "lock", "leases", *(pattern.partition("/")[0] for pattern in SERVICE_FILES)}
)
"""Names of files and folders that a service has in its folder."""
_OF_PROCESS: Final = ("host", "port", "tokens", "max_connections", "max_open_loops", "close_idle")
_OF_DEFAULT: Final = (
    "follow",
    "ship",
    "standby",
    "lease_seconds",
    "log_topic",
    "client_settings",
    "learners",
)
_OF_SERVICE: Final = frozenset({*_OF_PROCESS, *_OF_DEFAULT})
_SERVE: Final = Registry((ServeOptions, *REGISTRY.groups))
AGAIN: Final = 60.0
"""Seconds after which a closed loop is tried again that has records to learn."""
RETRY: Final = 5.0
"""Seconds after which a loop that cannot be opened is tried again."""
State = Literal["active", "paused", "archived"]


class LoopFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of a loop, as on the command line of `serve`, and its state."""

    options: Annotated[str, msgspec.Meta(min_length=1)]
    state: State = "active"


class ClosedLoop(msgspec.Struct, frozen=True):
    """A closed loop: the end of its log, when the last wait of a decision is over, and its counts."""

    end: int = 0
    due: float | None = None
    ranked: int = 0
    rewarded: int = 0
    learnt: int = 0
    pending: int = 0


Deliver = Callable[[Sequence["Done"], Exception | None], object]


class OpenLoop(Protocol):
    """Opens the loop in a folder."""

    def __call__(
        self, folder: Path, model: Configuration, options: ServeOptions, *, applies: bool, deliver: Deliver
    ) -> Loop:
        """Return the loop; the settings in its options replace those in its log if `applies`."""
        ...


def check_name(name: str) -> None:
    """Reject a name that a loop cannot have."""
    if not LOOP_NAME.fullmatch(name):
        raise RefusedError(
            f"a loop cannot be called {name[:80]!r}: use at most 64 characters of a to z, 0 to 9, '_' and "
            "'-', beginning with a letter or digit"
        )
    if name in _TAKEN:
        raise RefusedError(f"a loop cannot be called {name!r}: the service has a file or a loop of this name")


@lru_cache(maxsize=256)
def loop_options(text: str) -> tuple[Configuration, ServeOptions, bool]:
    """Return the model's options and the loop's in a command line, and whether it names the app."""
    configuration = _SERVE.parse(text)
    model = split_options(configuration)
    if given := sorted(_OF_SERVICE & configuration.supplied):
        raise OptionError(f"--{given[0]} is an option of the service, not of a loop")
    if configuration[InputOptions].data:
        raise OptionError(f"a loop has no folder in its options: {configuration[InputOptions].data[0]!r}")
    for declared in REGISTRY.options:  # some of the others name files, which a client must not read or write
        if declared.name in configuration.supplied and not declared.keep:
            raise OptionError(f"{declared.flag} is for the command line only, and not for a loop")
    return model, configuration[ServeOptions], "app" in configuration.supplied


def split_options(configuration: Configuration, *groups: Group) -> Configuration:
    """Return the options of the model in the options of `serve`; reject those that a service cannot use.

    `groups` are further options of the service.
    """
    served: tuple[Group, ...] = (ServeOptions, *groups)
    own = {declared.name for group in served for declared in options_of(group)}
    own |= {"data", "quiet"}
    beside = {declared.name for group in (OutputOptions, ModelOptions) for declared in options_of(group)}
    for name in sorted((beside - {"quiet"}) & configuration.supplied):
        raise OptionError(f"--{name} has no effect on a service, whose model and journal are in its folder")
    if "cost_range" in configuration.supplied:
        raise OptionError("a service takes rewards, not costs: give their range as --reward_range LOW,HIGH")
    supplied = {name: configuration.get(name) for name in configuration.supplied - own}
    return REGISTRY.from_keywords(**supplied)


def inherited_options(configuration: Configuration) -> str:
    """Return the options of a service that a new loop has, too, unless it is created with others."""
    own = _OF_SERVICE | {"app", *(declared.name for declared in REGISTRY.options if not declared.keep)}
    supplied = {name: configuration.get(name) for name in configuration.supplied - own}
    return _SERVE.from_keywords(**supplied).command()


def loop_names(folder: str | os.PathLike[str]) -> list[str]:
    """Return the names of the loops in the folder of a service."""
    return sorted(path.parent.name for path in Path(folder).glob(f"*/{_FILE}"))


class NamedLoop:
    """A loop by its name; its file is read, and it may be closed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name
        self.file, self.closed, self.error = LoopFile(""), ClosedLoop(), ""

    def read(self) -> None:
        """Read the files; an error is remembered, and rejects requests."""
        self.error = ""
        try:
            check_name(self.name)
            self.file = msgspec.json.decode((self.folder / _FILE).read_bytes(), type=LoopFile)
            loop_options(self.file.options)
        except (OSError, msgspec.MsgspecError, RefusedError, OptionError) as error:
            self.error = f"{self.folder / _FILE} cannot be read: {error}"
            _LOG.error("loop %s: %s", self.name, self.error, extra={"event": "loop", "loop": self.name})
            if not self.file.options:
                return
        try:
            self.closed = msgspec.json.decode((self.folder / _CLOSED).read_bytes(), type=ClosedLoop)
        except (OSError, msgspec.MsgspecError):  # it was never closed, or killed
            self.closed = ClosedLoop()
        if self.closed.end != _log_end(self.folder):
            self.closed = msgspec.structs.replace(self.closed, due=0.0)

    def put_off(self, time: float) -> None:
        """End the waits of decisions at a later time."""
        self.closed = msgspec.structs.replace(self.closed, due=time)

    @property
    def serve_options(self) -> ServeOptions:
        """The options of the loop; the defaults if they cannot be read, since it is not opened then."""
        try:
            return self.options[1]
        except OptionError:
            return ServeOptions()

    @property
    def options(self) -> tuple[Configuration, ServeOptions]:
        """The options of the model, and those of the loop."""
        model, options, has_app = loop_options(self.file.options)
        return model, options if has_app else replace(options, app=self.name)


class Loops:
    """The named loops in the folder of a service.

    The methods read and write files. One thread at a time calls them for a loop.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        open_loop: OpenLoop,
        *,
        inherited: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder, self._open_loop, self.inherited = Path(folder), open_loop, inherited
        self.clock = clock
        self.by_name: dict[str, NamedLoop] = {}
        for name in loop_names(folder):
            named = self.by_name[name] = NamedLoop(self.folder / name)
            named.read()

    def create(self, named: NamedLoop, options: str, deliver: Deliver) -> Loop:
        """Create a loop, whose folder may have the log of a service, and return it open."""
        named.file = LoopFile(options or self.inherited)
        is_new = not named.folder.exists()
        try:
            loop = self._open(named, applies=True, deliver=deliver)
            try:
                self._write(named)
                sync_path(self.folder)
            except BaseException:
                loop.close()
                raise
        except BaseException:
            if is_new:
                shutil.rmtree(named.folder, ignore_errors=True)
            raise
        return loop

    def open(self, named: NamedLoop, deliver: Deliver = call_all) -> Loop:
        """Open a loop; raise a `RefusedError` that names it if this is impossible."""
        LOOP.set(named.name)
        try:
            if not named.file.options:
                named.read()
                if named.error:
                    raise InputError(named.error)
            named.error = ""
            return self._open(named, applies=not (named.folder / "log").exists(), deliver=deliver)
        except Exception as error:
            named.error = str(error)
            _LOG.exception("a loop cannot be opened", extra={"event": "loop", "loop": named.name})
            message = f"the loop {named.name!r} cannot be opened: {error}"
            raise RefusedError(message, status=503, retry_after=RETRY) from None

    def settle(self, named: NamedLoop, loop: Loop) -> None:
        """Write what is to be known of a loop that is closed now."""
        join, counts = loop.join, loop.join.counts
        end, learnt = loop.log.end, loop.learner.learnt
        due = self.clock() + join.settings.reward_wait if join.waiting or join.early else None
        if loop.learner.position < end:  # learning has failed
            due = self.clock() + AGAIN
        loop.learner.release()
        named.closed = ClosedLoop(end, due, counts.ranked, counts.rewarded, learnt, join.waiting)
        with suppress(OSError):  # the next start then opens the loop once
            replace_file(named.folder / _CLOSED, [msgspec.json.encode(named.closed)])

    def catch_up(self, named: NamedLoop) -> None:
        """Open a loop, end the waits of its decisions that are over, learn these decisions, and close it."""
        loop = self.open(named)
        loop.tick()
        loop.close()
        self.settle(named, loop)

    def change(self, named: NamedLoop, state: State, options: str) -> None:
        """Change the state and the options of a closed loop, or the state of an open one."""
        before = named.file
        named.file = LoopFile(options, state)
        try:
            if options != before.options:
                loop = self._open(named, applies=True)
                loop.close()
                self.settle(named, loop)
            self._write(named)
        except BaseException:
            named.file = before
            raise
        if options != before.options:
            named.error = ""

    def remove(self, named: NamedLoop) -> Path:
        """Move the folder of a closed loop to ``removed``, and return its new path."""
        removed = self.folder / _REMOVED
        removed.mkdir(exist_ok=True)
        path = removed / f"{named.name}-{time.time_ns():x}"
        named.folder.rename(path)
        sync_path(removed)
        sync_path(self.folder)
        return path

    def _open(self, named: NamedLoop, *, applies: bool, deliver: Deliver = call_all) -> Loop:
        LOOP.set(named.name)
        model, options = named.options
        return self._open_loop(named.folder, model, options, applies=applies, deliver=deliver)

    def _write(self, named: NamedLoop) -> None:
        replace_file(named.folder / _FILE, [msgspec.json.encode(named.file), b"\n"])


def _log_end(folder: Path) -> int:
    """Return the number of bytes in a log, by the name and the size of its last segment."""
    last = max((folder / "log").glob(SEGMENTS), default=None)
    return 0 if last is None else int(last.stem) + last.stat().st_size
