"""``AutoMLClassifier``: a classification that tunes itself while it learns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Final, overload

import msgspec
import numpy as np

from onlineauto.api.base import HASH_BITS, LIVE_CONFIGS
from onlineauto.api.champion import champion_of
from onlineauto.api.single_lines import SingleLines
from onlineauto.engine.ensemble.class_ensemble import ClassEnsemble
from onlineauto.engine.ensemble.member import Sizes
from onlineauto.engine.ensemble.options import EnsembleOptions
from onlineauto.engine.ensemble.registry import class_members_of
from onlineauto.engine.records.loop import Outlier
from onlineauto.errors import InputError, OptionError, kind_of, short_repr
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.mappings.mapping_reader import MappingReader
from onlineauto.formats.mappings.values import plain, whole_number
from onlineauto.state.stored import Stored

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence
    from typing import Unpack

    from numpy.typing import NDArray

    from onlineauto.api.champion import Champion
    from onlineauto.api.single_lines import Features
    from onlineauto.api.tables import Rows
    from onlineauto.features.block import Block
    from onlineauto.workspace.option_types import LearnerOptions

MAX_LABELS: Final = 100
"""The default of ``max_labels``."""
_LEAST = 1e-9
"""Minimum probability of a label in the average loss."""


class AutoMLClassifier(SingleLines):
    """A classification by numbers, categories and their interactions, which tunes itself.

    Labels are texts, numbers and truth values, and new classes may appear at any time, up to `max_labels`.
    None and NaN are missing labels. Equal labels are one class, named by the first of them: True, 1 and 1.0
    are equal, the text ``"1"`` is not. An ensemble learns all classes at once: regressions on the features,
    on waves of the numbers and on pairs of words, and boosted trees. In addition, a logistic model of the
    first class against the rest searches for the features to cross and the learning rate, with several live
    configs at once. While there are two classes, it is a member of the ensemble. `champion` and `history`
    belong to that search. Numbers may have any scale, see `NumberEncoder`. Threads may share a classifier.

    Examples
    --------
    >>> from onlineauto import AutoMLClassifier
    >>> model = AutoMLClassifier()
    >>> for number in range(300):
    ...     colour = ("red", "green", "blue")[number % 3]
    ...     label = {"red": "stop", "green": "go"}.get(colour, "wait")
    ...     model.learn({"colour": colour, "size": number}, label)
    >>> model.predict({"colour": "green", "size": 7}), model.labels
    ('go', ['stop', 'go', 'wait'])
    >>> round(sum(model.predict_proba({"colour": "blue", "size": 7}).values()), 6)
    1.0

    Parameters
    ----------
    live_configs : int or None
        Number of configs of a model that learn at the same time, including its champion. None turns the
        search off.
    seed : int
        Seed of all random numbers.
    begin_with : sequence of str
        Initial interactions of the search, by the names of features: ``"hour*weather"``. By default there
        are none. Without a search, these are the interactions.
    hash_bits : int
        The weights of a class are a table of 2^hash_bits rows.
    max_labels : int
        Maximum number of classes, since each takes memory: up to 4 MB by default. A label beyond is an error,
        and its event is not learnt. It is an attribute, too, which may be set at any time.
    trees : bool
        Fit boosted trees to the last 8,192 events, after 256 events for the first time.
    **options
        Further options of a model, named as on the command line.

    Attributes
    ----------
    average_loss : float
        Average of -log(probability of the label), predicted before the label was learnt. The first event of
        a label counts with the initial probability of its class.

    Raises
    ------
    OptionError
        An option is unknown, out of range, or contradicts another.
    """

    def __init__(
        self,
        *,
        live_configs: int | None = LIVE_CONFIGS,
        seed: int = 0,
        begin_with: Sequence[str] = (),
        hash_bits: int = HASH_BITS,
        max_labels: int = MAX_LABELS,
        trees: bool = True,
        **options: Unpack[LearnerOptions],
    ) -> None:
        limit = whole_number(max_labels)
        if limit is None or limit < 2:
            raise OptionError(
                f"max_labels cannot be {short_repr(max_labels)}; it takes a whole number of at least 2"
            )
        self.max_labels = limit
        flags: dict[str, Any] = dict(options)
        for name in ("loss", "loss_function", "link"):
            value = flags.pop(name, None)
            if value not in (None, "logistic"):
                raise OptionError(f"{name} cannot be {value!r}: a classifier learns the logistic loss")
        flags |= {"loss_function": "logistic", "link": "logistic"}
        super().__init__(
            flags, live_configs=live_configs, seed=seed, begin_with=begin_with, hash_bits=hash_bits
        )
        self._codes: dict[Hashable, int] = {}
        self._ensemble = self._new_ensemble(trees=trees)

    @property
    def labels(self) -> list[Any]:
        """The labels so far, in order of appearance."""
        return list(self._codes)

    @property
    def champions(self) -> dict[Any, Champion]:
        """The champion of the first label, whose search is the only one."""
        with self._lock:
            return {label: champion_of(self._workspace) for label in self.labels[:1]}

    def predict(self, features: Any) -> Any:
        """Return the likeliest label of one event, or a list with the label of each of many events.

        Before the first label is learnt, a label is None.

        Parameters
        ----------
        features : mapping or Series, or sequence of mappings, frame or matrix
            The features of an event, as for `learn`; or those of each event.

        Raises
        ------
        InputError
            The features are not valid for `learn`.

        Examples
        --------
        >>> model = AutoMLClassifier().fit([({"x": 1}, "yes"), ({"x": -1}, "no")] * 50)
        >>> model.predict({"x": -1}), model.predict([{"x": 1}, {"x": -1}])
        ('no', ['yes', 'no'])
        """
        if (one := self._columns.event(features)) is not None:
            probabilities = self._chances_of_one(one)
            return max(probabilities, key=probabilities.__getitem__) if probabilities else None
        rows = self._columns.rows(features)
        with self._lock:
            probability, labels = self._respond(rows), self.labels
        return (
            [labels[code] for code in probability.argmax(axis=1).tolist()]
            if labels
            else [None] * len(probability)
        )

    @overload
    def predict_proba(self, features: Features) -> dict[Any, float]: ...

    @overload
    def predict_proba(self, features: Rows) -> NDArray[np.float64]: ...

    def predict_proba(self, features: Features | Rows) -> Any:
        """Return the probability of each label so far for one event, or for each of many; they sum to 1.

        Parameters
        ----------
        features : mapping or Series, or sequence of mappings, frame or matrix
            The features of an event, as for `learn`; or those of each event.

        Returns
        -------
        dict of label to float, or float64[n_events, n_labels]
            Columns are in the order of `labels`.

        Raises
        ------
        InputError
            The features are not valid for `learn`.
        """
        if (one := self._columns.event(features)) is not None:
            return self._chances_of_one(one)
        return self._respond(self._columns.rows(features))

    def _chances_of_one(self, features: Features) -> dict[Any, float]:
        """Return the probability of each label for one event."""
        with self._lock:
            if not self._codes:
                return {}
            event = {"context": self._encode(features)}
            searched = None
            if self._is_searched:
                searched = self._chances(self._workspace.predict(event))
            [row] = self._run_one(event, -1, searched).tolist()
            return dict(zip(self._codes, row, strict=True))

    def _respond(self, rows: Sequence[Any]) -> NDArray[np.float64]:
        with self._lock:
            if not self._codes or not rows:
                return np.empty((len(rows), len(self._codes)))
            block = self._block_of(rows)
            searched = None
            if self._is_searched:
                searched = self._chances(self._workspace.predict_block(block).prediction)
            return self._ensemble.run(block, searched=searched)

    _predicts: ClassVar[str] = "probability"

    @property
    def _output_labels(self) -> list[dict[str, Any]]:
        return [{"label": label} for label in self.labels]

    def predict_proba_each(self, rows: Any) -> NDArray[np.float64]:
        """Return the probabilities for many events: `predict_proba` under its earlier name."""
        many: NDArray[np.float64] = self.predict_proba(rows)
        return many

    def _serve(self) -> None:
        super()._serve()
        features = self._workspace.configuration[FeatureOptions]
        self._reader = MappingReader(actions=False, hash=features.hash, hash_seed=features.hash_seed)

    def _run_one(
        self, event: dict[str, Any], code: int, searched: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Run the ensemble over an event whose class has this code, or -1 if it is not learnt."""
        if self._reader.read(event):
            return self._ensemble.run_one(self._reader, code, searched)
        return self._ensemble.run(self._reader.parse_one(event), [code], searched)

    @property
    def _is_searched(self) -> bool:
        """True if the search is a member of the ensemble: up to two classes."""
        return len(self._codes) <= 2

    def _chances(self, prediction: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return float64[n_events, n_labels] from the search's probabilities of the first label."""
        chances = np.ones((len(prediction), len(self._codes)))
        if len(self._codes) == 2:
            chances[:, 0] = prediction
            chances[:, 1] -= chances[:, 0]
        return chances

    def _check_label(self, label: Any, before: Collection[Any] = ()) -> Any:
        """Return a label as a Python value; refuse one with which the model could not be saved."""
        builtin = plain(label)
        if not isinstance(builtin, str | int | float):
            raise InputError(
                f"the label {short_repr(label)} is {kind_of(label)}: labels are texts, numbers and truth "
                "values, which a file can have"
            )
        try:
            msgspec.msgpack.encode(builtin)
        except (OverflowError, UnicodeEncodeError) as error:
            raise InputError(f"the label {short_repr(label)} cannot be in a file: {error}") from None
        if builtin not in self._codes and builtin not in before:
            self._check_number(builtin, len({*self._codes, *before}))
        return builtin

    def _check_number(self, label: Any, before: int) -> None:
        """Reject a label if it would be a class too many after `before` other classes."""
        if before >= self.max_labels:
            raise InputError(
                f"the label {short_repr(label)} would be class {before + 1}, but max_labels is "
                f"{self.max_labels}: do not use ids or measurements as labels; merge rare labels into one, "
                "or give the model a larger max_labels (a class takes up to 4 MB, less with fewer hash_bits)"
            )

    def _learn_one(self, event: dict[str, Any], label: Any) -> int:
        code = self._codes.get(label)
        if code is None:
            return super()._learn_one(event, label)
        before = self._outliers()
        prediction = self._workspace.learn(event | {"label": _sign(code)})
        outlier = self._outlier(before)
        if outlier == Outlier.BEGINS_AGAIN:
            self._ensemble.begin_again()
        if outlier in (Outlier.NONE, Outlier.BEGINS_AGAIN):
            searched = self._chances(prediction) if self._is_searched else None
            probabilities = self._run_one(event | {"label": 0}, code, searched)
            self._count(event["weight"], float(probabilities[0, code]))
        return outlier

    def _count(self, weight: float, probability: float) -> None:
        """Count an event and the predicted probability of its label."""
        self._tally.add(weight, loss=-weight * math.log(max(probability, _LEAST)))

    def _learn_block(self, block: Block, labels: Sequence[Any]) -> NDArray[np.uint8]:
        begin, outliers = 0, []
        for index, label in enumerate(labels):
            if label not in self._codes:
                outliers.append(self._learn_known(block.tail(begin).head(index - begin), labels[begin:index]))
                self._add_class(label)
                begin = index
        outliers.append(self._learn_known(block.tail(begin), labels[begin:]))
        return np.concatenate(outliers)

    def _add_class(self, label: Hashable) -> None:
        """Add a class; the third class ends the part of the search in predictions."""
        self._check_number(label, len(self._codes))
        self._ensemble.add_class()
        if len(self._codes) == 2:
            self._ensemble.end_search()
        self._codes[label] = len(self._codes)

    def _learn_known(self, block: Block, labels: Sequence[Any]) -> NDArray[np.uint8]:
        """Learn events of known classes; return the outlier of each, like `_learn_block`."""
        if not len(block):
            return np.zeros(0, np.uint8)
        places = block.event_start[:-1]
        codes = np.array([self._codes[label] for label in labels])
        block.lines["label"][places] = [_sign(code) for code in codes.tolist()]
        outcomes = self._workspace.learn_block(block)
        outliers = outcomes.outlier % int(Outlier.BEGINS_AGAIN)
        begun = int(max(np.flatnonzero(outcomes.outlier == Outlier.BEGINS_AGAIN), default=-1))
        if begun >= 0:
            self._ensemble.begin_again()
        learnt = np.where((outliers == 0) & (np.arange(len(codes)) >= begun), codes, -1)
        searched = self._chances(outcomes.prediction) if self._is_searched else None
        probability = self._ensemble.run(block, learnt, searched)[np.arange(len(codes)), codes]
        weights = block.weight[places]
        for at in np.flatnonzero(outliers == 0).tolist():
            if at == begun:
                self._tally.begin_again()
            self._count(float(weights[at]), float(probability[at]))
        if begun >= 0 and not outliers[begun]:
            outliers[begun] = Outlier.BEGINS_AGAIN
        return outliers

    # -- models ----------------------------------------------------------------------------------------

    def _new_ensemble(self, *, trees: bool = True) -> ClassEnsemble:
        members = class_members_of(self._workspace.configuration[EnsembleOptions].members, trees=trees)
        return ClassEnsemble(members, self._sizes(), searched=True)

    def _sizes(self) -> Sizes:
        """Return the sizes of the members' states."""
        configuration = self._workspace.configuration
        return Sizes(configuration, cells=1 << configuration[FeatureOptions].bit_precision)

    def _extra_state(self) -> dict[str, Any]:
        content = super()._extra_state() | {"labels": self.labels, "max_labels": self.max_labels}
        return content | {"ensemble": self._ensemble.state()}

    def _restore(self, kept: dict[str, Any]) -> None:
        super()._restore(kept)
        if not isinstance(kept["labels"], list):
            raise ValueError("the labels are not a list")
        self._codes = {label: code for code, label in enumerate(kept["labels"])}
        if len(self._codes) < len(kept["labels"]):
            raise ValueError("a label occurs twice")
        self.max_labels = max(msgspec.convert(kept["max_labels"], int), len(self._codes))
        self._ensemble = ClassEnsemble.restored(Stored(kept)["ensemble"], len(self._codes), self._sizes())


def _sign(code: int) -> int:
    """Return the label of a class for the search, which is of the first class."""
    return 1 if code == 0 else -1
