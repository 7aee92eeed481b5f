"""``TopicSource``: the events of a topic, read from the offsets that a model file has.

`TopicJoin` joins decisions and rewards of topics by event id, with the join of the service. A decision is a
message in dsjson with ``EventId``, ``a`` and ``p``; a reward is a message with ``EventId``, ``RewardValue``
and, optionally, ``RewardId``, which identifies a repetition. The time of the join is that of the messages.
Other records of a service's log have only a time here. Records that a service has sent twice
(`onlineauto.service.topics.log_topic`) are recognised by their positions in its log.
"""

from __future__ import annotations

import logging
import threading
import time
import zlib
from collections import deque
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, NamedTuple, TypeAlias, cast

import msgspec
import numpy as np

from onlineauto.engine.stream.validity import first_invalid_event
from onlineauto.errors import InputError, OptionError
from onlineauto.formats.decisions.dsjson import LogRecord, labelled_line
from onlineauto.formats.explicit_json import follow_names
from onlineauto.formats.json_reader import JsonReader
from onlineauto.formats.lines.diagnostics import Diagnostics, make_diagnostic, summary_of
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.formats.lines.reader_state_kernels import ReaderRules
from onlineauto.formats.text_reader import TextReader
from onlineauto.service.join.join import EndedDecision, Join
from onlineauto.service.join.settings import JoinSettings, check_settings
from onlineauto.service.topics.partitions import (
    WAIT,
    Brokers,
    Origin,
    Partitions,
    describe_error,
    kafka,
    split_address,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
    from typing import Self

    from numpy.typing import NDArray

    from onlineauto.features.block import Block
    from onlineauto.formats.lines.diagnostics import Diagnostic
    from onlineauto.formats.lines.event_source import EventRules
    from onlineauto.formats.lines.line_reader import LineReader

_MOST_LINES, _MOST_BYTES = 2048, 1 << 19
"""A block has at most this number of messages, and ends at this number of bytes.

Each block costs the learner about 1 ms, whatever its size.
"""
_BLOCKS: Final = 16
"""Number of blocks whose lines are kept for a position; a run always learns one of the last few blocks."""
_POLL: Final = 0.1

_LOG = logging.getLogger("onlineauto.topics")
_REASON: Final = 1000

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICKS: Final = frozenset(("tick", "settings", "model", "activate", "cost"))
"""Types of records in a service's log that are neither decisions nor rewards."""
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class TopicLine(msgspec.Struct, array_like=True, gc=False):
    """A line to learn, the place of its message, and the message if it was deserialised.

    A decision that waits also has its action, from 1, and the probability of that action.
    """

    origin: Origin
    line: bytes
    raw: bytes | None = None
    action: int = 0
    probability: float = 0.0


class _Message(msgspec.Struct, gc=False):
    """The members of a message that the join reads, with those that only a service's own log has."""

    passed: ClassVar[float] = 0.0
    deferred: ClassVar[bool] = False
    no_room: ClassVar[bool] = False
    costs: ClassVar[tuple[float, ...]] = ()
    kind: str = msgspec.field(name="Type", default="")
    event_id: str = msgspec.field(name="EventId", default="")
    reward: float | None = msgspec.field(name="RewardValue", default=None)
    key: str = msgspec.field(name="RewardId", default="")
    ranked: tuple[Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)], ...] = msgspec.field(
        name="a", default=()
    )
    probabilities: tuple[float, ...] = msgspec.field(name="p", default=())
    source: str = msgspec.field(name="Source", default="")
    behind: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)] = msgspec.field(name="Behind", default=0)


TakenMessage: TypeAlias = tuple[TopicLine, _Message, float]
"""A message as a line, its members, and its time in seconds."""


class _State(msgspec.Struct):
    """The content of `TopicJoin.state`."""

    join: dict[str, Any]
    waiting: list[tuple[int, TopicLine]]
    number: int


_DECODER: Final = msgspec.json.Decoder(_Message)


class TopicJoin:
    """The decisions that wait for their rewards, with their lines."""

    def __init__(self, settings: JoinSettings, state: bytes | None = None) -> None:
        self.join, self._settings = Join(settings), settings
        self._waiting: dict[int, TopicLine] = {}
        self._number = 0
        if state is not None:
            try:
                stored = msgspec.msgpack.decode(state, type=_State)
                self.join = Join.of(stored.join)
            except (msgspec.MsgspecError, ValueError) as error:
                raise InputError(f"the state of the join cannot be read: {error}") from None
            self._waiting = dict(stored.waiting)
            for entry in self._waiting.values():
                if not entry.action:  # an older version has written it
                    read_message(entry)
            self._number = stored.number
            if self.join.settings == settings:
                self.join.settings = settings

    def take(self, messages: Iterable[TakenMessage]) -> list[TopicLine]:
        """Take the next messages, and return the labelled lines of the decisions that they end."""
        join, counts = self.join, self.join.counts
        ended: list[EndedDecision] = []
        for entry, message, seconds in messages:
            if message.source and message.behind <= join.sources.get(message.source, 0):
                counts.repeated += 1  # without its time, which is that of its first arrival
                continue
            if join.settings is not self._settings:
                changed = LogRecord("settings", _EPOCH, settings=msgspec.to_builtins(self._settings))
                ended += join.take(changed, 0, 0, at=seconds)
                join.settings = self._settings
            before = counts.ranked
            self._number += 1
            ended += join.take(cast("LogRecord", message), self._number, len(entry.line), at=seconds)
            if counts.ranked > before:
                self._waiting[self._number] = entry
        # Labels are written in a loop of its own: to alternate with the join takes a quarter longer.
        return list(map(self._labelled, ended))

    def _labelled(self, ended: EndedDecision) -> TopicLine:
        """Return the line of a decision that has ended, with its cost."""
        entry = self._waiting.pop(ended.position)
        cost, action, probability = 0.0 - ended.reward, entry.action, entry.probability
        line = labelled_line(entry.line, cost, action=action, probability=probability)
        return TopicLine(entry.origin, line, entry.raw)

    def state(self) -> bytes:
        """Return the state, with the lines that wait."""
        return msgspec.msgpack.encode(_State(self.join.state(), [*self._waiting.items()], self._number))


def read_message(entry: TopicLine) -> _Message:
    """Return the checked members of a message, with the type and the source by which it is joined.

    The line of a decision gets its action and probability, and loses the labels that it was written with.
    """
    try:
        message = _DECODER.decode(entry.line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:  # ValueError: also of UTF-8
        raise InputError(f"not a decision or a reward: {error}") from None
    if message.kind in _TICKS:
        message.kind, message.source = "tick", ""
        return message
    if message.source:
        message.source = f"{message.source}[{entry.origin.partition}]"
    if not message.event_id:
        raise InputError("not a decision or a reward: it has no EventId")
    if message.reward is not None and not message.ranked:
        message.kind = "reward"
        if not abs(message.reward) < 3e38:
            raise InputError(f"RewardValue is {message.reward}, which a float32 cannot have")
    elif not message.ranked or len(message.ranked) != len(message.probabilities):
        raise InputError("not a decision: a and p are not equally long lists of actions and probabilities")
    else:
        message.kind = "rank"
        if b'"_label' in entry.line:
            entry.line = _unlabelled(entry.line)
        entry.action, entry.probability = message.ranked[0], message.probabilities[0]
    return message


def _unlabelled(line: bytes) -> bytes:
    """Return a decision without the labels that it was written with."""
    try:
        members = _MEMBERS.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:  # a name that is no text
        raise InputError(f"not a decision: {error}") from None
    return msgspec.json.encode(
        {name: value for name, value in members.items() if not name.startswith("_label")}
    )


class DeadLetters:
    """Sends messages to a topic, with their places and problems as headers."""

    def __init__(self, brokers: Brokers, topic: str) -> None:
        self.topic, self.failed = topic, 0
        self._module, self._producer = kafka(), brokers.producer()

    def send(self, origin: Origin, value: bytes | None, reason: str) -> None:
        """Send a message without waiting for its delivery."""
        headers = [
            ("onlineauto.topic", origin.topic.encode()),
            ("onlineauto.partition", b"%d" % origin.partition),
            ("onlineauto.offset", b"%d" % origin.offset),
            ("onlineauto.problem", reason[:_REASON].encode("utf-8", "replace")),
        ]
        for _ in range(2):
            try:
                self._producer.produce(self.topic, value, headers=headers, on_delivery=self._delivered)
                self._producer.poll(0)
            except BufferError:  # the queue is full
                self._producer.flush(WAIT)
            except self._module.KafkaException as error:  # such as a message that is too large
                self._fail(describe_error(error))
                return
            else:
                return
        self._fail("no broker takes it")

    def flush(self) -> None:
        """Wait until all messages are delivered, for at most ten seconds."""
        if left := self._producer.flush(WAIT):
            _LOG.warning("%d dead letters are not delivered yet", left)

    def _delivered(self, error: Any, message: object) -> None:  # noqa: ARG002 - as the producer calls it
        if error is not None:
            self._fail(error.str())

    def _fail(self, reason: str) -> None:
        self.failed += 1
        _LOG.warning("a dead letter was not delivered to %s: %s", self.topic, reason)


class _Content(msgspec.Struct):
    """The part of a position besides the offsets: read lines that are not learnt, and the join."""

    ready: list[TopicLine]
    join: bytes | None


class _Part(NamedTuple):
    """A block that was read: its lines, and the index of the line of each event."""

    events: int  # number of events before the block
    entries: list[TopicLine]
    places: list[int]


class TopicSource:
    """The events of a topic of Kafka, one in each message, from the beginning or from a position.

    A position has the offsets of all partitions, the lines that were read and not learnt, and the decisions
    that wait for their rewards. A model file stores the position with the model, so a run that is killed and
    resumed learns each message exactly once. The offsets that brokers store for a group are written after
    each save, for monitoring, and never read.

    A message that is not an event is counted, located by its partition and offset, and skipped.

    Passed to `Run` or `Workspace.fit` as a source of events.

    Parameters
    ----------
    address : str
        ``kafka://BROKER:PORT[,BROKER:PORT...]/TOPIC``; the scheme may be left out.
    rewards : str, optional
        The topic of the rewards, which are joined with the decisions by event id. It may be the same topic.
    join : mapping, optional
        Fields of `JoinSettings`: ``reward_wait``, ``default_reward``, ``aggregation`` and others.
    dead_letters : str, optional
        A topic that receives the messages that cannot be used, at least once each.
    deserialise : callable, optional
        Takes the bytes of a message, and returns a mapping in the form of JSON or dsjson; for messages in
        Avro or Protobuf. A message for which it raises an error is one that cannot be used.
    until_end : bool
        End after the messages that the topics have when reading begins.
    settings : mapping, optional
        Settings of librdkafka's clients, such as those of security.
    group : str
        The group under which offsets are committed for monitoring.
    refresh : float
        Seconds after which the number of partitions is asked for again.
    patience : float, optional
        Once the messages that the topics had at the start are taken: after this many seconds of waiting in
        total, yield a block without events. It tells the reader to learn what it has collected. None: never.

    Attributes
    ----------
    name, topic : str
        The address, and the topic in it.
    events_before : int
        Number of events before the position at which it begins to be read.
    disordered : int
        Number of messages that were older, by more than the wait for rewards, than one that was read before.
    stopped : callable
        Reading ends when it returns True; may be replaced.

    Raises
    ------
    OptionError
        The address, or a setting, is invalid.
    PackageError
        confluent-kafka is not installed.
    """

    def __init__(
        self,
        address: str,
        *,
        rewards: str | None = None,
        join: Mapping[str, Any] | None = None,
        dead_letters: str | None = None,
        deserialise: Callable[[bytes], Mapping[str, Any]] | None = None,
        until_end: bool = False,
        settings: Mapping[str, str] | None = None,
        group: str = "onlineauto",
        refresh: float = 30.0,
        patience: float | None = None,
    ) -> None:
        servers, self.topic = split_address(address)
        self.name = f"{servers}/{self.topic}"
        self._topics = [self.topic] if rewards in (None, self.topic) else [self.topic, str(rewards)]
        if dead_letters in self._topics:
            raise OptionError(
                f"dead letters cannot go to {dead_letters}, which is read: they would be read again for ever"
            )
        self._how = None
        if rewards is not None:
            try:
                self._how = msgspec.convert(dict(join or {}), JoinSettings)
            except msgspec.ValidationError as error:
                raise OptionError(f"these are no settings of a join: {error}") from None
            check_settings(self._how)
        elif join:
            raise OptionError(f"{', '.join(join)}: only rewards of a topic are waited for: name it, too")
        self._brokers = Brokers(servers, settings or {}, group=group)
        self._dead_letters = None if dead_letters is None else DeadLetters(self._brokers, dead_letters)
        self.deserialise, self.until_end, self.refresh = deserialise, until_end, refresh
        self.patience = patience
        self.stopped: Callable[[], bool] = lambda: False
        self._partitions: Partitions | None = None
        self._lock = threading.Lock()  # a block is read, or a position is made
        self._saved: dict[str, list[int]] = {}
        self.disordered, self._latest = 0, 0.0
        self.seek(None)

    def __repr__(self) -> str:
        """Show the name."""
        return f"TopicSource({self.name!r})"

    def __enter__(self) -> Self:
        """Return self; the end of the context closes the connections."""
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def can_be_read_again(self) -> bool:
        """False: a topic goes on, so a pass over it does not end."""
        return False

    @property
    def join(self) -> Join | None:
        """The join of decisions with rewards, with its counts; None without a topic of rewards."""
        return None if self._join is None else self._join.join

    @property
    def waiting(self) -> int:
        """The number of decisions that wait for their rewards."""
        return 0 if self._join is None else self._join.join.waiting

    @property
    def undelivered(self) -> int:
        """The number of dead letters that their topic did not receive."""
        return 0 if self._dead_letters is None else self._dead_letters.failed

    # -- the protocol of event sources -----------------------------------------------------------------

    def seek(self, position: Mapping[str, Any] | None) -> None:
        """Let the next `open` begin at a position; None is the beginning."""
        self._parts: deque[_Part] = deque(maxlen=_BLOCKS)
        self._offsets: dict[str, list[int]] = {}
        self._ready: list[TopicLine] = []
        self._join = None if self._how is None else TopicJoin(self._how)
        self.events_before = self._events = 0
        self._is_whole = True  # False while messages are taken that no block has yet
        if position is None:
            return
        try:
            self.events_before = self._events = int(position["events"])
            self._offsets = msgspec.convert(position["offsets"], dict[str, list[int]])
            content = msgspec.msgpack.decode(zlib.decompress(position["content"]), type=_Content)
        except (KeyError, TypeError, ValueError, msgspec.MsgspecError, zlib.error) as error:
            raise InputError(f"{self.name}: the checkpoint was not written by a run over a topic") from error
        if set(self._offsets) != set(self._topics):
            raise InputError(
                f"the model has read {', '.join(self._offsets)}, not {', '.join(self._topics)}. Begin with "
                "a new model, or from this one with -i"
            )
        if (content.join is None) != (self._how is None):
            raise InputError(
                "the model has read the topic with a join of rewards, and now there is none, or the reverse"
            )
        self._ready = content.ready
        if self._how is not None:
            self._join = TopicJoin(self._how, content.join)

    def open(self, rules: EventRules, found: Diagnostics | None = None) -> TopicReader:
        """Connect, and return a reader of the events from the position on."""
        if not rules.native or rules.strict:
            flag = "strict_parse" if rules.native else "vw_exact"
            raise OptionError(f"a topic cannot be read with --{flag}")
        if self._how is not None and rules.format != "dsjson":
            raise OptionError("rewards are joined with decisions in dsjson: add --dsjson")
        if self.deserialise is not None and rules.format == "text":
            raise OptionError("deserialise returns mappings: give the option json or dsjson")
        self.close()
        found = Diagnostics() if found is None else found
        reader = TopicReader(self, rules, found)
        self._partitions = Partitions(
            self._brokers, self._topics, self._offsets, lost=reader.lose, refresh=self.refresh
        )
        return reader

    def position(self, events: int) -> dict[str, Any]:
        """Return the position after `events` events, the last of which is in one of the last blocks."""
        with self._lock:
            if not self._is_whole:
                raise InputError("an error has interrupted reading: resume from the last file that was saved")
            ready = [*self._unlearnt(events), *self._ready]
            self._saved = self._offsets if self._partitions is None else self._partitions.offsets
            join = None if self._join is None else self._join.state()
        if self._dead_letters is not None:
            self._dead_letters.flush()
        return {
            "events": events,
            "offsets": self._saved,
            "content": zlib.compress(msgspec.msgpack.encode(_Content(ready, join)), 1),
        }

    def saved(self) -> None:
        """Commit the offsets of the last position, which a file has now, for monitoring."""
        if self._partitions is not None:
            self._partitions.commit(self._saved)

    def close(self) -> None:
        """Close the connections."""
        if self._dead_letters is not None:
            self._dead_letters.flush()
        if self._partitions is not None:
            self._offsets = self._partitions.offsets
            self._partitions.close()
            self._partitions = None

    # -- for the reader --------------------------------------------------------------------------------

    def take(self, reader: TopicReader) -> tuple[bool, Block | None]:
        """Return whether there was a message, and the events of the next messages, None without an event."""
        with self._lock:
            self._is_whole = False
            block, entries = None, self._ready
            self._ready = []
            taken = bool(entries)
            if not taken:
                taken, entries = self._entries(reader)
            if entries:
                block, places = reader.parse(entries)
                if places:
                    self._parts.append(_Part(self._events, entries, places))
                    self._events += len(places)
            self._is_whole = True
            return taken, block

    def wait(self) -> bool:
        """Fetch further messages, and return True; return False at the end."""
        assert self._partitions is not None
        if self.stopped() or (self.until_end and self._partitions.caught_up):
            return False
        with self._lock:
            self._partitions.poll(_POLL)
        return True

    @property
    def caught_up(self) -> bool:
        """True if the messages are taken that the topics had when reading began."""
        return self._partitions is not None and self._partitions.caught_up

    def bury(self, origin: Origin, value: bytes | None, reason: str) -> None:
        """Send a message that cannot be used to the topic of dead letters, if there is one."""
        if self._dead_letters is not None:
            self._dead_letters.send(origin, value, reason)

    def _entries(self, reader: TopicReader) -> tuple[bool, list[TopicLine]]:
        """Return whether there was a message, and the lines that the next messages give."""
        assert self._partitions is not None
        entries: list[TopicLine] = []
        messages: list[_Message] = []
        times: list[float] = []
        n_bytes = n_messages = 0
        for origin, taken, value in self._partitions.messages():
            n_messages, n_bytes = n_messages + 1, n_bytes + len(value or b"")
            if self._how is not None:
                if taken > self._latest:
                    self._latest = taken
                elif taken < self._latest - self._how.reward_wait:
                    self.disordered += 1
            try:
                entry = self._entry(origin, value, reader)
                if self._join is not None:
                    messages.append(read_message(entry))
                    times.append(taken)
                entries.append(entry)
            except InputError as error:
                reader.refuse(origin, value, str(error))
            if n_messages >= _MOST_LINES or n_bytes >= _MOST_BYTES:
                break
        if self._join is not None:
            entries = self._join.take(zip(entries, messages, times, strict=True))
        return n_messages > 0, entries

    def _entry(self, origin: Origin, message: bytes | None, reader: TopicReader) -> TopicLine:
        """Return the event of a message as a line, or as the lines of a text; reject any other message."""
        value = (message or b"").strip()
        if self.deserialise is not None and message is not None:
            try:
                line = msgspec.json.encode(self.deserialise(message))
            except Exception as error:
                raise InputError(f"deserialise raised {type(error).__name__}: {error}") from error
            return TopicLine(origin, line, message)
        if not value:
            raise InputError("it is empty")
        if not reader.reads_text:
            return TopicLine(origin, value.replace(b"\n", b" ").replace(b"\r", b" "))
        lines = value.splitlines()
        if len(lines) > 1 and not (reader.multiline and all(line.strip() for line in lines)):
            raise InputError("it has several events, and one is expected")
        return TopicLine(origin, b"\n".join(lines))

    def _unlearnt(self, events: int) -> Iterator[TopicLine]:
        """Yield the lines that were read behind the first `events` events."""
        if not (self._parts[0].events if self._parts else self._events) <= events <= self._events:
            raise ValueError(f"there is no position of event {events}")
        for part in self._parts:
            learnt = max(events - part.events, 0)
            if learnt < len(part.places):
                yield from part.entries[part.places[learnt - 1] + 1 if learnt else 0 :]


class TopicReader:
    """Reads the blocks of a `TopicSource`; can be iterated once."""

    def __init__(self, source: TopicSource, rules: EventRules, found: Diagnostics) -> None:
        self.name, self.diagnostics, self._source = source.name, found, source
        found.reading = source.topic  # of problems that are found while an event is learnt
        self.reads_text = rules.format == "text"
        self.multiline = rules.kind.endswith("adf") and self.reads_text
        made = ReaderRules(
            multiline=rules.kind.endswith("adf"),
            simple=rules.kind == "simple",
            slots=rules.kind == "ccb_explore_adf",
            hash_all=rules.hash == "all",
            uniform=rules.uniform,
            hash_seed=np.uint32(rules.hash_seed),
            log=rules.format == "dsjson",
            chain_hash=rules.chain_hash,
        )
        kind = TextReader if self.reads_text else JsonReader
        self._kind = rules.kind
        self._lines: LineReader = kind(b"", made)
        self.namespaces = self._lines.namespaces
        self._probe: LineReader = kind(b"", made)  # finds the problem of one line again, without counting it
        for reader in (self._lines, self._probe):
            if isinstance(reader, JsonReader):
                follow_names(reader, rules)
        self._end = b"\n\n" if self.multiline else b"\n"

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks."""
        return self.blocks()

    def blocks(self) -> Generator[Block]:
        """Yield the blocks as messages arrive, until the source ends or is stopped."""
        source, waited, more = self._source, 0.0, True
        last: Block | None = None
        while more:
            taken, block = source.take(self)
            if block is not None:
                yield (last := block)
            if taken and not source.stopped():
                continue
            begin = time.monotonic()
            more = source.wait()
            waited = waited + time.monotonic() - begin if source.caught_up else 0.0
            if last is not None and source.patience is not None and waited >= source.patience:
                yield last.head(0)
                waited = 0.0

    def parse(self, entries: list[TopicLine]) -> tuple[Block | None, list[int]]:
        """Return the events of lines, and the index of the line of each; locate and count problems.

        Lines whose costs contradict each other are removed from the list.
        """
        blocks, ends = self._parsed(entries)
        while blocks and (invalid := first_invalid_event(blocks[0], self._kind)[0]) < len(blocks[0]):
            line = blocks[0].line_number[blocks[0].event_start[invalid]]
            entry = entries.pop(int(np.searchsorted(ends, line)))
            self.refuse(
                entry.origin, entry.raw or entry.line, "it has several costs, and only one can be known"
            )
            blocks, ends = self._parsed(entries)
        diagnostics = self._lines.take_problems()
        problems: dict[int, Diagnostic] = {}
        self.diagnostics.log = diagnostics.log or self.diagnostics.log
        self.diagnostics.counts.update(diagnostics.counts)
        for each in diagnostics.kept:
            index = int(np.searchsorted(ends, each.line))
            problems.setdefault(index, _at(entries[index].origin, each))
            self.diagnostics.keep(_at(entries[index].origin, each))
        if not blocks:
            places = []
        else:
            block, offsets = blocks[0], np.array([each.origin.offset for each in entries])
            indices = np.searchsorted(ends, block.line_number)
            places = indices[block.event_start[:-1]].tolist()
            block.lines["number"][:-1] = offsets[indices]
        for index in sorted(set(range(len(entries))) - set(places)) if len(places) < len(entries) else ():
            entry = entries[index]
            problem = problems.get(index) or self._problem_of(entry)
            if problem is not None:
                self._source.bury(entry.origin, entry.raw or entry.line, problem.message)
        return (blocks[0] if blocks else None), places

    def _parsed(self, entries: list[TopicLine]) -> tuple[list[Block], NDArray[np.int64]]:
        """Return the events of lines, and the last line number of each entry."""
        lines = [entry.line for entry in entries]
        if self.reads_text:
            ends = np.cumsum([line.count(b"\n") + len(self._end) for line in lines])
        else:
            ends = np.arange(1, len(lines) + 1)
        return self._lines.parse(self._end.join([*lines, b""])), ends

    def refuse(self, origin: Origin, value: bytes | None, reason: str) -> None:
        """Count and locate a message that cannot be used."""
        self._add(ProblemCode.MESSAGE, origin, reason)
        self._source.bury(origin, value, reason)

    def lose(self, origin: Origin, number: int) -> None:
        """Count messages that the topic no longer has, from a place on."""
        self._add(ProblemCode.OFFSETS_LOST, origin, f"{number} messages from here on", number)

    def _add(self, code: ProblemCode, origin: Origin, reason: str, number: int = 1) -> None:
        problem = make_diagnostic(code, file="", line=0, column=1, text=b"", unit="event")
        self.diagnostics.count(code, number)
        self.diagnostics.keep(_at(origin, replace(problem, message=f"{summary_of(code)}: {reason}")))

    def _problem_of(self, entry: TopicLine) -> Diagnostic | None:
        """Return the first problem of a line; None if it has none, such as a line without a decision."""
        self._probe.parse(entry.line + self._end)
        return next(iter(self._probe.take_problems().kept), None)


def _at(origin: Origin, problem: Diagnostic) -> Diagnostic:
    """Return a problem at the place of a message."""
    return replace(problem, file=f"{origin.topic}[{origin.partition}]", line=origin.offset)
