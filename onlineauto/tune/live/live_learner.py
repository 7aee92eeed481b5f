"""``LiveLearner``: a trainable whose trials are runs on one stream; the resource is events."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

from onlineauto.engine.stream.position import Position
from onlineauto.errors import InputError, OptionError
from onlineauto.tune.live.events import Events
from onlineauto.tune.live.flags import base_of, configured
from onlineauto.tune.live.losses import Losses
from onlineauto.tune.workers.naming import OF_STREAM
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.run import Run, load_run
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.engine.stream.source import Sources
    from onlineauto.options import Configuration
    from onlineauto.tune.workers.trainable import Config, Report

_REPORTS, _BATCHES = 32, 512
MISSED: Final = ("catch_up", "match")
"""What a learner does about events between its checkpoint and the window in which it is scored."""


class LiveLearner:
    """Trials that learn one stream, each with flags of its own, and are compared on the same events.

    A trial's resource is an offset of the stream: how many events it has come through. Its value there is the
    mean progressive loss of the last `window` events before it, so all trials with a value at a resource have
    it from the same events. The losses of these are reported too, in batches, for tests on pairs.

    A trial that goes on from a checkpoint may have missed events before the window of its next value. It
    learns them first, which costs their number (``catch_up``), or leaves them out (``match``). Each report
    has details: `offset_from` and `offset_to`, the events that its value is about; and `missed`, which is
    ``caught_up``, ``matched``, or ``nothing``.

    Give it to `Study.run`; processes parse the stream once each.

    Parameters
    ----------
    events : Sources
        The stream; for other processes a path, bytes, or a list of these.
    base : str or mapping
        The options that all trials have in common, as on the command line or by name.
    window : int, optional
        How many events a value is about; None for all from the beginning.
    missed : {"catch_up", "match"}
        What is done about events that were missed.
    every : int, optional
        Events between two reports; by default there are 32 up to the resource of a job.
    batch : int, optional
        Events in a batch of reported losses; by default there are 512 up to the resource of a job.
    most : int, optional
        Read no more events than these.

    Raises
    ------
    OptionError
        An option of the base is none that a trial could have, or a number is out of range.

    Examples
    --------
    >>> from onlineauto.tune import Float, Study
    >>> events = [f"{i % 2} |a x{i % 2}" for i in range(90)]
    >>> study = Study({"learning_rate": Float(0.01, 1, log=True)}, min_resource=30, max_resource=90)
    >>> best = study.run(LiveLearner(events, every=30))
    >>> best.resource, round(best.value, 2) < 0.2
    (90, True)
    """

    def __init__(
        self,
        events: Sources,
        base: str | Mapping[str, Any] = "",
        *,
        window: int | None = None,
        missed: str = "catch_up",
        every: int | None = None,
        batch: int | None = None,
        most: int | None = None,
    ) -> None:
        if missed not in MISSED:
            raise OptionError(f"missed = {missed!r}: valid are {', '.join(MISSED)}")
        for name, number in (("window", window), ("every", every), ("batch", batch), ("most", most)):
            if number is not None and (type(number) is not int or number < 1):
                raise OptionError(f"{name} = {number!r}: a positive whole number of events")
        self._arguments: dict[str, Any] = {
            "events": events,
            "base": base,
            "window": window,
            "missed": missed,
            "every": every,
            "batch": batch,
            "most": most,
        }
        self.base = base_of(base)
        self._window, self._missed = window, missed
        self._events: Events | None = None

    def __reduce__(self) -> tuple[Callable[..., LiveLearner], tuple[dict[str, Any]]]:
        """Return how another process makes the same: it parses the stream itself."""
        return _made, (self._arguments,)

    @property
    def events(self) -> Events:
        """The stream, which is read when it is first asked for."""
        if self._events is None:
            self._events = Events(self._arguments["events"], self.base, most=self._arguments["most"])
        return self._events

    @property
    def about(self) -> str:
        """The events, the options that all trials have in common, and the window: all that values depend on.

        A study notes it, and refuses to go on with another.
        """
        events = self.events
        seen = "all events" if self._window is None else f"a window of {self._window} events"
        flags = self.base.command() or "no flags"
        return f"{OF_STREAM}{events.digest} of {len(events)} events with {flags}, by {seen}, {self._missed}"

    def __call__(self, config: Config, resource: int, report: Report) -> None:
        """Take a trial to a resource, from the checkpoint that the report has.

        Raises
        ------
        InputError
            The stream has fewer events.
        """
        if resource > len(self.events):
            raise InputError(f"the stream has {len(self.events)} events, and a trial is to learn {resource}")
        every = self._arguments["every"] or -(-resource // _REPORTS)
        batch = self._arguments["batch"] or -(-resource // _BATCHES)
        first_scored = self._first_scored(resource)
        run, losses = self._opened(configured(self.base, config), first_scored, report.saved)
        reported = losses.end - losses.end % batch
        missed = "matched" if losses.skipped else "caught_up" if losses.end < first_scored else "nothing"
        while (at := run.position.events) < resource:
            run.step(min(at + every - at % every, resource) - at)
            at = run.position.events
            begin, whole = max(self._first_scored(at), losses.begin), at - at % batch
            first = max(reported, -(-losses.begin // batch) * batch)
            details = {
                "offset_from": begin,
                "offset_to": at,
                "missed": missed,
                "batch": batch,
                "first": first,
                "losses": losses.batches(first, max(whole, first), batch),
            }
            reported = max(whole, first)
            report(losses.mean(begin, at), step=at, save=lambda: _saved(run, losses), details=details)

    def _first_scored(self, resource: int) -> int:
        """Return the offset at which the window of a resource begins."""
        return 0 if self._window is None else max(resource - self._window, 0)

    def _opened(self, configuration: Configuration, scored: int, saved: bytes | None) -> tuple[Run, Losses]:
        """Return the run of a trial, and its losses: from a checkpoint, or from the beginning.

        The checkpoint may be one of a trial with other flags. The trial then has a copy of its state.
        """
        workspace, losses = Workspace(configuration=configuration), Losses()
        stored: Mapping[str, Any] = {}
        if saved is not None:
            file = io.BytesIO(saved)
            losses = Losses.read(file)
            source, stored = load_run(file.read(), REGISTRY.parse(""))
            workspace.restore(source.state())
        if self._missed == "match" and losses.end < scored:
            skipped = losses.skipped + scored - losses.end
            losses = Losses(scored, skipped=skipped)
            stored = {**stored, "position": Position(0, scored)._asdict()}
        run = Run(workspace, self.events.blocks, stored=stored)
        run.sinks.append(losses)
        return run, losses


def _made(arguments: dict[str, Any]) -> LiveLearner:
    return LiveLearner(**arguments)


def _saved(run: Run, losses: Losses) -> bytes:
    """Return a checkpoint: the losses, then the model with the state of its run."""
    file = io.BytesIO()
    losses.write(file)
    run.checkpoint(file)
    return file.getvalue()


def model_of(saved: bytes) -> tuple[Workspace, int]:
    """Return the workspace of a trial's checkpoint, and the offset of the stream that it has come to.

    Raises
    ------
    InputError
        It is not a checkpoint of a live learner.
    """
    file = io.BytesIO(saved)
    try:
        end = Losses.read(file).end
    except (ValueError, EOFError) as error:
        raise InputError(f"this is no checkpoint of a live learner: {error}") from None
    return load_run(file.read(), REGISTRY.parse(""))[0], end
