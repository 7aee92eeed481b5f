"""Workspace: a model that reads, predicts and learns. All interfaces of the library are built on it."""

from __future__ import annotations

import warnings
from copy import deepcopy
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import numpy as np

from onlineauto.automl.config import ORDERS
from onlineauto.automl.control import control_of
from onlineauto.automl.options import AutomlOptions
from onlineauto.automl.oracles import ORACLES
from onlineauto.engine.loop.block_runner import BlockRunner
from onlineauto.engine.loop.holdout import Holdout
from onlineauto.engine.loop.learner import Learner
from onlineauto.engine.loop.semantics import semantics_of
from onlineauto.engine.options.registry import RunOptions
from onlineauto.engine.outliers.located import locate_outliers
from onlineauto.engine.records.task import Shape
from onlineauto.engine.search.search_engine import Searching
from onlineauto.engine.stream.dialect import NATIVE, dialect_of
from onlineauto.engine.stream.position import Position, PositionedBlocks, split_every
from onlineauto.engine.stream.source import (
    kind_of,
    open_source,
    read_blocks,
    rules_of,
    with_datasets,
)
from onlineauto.engine.stream.validity import check_names, check_rules, first_invalid_event
from onlineauto.errors import InputError, OptionError
from onlineauto.features.block import NAME_RULES, NAMES
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.lines.diagnostics import Diagnostics, json_hint
from onlineauto.formats.lines.event_source import EndlessSource
from onlineauto.formats.mappings.identities import MOST_NUMBERS, has_new_numbers, numbers_in
from onlineauto.jit import plan
from onlineauto.learners.gradient_kernels import MAX_LABEL, MIN_LABEL
from onlineauto.learners.model import read_cells
from onlineauto.state.stored import Stored
from onlineauto.workspace.locked import Locked
from onlineauto.workspace.names import follow_names, is_utf8
from onlineauto.workspace.options import REGISTRY, parse_given_options
from onlineauto.workspace.predict_only import spin_off
from onlineauto.workspace.predictor import ParsingPredictor, Predictor, T, snapshot
from onlineauto.workspace.save_load import check_options, load_model, save_model, with_changed_options

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO, Unpack

    from numpy.typing import NDArray

    from onlineauto.automl.search import Search
    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.search.estimates import Estimates
    from onlineauto.engine.search.observers import Observation, Observer
    from onlineauto.engine.stream.event_readers import OneEventLike
    from onlineauto.engine.stream.source import BlockSource, Sources
    from onlineauto.features.block import Block, Rules
    from onlineauto.features.layout import StreamLayout
    from onlineauto.formats.lines.event_source import EventReader
    from onlineauto.formats.mappings.encoded_event import EncodedEvent
    from onlineauto.formats.mappings.identities import Identities
    from onlineauto.formats.sources.source import Source
    from onlineauto.options import Configuration
    from onlineauto.workspace.model_file import State
    from onlineauto.workspace.option_types import Options
    from onlineauto.workspace.predict_only import PredictOnly
    from onlineauto.workspace.predictor import Scored
    from onlineauto.workspace.save_load import ModelSource


_ENOUGH: Final = 1000
"""Number of events after which namespaces without any event are reported."""


def make_layout(configuration: Configuration, *, slots: bool) -> StreamLayout:
    """Return the layout before the first event; with `slots`, events have CCB slots."""
    automl = configuration[AutomlOptions]
    searched: tuple[int, ...] = ()
    if automl.automl:
        searched = (
            ORACLES[automl.oracle_type or control_of(configuration).oracle].orders
            or ORDERS[automl.interaction_type]
        )
    singled = bool(searched) and "namespaces" in automl.searched()
    features = configuration[FeatureOptions]
    layout = dialect_of(configuration).layout
    return layout(features, searched=searched, singled=singled, slots=slots)


class Workspace(Locked):
    r"""A model, with its options and everything that it has learnt.

    Options are keyword arguments, or one text with a command line of options. Four have names of Python, and
    the flags are aliases: `seed`, `live_configs` (``--automl``), `hash_bits` (``--bit_precision``) and `loss`
    (``--loss_function``). All others are named as on the command line.

    Threads may share a workspace: calls that learn, predict, save or copy run one after the other, and a
    `stream` lets other calls run between its blocks. Only one thread at a time may `fit` or iterate a
    `stream`.

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
    configuration : Configuration or str, optional
        Options as on a command line, such as ``"--cb_explore_adf -q ua"``, or parsed options, instead of
        keywords.
    **options
        Values of options.

    Attributes
    ----------
    configuration : Configuration
        The options in force.
    semantics : Semantics
        The choices in which native mode and ``--vw_exact`` differ.
    kind : {"simple", "cb_adf", "cb_explore_adf", "ccb_explore_adf", "cb", "cb_explore"}
        The kind of events and predictions.
    learner : Learner
        The table of weights, and the learning rule.
    layout : Layout
        Maps namespaces to groups of features, and has the interactions.
    identities : frozenset of str
        Columns whose numbers are names, each as ``namespace^column``; see ``--name_columns``.
    searching : Searching
        The search of ``--automl``; without ``--automl``, it has only a champion.
    diagnostics : Diagnostics
        Problems with the input of `fit` and `stream`, counted and located.
    position : Position
        The passes and events that `stream` has completed.
    predicts_only : bool
        True if the workspace has only the numbers for predictions, and cannot learn.

    Raises
    ------
    OptionError
        An option is unknown, out of range, or contradicts another.
    """

    is_scaled: ClassVar[bool] = False
    """True for the workspace of a model that scales numbers and labels."""

    def __init__(self, configuration: Configuration | str | None = None, **options: Unpack[Options]) -> None:
        configuration = parse_given_options(configuration, **options)
        self.configuration = configuration
        self.kind = kind_of(configuration)
        self.semantics = semantics_of(configuration)
        self.diagnostics, self.position, self.predicts_only = Diagnostics(), Position(), False
        self.unseen_namespaces: set[bytes] = set()  # declared, see `notice`, and not seen yet
        self.learner = Learner(configuration, kind=self.kind, semantics=self.semantics)
        self.layout = make_layout(configuration, slots=self.learner.task.slots)
        self.searching = Searching(configuration, self.layout, self.learner)
        self._runner = BlockRunner(
            configuration,
            layout=self.layout,
            learner=self.learner,
            searching=self.searching,
            semantics=self.semantics,
        )
        plan(self._runner)
        self._rules = rules_of(configuration)
        self._number_columns: set[str] = set()
        self._noted: set[tuple[str, str, type]] = set()  # namespaces, columns and types of these
        self._followed: Rules | None = None  # the rules of names that were learnt last
        self._asked = ParsingPredictor(
            configuration, self.layout, semantics=self.semantics, live_configs=self.learner.shape.configs
        )
        self.identities: Identities = self._asked.readers.mapping.identities

    def __repr__(self) -> str:
        """Return the options in force."""
        return f"Workspace({self.configuration.command()!r})"

    @property
    def weights(self) -> NDArray[np.float32]:
        """A copy of weight, Σ gradient², scale and last rate of each cell: float32[cells, 4, lanes].

        There is a lane for each live config, the champion's first, and more for estimates and policies.
        """
        return read_cells(self.learner.model)

    @property
    def search(self) -> Search:
        """The state of the search: configs, queue, leases; an immutable value.

        Raises
        ------
        OptionError
            This is a replay, which has no such state; `searching.live_configs` has the live configs.
        """
        if self.searching.replays:
            raise OptionError("a replay has no search; searching.live_configs has the live configs")
        return self.searching.search

    @property
    def label_range(self) -> tuple[float, float]:
        """The smallest and largest learnt label or cost, and 0; predictions are clipped to this range."""
        shared = self.learner.model.shared
        return float(shared[MIN_LABEL]), float(shared[MAX_LABEL])

    @property
    def outliers(self) -> dict[str, int]:
        """The number of events not learnt because a number is far beyond all others, by kind of number."""
        return self.learner.outliers

    @property
    def estimates(self) -> Estimates:
        """Bounds on the rewards of the live configs."""
        return self.searching.estimates

    def observe(self, observer: Observer) -> Observation:
        """Call `observer` with each decision of the search, as in the journal, before it is applied.

        Several observers are called in the order of their registration. The result removes the observer, with
        its `remove` or at the end of a ``with`` block. A copy of a workspace has no observers.
        """
        return self.searching.observers.add(observer)

    # -- names of features -----------------------------------------------------------------------------

    @property
    def name_rules(self) -> Rules:
        """The rule by which the names of this model were made, as blocks have it; empty if unknown."""
        names: Any = {name: self.configuration.get(name) for name in ("names", "name_columns")}
        return names | {"number_columns": (*self._number_columns,)} if names["names"] in NAME_RULES else {}

    def check_block(self, block: Block, *, learns: bool = False) -> None:
        """Compare the rules of a block with those of this model; record new ones if it `learns`."""
        check_rules(block, self._rules)
        self.follow_names(block.rules, learns=learns)

    def follow_names(self, rules: Rules, *, learns: bool = True) -> None:
        """Record the rule, the identities and the numbers of events, or compare them with the model's."""
        if rules is self._followed or NAMES.isdisjoint(rules):
            return
        if dialect_of(self.configuration) is not NATIVE:
            if rules.get("names") == "columns":
                check_names(self.configuration[FeatureOptions].names, "columns")
            return
        with self._lock:
            before = self.configuration
            self.configuration = follow_names(before, self._number_columns, rules, learns=learns)
            if learns:
                self._followed = rules
            if self.configuration is not before:
                self._rules = rules_of(self.configuration)
                self._asked.read_by(self.configuration)
                self.identities = self._asked.readers.mapping.identities

    def note_numbers(self, *features: Mapping[str, Any]) -> None:
        """Record the columns of dicts that have numbers, which cannot become identities later."""
        numbers = self._number_columns
        if len(numbers) < MOST_NUMBERS:
            for columns in features:
                if has_new_numbers(columns, self._noted):
                    numbers.update(numbers_in(columns))

    # -- streams ---------------------------------------------------------------------------------------

    def read(self, source: Source, *, diagnostics: Diagnostics | None = None) -> EventReader:
        """Open a source with the options of this workspace, and wait for its first byte.

        Parameters
        ----------
        source : path, bytes, binary file or None
            ``"-"`` and None are standard input.
        diagnostics : Diagnostics, optional
            Counts and stores problems with lines.

        Raises
        ------
        InputError
            The source cannot be opened, or is a file of blocks that this workspace cannot use.
        """
        return open_source(source, self.configuration, diagnostics=diagnostics)

    def stream(
        self,
        source: Sources,
        *,
        diagnostics: Diagnostics | None = None,
        start: Position | None = None,
        every: int | None = None,
        read: BlockSource = read_blocks,
    ) -> Iterator[tuple[Block, Outcomes]]:
        """Learn from a source, pass after pass, and yield each block with its outcomes.

        The source is a path, the text as bytes, a binary file, None or ``"-"`` for standard input, or an
        iterable: of events as texts, of blocks, or of files, open or as `pathlib.Path`.

        With ``--passes``, the source is read again for each pass; held-out events decide when to stop early.
        A `start`, which is the `position` of another run over this source, continues that run. With `every`,
        a block ends after every `every` events of a pass. To process each block before it is learnt, pass a
        `read` in place of `read_blocks`.

        Raises
        ------
        InputError
            The source cannot be read, or cannot be read again for a second pass, or ends before the start.
        ParseError
            A line is malformed, or an event is too wide, under ``--strict_parse``.
        """
        run, source = self.configuration[RunOptions], with_datasets(source, self.configuration)
        events = PositionedBlocks(source, self.configuration, read)
        if run.passes > 1 and not events.can_be_read_again:
            raise InputError("--passes needs a file: this input cannot be read a second time")
        holdout, diagnosed = Holdout(run), self.diagnostics if diagnostics is None else diagnostics
        self.position = start = start or Position()
        if start.held_out:
            holdout.recount(start.held_out)
        for number in range(start.passes, run.passes):
            part_problems = diagnosed if number == 0 else Diagnostics()
            events.seek(start.where() if number == start.passes else None)
            blocks = events.blocks(part_problems)
            for block in blocks if every is None else split_every(every, blocks):
                with self._lock:
                    part, outcomes, problems = self._learn_part(block, holdout, part_problems)
                locate_outliers(part, outcomes, part_problems)
                yield part, outcomes
                if problems:
                    raise problems.pop()
                self.notice(block.namespaces.names, self.position.events)
            self.notice((), self.position.events, ends=True)
            if isinstance(source, EndlessSource):
                return
            self.end_pass()
            stops = holdout.end_pass()
            self.position = Position(run.passes if stops else number + 1, 0, holdout.counts())
            if stops:
                return

    def _learn_part(
        self, block: Block, holdout: Holdout, problems: Diagnostics
    ) -> tuple[Block, Outcomes, list[InputError]]:
        """Learn a block up to its first invalid event; return that part, its outcomes, and the problem."""
        self.check_block(block, learns=True)
        valid, message = first_invalid_event(block, self.kind)
        part = block if valid == len(block) else block.head(valid)
        adf, by_line = self.learner.task.shape == Shape.CB_ADF, self.semantics.holds_out_by_line
        mask = holdout.mark(part, by_line=by_line and not adf, from_zero=by_line and adf)
        part, outcomes, too_wide = self._runner.learn(part, mask, problems)
        holdout.add(outcomes)
        self.position = Position(self.position.passes, self.position.events + len(part), holdout.counts())
        return part, outcomes, [*too_wide] or [InputError(f"{problems.of_file}{message}")] * bool(message)

    def notice(self, names: Iterable[bytes], n_events: int, *, ends: bool = False) -> None:
        """Warn once of declared namespaces that no event had; `names` are of new ones, `ends` of a stream."""
        if not self.unseen_namespaces:
            return
        self.unseen_namespaces.difference_update(names)
        if not self.unseen_namespaces or not n_events or not (ends or n_events >= _ENOUGH):
            return
        seen_names = set(self.layout.state()["known"]) - self.unseen_namespaces
        unseen, present = (
            ", ".join(sorted(name.decode("utf-8", "backslashreplace") for name in names))
            for names in (self.unseen_namespaces, seen_names)
        )
        self.unseen_namespaces = set()
        message = f"no event of the first {n_events:,} has the namespace {unseen}, which begin_with or "
        message += f"warm_start(namespaces=…) names; they have {present}"
        warnings.warn(message, UserWarning, stacklevel=3)

    def fit(self, source: Sources) -> Workspace:
        r"""Learn from a source, all passes, and return self; see `stream` for what a source can be.

        Malformed lines are skipped. A warning summarises them, and `diagnostics` lists them.

        Raises
        ------
        InputError
            Like `stream`; or no event of the source could be read.

        Examples
        --------
        >>> Workspace().fit(["1 |a x", "0 |a y"]).predict("|a x").round(1)
        array([0.5], dtype=float32)
        """
        counts, n_stored = self.diagnostics.counts.copy(), len(self.diagnostics.kept)
        events = sum(len(block) for block, _ in self.stream(source))
        if (problems := self.diagnostics.problems_since(counts, n_stored)).total:
            summary = problems.summary()
            if not events:
                raise InputError(f"no event could be read{json_hint(summary)}\n{summary}")
            warnings.warn(f"{summary}{json_hint(summary)}", UserWarning, stacklevel=2)
        return self

    def end_pass(self) -> None:
        """Close a pass: decay the learning rate."""
        with self._lock:
            self.learner.end_pass()

    # -- models ----------------------------------------------------------------------------------------

    def state(self, *, copy: bool = True) -> State:
        """Return the content of a model file, as a tree of plain values and arrays.

        Without `copy`, arrays are the ones in use: for a caller that reads them before the next event.

        Raises
        ------
        OptionError
            A journal is replayed.
        """
        with self._lock:
            state: State = {
                "options": self.configuration.command(kept=True),
                "predicts_only": self.predicts_only,
                "learner": self.learner.state(),
                "layout": self.layout.state(),
                "slots": self._runner.state(),
                "search": self.searching.state(),
                "number_columns": sorted(column for column in self._number_columns if is_utf8(column)),
            }
            return deepcopy(state) if copy else state

    def restore(self, state: State) -> None:
        """Restore the `state` of a workspace with the same options; a failure leaves this one unchanged.

        Raises
        ------
        OptionError
            A journal is replayed; or the model can only predict, and this workspace must learn.
        ValueError
            The state has other options, or is not the state of a workspace.
        """
        stored = Stored(state)
        predicts_only = stored["predicts_only"].truth()
        if predicts_only and not self.configuration[RunOptions].testonly:
            raise OptionError(
                "the model was saved to predict only: load it with --testonly (-t), in Python with "
                "Workspace.load(…, testonly=True); it cannot learn, be merged or be converted"
            )
        fresh = type(self)(configuration=self.configuration)
        fresh.predicts_only = predicts_only
        fresh.learner.restore(stored["learner"])
        if predicts_only:
            fresh.searching.live_configs.only_predict()
        else:
            fresh.learner.fields = 4
        fresh.layout.restore(stored["layout"])
        fresh.searching.restore(stored["search"], fresh.learner.model)
        fresh._runner.restore(stored["slots"])  # noqa: SLF001 - of this class
        if "number_columns" in stored:
            fresh._number_columns = set(stored["number_columns"].convert(list[str]))  # noqa: SLF001
        with self._lock:
            fresh.searching.observers = self.searching.observers
            fresh.diagnostics, fresh.position = self.diagnostics, self.position
            vars(self).update(vars(fresh))

    def fork(self, **overrides: Unpack[Options]) -> Workspace:
        """Return a copy of this workspace with other options, which learns separately from now on.

        Only options that may change when a model is loaded can differ.

        >>> Workspace(learning_rate=0.1).fit(["1 |a x"]).fork(learning_rate=0.9)
        Workspace('--learning_rate 0.9')

        Raises
        ------
        OptionError
            An option that the model stores has another value and cannot change; or a journal is replayed.
        """
        options = REGISTRY.from_keywords(**overrides)
        copy_ = type(self)(
            configuration=with_changed_options(self.configuration, options, name="the workspace")
        )
        with self._lock:
            copy_.restore(self.state(copy=False))
        return copy_

    def save(self, target: str | os.PathLike[str] | BinaryIO, *, predict_only: PredictOnly = False) -> None:
        r"""Write this model to a file. An existing file is replaced atomically.

        With `predict_only` the file is smaller and the model cannot learn: "ensemble" saves everything that
        predicts now, and "champion", or True, the champion alone, as with ``--predict_with champion``.

        >>> import io
        >>> file = io.BytesIO()
        >>> Workspace(learning_rate=0.3).fit(["1 |a x", "0 |a y"]).save(file)
        >>> Workspace.load(file.getvalue()).predict("|a x").round(1)
        array([0.3], dtype=float32)

        Raises
        ------
        OSError
            The file cannot be written; an existing file is unchanged.
        OptionError
            A journal is replayed, or an option is not UTF-8.
        """
        with self._lock:
            check_options(self.configuration)
            state = spin_off(self, predict_only) if predict_only else self.state(copy=False)
            save_model(state, target)

    @classmethod
    def load(cls, source: ModelSource, **options: Unpack[Options]) -> Workspace:
        """Return the workspace of a model file, or of the bytes of one, exactly as it was saved.

        Options that the file does not store must be passed again. Of the stored options, only some may have
        another value, for example epsilon.

        Raises
        ------
        InputError
            The file is not a model, is incomplete, or is of a later version.
        OptionError
            An option has another value and cannot change.
        """
        return load_model(cls, source, REGISTRY.from_keywords(**options))[0]

    # -- one event, or a few ---------------------------------------------------------------------------

    def learn(self, event: OneEventLike) -> NDArray[np.float32]:
        """Learn one event; return the prediction made for it before.

        Parameters
        ----------
        event : str, bytes, mapping or list of str
            VW text or JSON; a mapping as for `onlineauto.interop.from_dicts`; or the lines of a text.

        Returns
        -------
        float32[n_actions], float32[n_slots, n_actions] or float32[1]
            Probability (``--cb_explore*``) or cost (``--cb_adf``, ``--cb``) of each action; with
            ``--ccb_explore_adf`` for each slot, 0 for an action of an earlier slot. On a single line, the
            prediction.

        Raises
        ------
        InputError
            The argument is not exactly one event.
        """
        with self._lock:
            reader = self._asked.readers.reader_of(event)
            self.follow_names(reader.names_of(event))
            one = self._runner.learn_one(event, reader, self.diagnostics)
            if one is not None:
                return one.prediction()
            prediction = self.learn_block(reader.parse_one(event)).one_prediction()
            self.diagnostics.add(reader.take_problems())
            return prediction

    def learn_outcome(self, event: EncodedEvent, action: int) -> tuple[float, bool]:
        """Learn a decision fast; return its former probability, and whether it surely is no outlier."""
        with self._lock:
            self.follow_names(self._asked.readers.mapping.read_by)
            one = self._runner.learn_one(event, self._asked.readers.mapping, self.diagnostics)
            if one is not None:
                return one.predicted(action), one.usual
            prediction = self.learn(event)
            return float(prediction[action]) if len(prediction) else 0.0, False

    def predict(self, event: OneEventLike) -> NDArray[np.float32]:
        """Predict one event without changing the model, with the parameters and result of `learn`.

        Raises
        ------
        InputError
            The argument is not exactly one event.
        """
        with self._lock:
            if self.semantics.notices_predicted:
                return self.predict_block(
                    self._asked.readers.reader_of(event).parse_one(event)
                ).one_prediction()
            return self._asked.predict_event(event, self._runner.predicting())

    def predict_each(self, events: Sequence[OneEventLike]) -> list[NDArray[np.float32] | InputError]:
        """Predict each event like `predict`; an error is returned in place of the prediction of its event."""
        results: list[NDArray[np.float32] | InputError] = []
        with self._lock:
            for event in events:
                try:
                    results.append(self.predict(event))
                except InputError as error:
                    results.append(error)
        return results

    def scored(self, event: OneEventLike, use: Callable[[Scored], T]) -> T:
        """Return the result of `use` for an event with the scores of its actions; see `interop.explain`."""
        with self._lock:
            return use(self._asked.scored(event, self._runner.predicting()))

    # -- blocks ----------------------------------------------------------------------------------------

    def use_threads(self, n: int) -> None:
        """Learn blocks with up to `n` threads: with 2, the ensemble follows the live configs on its own."""
        self._runner.in_two = n > 1

    def learn_block(self, block: Block, *, holdout: NDArray[np.bool_] | None = None) -> Outcomes:
        """Predict and learn the events of a block, one after the other; return the outcomes.

        Parameters
        ----------
        block : Block
            Events of the kind that this workspace reads.
        holdout : bool[n_events], optional
            True for events to predict without learning.

        Raises
        ------
        InputError
            An event has costs on two lines, or several on one; or `holdout` is not as long as the block; or
            the block was read with other options. Nothing of the block is learnt.
        """
        self.check_block(block, learns=True)
        if holdout is not None and np.shape(holdout) != (len(block),):
            raise InputError(
                f"holdout has the shape {np.shape(holdout)}, but the block has {len(block)} events"
            )
        _, message = first_invalid_event(block, self.kind)
        if message:
            raise InputError(message)
        with self._lock:
            _, outcomes, too_wide = self._runner.learn(block, holdout, self.diagnostics)
        if too_wide:
            raise too_wide.pop()
        return outcomes

    def predict_block(self, block: Block) -> Outcomes:
        """Predict the events of a block without changing the model; return the outcomes.

        With ``--vw_exact`` a search also counts the namespaces of predicted events, like Vowpal Wabbit.

        Raises
        ------
        InputError
            The block was read with other options.
        """
        self.check_block(block)
        with self._lock:
            if self.semantics.notices_predicted:
                return self._runner.notice(block)
            return self._asked.predict(block, self._runner.predicting())

    def predictor(self) -> Predictor:
        """Return an immutable snapshot of this model, which many threads may use at once without a lock.

        Raises
        ------
        OptionError
            Predictions change this model, because it uses ``--vw_exact``.
        """
        with self._lock:
            return Predictor(self.configuration, snapshot(self.configuration, self._runner.predicting()))


_KEYWORDS: Final = REGISTRY.signature().parameters.values()
_FIRST: Final = Parameter("configuration", Parameter.POSITIONAL_OR_KEYWORD, default=None)
cast("Any", Workspace).__signature__ = Signature([_FIRST, *_KEYWORDS])
