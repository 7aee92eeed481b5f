"""``LiveLearner``: a trainable whose trials are runs on one stream; the resource is events."""

from __future__ import annotations

import io
import logging
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from onlineauto.engine.search.search_engine import of_actions
from onlineauto.engine.stream.position import Position
from onlineauto.engine.stream.source import kind_of, read_blocks, rules_of
from onlineauto.errors import InputError, OptionError
from onlineauto.features.block import UNLABELLED
from onlineauto.formats.blocks.file import write_blocks
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.tune.live.flags import base_of, configure
from onlineauto.tune.workers.trainable import OF_STREAM
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.run import Run, load_run
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.stream.source import Sources
    from onlineauto.features.block import Block
    from onlineauto.options import Configuration
    from onlineauto.tune.workers.trainable import Config, Report

_REPORTS, _BATCHES = 32, 512
MISSED: Final = ("catch_up", "match")
"""Modes for events between a checkpoint and the next scored window: learn them, or leave them out."""

_LOG: Final = logging.getLogger("onlineauto")
_SAMPLED = 64
"""Number of events of each block in which the namespaces of actions are looked up."""
_DIGESTED = ("hash", "value", "label", "weight", "cost_action", "cost", "probability")
"""Columns of a block that identify a stream."""


class Events:
    """The events of a stream in blocks, which any number of runs may read."""

    def __init__(self, source: Sources, configuration: Configuration, *, most: int | None = None) -> None:
        self.blocks: list[Block] = []
        self._configuration = configuration
        self._n_events = 0
        diagnostics = Diagnostics()
        for block in read_blocks(source, configuration, diagnostics):
            part = block if most is None else block.head(min(len(block), most - self._n_events))
            self.blocks.append(part)
            self._n_events += len(part)
            if self._n_events == most:
                break
        if lacking := self._reason_of_equal_losses():
            problems = f": {diagnostics.summary()}" if diagnostics.total else ""
            raise InputError(f"{lacking}, so there is nothing to compare trials by{problems}")
        if diagnostics.total:
            _LOG.warning("%s", diagnostics.summary())

    def _reason_of_equal_losses(self) -> str:
        """Return the reason why all trials would have the same loss; "" if they may differ."""
        if not self._n_events:
            return "the stream has no events"
        bandit = kind_of(self._configuration) != "simple"
        columns = [block.cost if bandit else block.label for block in self.blocks]
        labelled = np.concatenate([column[column != UNLABELLED] for column in columns])
        if not len(labelled):
            return f"no event of the stream has a {'logged cost or reward' if bandit else 'label'}"
        return "every logged cost or reward of the stream is 0" if bandit and not labelled.any() else ""

    def __len__(self) -> int:
        """Return the number of events."""
        return self._n_events

    @property
    def digest(self) -> str:
        """A digest of all features, labels and costs, independent of the division into blocks."""
        hash_ = blake2b(digest_size=8)
        for column in _DIGESTED:
            for block in self.blocks:
                hash_.update(getattr(block, column).tobytes())
        return hash_.hexdigest()

    @property
    def namespaces(self) -> list[bytes]:
        """The names of all namespaces, in ascending order."""
        return sorted({name for block in self.blocks for name in block.namespaces.names})

    @property
    def of_actions(self) -> frozenset[bytes]:
        """The namespaces of actions, none if events are single lines."""
        if not kind_of(self._configuration).endswith("adf"):
            return frozenset()
        sample = ((block, event) for block in self.blocks for event in range(min(len(block), _SAMPLED)))
        return frozenset().union(*(of_actions(block, event) for block, event in sample))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the events to a file of blocks, which other processes read without parsing."""
        write_blocks(path, self.blocks, rules=rules_of(self._configuration))


class Losses:
    """Collects the losses and weights of consecutive events; a sink of a `Run`."""

    def __init__(self, begin: int = 0, *, skipped: int = 0) -> None:
        self.begin, self.skipped = begin, skipped
        self._taken = np.zeros((2, 1024))
        self._size = 0

    @property
    def end(self) -> int:
        """The offset after the last event."""
        return self.begin + self._size

    def take(self, block: Block, outcomes: Outcomes) -> None:
        """Append the outcomes of a block, one row per event."""
        slots = outcomes.slots
        sums = np.array([outcomes.loss, outcomes.weight], np.float64)
        if slots is not None:  # an event has one row per slot
            sums = np.array([np.bincount(slots.event, row, len(block)) for row in sums])
        self._append(sums)

    def _append(self, sums: NDArray[np.float64]) -> None:
        size = self._size + sums.shape[1]
        while size > self._taken.shape[1]:
            self._taken = np.concatenate((self._taken, np.zeros_like(self._taken)), axis=1)
        self._taken[:, self._size : size] = sums
        self._size = size

    def state(self) -> dict[str, object]:
        """Return no state for the model file, because `write` stores the losses in front of the model."""
        return {}

    def mean(self, begin: int, end: int) -> float:
        """Return the mean loss of the events from one offset to another."""
        losses, weights = self._losses_between(begin, end).sum(axis=1)
        return float(losses / weights) if weights else 0.0

    def batches(self, begin: int, end: int, size: int) -> list[float]:
        """Return the mean losses of whole batches of events, rounded to seven digits."""
        losses, weights = self._losses_between(begin, end).reshape(2, -1, size).sum(axis=2)
        return [float(f"{mean:.7g}") for mean in losses / np.maximum(weights, 1e-30)]

    def _losses_between(self, begin: int, end: int) -> NDArray[np.float64]:
        return self._taken[:, begin - self.begin : end - self.begin]

    def write(self, file: BinaryIO) -> None:
        """Write the losses to a file."""
        np.save(file, np.array([self.begin, self.skipped]), allow_pickle=False)
        np.save(file, self._taken[:, : self._size], allow_pickle=False)

    @classmethod
    def read(cls, file: BinaryIO) -> Losses:
        """Return the losses that `write` has written."""
        begin, skipped = np.load(file, allow_pickle=False).tolist()
        losses = cls(begin, skipped=skipped)
        losses._append(np.load(file, allow_pickle=False))
        return losses


class LiveLearner:
    """Trials that learn one stream, each with its own flags, and are compared on the same events.

    The resource of a trial is an offset of the stream: the number of events so far. Its value there is the
    mean progressive loss of the last `window` events before the offset, so all values at one resource are
    from the same events. The losses of these events are also reported in batches, for paired tests.

    A trial that resumes from a checkpoint may have missed events before the window of its next value. It
    either learns them first, which takes their time (``catch_up``), or leaves them out (``match``). Each
    report has details: `offset_from` and `offset_to`, the range of events of its value; and `missed`, which
    is ``caught_up``, ``matched``, or ``nothing``.

    Pass an object of this class to `Study.run`; each process parses the stream once.

    Parameters
    ----------
    events : Sources
        The stream; for worker processes a path, bytes, or a list of these.
    base : str or mapping
        The options that all trials share, as on the command line or by name.
    window : int, optional
        Number of events of a value; None for all events from the beginning.
    missed : {"catch_up", "match"}
        Whether a trial learns missed events or leaves them out.
    every : int, optional
        Number of events between two reports; by default a job has 32 reports.
    batch : int, optional
        Number of events in a batch of reported losses; by default a job has 512 batches.
    most : int, optional
        Maximum number of events to read.

    Raises
    ------
    OptionError
        An option of the base is not allowed for trials, or a number is out of range.

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
                raise OptionError(f"{name} = {number!r}: give a positive whole number of events")
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

    def __reduce__(self) -> tuple[Callable[..., LiveLearner], tuple[()]]:
        """Return the arguments for a copy in another process, which parses the stream itself."""
        return partial(LiveLearner, **self._arguments), ()

    @property
    def events(self) -> Events:
        """The stream, which is read on first access."""
        if self._events is None:
            self._events = Events(self._arguments["events"], self.base, most=self._arguments["most"])
        return self._events

    @property
    def about(self) -> str:
        """Description of everything that values depend on: the events, the shared options and the window.

        A study records the description, and rejects a different one.
        """
        events = self.events
        scored = "all events" if self._window is None else f"a window of {self._window} events"
        flags = self.base.command() or "no flags"
        return f"{OF_STREAM}{events.digest} of {len(events)} events with {flags}, by {scored}, {self._missed}"

    def __call__(self, config: Config, resource: int, report: Report) -> None:
        """Train a trial up to a resource, from the checkpoint of the report.

        Raises
        ------
        InputError
            The stream has fewer events than the resource.
        """
        if resource > len(self.events):
            raise InputError(f"the stream has {len(self.events)} events, but a trial should learn {resource}")
        every = self._arguments["every"] or -(-resource // _REPORTS)
        batch = self._arguments["batch"] or -(-resource // _BATCHES)
        first_scored = self._first_scored(resource)
        run, losses = self._open_run(configure(self.base, config), first_scored, report.saved)
        reported = losses.end - losses.end % batch
        missed = "matched" if losses.skipped else "caught_up" if losses.end < first_scored else "nothing"
        while (offset := run.position.events) < resource:
            run.step(min(offset + every - offset % every, resource) - offset)
            offset = run.position.events
            begin, whole = max(self._first_scored(offset), losses.begin), offset - offset % batch
            first = max(reported, -(-losses.begin // batch) * batch)
            details = {
                "offset_from": begin,
                "offset_to": offset,
                "missed": missed,
                "batch": batch,
                "first": first,
                "losses": losses.batches(first, max(whole, first), batch),
            }
            reported = max(whole, first)
            report(
                losses.mean(begin, offset),
                step=offset,
                save=lambda: _checkpoint_bytes(run, losses),
                details=details,
            )

    def _first_scored(self, resource: int) -> int:
        """Return the offset at which the window of a resource begins."""
        return 0 if self._window is None else max(resource - self._window, 0)

    def _open_run(self, configuration: Configuration, scored: int, saved: bytes | None) -> tuple[Run, Losses]:
        """Open the run of a trial, from a checkpoint or new; return the run and its losses.

        The checkpoint may be that of a trial with other flags, whose state is then copied.
        """
        workspace, losses = Workspace(configuration=configuration), Losses()
        stored: Mapping[str, Any] = {}
        if saved is not None:
            file = io.BytesIO(saved)
            losses = Losses.read(file)
            source, stored = load_run(file.read(), REGISTRY.parse(""))
            workspace.restore(source.state(copy=False))
        if self._missed == "match" and losses.end < scored:
            skipped = losses.skipped + scored - losses.end
            losses = Losses(scored, skipped=skipped)
            stored = {**stored, "position": Position(0, scored)._asdict()}
        run = Run(workspace, self.events.blocks, stored=stored)
        run.sinks.append(losses)
        return run, losses


def _checkpoint_bytes(run: Run, losses: Losses) -> bytes:
    """Return a checkpoint: the losses, then the model with the state of its run."""
    file = io.BytesIO()
    losses.write(file)
    run.checkpoint(file)
    return file.getvalue()


def model_of(saved: bytes) -> tuple[Workspace, int]:
    """Return the workspace of a trial's checkpoint, and its offset in the stream."""
    file = io.BytesIO(saved)
    try:
        end = Losses.read(file).end
    except (ValueError, EOFError) as error:
        raise InputError(f"this is not a checkpoint of a live learner: {error}") from None
    return load_run(file.read(), REGISTRY.parse(""))[0], end
