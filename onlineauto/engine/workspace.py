"""Workspace: a model that reads, predicts and learns; the one engine behind every surface."""

from __future__ import annotations

from itertools import groupby
from os import PathLike
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from onlineauto.engine._kernels import run_events
from onlineauto.engine.example_kernels import EXPONENTIAL, GLF1, IDENTITY, LOGIT
from onlineauto.engine.holdout import Holdout
from onlineauto.engine.options import REGISTRY, OutputOptions, RunOptions
from onlineauto.engine.outcomes import Outcomes
from onlineauto.engine.source import kind_of, open_text
from onlineauto.engine.state import CB, CB_ADF, ROW, SIMPLE, Buffers, Model, Results, Run, Task
from onlineauto.engine.validity import first_invalid_event
from onlineauto.errors import InputError, OptionError
from onlineauto.explorers.options import ExplorerOptions
from onlineauto.features._kernels import CONSTANT_HASH
from onlineauto.features.block import UNLABELLED, Block
from onlineauto.features.layout import Layout
from onlineauto.features.options import FeatureOptions
from onlineauto.features.records import pack
from onlineauto.formats.diagnostics import Diagnostics
from onlineauto.formats.event_file import EventFile
from onlineauto.formats.options import InputOptions
from onlineauto.learners.cost_kernels import DM, DR, IPS, MTR
from onlineauto.learners.options import CbOptions, LossOptions, UpdateOptions
from onlineauto.learners.rule import initial_state, initial_weights, make_rule
from onlineauto.options import options_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from onlineauto.formats.source import Source
    from onlineauto.formats.text import TextReader
    from onlineauto.options import Configuration


__all__ = ["Workspace"]

_CB_TYPES = {"mtr": MTR, "ips": IPS, "dr": DR, "dm": DM}
_LINKS = {"identity": IDENTITY, "logistic": LOGIT, "glf1": GLF1, "poisson": EXPONENTIAL}
_SHAPES = {"simple": SIMPLE, "cb_adf": CB_ADF, "cb_explore_adf": CB_ADF, "cb": CB, "cb_explore": CB}


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
    kind : {"simple", "cb_adf", "cb_explore_adf", "cb", "cb_explore"}
        What an event is and what is predicted for it.
    weights : float32[cells, 4, lanes]
        Weight, Σ gradient², scale and last rate of every cell.
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
            _refuse_command_line(configuration)
        elif options:
            raise TypeError("options go either into the configuration or into keywords, not into both")
        self.configuration = configuration
        self.kind = kind_of(configuration)
        self.exact = configuration[RunOptions].vw_exact
        self.current_pass = 0
        self.diagnostics = Diagnostics()
        training = not configuration[RunOptions].testonly
        lanes = 2 if self.kind != "simple" and configuration[CbOptions].cb_type == "dr" else 1
        cells = max(1, 2 ** configuration[FeatureOptions].bit_precision // lanes)
        self.weights = initial_weights(configuration, cells=cells, lanes=lanes)
        self._model = self._make_model(initial_state(configuration, training=training))
        self._rule = make_rule(configuration, guarded=not self.exact)
        self._task = self._make_task(training=training)
        self._layout = Layout(configuration[FeatureOptions], exact=self.exact)
        self._buffers = _make_buffers(features=1024, actions=16)

    def __repr__(self) -> str:
        """Show the options in force."""
        return f"Workspace({self.configuration.command()!r})"

    def _make_model(self, shared: NDArray[np.float64]) -> Model:
        lanes = self.weights.shape[2]
        features = self.configuration[FeatureOptions]
        if features.constant:
            unit = int(CONSTANT_HASH) % (self.weights.shape[0] * lanes)
            cell, lane = (
                divmod(unit, lanes) if self.exact else (int(CONSTANT_HASH) % self.weights.shape[0], 0)
            )
            self.weights[cell, 0, lane] = features.constant
        sums = np.zeros((lanes, 2))
        sums[0] = np.float32(self.configuration[UpdateOptions].initial_t or 0)
        return Model(weights=self.weights, shared=shared, lanes=sums, sums=np.zeros(2, np.int64))

    def _make_task(self, *, training: bool) -> Task:
        configuration = self.configuration
        cb, loss, explorer = (
            configuration[CbOptions],
            configuration[LossOptions],
            configuration[ExplorerOptions],
        )
        n_actions = cb.cb or explorer.cb_explore or 0
        return Task(
            shape=_SHAPES[self.kind],
            cb_type=_CB_TYPES[cb.cb_type],
            n_actions=n_actions,
            action_bits=(1 << n_actions.bit_length()) - 1,
            explore=self.kind.startswith("cb_explore"),
            epsilon=np.float32(explorer.epsilon),
            first_only=explorer.first_only,
            clip_p=np.float32(cb.clip_p),
            link=_LINKS[loss.link],
            binary=loss.binary,
            training=training,
            exact=self.exact,
            mask=np.uint64(self.weights.shape[0] - 1),
        )

    # -- streams ---------------------------------------------------------------------------------------

    def read(self, source: Source, *, diagnostics: Diagnostics | None = None) -> TextReader:
        """Open VW text as this workspace understands it.

        Parameters
        ----------
        source : path, bytes, binary file or None
            ``"-"`` and None are standard input.
        diagnostics : Diagnostics, optional
            Counts and keeps what is wrong with lines.

        Raises
        ------
        InputError
            The source cannot be opened.
        """
        return open_text(source, self.configuration, diagnostics=diagnostics)

    def stream(
        self, source: Source | Iterable[str | bytes | Block], *, diagnostics: Diagnostics | None = None
    ) -> Iterator[tuple[Block, Outcomes]]:
        """Learn from a source, pass after pass, and yield each block with what it gave.

        The source is a path, the text itself as bytes, a binary file, None or ``"-"`` for standard input, or
        an iterable of events: texts, one event each, or blocks.

        With ``--passes``, the source is read again for each pass; held-out events decide when to stop early.

        Raises
        ------
        InputError
            The source cannot be read, or cannot be read again for a second pass.
        ParseError
            A line is malformed, under ``--strict_parse``.
        """
        run = self.configuration[RunOptions]
        if run.passes > 1 and (source in (None, "-") or not isinstance(source, str | PathLike | bytes)):
            raise InputError("--passes needs a file: this input cannot be read a second time")
        holdout = Holdout(run)
        found = self.diagnostics if diagnostics is None else diagnostics
        for number in range(run.passes):
            left = -1 if self.exact else self.configuration[InputOptions].examples
            for block in self._blocks(source, found if number == 0 else Diagnostics()):
                part = block if left < 0 else block.head(min(left, len(block)))
                yield from self._learn_part(part, holdout)
                left -= len(part) if left >= 0 else 0
                if left == 0:
                    break
            self.end_pass()
            if holdout.end_pass():
                return

    def _blocks(self, source: Source | Iterable[str | bytes | Block], found: Diagnostics) -> Iterator[Block]:
        """Yield the blocks of a source, or of the events that an iterable gives."""
        if source is None or isinstance(source, str | PathLike | bytes) or hasattr(source, "read"):
            yield from self.read(cast("Source", source), diagnostics=found)
            return
        for given, items in groupby(source, lambda item: isinstance(item, Block)):
            if given:
                yield from cast("Iterator[Block]", items)
            else:
                texts = cast("Iterator[str | bytes]", items)
                file = EventFile(texts, multiline=self._task.shape == CB_ADF)
                yield from self.read(cast("BinaryIO", file), diagnostics=found)

    def _learn_part(self, block: Block, holdout: Holdout) -> Iterator[tuple[Block, Outcomes]]:
        """Learn a block up to its first invalid event, which is fatal after that."""
        valid, message = first_invalid_event(block) if self._task.shape == CB_ADF else (len(block), "")
        part = block if valid == len(block) else block.head(valid)
        adf = self._task.shape == CB_ADF
        held = holdout.mark(part, by_line=self.exact and not adf, from_zero=self.exact and adf)
        outcomes = self._run(part, self._task, held)
        holdout.add(outcomes)
        yield part, outcomes
        if message:
            raise InputError(message)

    def fit(self, source: Source | Iterable[str | bytes | Block]) -> Workspace:
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
        """Learn one event of VW text; return the prediction made for it before.

        Returns
        -------
        float32[n_actions] or float32[1]
            Probability (``--cb_explore*``) or cost (``--cb_adf``, ``--cb``) of each action, by action; the
            prediction of a single line.

        Raises
        ------
        InputError
            The text is not exactly one event.
        """
        block = self._parse_one(text)
        return self._by_action(self.learn_block(block))

    def predict(self, text: str | bytes) -> NDArray[np.float32]:
        """Predict one event of VW text without changing the model; like `learn` otherwise."""
        block = self._parse_one(text)
        return self._by_action(self.predict_block(block))

    def _parse_one(self, text: str | bytes) -> Block:
        if not isinstance(text, str | bytes):
            raise TypeError(f"an event is text (str or bytes), not {type(text).__name__}")
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        reader = self.read(data, diagnostics=Diagnostics())
        blocks = list(reader)
        if len(blocks) != 1 or len(blocks[0]) != 1:
            found = sum(map(len, blocks))
            why = "; ".join(map(str, reader.diagnostics.kept)) or f"it has {found} events"
            raise InputError(f"the text is not one event: {why}")
        return blocks[0]

    def _by_action(self, outcomes: Outcomes) -> NDArray[np.float32]:
        if self.kind == "simple":
            return outcomes.prediction
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
            An event has costs on two lines, or several on one; nothing of the block is learnt.
        """
        if self._task.shape == CB_ADF:
            _, message = first_invalid_event(block)
            if message:
                raise InputError(message)
        return self._run(block, self._task, holdout)

    def predict_block(self, block: Block) -> Outcomes:
        """Predict the events of a block; the model stays as it is."""
        shared = self._model.shared.copy()
        outcomes = self._run(block, self._task._replace(training=False), None)
        self._model.shared[:] = shared
        return outcomes

    def _run(self, block: Block, task: Task, holdout: NDArray[np.bool_] | None) -> Outcomes:
        held = np.zeros(len(block), bool) if holdout is None else holdout
        n_actions = self._count_actions(block)
        results = _make_results(block, n_actions)
        self._layout.update(block)
        most = int(n_actions.max(initial=0))
        if most > len(self._buffers.score):
            self._buffers = _make_buffers(features=len(self._buffers.cell), actions=most)
        run = Run(
            task=task,
            rule=self._rule,
            layout=self._layout.kernel_layout,
            interactions=self._layout.interactions,
            scratch=self._layout.scratch(block),
            stream=pack(block, held),
            model=self._model,
        )
        self._buffers = run_events(run, results, 0, len(block), self._buffers)
        return _make_outcomes(block, held, results, simple=self.kind == "simple")

    def _count_actions(self, block: Block) -> NDArray[np.int64]:
        if self.kind == "simple":
            return np.zeros(len(block), np.int64)
        if self._task.shape == CB:
            return np.full(len(block), self._task.n_actions, np.int64)
        return np.diff(block.event_start) - block.shared[block.event_start[:-1]]


def _refuse_command_line(configuration: Configuration) -> None:
    """Refuse options that only the command line acts on.

    Raises
    ------
    OptionError
        One of them was given as a keyword.
    """
    names = ("data", *(option.name for option in options_of(OutputOptions)))
    for name in names:
        if name in configuration.supplied:
            raise OptionError(f"{name} is for the command line; a Workspace has no use for it")


def _make_buffers(*, features: int, actions: int) -> Buffers:
    return Buffers(
        cell=np.empty(features, np.uint32),
        value=np.empty(features, np.float32),
        score=np.empty(actions, np.float32),
        target=np.zeros(actions, np.float32),
    )


def _make_results(block: Block, n_actions: NDArray[np.int64]) -> Results:
    """Room for the results of a block."""
    rows = np.zeros(len(block), ROW)
    rows["known_action"] = -1
    rows["known_cost"] = UNLABELLED
    rows["action_start"][1:] = np.cumsum(n_actions)[:-1]
    total = int(n_actions.sum())
    return Results(rows=rows, action=np.zeros(total, np.int32), score=np.zeros(total, np.float32))


def _make_outcomes(block: Block, holdout: NDArray[np.bool_], results: Results, *, simple: bool) -> Outcomes:
    line = block.event_start[:-1]
    n = len(block)
    columns = {str(name): np.ascontiguousarray(results.rows[name]) for name in results.rows.dtype.names}
    columns["action_start"] = np.append(columns["action_start"], len(results.action))
    return Outcomes(
        line=line,
        weight=block.weight[line] if simple else np.ones(n, np.float32),
        holdout=holdout,
        label=block.label[line] if simple else np.full(n, UNLABELLED),
        action=results.action,
        score=results.score,
        **columns,
    )


cast("Any", Workspace).__signature__ = REGISTRY.signature()
