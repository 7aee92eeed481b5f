"""``SingleLines``: the base of `AutoMLRegressor` and `AutoMLClassifier`, whose events have one label."""

from __future__ import annotations

import io
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain, groupby, islice, starmap
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onlineauto.api.base import AutoModel, hide_class_name, options_of_model
from onlineauto.api.effects import effects_of, parts_of, sample_rows
from onlineauto.api.feed import Feed, check_source, nothing_learnt, progress_bar, refuse_names, size_of
from onlineauto.api.numbers import NumberEncoder
from onlineauto.api.tables import (
    LearntColumns,
    TableEvent,
    categories_of,
    frame_rows,
    is_frame,
    labelled_rows,
)
from onlineauto.engine.outliers.located import BEGAN_AGAIN, WHAT, add_outlier, outlier_message
from onlineauto.engine.records.loop import Outlier
from onlineauto.errors import InputError, OptionError, kind_of
from onlineauto.features.block import UNLABELLED
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.lines.diagnostics import Diagnostics, ProblemCode
from onlineauto.formats.mappings.identities import named
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.mappings.named_event import check_weight, named_block, named_event
from onlineauto.formats.mappings.values import is_missing
from onlineauto.interop.datasets import dataset_rows, is_arrow

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterator, Sequence
    from typing import Self, TypeAlias

    from numpy.typing import NDArray

    from onlineauto.api.tables import Rows, Shaped
    from onlineauto.features.block import Block
    from onlineauto.formats.mappings.identities import Identities
    from onlineauto.formats.mappings.named_event import NamedEvent
    from onlineauto.options import Configuration

Features: TypeAlias = "Mapping[Any, Any]"
"""Features by name, or by namespace: numbers, texts, truth values, lists of names, nested mappings."""


@hide_class_name
class SingleLines(AutoModel):
    """A model of events with features and a label. Numbers are encoded by `NumberEncoder`.

    A subclass defines `_learn_block`, and `_check_label` for labels.
    """

    _predicts: ClassVar[str] = "prediction"

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

    @abstractmethod
    def _check_label(self, label: Any, before: Collection[Any] = ()) -> Any:
        """Return a label, which is not missing, in the form that the model uses.

        `before` has the labels that will be learnt first, together with this one.

        Raises
        ------
        InputError
            The value cannot be a label.
        """

    @abstractmethod
    def _learn_block(self, block: Block, labels: Sequence[Any]) -> NDArray[np.uint8]:
        """Predict, count and learn events; their block has the weights and may be changed.

        Return for each event the reason why it was not learnt, 0 if it was learnt, and `Outlier.BEGINS_AGAIN`
        if learning started again with it; see `Outcomes.outlier`.
        """

    # -- one event -------------------------------------------------------------------------------------

    def learn(self, features: Features, y: Any, *, weight: float = 1.0) -> None:
        """Learn an event."""
        if is_missing(y):
            raise InputError(f"the label is missing: {y!r}; leave out events without a label")
        with self._lock:
            label, weight = self._check_label(y), check_weight(weight, "event")
            features = self._complete(named(features, self._workspace.identities), learns=True)
            event = {"context": self._encode(features), "weight": weight}
            if far := self._numbers.first_far(features):
                text = outlier_message(f"{far[0]}: the value {far[1]:g}")
                warnings.warn(text, UserWarning, stacklevel=2)
                return
            outlier = self._learn_one(event, label)
            self._numbers.add(features)
            if outlier == Outlier.BEGINS_AGAIN:
                warnings.warn(BEGAN_AGAIN, UserWarning, stacklevel=2)
            elif outlier:
                description = (
                    f"the label {label:g}" if outlier == Outlier.FAR_COST else WHAT[Outlier(outlier)]
                )
                warnings.warn(outlier_message(description), UserWarning, stacklevel=2)

    def _learn_one(self, event: dict[str, Any], label: Any) -> int:
        """Predict, count and learn an event, to which the label is added here; return its outlier.

        See `_learn_block` for the outlier.
        """
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
        if not isinstance(features, Mapping):
            hint = "; fit and predict take frames" if is_frame(features) else ""
            if isinstance(features, list | tuple):
                hint = "; rows of numbers are a matrix: numpy.array(rows)"
            type_name = type(features).__name__
            raise InputError(f"features are a mapping of name to value, not {type_name}{hint}")
        if self._compared is not (options := self._workspace.configuration):
            self._workspace.follow_names(self._names.rules, learns=False)
            self._compared = options
        return self._numbers.encode_features(named(features, self._workspace.identities))

    def _learn_examples(
        self, examples: Iterable[TableEvent], first: int, problems: Diagnostics
    ) -> InputError | None:
        """Learn events up to the first invalid one; return the error of that event.

        An event with a missing label or an outlier is added to the problems `problems`, and is not learnt.
        `first` is the number of the first event, for messages.
        """
        events: list[NamedEvent] = []
        labels: list[Any] = []
        places: list[int] = []
        problem, problems.reading = None, "event"
        for number, example in enumerate(starmap(TableEvent, examples), first):
            where = f"event {number}"
            if is_missing(example.label):
                problems.locate(ProblemCode.NO_LABEL, number + 1, repr(example.label))
                continue
            try:
                label = self._check_label(example.label, labels)
                features = named(example.features, self._workspace.identities)
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
        for at in np.flatnonzero(outliers).tolist():
            number = float(labels[at]) if outliers[at] == Outlier.FAR_COST else None
            number = weights[at] if outliers[at] == Outlier.FAR_WEIGHT else number
            add_outlier(block, at, int(outliers[at]), problems, number=number)

    # -- why -------------------------------------------------------------------------------------------

    @abstractmethod
    def _respond(self, rows: Rows) -> NDArray[np.float64]:
        """Return the predictions of rows: float64[n_rows, n_outputs]."""

    @property
    def _output_labels(self) -> list[dict[str, Any]]:
        """The name of each output of `_respond`, as members of an explanation; none for a number."""
        return [{}]

    def _one_row(self, features: Any) -> Features:
        """Return the features of an event, which may be a Series or a frame of one row."""
        if hasattr(features, "to_frame") and hasattr(features, "index"):
            features = features.to_frame().T
        if is_frame(features) and features.shape[0] == 1:
            [features] = self._columns.rows(features)
        if not isinstance(features, Mapping):
            raise InputError(f"explain takes one event, not {kind_of(features)}: frame.iloc[0].to_dict()")
        return features

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
        features = self._one_row(features)
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
            ``features`` has for each feature, the one with the largest effect first, up to nine ``values``
            and the ``predictions`` at each: float64[n_values], or float64[n_values, n_labels] in the order
            of ``labels``. `onlineauto.pictures.effects` draws it.

        Raises
        ------
        InputError
            There are no rows, or a feature is not valid for `learn`.

        Source
        ------
        Partial dependence (Friedman, 2001).
        """
        found = effects_of(self._respond, self._columns.rows(rows))
        labels = [output["label"] for output in self._output_labels if output]
        features = {
            name: {"values": values, "predictions": means if labels else means[:, 0]}
            for name, (values, means) in found.items()
        }
        return {"predicts": self._predicts, "features": features} | ({"labels": labels} if labels else {})

    # -- many events -----------------------------------------------------------------------------------

    def fit(
        self,
        source: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        label: str | None = None,
        weight: str | None = None,
        columns: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Learn from events, once each and in order, and return self."""
        problems = Diagnostics(reading="event")
        total: int | None
        if y is not None or sample_weight is not None:
            if is_frame(source):
                self._columns.learn(source)
                self._identify(categories_of(source))
            source = labelled_rows(source, y, sample_weight, columns={"label": label, "weight": weight})
            total, unit = len(source), "events"
        elif is_frame(source):
            total, unit = source.shape[0], "events"
            self._identify(categories_of(source, without=label))
            events = frame_rows(source, label=label, weight=weight)
            self._columns.learn(source, without=(label, weight))
            source = events
        elif is_arrow(source):
            total, unit = None, "events"
            source = dataset_rows(
                source, columns, label=label, weight=weight, problems=problems, identify=self._identify
            )
        else:
            refuse_names(source, {"label": label, "weight": weight})
            source = check_source(source)
            total, unit = size_of(source)
        before = self.events
        with progress_bar(show=progress, total=total, unit=unit) as bar:
            feed = Feed(event_of=self._event_of, advance=bar.advance, watched=bar.shown)
            examples, blocks = _examples_or_blocks(source)
            n, taken = 0, list(islice(examples, self._together))
            while taken:
                with self._lock:
                    problem = self._learn_examples(taken, n, problems)
                if problem:
                    if learnt := self.events - before:
                        rest = f"{learnt:,} events before it are learnt: mend it, and fit only the rest"
                        problem.args = (f"{problem}; {rest}",)
                    raise problem
                n += len(taken)
                bar.advance(len(taken))
                taken = list(islice(examples, self._together))
            for block in feed(blocks, self._workspace.configuration, problems):
                n += len(block)
                with self._lock:
                    self._learn_lines(block, problems)
        if self.events == before:
            raise nothing_learnt(self._workspace, feed, problems, events=n)
        if problems.total:
            warnings.warn(problems.summary(), UserWarning, stacklevel=2)
        return self

    def _learn_lines(self, block: Block, problems: Diagnostics) -> None:
        """Learn the labelled events of a block; its arrays may belong to a file and are not changed."""
        for part in _labelled_runs(block):
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
        raw = self._numbers.raw_state()
        return {"numbers": self._numbers.state()} | ({"raw_numbers": raw} if raw else {})

    def _restore(self, state: dict[str, Any]) -> None:
        self._numbers = NumberEncoder()
        self._columns = LearntColumns()
        self._numbers.restore(state["numbers"])
        self._numbers.restore_raw(state.get("raw_numbers", []))
        self._serve()


def _examples_or_blocks(source: Any) -> tuple[Iterator[TableEvent], Any]:
    """Return the examples of a source and None, or no examples and the source for `Feed`."""
    if source is None or isinstance(source, str | bytes) or not isinstance(source, Iterable):
        return iter(()), source
    if hasattr(source, "read"):
        return iter(()), source
    items = iter(source)
    beginning = list(islice(items, 1))
    items, first = chain(beginning, items), beginning[0] if beginning else None
    if isinstance(first, Mapping) or (isinstance(first, tuple | list) and len(first) in (2, 3)):
        return map(_example, items), ()
    return iter(()), items


def _example(item: Any) -> TableEvent:
    """Return an item of an iterable as an example; invalid items are rejected when they are learnt."""
    if isinstance(item, Mapping):
        return TableEvent(item.get("context", {}), item.get("label"), item.get("weight", 1.0))
    if isinstance(item, tuple | list) and len(item) in (2, 3):
        return TableEvent(*item)
    return TableEvent(item, 0)  # `_encode` rejects the features


def _labelled_runs(block: Block) -> Iterator[Block]:
    """Yield the labelled runs of events of a block, with their own lines."""
    copy_ = replace(block, lines=block.lines.copy())
    labelled = (copy_.lines["label"][copy_.event_start[:-1]] != UNLABELLED).tolist()
    for is_labelled, places in groupby(range(len(copy_)), labelled.__getitem__):
        if is_labelled:
            first, *rest = places
            yield copy_.tail(first).head(1 + len(rest))
