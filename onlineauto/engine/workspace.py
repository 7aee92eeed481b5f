"""Workspace: a model that reads, predicts and learns; the one engine behind every surface."""

from __future__ import annotations

from operator import is_not
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from onlineauto.automl.config import ORDERS
from onlineauto.automl.options import AutomlOptions
from onlineauto.automl.oracles import ORACLES
from onlineauto.engine._kernels import run_events
from onlineauto.engine.holdout import Holdout
from onlineauto.engine.options import REGISTRY, RunOptions, refuse_command_line
from onlineauto.engine.replay import replayed_entries
from onlineauto.engine.room import enough_room, enough_scratch, make_buffers, make_outcomes, make_results
from onlineauto.engine.searching import Searching
from onlineauto.engine.source import can_be_read_again, kind_of, open_lines, open_source, read_blocks
from onlineauto.engine.state import (
    ASIDE,
    BLOCK_END,
    CB,
    CB_ADF,
    EVENT,
    NOTICED,
    SIGNAL,
    STREAM,
    Context,
)
from onlineauto.engine.task import make_task, parts_of_slot
from onlineauto.engine.validity import first_invalid_event
from onlineauto.errors import InputError, OptionError
from onlineauto.explorers.slots import SlotOptions
from onlineauto.features.layout import Layout
from onlineauto.features.options import FeatureOptions
from onlineauto.features.records import CONSTANT_HASH, make_stream
from onlineauto.features.slots import Slots, find_slots
from onlineauto.formats.diagnostics import Diagnostics
from onlineauto.jit import Sealed
from onlineauto.learners._kernels import MAX_LABEL, MIN_LABEL
from onlineauto.learners.options import CbOptions, UpdateOptions
from onlineauto.learners.rule import (
    default_settings,
    initial_weights,
    make_model,
    make_rule,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from numpy.typing import NDArray

    from onlineauto.automl.search import Search
    from onlineauto.engine.estimates import Estimates
    from onlineauto.engine.journal import Entry
    from onlineauto.engine.outcomes import Outcomes
    from onlineauto.engine.source import Sources
    from onlineauto.features.block import Block
    from onlineauto.features.records import Stream
    from onlineauto.formats.event_reader import EventReader
    from onlineauto.formats.source import Source
    from onlineauto.learners._kernels import Model
    from onlineauto.options import Configuration


__all__ = ["Workspace"]

_SCREEN_CELLS = 1 << 18


class Workspace:
    r"""A model and everything it has learnt.

    Options are keyword arguments, named as on the command line.

    Examples
    --------
    >>> from onlineauto import Workspace
    >>> bandit = Workspace(cb_explore_adf=True, quadratic=["ua"], epsilon=0.2)
    >>> event = "shared |u tom\n0:-1:0.5 |a politics\n|a sports\n"
    >>> bandit.learn(event).round(2)
    array([0.5, 0.5], dtype=float32)
    >>> bandit.predict("shared |u tom\n|a politics\n|a sports\n").round(2)
    array([0.9, 0.1], dtype=float32)

    Parameters
    ----------
    configuration : Configuration, optional
        Options already parsed; then no keyword may be given.
    **options
        Values of options.

    Attributes
    ----------
    configuration : Configuration
        The options in force.
    kind : {"simple", "cb_adf", "cb_explore_adf", "ccb_explore_adf", "cb", "cb_explore"}
        What an event is and what is predicted for it.
    weights : float32[cells, 4, lanes]
        Weight, Σ gradient², scale and last rate of every cell; a lane for each live slot, the champion's
        first (twice as many with ``--cb_type dr``).
    searching : Searching
        The search of ``--automl`` at work; without it, of one slot that nobody challenges.
    current_pass : int
        Number of passes completed.
    diagnostics : Diagnostics
        What was wrong with the input of `fit` and `stream`, counted and located.

    Raises
    ------
    OptionError
        An option is unknown, out of range, or at odds with another.
    """

    def __init__(self, *, configuration: Configuration | None = None, **options: Any) -> None:
        if configuration is None:
            configuration = REGISTRY.from_keywords(**options)
            refuse_command_line(configuration)
        elif options:
            raise TypeError("options go either into the configuration or into keywords, not into both")
        self.configuration = configuration
        self.kind = kind_of(configuration)
        self.exact = configuration[RunOptions].vw_exact
        self.current_pass = 0
        self.diagnostics = Diagnostics()
        training, automl = not configuration[RunOptions].testonly, configuration[AutomlOptions]
        estimates = configuration[CbOptions].cb_type == "dr" or "cb_type" in automl.searched()
        width = parts_of_slot(configuration, kind=self.kind, estimates=estimates)
        slots, bits = automl.automl or 1, configuration[FeatureOptions].bit_precision
        lanes = slots * width
        cells = max(1, 2**bits >> (width - 1).bit_length())
        if self.exact:  # all lanes share the table
            lanes = 1 << (lanes - 1).bit_length()
            cells = max(1, 2**bits // lanes)
        elif slots > 1:
            lanes = -(-lanes // 4) * 4  # kernels take four at a time
        try:
            self.weights = initial_weights(configuration, cells=cells, lanes=lanes)
        except (MemoryError, OSError):  # the table is mapped
            raise OptionError(
                f"{slots} live configs of 2^{bits} cells do not fit into memory: lower --bit_precision"
            ) from None
        self._unlearnt = self.weights[0, :, 0].copy()
        self._task = make_task(configuration, kind=self.kind, cells=len(self.weights), parts=width)
        self._model = self._make_model(slots=slots, training=training)
        self._rule = make_rule(configuration, guarded=not self.exact)
        searched: tuple[int, ...] = ()
        if automl.automl:
            searched = ORACLES[automl.oracle(exact=self.exact)].orders or ORDERS[automl.interaction_type]
        singled = bool(searched) and "namespaces" in automl.searched()
        features = configuration[FeatureOptions]
        self._layout = Layout(
            features, exact=self.exact, searched=searched, singled=singled, slots=self._task.slots
        )
        self._told = None if configuration[SlotOptions].ccb_no_slot_index else False
        self.searching = self._make_search(automl, width=width)
        self._buffers = make_buffers(actions=16, slots=slots)
        self._scratch = self._layout.scratch(spans=8)
        self._context: Sealed[Context] | None = None
        self._parser = open_lines(b"", configuration)

    def __repr__(self) -> str:
        """Show the options in force."""
        return f"Workspace({self.configuration.command()!r})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become a copy: let the table be the weights again, since copied arrays do not share memory."""
        vars(self).update(state)
        table = self.weights.reshape(len(self.weights), -1)
        self._model = self._model._replace(weights=self.weights, table=table)
        self._context = None

    @property
    def search(self) -> Search:
        """The state of the search: configs, queue, leases; a value that does not change.

        Raises
        ------
        OptionError
            A replay decides nothing, and has no such state; `searching.slots` has the live configs.
        """
        if self.searching.replays:
            raise OptionError("a replay has no search of its own; searching.slots has the live configs")
        return self.searching.search

    @property
    def label_range(self) -> tuple[float, float]:
        """Smallest and largest label or cost that was learnt, or 0; predictions are clipped to it."""
        shared = self._model.shared
        return float(shared[MIN_LABEL]), float(shared[MAX_LABEL])

    @property
    def estimates(self) -> Estimates:
        """Bounds on the rewards of the live slots."""
        return self.searching.estimates

    @property
    def on_decision(self) -> Callable[[Entry], object] | None:
        """Called with each decision of the search, as the journal has it, before it is carried out."""
        return self.searching.on_decision

    @on_decision.setter
    def on_decision(self, listener: Callable[[Entry], object] | None) -> None:
        self.searching.on_decision = listener

    def _make_search(self, automl: AutomlOptions, *, width: int) -> Searching:
        run = self.configuration[RunOptions]
        return Searching(
            automl,
            self._layout,
            exact=self.exact,
            width=width,
            simple=self.kind == "simple",
            cells=min(len(self.weights), _SCREEN_CELLS),
            defaults=default_settings(self.configuration),
            unlearnt=self._unlearnt,
            random_seed=run.random_seed,
            replayed=replayed_entries(self.configuration, REGISTRY),
        )

    def _make_model(self, *, slots: int, training: bool) -> Model:
        n_cells, _, lanes = self.weights.shape
        model = make_model(
            self.configuration,
            self.weights,
            slots=slots,
            exact=self.exact,
            training=training,
            policies=self._task.exploration.policies,
            parts=self._task.parts,
        )
        if constant := self.configuration[FeatureOptions].constant:
            cell, lane = int(CONSTANT_HASH) % n_cells, 0
            if self.exact:
                cell, lane = divmod(int(CONSTANT_HASH) % (n_cells * lanes), lanes)
            self.weights[cell, 0, lane] = constant
            model.touched[cell] = True
        return model

    # -- streams ---------------------------------------------------------------------------------------

    def read(self, source: Source, *, diagnostics: Diagnostics | None = None) -> EventReader:
        """Open a source as this workspace understands it, and wait for its first byte.

        Parameters
        ----------
        source : path, bytes, binary file or None
            ``"-"`` and None are standard input.
        diagnostics : Diagnostics, optional
            Counts and keeps what is wrong with lines.

        Raises
        ------
        InputError
            The source cannot be opened, or is a file of blocks that this workspace cannot use.
        """
        return open_source(source, self.configuration, diagnostics=diagnostics)

    def stream(
        self, source: Sources, *, diagnostics: Diagnostics | None = None
    ) -> Iterator[tuple[Block, Outcomes]]:
        """Learn from a source, pass after pass, and yield each block with what it gave.

        The source is a path, the text itself as bytes, a binary file, None or ``"-"`` for standard input, or
        an iterable: of events as texts, of blocks, or of files, open or as `pathlib.Path`.

        With ``--passes``, the source is read again for each pass; held-out events decide when to stop early.

        Raises
        ------
        InputError
            The source cannot be read, or cannot be read again for a second pass.
        ParseError
            A line is malformed, under ``--strict_parse``.
        """
        run = self.configuration[RunOptions]
        if run.passes > 1 and not can_be_read_again(source):
            raise InputError("--passes needs a file: this input cannot be read a second time")
        holdout = Holdout(run)
        found = self.diagnostics if diagnostics is None else diagnostics
        for number in range(run.passes):
            heard = found if number == 0 else Diagnostics()
            for block in read_blocks(source, self.configuration, heard):
                if problem := (yield from self._learn_part(block, holdout)):
                    raise InputError(f"{heard.of_file}{problem}")
            self.end_pass()
            if holdout.end_pass():
                return

    def _learn_part(self, block: Block, holdout: Holdout) -> Generator[tuple[Block, Outcomes], None, str]:
        """Learn a block up to its first invalid event; say what is wrong with that, which is fatal."""
        checks = self._task.shape == CB_ADF and not self._task.slots  # those are checked as they are read
        valid, message = first_invalid_event(block) if checks else (len(block), "")
        part = block if valid == len(block) else block.head(valid)
        adf = self._task.shape == CB_ADF
        held = holdout.mark(part, by_line=self.exact and not adf, from_zero=self.exact and adf)
        outcomes = self._run(part, held, STREAM)
        holdout.add(outcomes)
        yield part, outcomes
        return message

    def fit(self, source: Sources) -> Workspace:
        r"""Learn from a source, all passes, and return self; see `stream` for what a source can be.

        >>> Workspace().fit(["1 |a x", "0 |a y"]).predict("|a x").round(1)
        array([0.5], dtype=float32)
        """
        for _ in self.stream(source):
            pass
        return self

    def end_pass(self) -> None:
        """Close a pass: decay the learning rate."""
        decay = np.float32(self.configuration[UpdateOptions].decay_learning_rate)
        self._rule = self._rule._replace(learning_rate=np.float32(self._rule.learning_rate * decay))
        self.current_pass += 1

    # -- one event, or a few ---------------------------------------------------------------------------

    def learn(self, text: str | bytes) -> NDArray[np.float32]:
        """Learn one event of VW text or JSON; return the prediction made for it before.

        Returns
        -------
        float32[n_actions], float32[n_slots, n_actions] or float32[1]
            Probability (``--cb_explore*``) or cost (``--cb_adf``, ``--cb``) of each action, by action; with
            ``--ccb_explore_adf`` for each slot, 0 where a slot before it has the action; the prediction of a
            single line.

        Raises
        ------
        InputError
            The text is not exactly one event.
        """
        block = self._parse_one(text)
        return self._by_action(self.learn_block(block))

    def predict(self, text: str | bytes) -> NDArray[np.float32]:
        """Predict one event of VW text or JSON without changing the model; like `learn` otherwise."""
        block = self._parse_one(text)
        return self._by_action(self.predict_block(block))

    def _parse_one(self, text: str | bytes) -> Block:
        if not isinstance(text, str | bytes):
            raise TypeError(f"an event is text (str or bytes), not {type(text).__name__}")
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        blocks = self._parser.parse(data)
        if len(blocks) != 1 or len(blocks[0]) != 1:
            found = sum(map(len, blocks))
            why = "; ".join(map(str, self._parser.diagnostics.kept)) or f"it has {found} events"
            raise InputError(f"the text is not one event: {why}")
        return blocks[0]

    def _by_action(self, outcomes: Outcomes) -> NDArray[np.float32]:
        if self.kind == "simple":
            return outcomes.prediction
        if outcomes.slots is not None:
            return outcomes.slots.by_action(outcomes.action_start, outcomes.action, outcomes.score)
        scores = np.empty(len(outcomes.action), np.float32)
        scores[outcomes.action] = outcomes.score
        return scores

    # -- blocks ----------------------------------------------------------------------------------------

    def learn_block(self, block: Block, *, holdout: NDArray[np.bool_] | None = None) -> Outcomes:
        """Predict and learn the events of a block, one after the other.

        Parameters
        ----------
        block : Block
            Events, of the kind that this workspace reads.
        holdout : bool[n_events], optional
            Events to predict and not to learn.

        Raises
        ------
        InputError
            An event has costs on two lines, or several on one, or `holdout` is not as long as the block;
            nothing of it is learnt.
        """
        if holdout is not None and np.shape(holdout) != (len(block),):
            raise InputError(
                f"holdout is of shape {np.shape(holdout)}, and the block has {len(block)} events"
            )
        if self._task.shape == CB_ADF and not self._task.slots:
            _, message = first_invalid_event(block)
            if message:
                raise InputError(message)
        return self._run(block, holdout, STREAM)

    def predict_block(self, block: Block) -> Outcomes:
        """Predict the events of a block; the model stays as it is."""
        noticed = self.exact and self.searching.slots.live.searching and not self.searching.replays
        return self._run(block, None, NOTICED if noticed else ASIDE)

    def _run(self, block: Block, holdout: NDArray[np.bool_] | None, standing: int) -> Outcomes:
        """Run the loop over a block.

        The search takes no note of events aside, but that VW meets the namespaces of what it predicts.
        """
        self._layout.update(block)
        slots = self._find_slots(block, standing) if self._task.slots else None
        n = len(block if slots is None else slots)
        held = np.zeros(len(block), bool) if holdout is None else np.ascontiguousarray(holdout, bool)
        if slots is not None:
            held = held[slots.event]
        samples = self._task.exploration.samples and self._task.exploration.active
        results = make_results(
            block,
            n_actions=self._most_actions(block, slots),
            samples=samples,
            exact=self.exact,
            slots=slots,
            aside=standing != STREAM,
        )
        searching = self.searching.slots.live.searching and standing != ASIDE
        if searching:
            self.searching.open_block()
        stream = make_stream(block, held, slots)
        self._scratch = enough_scratch(self._scratch, self._layout, block)
        cursor = np.zeros(4, np.int64)
        while True:
            context = self._make_context(block, stream)
            begin = int(cursor[EVENT])
            stop = self.searching.stop(begin, n) if searching else n
            run_events(context, stream, results, cursor, stop, standing)
            if not searching:
                break
            through = int(cursor[EVENT]) - begin if standing == STREAM else 0
            at = int(cursor[EVENT])
            event = at if slots is None else int(slots.event[min(at, n - 1)])
            self.searching.answer(cursor, block, self._model, event=event, through=through)
            if cursor[SIGNAL] == BLOCK_END and cursor[EVENT] == n:
                break
        return make_outcomes(block, held, results, simple=self.kind == "simple", slots=slots)

    def _find_slots(self, block: Block, standing: int) -> Slots:
        """Find the slots of a block, and take note of whether they are told from one another from now on."""
        slots = find_slots(
            block, self._layout, hash_seed=self.configuration[FeatureOptions].hash_seed, told=self._told
        )
        if self._told is False and (standing == STREAM or self.exact):
            self._told = slots.first_told < len(block)
        return slots

    def _make_context(self, block: Block, stream: Stream) -> Sealed[Context]:
        """What the loop works with, the same as the last time if nothing of it has changed."""
        layout, scratch = self._layout, self._scratch
        if len(scratch.factors) < layout.highest_order:
            self._scratch = scratch = enough_scratch(scratch, layout, block)
        live = self.searching.slots.live
        parts = (
            self._task,
            self._rule,
            layout.kernel_layout,
            layout.interactions,
            scratch,
            self._model,
            live,
            self.searching.screening.screen,
        )
        context = self._context
        if context is None or any(map(is_not, parts, context.value)):
            context = Sealed(Context(*parts, self._buffers))
        buffers = enough_room(context, layout, stream)
        if buffers is not self._buffers:
            self._buffers = buffers
            context = Sealed(Context(*parts, buffers))
        self._context = context
        return context

    def _most_actions(self, block: Block, slots: Slots | None) -> int:
        """No less than the actions of all events, or slots, together."""
        if self.kind == "simple":
            return 0
        if slots is not None:
            return int((slots.line - slots.number - block.event_start[slots.event] - 1).sum())
        return len(block) * self._task.n_actions if self._task.shape == CB else block.n_lines


cast("Any", Workspace).__signature__ = REGISTRY.signature()
