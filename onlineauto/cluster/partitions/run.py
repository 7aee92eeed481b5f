"""A run whose stream is learnt in partitions."""

from __future__ import annotations

import itertools
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from onlineauto.automl.control import control_of
from onlineauto.automl.options import AutomlOptions
from onlineauto.cluster.partitions.coordinator import PIECE, ChangeTest, Coordinator
from onlineauto.cluster.partitions.cutting import events_after, take_events
from onlineauto.cluster.partitions.pool import ThreadPool
from onlineauto.cluster.partitions.text_file import (
    TextFile,
    UnexpectedEventsError,
    estimated_events,
    text_paths,
)
from onlineauto.cluster.partitions.worker import one_blas_thread
from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.engine.options.registry import RunOptions
from onlineauto.engine.outliers.located import locate_outliers
from onlineauto.engine.stream.position import Position, PositionedBlocks, skip_events
from onlineauto.engine.stream.source import read_blocks
from onlineauto.engine.stream.validity import first_invalid_event
from onlineauto.errors import InputError, OptionError
from onlineauto.formats.lines.event_source import EndlessSource
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.run import Run, load_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self

    from onlineauto.cluster.partitions.coordinator import RoundSchedule
    from onlineauto.cluster.partitions.messages import Chunk
    from onlineauto.cluster.partitions.pool import Pool
    from onlineauto.cluster.partitions.worker import ChunkEnd
    from onlineauto.engine.stream.source import Sources
    from onlineauto.features.block import Block
    from onlineauto.options import Configuration
    from onlineauto.workspace.model_file import State
    from onlineauto.workspace.save_load import ModelSource
    from onlineauto.workspace.workspace import Workspace

PARTITIONS = 4
"""Number of partitions, unless another one is chosen."""
_READ_HERE, _MOST_READ_HERE = 16, 1024
"""Number of rounds that the coordinator parses after workers could not read theirs; it doubles each time, up
to a maximum, until workers can."""
_PASSED = 4096
_PAYS = 2
"""Workers gain time with this multiple of the events that are learnt alone, if events are expensive."""


def check_partitioned(configuration: Configuration, flag: str = "--workers") -> None:
    """Reject options that cannot be learnt in partitions; `flag` is the option that asks for them."""
    automl, run, get = configuration[AutomlOptions], configuration[RunOptions], configuration.get
    if automl.automl is None:
        raise OptionError(f"{flag} needs --automl: single models are not learnt in partitions")
    reasons = (
        ("--vw_exact", get("vw_exact")),
        ("--passes", run.passes > 1),
        ("--testonly", run.testonly),
        ("--replay", run.replay is not None),
        ("--ccb_explore_adf", get("ccb_explore_adf")),
        ("--strict_parse", get("strict_parse")),
        ("--estimator robust", not automl.is_paired(control_of(configuration).paired)),
        *(
            (f"--{name}", get(name))
            for name in ("bag", "cover", "rnd", "epsilon_decay", "first", "audit", "lags")
        ),
    )
    for name, chosen in reasons:
        if chosen:
            raise OptionError(f"{name} cannot be combined with {flag}")


class PartitionedRun(Run):
    r"""A run that learns each round of its stream in partitions, with workers.

    The result depends on the number of partitions, and not on the number of workers.

    >>> from onlineauto import Workspace
    >>> run = PartitionedRun(Workspace(live_configs=2), b"1 |a x\n" * 1000, workers=2, partitions=2)
    >>> run.step(), run.workspace.predict("|a x").round(1)
    (1000, array([1.], dtype=float32))

    Parameters
    ----------
    workspace, source, stored
        As for `Run`.
    workers : int
        Number of workers. While one learner is alone, two threads learn at most.
    partitions : int
        Number of chunks of a round.
    schedule : RoundSchedule, optional
        The lengths of rounds.
    backend : {"threads", "ray"}
        What workers are: threads of this process, or actors of the Ray cluster to which this process is
        connected, or that of RAY_ADDRESS.
    worker : mapping, optional
        Resources that an actor of Ray reserves; 1 CPU by default.
    servers : int
        Number of merge servers of Ray, each of which owns a share of the model's tables. Workers send them
        what has changed, and receive from them what has merged; with 0, the coordinator merges alone.
    server : mapping, optional
        Resources that the actor of a server reserves; by default none, since servers work while workers wait.
    """

    def __init__(
        self,
        workspace: Workspace,
        source: Sources,
        *,
        stored: Mapping[str, Any] | None = None,
        workers: int = 1,
        partitions: int = PARTITIONS,
        schedule: RoundSchedule | None = None,
        backend: str = "threads",
        worker: Mapping[str, float] | None = None,
        servers: int = 0,
        server: Mapping[str, float] | None = None,
    ) -> None:
        check_partitioned(workspace.configuration)
        super().__init__(workspace, source, stored=stored)
        self._coordinator = Coordinator(workspace, partitions, schedule)
        self._coordinator.change = ChangeTest(*self.stored.get("change", ()))
        self._backend, self._worker, self._server = backend, worker, server
        self._servers = servers
        if servers and backend == "threads":
            raise OptionError("--servers needs --backend ray: threads of one process merge without servers")
        self.pool: Pool = self._pool_of(workers)
        self._blocks: Iterator[Block] | None = None
        self._file: TextFile | None = None  # whose events workers read themselves
        self._paths: deque[str] = deque()  # of the files after it
        self._read_here, self._next_read_here = 0, _READ_HERE
        self._left: list[Block] = []
        self._due = int(self.stored.get("rest_of_round", 0))  # events of a round whose head is learnt
        self._ready: deque[tuple[Block, Outcomes]] = deque()
        self._error: InputError | None = None
        self._ended = self._start.passes >= workspace.configuration[RunOptions].passes
        self._is_cut = False

    def _pool_of(self, workers: int) -> Pool:
        workers = min(workers, self._coordinator.partitions)
        if self._backend == "threads":
            self.workspace.use_threads(workers)
            return ThreadPool(workers)
        from onlineauto.cluster.partitions.on_ray import RayPool

        command = self.workspace.configuration.command(kept=True)
        needs = {"needs": self._worker, "server_needs": self._server}
        return RayPool(workers, command, servers=self._servers, **needs)

    @property
    def warning(self) -> str:
        """A warning that workers do not pay for a small source; "" if it is large, or its size not known."""
        alone, configuration = self._coordinator.schedule.alone, self.workspace.configuration
        paths = text_paths(self._source, configuration) if self.read is read_blocks else []
        n = estimated_events(paths, configuration) if paths else _PAYS * alone
        if n == 0 or n >= _PAYS * alone:
            return ""
        return (
            f"--workers does not pay for about {n:,} events: the first {alone:,} are learnt by one learner, "
            f"and short rounds cost more than they gain; it pays for hundreds of thousands of events"
        )

    def resize(self, workers: int, servers: int | None = None) -> None:
        """Have another number of workers and merge servers; the result does not depend on them.

        Workers begin or end with the next round. Servers join and leave while rounds go on: new ones start,
        then blocks of the model migrate between two rounds. None leaves their number as it is.
        """
        self._servers = self._servers if servers is None else servers
        if self._backend == "threads":
            self.workspace.use_threads(workers)
        if isinstance(self.pool, ThreadPool) and self._backend != "threads":  # after `rest`
            self.pool = self._pool_of(workers)
        self.pool.resize(min(workers, self._coordinator.partitions), self._servers)

    @property
    def position(self) -> Position:
        """The passes and events done so far."""
        return self._start if self._blocks is None else self.workspace.position

    @classmethod
    def resume(  # type: ignore[override]
        cls,
        checkpoint: ModelSource,
        source: Sources,
        *,
        workers: int = 1,
        partitions: int = PARTITIONS,
        schedule: RoundSchedule | None = None,
        backend: str = "threads",
        servers: int = 0,
        **options: Any,
    ) -> PartitionedRun:
        """Return a run that continues over the same source where a checkpoint was written; see `Run.resume`.

        It has the same result as if it had never stopped, if it has the same `partitions` and `schedule`.

        Raises
        ------
        InputError
            The file is not a model, or was not saved by a run.
        OptionError
            An option has another value and cannot change, or cannot be combined with workers.
        """
        workspace, stored = load_run(checkpoint, REGISTRY.from_keywords(**options))
        return cls(
            workspace,
            source,
            stored=stored,
            workers=workers,
            partitions=partitions,
            schedule=schedule,
            backend=backend,
            servers=servers,
        )

    def close(self) -> None:
        """End the workers."""
        self.pool.close()

    def rest(self) -> None:
        """End the workers; `resize` has others from the next round on."""
        self.pool.close()
        self.pool = ThreadPool(1)

    def __enter__(self) -> Self:
        """Return this run."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the workers."""
        self.close()

    def step(self, n: int | None = None) -> int:
        """Learn all remaining events; return their number.

        Raises
        ------
        OptionError
            `n` is not None: a run in partitions takes rounds, not steps.
        """
        if n is not None:
            raise OptionError("a run in partitions learns whole rounds: it cannot step by a number of events")
        return super().step()

    def _next(self) -> tuple[Block, Outcomes] | None:
        """Learn the next round if no block of the last one is left; return a block, or None at the end.

        All blocks of a round are counted and passed to the sinks before the first is returned, so that a
        checkpoint between two of them has the whole round. If the workers fail, it has the head alone.
        """
        with one_blas_thread():
            while not self._ready and not self._ended:
                self._learn_round()
        self.count_passes()
        return self._ready.popleft() if self._ready else None

    def learn_round(self) -> bool:
        """Learn the rest of this round, or the next one; return False at the end of the stream.

        Raises
        ------
        InputError
            As for `Workspace.stream`; all events before are learnt and passed to the sinks.
        """
        is_more = self._next() is not None
        self._ready.clear()
        return is_more

    def _learn_round(self) -> None:
        """Learn a round, or the rest of one whose workers failed, or raise the error that ended it all."""
        workspace, schedule = self.workspace, self._coordinator.schedule
        if self._blocks is None:
            workspace.position = self._start
            self._blocks = self._open()
        head, rest = (0, self._due) if self._due else self._coordinator.plan(workspace.position.events)
        if self._due:
            self._learn_rest()
            return
        blocks = self._read(head + rest if self._file is None else head)
        while not blocks and self._error is None and self._next_file():
            blocks = self._read(head)
        if not blocks:
            if self._is_cut:  # the source has nothing yet
                return
            self._ended = True
            if self._error is not None:
                raise self._error
            if not isinstance(self._source, EndlessSource):
                workspace.end_pass()
                workspace.position = Position(workspace.position.passes + 1, 0, workspace.position.held_out)
            return
        n_events = sum(map(len, blocks))
        n = n_events if self._is_cut and n_events < schedule.shortest else min(head, n_events)
        outcomes = self._learn_here(blocks, n, due=n_events - n if self._file is None else rest)
        if self._due:
            self._learn_rest()
        elif not rest:
            self._coordinator.change.note([outcomes])

    def _learn_here(self, blocks: Sequence[Block], n: int, *, due: int = 0) -> Outcomes:
        """Learn the first `n` events of blocks in this process, and hand them out; `due` are learnt next."""
        first = take_events(blocks, 0, n)
        try:
            outcomes = self.workspace.learn_block(first)
        except BaseException:
            self._left[:0] = blocks
            raise
        self._left[:0], self._due = events_after(blocks, n), due
        self._hand_out([(first, outcomes)])
        return outcomes

    def _learn_rest(self) -> None:
        """Learn the rest of a round with the workers, after trials; if they fail, it comes first again."""
        workspace, more_head = self.workspace, self._coordinator.more_head
        while (n := more_head(workspace.position.events, self._due)) and (blocks := self._read(n)):
            n_events = sum(map(len, blocks))
            self._learn_here(blocks, n_events, due=self._due - n_events)
        is_read = self._file is None or self._read_here > 0 or self._left or self._error is not None
        if not is_read and self._learn_unread():
            return
        self._read_here = max(self._read_here - 1, 0)
        blocks = self._read(self._due)
        if not blocks and self._is_cut:  # the source has nothing yet
            return
        try:
            chunks = self._coordinator.cut(blocks)
            blocks = [chunk.block for chunk in chunks]  # the events are in memory once
            ends = self.pool.learn(self._coordinator, chunks) if chunks else []
            n_merged = self._merge(chunks, ends)
        except BaseException:
            if self._due:  # nothing is merged
                self._left[:0] = blocks
            raise
        self._left[:0] = blocks[n_merged:]
        self._learn_again(ends[n_merged:])

    def _learn_unread(self) -> bool:
        """Learn the rest of a round of a file that workers read; return False if they cannot."""
        assert self._file is not None
        stretch = self._file.take(self._due)
        ends: list[ChunkEnd] = []
        try:
            if chunks := self._coordinator.chunks_of(self._file, stretch):
                ends = self.pool.learn(self._coordinator, chunks)
                n_merged = self._merge(chunks, ends)
        except UnexpectedEventsError:
            self._read_here = self._next_read_here
            self._next_read_here = min(2 * self._next_read_here, _MOST_READ_HERE)
        finally:
            if self._due:  # nothing is merged
                self._file.move_back(stretch)
        if ends:
            self._next_read_here = _READ_HERE
            if n_merged < len(ends):
                self._file.move_back(stretch)
                self._file.take(sum(len(chunk.block) for chunk in chunks[:n_merged]))
            self._learn_again(ends[n_merged:])
        return bool(ends)

    def _merge(self, chunks: list[Chunk], ends: list[ChunkEnd]) -> int:
        """Merge the ends of the chunks before a change, and hand these chunks out; return their number."""
        change = self._coordinator.change
        n = change.first_changed([end.outcomes for end in ends])
        chunks, ends = chunks[:n], ends[:n]
        if not ends:
            self._due = 0
        else:  # there are none at the end of a file, or if the first chunk has changed
            counts, rows = self.progress.counts(), list[str]()

            def count() -> None:
                for end in ends:
                    self.progress.update(end.outcomes, emit=None if self.emit is None else rows.append)

            try:
                self.pool.merge(self._coordinator, ends, count)
            except BaseException:
                self.progress.recount(counts)
                raise
            self._due = 0
            for end in ends:
                self.diagnostics.add(end.problems)
            self._hand_out(
                [(chunk.block, end.outcomes) for chunk, end in zip(chunks, ends, strict=True)], rows
            )
            change.note([end.outcomes for end in ends])
        return n

    def _learn_again(self, ends: list[ChunkEnd]) -> None:
        """Learn the events of `ends` in this process, since the stream seems to have changed before them."""
        change, outcomes, begin = self._coordinator.change, list[Outcomes](), self.workspace.position.events
        missing = sum(len(end.outcomes) for end in ends)
        while missing > 0 and (blocks := self._read(min(missing, PIECE))):
            outcomes.append(self._learn_here(blocks, sum(map(len, blocks))))
            missing -= len(outcomes[-1])
        if outcomes and not missing:
            change.confirm(begin, outcomes, [end.outcomes for end in ends])

    def _hand_out(self, parts: list[tuple[Block, Outcomes]], rows: list[str] | None = None) -> None:
        """Count learnt blocks, pass them to the sinks, and have them returned next."""
        position = self.workspace.position
        n_events = sum(len(part) for part, _ in parts)
        self.workspace.position = position._replace(events=position.events + n_events)
        try:
            for row in rows or ():
                assert self.emit is not None
                self.emit(row)
            for part, of_part in parts:
                locate_outliers(part, of_part, self.diagnostics)
                if rows is None:
                    self.progress.update(of_part, emit=self.emit)
                for sink in self.sinks:
                    sink.take(part, of_part)
        except UnexpectedEventsError as error:
            raise InputError(
                f"{error}: the first {position.events + n_events:,} events are learnt, and outputs lack some "
                f"of the last {n_events:,}; --resume continues after them if the file is restored"
            ) from error
        self.began = True
        self._ready.extend(parts)

    def _open(self) -> Iterator[Block]:
        """Return the blocks from the start on, up to the first invalid event."""
        configuration = self.workspace.configuration
        events = PositionedBlocks(self._source, configuration, self.read)
        if self.read is read_blocks:
            self._paths.extend(text_paths(self._source, configuration))
        if self._next_file():
            self._coordinator.look_ahead = self._look_ahead
            for _ in skip_events(self._start.events, self._parsed(self._start.events)):
                pass
            return iter(())
        events.seek(self._start.where())
        return events.blocks(self.diagnostics)

    def _next_file(self) -> bool:
        """Open the next file of text; return False if there is none."""
        self.diagnostics.of_file = ""
        if not self._paths:
            return False
        path = self._paths.popleft()
        if isinstance(self._source, list | tuple):
            self.diagnostics.of_file = f"{path}: "
        self._file = TextFile(path, self.workspace.configuration, self.diagnostics)
        return True

    def _parsed(self, n: int) -> Iterator[Block]:
        """Yield the next `n` events of the files, or those that are left."""
        while n > 0 and self._file is not None:
            blocks = self._file.read(min(n, _PASSED))
            if not blocks and not self._next_file():
                return
            n -= sum(map(len, blocks))
            yield from blocks

    def _look_ahead(self) -> None:
        """Find the events of the next round while this one is learnt."""
        done = self.workspace.position.events + self._due
        if self._file is not None:
            with suppress(InputError):  # it is raised again where the events are taken
                self._file.look_ahead(sum(self._coordinator.plan(done)))

    def _read(self, n: int) -> list[Block]:
        """Return blocks with the next `n` events, or with those that are left."""
        assert self._blocks is not None
        self._is_cut = False
        while (missing := n - sum(map(len, self._left))) > 0 and self._error is None:
            try:
                file, stream = self._file, self._blocks
                blocks = list(itertools.islice(stream, 1)) if file is None else file.read(missing)
            except InputError as error:
                self._error = error
                break
            self._is_cut = bool(blocks) and not len(blocks[0]) and isinstance(self._source, EndlessSource)
            if not blocks or self._is_cut:
                break
            for block in blocks:
                self.workspace.check_block(block, learns=True)
                valid, message = first_invalid_event(block, self.workspace.kind)
                self._left.append(block if valid == len(block) else block.head(valid))
                if message:
                    self._error = InputError(f"{self.diagnostics.of_file}{message}")
                    break
        taken: list[Block] = []
        while self._left and n > 0:
            block = self._left.pop(0)
            taken.append(block.head(n))
            if len(block) > n:
                self._left.insert(0, block.tail(n))
            n -= len(taken[-1])
        taken = [block for block in taken if len(block)]
        if (
            len({id(block.namespaces) for block in taken}) > 1
        ):  # of separate files, which number names differently
            last = next(
                number for number, block in enumerate(taken) if block.namespaces is not taken[0].namespaces
            )
            self._left[:0], taken = taken[last:], taken[:last]
        return taken

    def state(self) -> State:
        """Return the state for a resumed run besides the model, after the last round, or after its head.

        Raises
        ------
        InputError
            The workers have failed, and the source no longer knows the position of the head.
        """
        state = super().state()
        state["change"] = self._coordinator.change.state()
        if self._due:
            state["rest_of_round"] = self._due
        position = self.position
        if self._blocks is not None and (source := self._positioned_source()) is not None:
            try:
                where = source.position(position.events)
            except ValueError as error:  # it knows those of the last blocks only
                if not self._due:
                    raise
                raise InputError(
                    "the workers have failed in mid-round: resume from the last file that was saved"
                ) from error
            state["position"] = position._replace(at=where)._asdict()
        return state
