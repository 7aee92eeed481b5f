"""``SingleLines``: what `AutoMLRegressor` and `AutoMLClassifier` have in common: features and a label."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from onlineauto.api.base import AutoModel, shared
from onlineauto.api.feed import Feed, checked, size_of
from onlineauto.api.hints import nothing_learnt
from onlineauto.api.numbers import Numbers
from onlineauto.api.progress_bar import progress_bar
from onlineauto.api.tables import is_frame, names_of_columns
from onlineauto.errors import InputError, OptionError
from onlineauto.features.block import UNLABELLED
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.mappings.named_block import named_block
from onlineauto.formats.mappings.named_event import named_event
from onlineauto.interop.datasets import is_arrow, labelled_rows

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence
    from typing import Self, TypeAlias

    from onlineauto.features.block import Block
    from onlineauto.formats.mappings.named_event import NamedEvent

__all__ = ["Example", "Features", "SingleLines"]

Features: TypeAlias = "Mapping[Any, Any]"
"""Features by name, or by namespace: numbers, texts, truth values, lists of names, nested mappings."""

_TOGETHER = 256
"""How many events are learnt in one call."""


class Example(NamedTuple):
    """An event of `fit`."""

    features: Features
    label: Any
    weight: float = 1.0


@shared
class SingleLines(AutoModel):
    """A model of events that are features and a label. Numbers are encoded by `Numbers`.

    A subclass gives `_learn_block` and checks labels with `_checked`.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._numbers = Numbers()
        self._serve()

    def _serve(self) -> None:
        features = self._workspace.configuration[FeatureOptions]
        self._names = NameHashes(hash=features.hash, hash_seed=features.hash_seed)

    @abstractmethod
    def _checked(self, label: Any) -> Any:
        """Return a label as the model takes it.

        Raises
        ------
        InputError
            It cannot be a label.
        """

    @abstractmethod
    def _learn_block(self, block: Block, labels: Sequence[Any]) -> None:
        """Predict, count and learn events, whose block has their weights and may be changed."""

    # -- one event -------------------------------------------------------------------------------------

    def learn(self, features: Features, y: Any, *, weight: float = 1.0) -> None:
        """Learn an event.

        Parameters
        ----------
        features : mapping
            Features by name. A number is scaled by what was seen of that name; a string becomes a category;
            None, NaN and False are no features. A nested mapping or a list of names is a namespace, whose
            numbers are taken as they are.
        y : label
            What is to be predicted.
        weight : float
            Number of such events that this one stands for.

        Raises
        ------
        InputError
            A feature, the label or the weight is not as above. Nothing is learnt.
        """
        with self._lock:
            self._learn_one({"context": self._encoded(features), "weight": weight}, self._checked(y))
            self._numbers.add(features)

    def _learn_one(self, event: dict[str, Any], label: Any) -> None:
        """Predict, count and learn an event, whose label is yet to be added."""
        self._learn_block(named_block([named_event(event | {"label": 0})], self._names), [label])

    def _asked(self, rows: Any) -> Block:
        """Return a block of events without labels, at least one, of a frame or of features."""
        rows = _named_rows(rows) if is_frame(rows) else rows
        return named_block([named_event({"context": self._encoded(row)}) for row in rows], self._names)

    def _encoded(self, features: Features) -> dict[str, Any]:
        if not isinstance(features, Mapping):
            hint = "; methods that end in _each take frames" if is_frame(features) else ""
            what = type(features).__name__
            raise InputError(f"features are a mapping of name to value, not {what}{hint}")
        return self._numbers.encoded(features)

    def _learn_examples(self, examples: Iterable[Example], first: int) -> InputError | None:
        """Learn events up to the first that cannot be; return what is wrong with that one.

        `first` is the place of the first event, for the message.
        """
        events: list[NamedEvent] = []
        labels: list[Any] = []
        problem = None
        for place, example in enumerate(examples, first):
            where = f"event {place}"
            try:
                label = self._checked(example.label)
                given = {"context": self._encoded(example.features), "label": 0, "weight": example.weight}
                events.append(named_event(given, where=where))
                self._numbers.add(example.features)
            except InputError as error:
                problem = error if str(error).startswith(where) else InputError(f"{where}: {error}")
                break
            labels.append(label)
        if events:
            self._learn_block(named_block(events, self._names), labels)
        return problem

    # -- many events -----------------------------------------------------------------------------------

    def fit(
        self,
        source: Any,
        *,
        label: str | None = None,
        weight: str | None = None,
        columns: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Learn from events, once each and in their order, and return self.

        Parameters
        ----------
        source : iterable, frame, dataset, path, Block, bytes or binary file
            An iterable has pairs of features and label, as `learn` takes them; mappings with ``context``,
            ``label`` and, optionally, ``weight``; texts of one event each; blocks; or `pathlib.Path` objects.
            A path or a file is VW text, JSON or blocks. Numbers in texts and blocks are taken as they are. A
            dataset is one of pyarrow, or a path of Parquet; its rows are read like those of a frame.
        label, weight : str, optional
            Columns of a frame or of a dataset; all others are features.
        columns : path or mapping, optional
            What the columns of a dataset are, as the file of ``--columns`` has it.
        progress : bool, optional
            Whether to show a progress bar; by default on a terminal and in a notebook, if tqdm is installed.

        Raises
        ------
        InputError
            The source cannot be read, or nothing in it could be learnt. The events before have been learnt.

        Warns
        -----
        UserWarning
            Some lines were malformed; the others were learnt.
        """
        found = Diagnostics()
        total: int | None
        if is_frame(source):
            total, unit = source.shape[0], "events"
            source = _rows(source, label=label, weight=weight)
        elif is_arrow(source):
            total, unit = None, "events"
            source = labelled_rows(source, columns, label=label, weight=weight, found=found)
        else:
            for name, column in (("label", label), ("weight", weight)):
                if column is not None:
                    what = type(source).__name__
                    raise InputError(f"{name} names a column of a frame, and {what} is none")
            source = checked(source)
            total, unit = size_of(source)
        before = self.events
        with progress_bar(show=progress, total=total, unit=unit) as bar:
            feed = Feed(event_of=self._event_of, advance=bar.advance, watched=bar.shown)
            examples, blocks = _examples_or_blocks(source)
            n, taken = 0, list(islice(examples, _TOGETHER))
            while taken:
                with self._lock:
                    problem = self._learn_examples(taken, n)
                if problem:
                    raise problem
                n += len(taken)
                bar.advance(len(taken))
                taken = list(islice(examples, _TOGETHER))
            for block in feed(blocks, self._workspace.configuration, found):
                n += len(block)
                with self._lock:
                    self._learn_lines(block)
        if self.events == before:
            raise nothing_learnt(self._workspace, feed, found, events=n)
        if found.total:
            warnings.warn(found.summary(), UserWarning, stacklevel=2)
        return self

    def _learn_lines(self, block: Block) -> None:
        """Learn the events of a block that have a label; its arrays may be a file's, and are not changed."""
        for part in _labelled(block):
            labels = part.lines["label"][part.event_start[:-1]].tolist()
            self._learn_block(part, [int(y) if y.is_integer() else y for y in labels])

    # -- models ----------------------------------------------------------------------------------------

    def warm_start(self, source: object, *, namespaces: Iterable[str] = ()) -> Self:  # noqa: ARG002
        """Refuse to begin with another model's champion: its numbers and labels have another scale.

        Raises
        ------
        OptionError
            Always.
        """
        raise OptionError(
            f"{type(self).__name__} has its own scale of numbers and labels, so it cannot begin with another "
            f"model; {type(self).__name__}.load goes on with a saved one"
        )

    def _kept(self) -> dict[str, Any]:
        return {"numbers": self._numbers.state()}

    def _restore(self, kept: dict[str, Any]) -> None:
        self._numbers = Numbers()
        self._numbers.restore(kept["numbers"])
        self._serve()


def _examples_or_blocks(source: Any) -> tuple[Iterator[Example], Any]:
    """Return the examples of a source and nothing else, or no examples and the source for `Feed`."""
    if source is None or isinstance(source, str | bytes) or not isinstance(source, Iterable):
        return iter(()), source
    if hasattr(source, "read"):
        return iter(()), source
    items = iter(source)
    first = next(items, None)
    items = chain([] if first is None else [first], items)
    if isinstance(first, Mapping) or (isinstance(first, tuple | list) and len(first) in (2, 3)):
        return map(_example, items), ()
    return iter(()), items


def _example(item: Any) -> Example:
    """Return an item of an iterable as an example; what it lacks is refused where it is learnt."""
    if isinstance(item, Mapping):
        return Example(item.get("context", {}), item.get("label"), item.get("weight", 1.0))
    return Example(*item)


def _rows(frame: Any, *, label: str | None, weight: str | None) -> Iterator[Example]:
    """Yield the rows of a frame.

    Raises
    ------
    InputError
        There is no such column, or no label is named.
    """
    columns = names_of_columns(frame)
    for name, column in (("label", label), ("weight", weight)):
        if column not in columns and (column is not None or name == "label"):
            raise InputError(f"fit(frame, {name}=…) names one of its columns: {', '.join(columns)}")
    for row in _named_rows(frame):
        y = row.pop(label)
        yield Example(row, y, row.pop(weight) if weight is not None else 1.0)


def _named_rows(frame: Any) -> Iterator[dict[Any, Any]]:
    """Return an iterator over the rows of a frame, by column.

    Raises
    ------
    InputError
        A package is missing.
    """
    try:
        import narwhals
    except ModuleNotFoundError:
        raise InputError("frames need a package: pip install 'onlineauto[frames]'") from None
    rows: Iterator[dict[Any, Any]] = narwhals.from_native(frame, eager_only=True).iter_rows(named=True)
    return rows


def _labelled(block: Block) -> Iterator[Block]:
    """Yield the runs of labelled events of a block, with lines of their own."""
    own = replace(block, lines=block.lines.copy())
    labelled = (own.lines["label"][own.event_start[:-1]] != UNLABELLED).tolist()
    for wanted, places in groupby(range(len(own)), labelled.__getitem__):
        if wanted:
            first, *rest = places
            yield own.tail(first).head(1 + len(rest))
