"""``Follower``: ranks with the models of a learner elsewhere, and hands its own log over to it.

It answers by itself, also while the learner is away: whatever it has answered is in its own log, from where
the learner takes it over, exactly once, as soon as it is there again.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from onlineauto.errors import OnlineautoError
from onlineauto.service.join.join import Join, JoinSettings
from onlineauto.service.learning.learner import Published
from onlineauto.service.log.group_commit import call_all
from onlineauto.service.log.record import read_record
from onlineauto.service.log.segment_log import SegmentLog
from onlineauto.service.loop.folder_lock import FolderLock
from onlineauto.service.loop.front import Front, nobody
from onlineauto.service.ranking.question import Limits
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from onlineauto.service.log.group_commit import Done
    from onlineauto.service.loop.upstream import Upstream

__all__ = ["Follower"]

_PART = 1 << 19
"""Bytes of the log that are handed over at once."""
_SETTINGS = 1.0
"""Seconds after which a learner that has no new model is asked for its settings."""


class Follower(Front):
    """A rank server, in a folder of its own. One thread calls `follow`.

    Parameters
    ----------
    folder : path
        The folder; it is made if it is not there.
    upstream : Upstream
        The learner. It has to be there when a follower begins.
    limits : Limits
        How much is taken.
    app : str
        As for `Loop`; all rank servers of a learner have the same.
    clock : callable
        Returns the time in seconds.
    deliver : callable
        As for `GroupCommit`.

    Attributes
    ----------
    source : str
        The name of its log, which the learner knows it by.
    shipped : int
        The position in its log up to which the learner has it.
    failed : Exception or None
        Why the learner could not be asked the last time.

    Raises
    ------
    InputError
        The folder cannot be used, or the learner is away.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        upstream: Upstream,
        *,
        limits: Limits | None = None,
        app: str = "default",
        clock: Callable[[], float] = time.time,
        deliver: Callable[[Sequence[Done], Exception | None], object] = call_all,
    ) -> None:
        self._upstream = upstream
        self.failed: Exception | None = None
        self._held = FolderLock(folder)
        try:
            log = SegmentLog(Path(folder) / "log")
            self.source = _name_of(Path(folder) / "source")
            settings = msgspec.convert(upstream.settings(), JoinSettings)
            self.shipped = upstream.take(self.source, 0, b"")
            published = self._fetched("", clock())
            assert published is not None
        except OnlineautoError:
            self._held.release()
            raise
        join = Join(settings)
        for position, line in log.lines(log.begin):
            join.take(read_record(line), position, len(line))
        super().__init__(
            folder,
            log,
            join,
            published,
            limits=limits or Limits(),
            app=app,
            namespaces=self._learnt,
            clock=clock,
            deliver=deliver,
        )
        self._agree(settings)
        self._agreed = clock()

    @property
    def behind(self) -> int:
        """The number of bytes of its log that the learner does not have yet."""
        return self._commit.position - self.shipped

    def follow(self) -> bool:
        """Hand over records, and take a newer model and other settings; return whether there were any."""
        try:
            if self.failed is not None:
                self.shipped = self._upstream.take(self.source, 0, b"")
            sent = self._ship()
            now = self.clock()
            found = self._fetched(self.published.name, now)
            if found is not None:
                self.published = found
                if self.limits.only is None:
                    self._namespaces.update(self._learnt)
            if found is not None or abs(now - self._agreed) >= _SETTINGS:  # a learner may no longer learn
                self._agree(msgspec.convert(self._upstream.settings(), JoinSettings))
                self._agreed = now
            self.failed = None
        except Exception as error:  # also an answer of something that is no learner: it is asked again
            self.failed = error
            return False
        return sent or found is not None

    def close(self) -> None:
        """Write what is waiting, and hand it over if the learner is there."""
        self._commit.close()
        while self.follow() and self.behind:
            pass
        self.log.close()
        self._held.release()

    def _ship(self) -> bool:
        """Hand over some records that the learner does not have yet."""
        lines, size = [], 0
        for _, line in self.log.lines(self.shipped):
            lines.append(line)
            size += len(line)
            if size >= _PART:
                break
        if lines:
            self.shipped = self._upstream.take(self.source, self.shipped, b"".join(lines))
        return bool(lines)

    def _fetched(self, known: str, now: float) -> Published | None:
        """Return the model of the learner, if it is not the known one."""
        found = self._upstream.model(known)
        if found is None:
            return None
        name, content = found
        model = Workspace.load(content, testonly=True, dsjson=True)
        names = list(model.layout.keys())
        self._learnt = [each.decode("utf-8", "replace") for each in names]
        return Published(model.predictor(), name, now)

    def _agree(self, settings: JoinSettings) -> None:
        """Hold to the settings of the learner."""
        if settings != self.join.settings or not self.log.end:
            with self._lock:
                self._append("settings", nobody, Settings=msgspec.to_builtins(settings))


def _name_of(path: Path) -> str:
    """Return the name in a file, which is made if it is not there."""
    if not path.exists():
        path.write_text(secrets.token_hex(8))
    return path.read_text().strip()
