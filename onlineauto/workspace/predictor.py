"""Predictor: an immutable snapshot of a workspace, which threads may use at the same time."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import numpy as np

from onlineauto.engine.ensemble.ensemble import to_predict
from onlineauto.engine.loop.block_predictor import BlockPredictor, no_screen
from onlineauto.engine.loop.semantics import semantics_of
from onlineauto.engine.loop.working_memory import Predicting
from onlineauto.engine.stream.event_readers import event_readers
from onlineauto.engine.stream.source import kind_of, rules_of
from onlineauto.engine.stream.validity import check_rules
from onlineauto.errors import InputError, OptionError
from onlineauto.explorers.ranking_kernels import PART
from onlineauto.features.block import NAMES
from onlineauto.learners.model import FIELDS, copy_model
from onlineauto.state.schema import copied
from onlineauto.workspace.names import follow_names
from onlineauto.workspace.pricing import check_priced, priced_pmf, without_exploration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.loop.semantics import Semantics
    from onlineauto.engine.records.loop import Context
    from onlineauto.engine.stream.event_readers import OneEventLike
    from onlineauto.features.block import Block
    from onlineauto.features.layout import StreamLayout
    from onlineauto.options import Configuration

T = TypeVar("T")

_MOST_NAMES = 1000
"""Number of unknown namespaces after which a parser is replaced, so that names cannot fill the memory."""


class Scored(NamedTuple):
    """An event with the scores of its actions, in memory that the next prediction overwrites."""

    block: Block
    outcomes: Outcomes
    context: Context  # buffers have the scores
    layout: StreamLayout
    semantics: Semantics


class ParsingPredictor(BlockPredictor):
    """A block predictor with a parser for single events; its ``with`` block ends by adding it to `idle`."""

    def __init__(
        self, configuration: Configuration, layout: StreamLayout, *, semantics: Semantics, live_configs: int
    ) -> None:
        super().__init__(configuration, layout, semantics=semantics, live_configs=live_configs)
        self._configuration = configuration
        self.readers = event_readers(configuration)
        self.idle: list[ParsingPredictor] = []

    def __enter__(self) -> Self:
        """Return this predictor, which is not in `idle`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let the next caller use this predictor; without a cycle of references, which would free it late."""
        idle, self.idle = self.idle, []
        idle.append(self)

    def read_by(self, configuration: Configuration) -> None:
        """Read single events with other options, of names."""
        self._configuration, self.readers = configuration, event_readers(configuration)

    def predict_event(self, event: OneEventLike, model: Predicting) -> NDArray[np.float32]:
        """Return the prediction of one event, a text or a mapping."""
        reader = self.readers.reader_of(event)
        prediction = self.predict_one(event, reader, model)
        if prediction is not None:
            return prediction
        if len(reader.namespaces) > model.layout.n_namespaces + _MOST_NAMES:
            self.read_by(self._configuration)
            reader = self.readers.reader_of(event)
        return self.predict(reader.parse_one(event), model).one_prediction()

    def predict_texts(self, texts: Sequence[bytes], model: Predicting) -> list[NDArray[np.float32]] | None:
        """Return the predictions of events, each a line of text; None if a line is not exactly one event."""
        reader = self.readers.text
        blocks = reader.parse(b"".join(texts))
        reader.take_problems()
        predictions: list[NDArray[np.float32]] = []
        if sum(map(len, blocks)) == len(texts):
            for block in blocks:
                outcomes = self.predict(block, model)
                start = outcomes.action_start
                pmf = np.empty(len(outcomes.score), np.float32)
                pmf[np.repeat(start[:-1], np.diff(start)) + outcomes.action] = outcomes.score
                predictions += np.split(pmf, start[1:-1])
        if len(reader.namespaces) > model.layout.n_namespaces + _MOST_NAMES:
            self.read_by(self._configuration)
        return predictions or None

    def learnt_parts(self, n: int) -> NDArray[np.float32]:
        """Return the learnt part of each of the `n` actions of the last event."""
        return self.last()[0].buffers.explored[PART, :n]

    def scored(self, event: OneEventLike, model: Predicting) -> Scored:
        """Return an event, a text or a mapping, with the scores of its actions."""
        block = self.readers.reader_of(event).parse_one(event)
        outcomes = self.predict(block, model)
        context, layout = self.last()
        return Scored(block, outcomes, context, layout, self._semantics)


class Predictor:
    r"""An immutable snapshot of a model, which predicts like the workspace at the time of the snapshot.

    `Workspace.predictor` creates one. Any number of threads may use it at the same time without a lock: each
    call has a separate parser and working memory, of about 2 MB, which later calls reuse. Predictions do not
    change a predictor.
    Creating one takes the time of copying the learnt cells.

    Examples
    --------
    >>> from onlineauto import Workspace
    >>> bandit = Workspace(cb_explore_adf=True, epsilon=0.2)
    >>> predictor = bandit.fit(["shared |u tom\n0:-1:0.5 |a politics\n|a sports\n"]).predictor()
    >>> for _ in range(9):
    ...     _ = bandit.learn("shared |u tom\n|a politics\n0:-1:0.5 |a sports\n")
    >>> predictor.predict("shared |u tom\n|a politics\n|a sports\n").round(2)
    array([0.9, 0.1], dtype=float32)

    Parameters
    ----------
    configuration : Configuration
        The options of the workspace.
    model : Predicting
        A result of `snapshot`.
    like : Predictor, optional
        An earlier predictor of the same workspace, whose parsers and working memories are reused.

    Attributes
    ----------
    configuration : Configuration
        The options of the workspace.
    kind : {"simple", "cb_adf", "cb_explore_adf", "ccb_explore_adf", "cb", "cb_explore"}
        The kind of events and predictions.

    Raises
    ------
    OptionError
        Predictions change this model, like in Vowpal Wabbit.
    """

    def __init__(
        self, configuration: Configuration, model: Predicting, *, like: Predictor | None = None
    ) -> None:
        self._semantics = semantics_of(configuration)
        if self._semantics.notices_predicted:
            raise OptionError(
                "a model of --vw_exact changes when it predicts, as in Vowpal Wabbit, so it has no predictor"
            )
        self.configuration = configuration
        self.kind = kind_of(configuration)
        self._model, self._rules = model, rules_of(configuration)
        self._pricing: Predicting | None = None
        self._idle = _no_memories() if like is None else like.memories_for(configuration, model)

    def __reduce__(self) -> tuple[type[Predictor], tuple[Configuration, Predicting]]:
        """Return the constructor call for a copy, which has no working memory yet."""
        return Predictor, (self.configuration, self._model)

    def __repr__(self) -> str:
        """Return the options in force."""
        return f"Predictor({self.configuration.command()!r})"

    def like(self, earlier: Predictor) -> Predictor:
        """Return this predictor with the parsers and working memories of an earlier one, which is faster."""
        return Predictor(self.configuration, self._model, like=earlier)

    def memories_for(self, configuration: Configuration, model: Predicting) -> _Memories:
        """Take the idle memories, without references to a model, for a predictor of `model` if they fit."""
        taken = _no_memories()
        if self.configuration == configuration and _lanes(self._model) == _lanes(model):
            for use, idle in self._idle.items():
                with suppress(IndexError):  # another thread has taken the last one
                    while idle:
                        memory = idle.pop()
                        memory.forget()
                        taken[use].append(memory)
        return taken

    def predict(self, event: OneEventLike) -> NDArray[np.float32]:
        """Predict one event, with the arguments and result of `Workspace.predict`.

        Raises
        ------
        InputError
            The argument is not exactly one event.
        """
        with self._memory() as memory:
            return memory.predict_event(event, self._model)

    def predict_texts(self, texts: Sequence[bytes]) -> list[NDArray[np.float32]] | None:
        """Predict events with actions, each a line of text, in less time than `predict` takes for each.

        Returns None if a line is not exactly one event; `predict` then raises an error for that line.
        """
        with self._memory() as memory:
            return memory.predict_texts(texts, self._model)

    def predict_priced(self, event: OneEventLike, prices: Sequence[float]) -> NDArray[np.float32]:
        """Predict one event with actions, like `predict`, with a price added to the cost of each action."""
        if self._pricing is None:
            check_priced(self.configuration)
            self._pricing = without_exploration(self._model)
        with self._memory("priced") as memory:
            scores = memory.predict_event(event, self._pricing)
            if len(scores) != len(prices):
                raise InputError(f"there are {len(prices)} prices for {len(scores)} actions")
            exploration, parts = self._model.parts.task.exploration, memory.learnt_parts(len(scores))
            return priced_pmf(self.configuration, exploration, scores, prices, parts)

    def scored(self, event: OneEventLike, use: Callable[[Scored], T]) -> T:
        """Return the result of `use` for an event with the scores of its actions; see `interop.explain`."""
        with self._memory() as memory:
            return use(memory.scored(event, self._model))

    def predict_block(self, block: Block) -> Outcomes:
        """Predict the events of a block; return the outcomes.

        Raises
        ------
        InputError
            The block was read with other options.
        """
        check_rules(block, self._rules)
        if not NAMES.isdisjoint(block.rules):
            follow_names(self.configuration, set(), block.rules, learns=False)
        with self._memory() as memory:
            return memory.predict(block, self._model)

    def _memory(self, use: str = "asked") -> ParsingPredictor:
        """Return an idle parser and working memory, or a new one; its ``with`` block makes it idle again."""
        idle = self._idle[use]
        try:
            memory = idle.pop()
        except IndexError:
            layout, lanes = self._model.layout, _lanes(self._model)
            memory = ParsingPredictor(
                self.configuration, layout, semantics=self._semantics, live_configs=lanes
            )
        memory.idle = idle
        return memory


_Memories = dict[str, list[ParsingPredictor]]


def _no_memories() -> _Memories:
    """Return the idle memories of a predictor without any, by their use."""
    return {"asked": [], "priced": []}


def _lanes(model: Predicting) -> int:
    """Return the maximum number of live configs of a model."""
    return len(model.parts.live.schedule.lease)


def snapshot(configuration: Configuration, model: Predicting) -> Predicting:
    """Return a copy of a model that does not change when the workspace learns.

    Only the bounds of costs, which some explorers need, depend on more than the weights.
    """
    parts = model.parts
    fields = FIELDS if parts.task.exploration.bounds else 1
    live = parts.live._replace(ensemble=to_predict(parts.live.ensemble, range(_lanes(model))))
    return Predicting.of(
        layout=model.layout.view(),
        parts=parts._replace(
            task=copied(parts.task, {}),
            model=copy_model(configuration, parts.model, fields=fields),
            live=copied(live, {}),
            screen=no_screen(),
        ),
        slot_finder=copy(model.slot_finder),
    )
