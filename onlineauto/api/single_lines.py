"""``SingleLines``: the base of `AutoMLRegressor` and `AutoMLClassifier`, whose events have one label."""

from __future__ import annotations

import io
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, overload

import numpy as np

from onlineauto.api.base import AutoModel, hide_class_name, options_of_model
from onlineauto.api.effects import effects_of, largest_first, parts_of, sample_rows
from onlineauto.api.feed import check_frame
from onlineauto.api.numbers import NumberEncoder
from onlineauto.api.tables import (
    LearntColumns,
    categories_of,
    check_roles,
    example_of,
    examples_or_blocks,
    frame_rows,
    is_frame,
    labelled_rows,
    mapping_of,
)
from onlineauto.engine.outliers.located import BEGAN_AGAIN, WHAT, add_outlier, outlier_message
from onlineauto.engine.records.loop import Outlier
from onlineauto.errors import InputError, OptionError
from onlineauto.features.block import UNLABELLED
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.lines.diagnostics import Diagnostics, ProblemCode
from onlineauto.formats.mappings.identities import named
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.mappings.named_event import check_weight, named_block, named_event
from onlineauto.formats.mappings.values import is_missing
from onlineauto.interop.datasets import dataset_rows, is_arrow
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterator, Sequence
    from typing import Self, TypeAlias

    from numpy.typing import NDArray

    from onlineauto.api.feed import Feed, LabelledEvents
    from onlineauto.api.tables import Rows, Shaped
    from onlineauto.features.block import Block
    from onlineauto.formats.mappings.identities import Identities
    from onlineauto.formats.mappings.named_event import NamedEvent
    from onlineauto.options import Configuration

Features: TypeAlias = "Mapping[Any, Any]"
"""Features by name, or by namespace: numbers, texts, truth values, lists of names, nested mappings."""


class ScaledWorkspace(Workspace):
    """A view of the workspace of a model that scales numbers and labels, which alone learns and predicts."""

    is_scaled = True

    @classmethod
    def of(cls, workspace: Workspace) -> Self:
        """Return a view, which shares all attributes and the lock of a workspace."""
        view = cls.__new__(cls)
        view.__dict__, view._lock = vars(workspace), workspace.lock  # noqa: SLF001 - of this class
        return view

    def _reject(self, *_: object, **__: object) -> NoReturn:
        raise OptionError(
            "the numbers and labels of this workspace are scaled by its model: call fit, learn, predict, "
            "predict_proba, explain and save of the AutoMLRegressor or AutoMLClassifier itself; each thread "
            "may have a copy"
        )

    learn = learn_block = stream = predict = predict_block = scored = predictor = state = _reject


@hide_class_name
class SingleLines(AutoModel):
    """A model of events with features and a label; a subclass defines `_learn_block` and `_check_label`."""

    _predicts: ClassVar[str] = "prediction"
    _table_call = "fit_table(table, label=…), or fit(frame, y) with separate labels"

    def __init__(
        self,
        options: Mapping[str, Any],
        *,
        live_configs: int | None,
        seed: int,
        begin_with: Sequence[str],
        hash_bits: int,
    ) -> None:
        options = options_of_model(options, live_configs=live_configs, seed=seed, hash_bits=hash_bits)
        options = {name: value for name, value in options.items() if value is not None}
        super().__init__(options, begin_with=begin_with)
        self._numbers = NumberEncoder()
        self._columns = LearntColumns()
        self._serve()

    def _serve(self) -> None:
        features = self._workspace.configuration[FeatureOptions]
        names = NameHashes(hash=features.hash, hash_seed=features.hash_seed)
        self._names = names.of_columns(self._workspace.identities)
        self._compared: Configuration | None = None  # options with which these names were compared

    def _identify(self, identities: Iterable[str]) -> Identities:
        """Record columns whose numbers are names, and return all of them."""
        with self._lock:
            self._workspace.note_numbers(dict.fromkeys(self._numbers.names, 0.0))
            known = NameHashes().of_columns({*identities} | self._workspace.identities)
            self._workspace.follow_names(known.rules)
            self._serve()
        return self._workspace.identities

    @property
    def workspace(self) -> Workspace:
        """A view of the workspace, to inspect: only this model scales what it learns and predicts."""
        return ScaledWorkspace.of(self._workspace)

    @abstractmethod
    def _check_label(self, label: Any, before: Collection[Any] = ()) -> Any:
        """Return a label in the form that the model uses; `before` are the labels that are learnt first."""

    @abstractmethod
    def _learn_block(self, block: Block, labels: Sequence[Any]) -> NDArray[np.uint8]:
        """Predict, count and learn the events of a block; return their outliers, see `Outcomes.outlier`."""

    # -- one event -------------------------------------------------------------------------------------

    def learn(self, features: Features, y: Any, *, weight: float = 1.0) -> None:
        """Learn an event."""
        if is_missing(y):
            raise InputError(f"the label is missing: {y!r}; leave out events without a label")
        given = self._to_learn(features)
        with self._lock:
            label, weight = self._check_label(y), check_weight(weight, "event")
            features = self._complete(named(given, self._workspace.identities), learns=True)
            event = {"context": self._encode(features), "weight": weight}
            if far := self._numbers.first_far(features):
                text = outlier_message(f"{far[0]}: the value {far[1]:g}")
                warnings.warn(text, UserWarning, stacklevel=2)
                return
            outlier = self._learn_one(event, label)
            self._numbers.add(features)
            self._columns.note(given)
            if outlier == Outlier.BEGINS_AGAIN:
                warnings.warn(BEGAN_AGAIN, UserWarning, stacklevel=2)
            elif outlier:
                description = (
                    f"the label {label:g}" if outlier == Outlier.FAR_COST else WHAT[Outlier(outlier)]
                )
                warnings.warn(outlier_message(description), UserWarning, stacklevel=2)

    def _to_learn(self, features: Any) -> Any:
        """Return the features of an event to learn, without labels and weights; `_encode` rejects others."""
        given = mapping_of(features)
        return features if given is None else self._columns.without_targets(given)

    def _learn_one(self, event: dict[str, Any], label: Any) -> int:
        """Predict, count and learn an event, to which the label is added here; return its outlier."""
        block = named_block([named_event(event | {"label": 0})], self._names)
        return int(self._learn_block(block, [label])[0])

    def _block_of(self, rows: Iterable[Any]) -> Block:
        """Return a block of at least one event without labels."""
        events = [
            named_event({"context": self._encode(row)}, where=f"row {index}")
            for index, row in enumerate(rows)
        ]
        return named_block(events, self._names)

    @property
    def _together(self) -> int:
        """The maximum number of events in one call."""
        return 256

    def _complete(self, features: Features, *, learns: bool = False) -> Features:  # noqa: ARG002
        """Return the features of an event with those that the model adds to them."""
        return features

    def _encode(self, features: Features) -> dict[str, Any]:
        if type(features) is not dict and not isinstance(features, Mapping):
            hint = "; fit_table and predict take frames" if is_frame(features) else ""
            if isinstance(features, list | tuple):
                hint = "; rows of numbers are a matrix: numpy.array(rows)"
            type_name = type(features).__name__
            raise InputError(f"features are a mapping of name to value, not {type_name}{hint}")
        if self._compared is not (options := self._workspace.configuration):
            self._workspace.follow_names(self._names.rules, learns=False)
            self._compared = options
        return self._numbers.encode_features(named(features, self._workspace.identities))

    def _learn_examples(self, items: Iterable[Any], first: int, problems: Diagnostics) -> InputError | None:
        """Learn events up to the first invalid one; return the error of that event."""
        events: list[NamedEvent] = []
        labels: list[Any] = []
        places: list[int] = []
        problem, problems.reading = None, "event"
        for number, item in enumerate(items, first):
            where = f"event {number}"
            try:
                example = example_of(item, where)
                if is_missing(example.label):
                    problems.locate(ProblemCode.NO_LABEL, number + 1, repr(example.label))
                    continue
                label, given = self._check_label(example.label, labels), self._to_learn(example.features)
                features = named(given, self._workspace.identities)
                example = example._replace(features=self._complete(features, learns=True))
                mapping = {"context": self._encode(example.features), "label": 0, "weight": example.weight}
                event = named_event(mapping, where=where)
                if far := self._numbers.first_far(example.features):
                    block = named_block([event], self._names)
                    block.lines["number"][:] = number + 1
                    add_outlier(block, 0, Outlier.FAR_VALUE, problems, number=far[1])
                    continue
                events.append(event)
                self._numbers.add(example.features)
                self._columns.note(given)
            except InputError as error:
                problem = error if str(error).startswith(where) else InputError(f"{where}: {error}")
                break
            labels.append(label)
            places.append(number)
        if events:
            block = named_block(events, self._names)
            block.lines["number"][block.event_start[:-1]] = np.array(places) + 1
            self._learn_located(block, labels, problems)
        return problem

    def _learn_located(self, block: Block, labels: Sequence[Any], problems: Diagnostics) -> None:
        """Learn the events of a block, and add outliers to the problems, by line number."""
        weights = block.weight[block.event_start[:-1]].tolist()
        outliers = self._learn_block(block, labels)
        self._workspace.notice(block.namespaces.names, self.events)
        for at in np.flatnonzero(outliers).tolist():
            number = float(labels[at]) if outliers[at] == Outlier.FAR_COST else None
            number = weights[at] if outliers[at] == Outlier.FAR_WEIGHT else number
            add_outlier(block, at, int(outliers[at]), problems, number=number)

    # -- why -------------------------------------------------------------------------------------------

    @abstractmethod
    def _respond(self, rows: Sequence[Any]) -> NDArray[np.float64]:
        """Return the predictions of rows: float64[n_rows, n_outputs]."""

    @property
    def _output_labels(self) -> list[dict[str, Any]]:
        """The name of each output of `_respond`, as members of an explanation; none for a number."""
        return [{}]

    def explain(self, features: Features | Shaped, background: Rows | None = None) -> dict[str, Any]:
        """Return how much each feature moves the prediction of an event, in the unit of the prediction.

        Parameters
        ----------
        features : mapping, Series or frame of one row
            The features of the event, as for `predict`.
        background : sequence of mappings or frame, optional
            Usual rows, such as some hundred that were learnt: features are compared with theirs. By default,
            features are compared with missing ones.

        Returns
        -------
        dict
            ``predictions`` has a mapping, or one for each label with its ``label``: the ``prediction`` or
            ``probability``, the ``base``, which is the mean for the background, and ``features``, what each
            feature adds, the largest first. The base and all parts add up to the prediction.
            `onlineauto.pictures.parts` draws it.

        Raises
        ------
        InputError
            The features are not valid for `learn`, or the background has no rows.

        Source
        ------
        Shapley values (Štrumbelj and Kononenko, 2014) by one permutation and its reverse.

        Examples
        --------
        >>> from onlineauto import AutoMLRegressor
        >>> rows = [{"rooms": 1 + k % 4, "town": ("Ulm", "Bonn")[k % 3 == 0]} for k in range(1200)]
        >>> model = AutoMLRegressor().fit(rows, [300.0 * row["rooms"] for row in rows])
        >>> [found] = model.explain({"rooms": 4, "town": "Ulm"}, rows)["predictions"]
        >>> round(found["prediction"]), round(found["base"]), round(found["features"]["rooms"])
        (1200, 714, 486)
        """
        rows: list[Any] = [{}] if background is None else sample_rows(self._columns.rows(background))
        features = self._columns.one_row(features)
        found = parts_of(self._respond, features, rows)
        predictions = []
        for at, label in enumerate(self._output_labels):
            parts = {name: float(part[at]) for name, part in found.parts.items()}
            ordered = dict(sorted(parts.items(), key=lambda part: -abs(part[1])))
            base, value = float(found.base[at]), float(found.prediction[at])
            predictions.append({**label, self._predicts: value, "base": base, "features": ordered})
        return {"predicts": self._predicts, "predictions": predictions}

    def effects(self, rows: Rows) -> dict[str, Any]:
        """Return how the prediction depends on each feature: the mean over rows in which it has a value.

        Parameters
        ----------
        rows : sequence of mappings or frame
            Usual rows, such as some hundred that were learnt; up to 100 of them are used.

        Returns
        -------
        dict
            ``features`` has for each feature, the one with the largest effect first, its ``size``, up to nine
            ``values``, and the mean ``predictions`` at each: float64[n_values], or float64[n_values,
            n_labels] in the order of ``labels``. The size is the largest less the smallest prediction of
            a row over these values, in their unit: the mean over rows; for a classifier, of the label for
            which that is largest. `onlineauto.pictures.effects` draws it.

        Raises
        ------
        InputError
            There are no rows, or a feature is not valid for `learn`; or a classifier has learnt no label.

        Source
        ------
        Partial dependence (Friedman, 2001); the size is that of individual conditional expectations
        (Goldstein et al., 2015), so that effects that differ between rows do not cancel.
        """
        if not (outputs := self._output_labels):
            raise InputError("there are no effects before the first label is learnt")
        found = effects_of(self._respond, self._columns.rows(rows))
        labels = [output["label"] for output in outputs if output]
        features = largest_first(found, outputs=bool(labels))
        return {"predicts": self._predicts, "features": features} | ({"labels": labels} if labels else {})

    # -- many events -----------------------------------------------------------------------------------

    @overload
    def fit(self, events: LabelledEvents, *, progress: bool | None = None) -> Self: ...

    @overload
    def fit(
        self, rows: Rows, /, y: Any, *, sample_weight: Any = None, progress: bool | None = None
    ) -> Self: ...

    def fit(
        self, events: Any, y: Any = None, *, sample_weight: Any = None, progress: bool | None = None
    ) -> Self:
        """Learn from labelled events, or from rows and their labels, once each and in order; return self.

        Parameters
        ----------
        events : iterable, path, bytes or binary file
            An iterable of (features, label), (features, label, weight), mappings with ``context``, ``label``
            and ``weight``, texts or blocks; or a file of text or JSON. With `y`, the rows: a frame, a matrix
            or a list of mappings.
        y, sample_weight : sequence, optional
            The label and the weight of each row, like in scikit-learn.
        progress : bool, optional
            Whether to display a bar; by default on a terminal and in a notebook.

        Raises
        ------
        InputError
            An event is invalid, or nothing was learnt. Events before it are learnt.

        Examples
        --------
        >>> from onlineauto import AutoMLRegressor
        >>> AutoMLRegressor().fit([({"rooms": 2}, 600.0), ({"rooms": 3}, 900.0)]).events
        2
        >>> AutoMLRegressor().fit([{"rooms": 2}, {"rooms": 3}], [600.0, 900.0]).events
        2
        """
        if y is None and sample_weight is None:
            return self._fit(events, progress=progress)
        rows = labelled_rows(events, y, sample_weight)
        with self._unchanged_columns_on_failure():
            if is_frame(events):
                self._columns.learn(events, without=self._columns.targets)
                self._identify(categories_of(events))
            return self._fit(rows, progress=progress, n_events=len(rows))

    def fit_table(
        self,
        table: Any,
        *,
        label: str | None = None,
        weight: str | None = None,
        columns: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Learn from a frame, a dataset or Parquet with a column of labels, in order, and return self.

        Parameters
        ----------
        table : frame, dataset, path or list of paths
            A frame of pandas, polars or Arrow; a dataset of pyarrow; Parquet: files, a folder or a pattern.
        label, weight : str, optional
            Columns of labels and weights. A frame needs `label`. A weight is the number of such events that
            a row represents, by default 1.
        columns : path or mapping, optional
            The roles of the columns of a dataset, in place of `label` and `weight`.
        progress : bool, optional
            Whether to display a bar; by default on a terminal and in a notebook.

        Raises
        ------
        InputError
            A row is invalid, a column is missing, the source is no table, or nothing was learnt. Rows before
            it are learnt.

        Examples
        --------
        >>> import polars
        >>> from onlineauto import AutoMLRegressor
        >>> frame = polars.DataFrame({"rooms": [2, 3], "rent": [600.0, 900.0]})
        >>> AutoMLRegressor().fit_table(frame, label="rent").events
        2
        """
        check_roles(label, weight)
        if is_arrow(table):
            problems, named_columns = Diagnostics(), {"label": label, "weight": weight}
            roles, rows = dataset_rows(
                table, columns, **named_columns, problems=problems, identify=self._identify
            )
            with self._unchanged_columns_on_failure():
                self._columns.learn_targets(roles.label, roles.weight, features=roles.context)
                return self._fit(rows, progress=progress, problems=problems)
        check_frame(table, columns, table_call=self._table_call)
        events = frame_rows(table, label=label, weight=weight)
        with self._unchanged_columns_on_failure():
            self._identify(categories_of(table, without=label))
            self._columns.learn(table, without=(label, weight))
            return self._fit(events, progress=progress, n_events=table.shape[0])

    @contextmanager
    def _unchanged_columns_on_failure(self) -> Iterator[None]:
        """Restore the columns if no event is learnt: the label of a failed call is no target."""
        columns, before = deepcopy(self._columns), self.events
        try:
            yield
        finally:
            if self.events == before:
                self._columns = columns

    def _learn_source(self, source: Any, feed: Feed, problems: Diagnostics) -> int:
        problems.reading, before, n_events = "event", self.events, 0
        examples, blocks = examples_or_blocks(source)
        while taken := list(islice(examples, self._together)):
            with self._lock:
                problem = self._learn_examples(taken, n_events, problems)
            if problem:
                if learnt := self.events - before:
                    rest = f"{learnt:,} events before it are learnt: mend it, and fit only the rest"
                    problem.args = (f"{problem}; {rest}",)
                raise problem
            n_events += len(taken)
            feed.advance(len(taken))
        for block in feed(blocks, self._workspace.configuration, problems):
            n_events += len(block)
            with self._lock:
                self._learn_lines(block, problems)
        self._workspace.notice((), self.events, ends=True)
        return n_events

    def _learn_lines(self, block: Block, problems: Diagnostics) -> None:
        """Learn the labelled events of a block; its arrays may belong to a file and are not changed."""
        self._columns.forget_names()
        block = replace(block, lines=block.lines.copy())
        labelled = (block.lines["label"][block.event_start[:-1]] != UNLABELLED).tolist()
        for is_labelled, places in groupby(range(len(block)), labelled.__getitem__):
            if is_labelled:
                first, *rest = places
                part = block.tail(first).head(1 + len(rest))
                labels = part.lines["label"][part.event_start[:-1]].tolist()
                self._learn_located(part, [int(y) if y.is_integer() else y for y in labels], problems)

    # -- models ----------------------------------------------------------------------------------------

    def warm_start(self, source: object, *, namespaces: Iterable[str] = ()) -> Self:  # noqa: ARG002
        """Reject a warm start: the numbers and labels of another model have another scale."""
        raise OptionError(
            f"{type(self).__name__} has its own scale of numbers and labels, so it cannot begin with another "
            f"model; {type(self).__name__}.load continues with a saved one"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the file of the model for `pickle`: it is smaller than the arrays."""
        file = io.BytesIO()
        self.save(file)
        return type(self).load, (file.getvalue(),)

    def _extra_state(self) -> dict[str, Any]:
        state = {"numbers": self._numbers.state(), "columns": self._columns.state()}
        return state | ({"raw_numbers": raw} if (raw := self._numbers.raw_state()) else {})

    def _restore(self, state: dict[str, Any]) -> None:
        self._numbers = NumberEncoder()
        self._columns = LearntColumns()
        self._numbers.restore(state["numbers"])
        self._numbers.restore_raw(state.get("raw_numbers", []))
        self._columns.restore(state.get("columns", {}))
        self._serve()
