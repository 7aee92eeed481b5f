"""The states of ``--automl`` and ``--epsilon_decay`` in Vowpal Wabbit's model files.

Source: VW 9.11.9 ``automl_iomodel.cc``, ``confidence_sequence_robust.cc``, ``epsilon_decay.cc``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from onlineauto.interop.vw.fields import Fields


class VwBound(NamedTuple):
    """One confidence sequence."""

    observations: int = 0  # Number of observations.
    total: float = 0.0  # Their sum; squared errors up to 0, and up to 1.
    low: float = 0.0
    mid: float = 0.0
    # Larger errors: number of the bucket, True for the term of interpolation, and its weight.
    buckets: tuple[tuple[int, bool, float], ...] = ()


class VwEstimator(NamedTuple):
    """Bounds on the reward of a config: events, weight and reward of the last event, and both bounds."""

    updates: int = 0
    weight: float = 0.0
    reward: float = 0.0
    lower: VwBound = VwBound()
    upper: VwBound = VwBound()


class VwConfig(NamedTuple):
    """A config: its elements, its lease, and the codes of its state and its kind."""

    elements: tuple[bytes, ...] = ()
    lease: int = 0
    state: int = 0
    kind: int = 0


class VwLive(NamedTuple):
    """A live config: its bounds, its number, whether it may be replaced, and the champion's bounds."""

    own: VwEstimator = VwEstimator()
    config: int = 0
    gives_way: bool = False
    champion: VwEstimator = VwEstimator()


class VwSearch(NamedTuple):
    """The state of ``--automl``."""

    learnt: int = 0  # Number of learnt events.
    valid: int = 0  # Number of configs under consideration.
    # First byte of each known namespace, and the number of actions that had it.
    counts: tuple[tuple[int, int], ...] = ()
    configs: tuple[VwConfig, ...] = ()
    live: tuple[VwLive, ...] = ()  # The live configs, the champion first.
    # Priorities and numbers of the waiting configs, the next one first.
    queue: tuple[tuple[float, int], ...] = ()


NO_SEARCH = VwSearch()
"""The state of a model without ``--automl``."""


def search_fields(fields: Fields, search: VwSearch) -> VwSearch:
    """Read or write the state `search`; return it."""
    fields.constant("i", 0)  # the code of the only state
    learnt = fields.number("Q", search.learnt)
    fields.constant("Q", 0)  # index of the champion among the live configs

    def count(entry: tuple[int, int]) -> tuple[int, int]:
        return fields.number("B", entry[0]), fields.number("Q", entry[1])

    def config(stored: VwConfig) -> VwConfig:
        elements = fields.items(stored.elements, fields.bytes_, empty=b"")
        return VwConfig(
            elements,
            fields.number("Q", stored.lease),
            fields.number("i", stored.state),
            fields.number("i", stored.kind),
        )

    def live(stored: VwLive) -> VwLive:
        own = estimator_fields(fields, stored.own)
        index, gives_way = fields.number("Q", stored.config), bool(fields.number("B", stored.gives_way))
        return VwLive(own, index, gives_way, estimator_fields(fields, stored.champion))

    def waiting(entry: tuple[float, int]) -> tuple[float, int]:
        return fields.number("f", entry[0]), fields.number("Q", entry[1])

    return VwSearch(
        learnt,
        fields.number("Q", search.valid),
        fields.items(search.counts, count, empty=(0, 0)),
        fields.items(search.configs, config, empty=VwConfig()),
        fields.items(search.live, live, empty=VwLive()),
        fields.items(search.queue, waiting, empty=(0.0, 0)),
    )


def estimator_fields(fields: Fields, estimator: VwEstimator) -> VwEstimator:
    """Read or write the estimator `estimator`; return it."""
    return VwEstimator(
        fields.number("Q", estimator.updates),
        fields.number("d", estimator.weight),
        fields.number("d", estimator.reward),
        _read_bound(fields, estimator.lower),
        _read_bound(fields, estimator.upper),
    )


def _read_bound(fields: Fields, bound: VwBound) -> VwBound:
    def bucket(entry: tuple[int, bool, float]) -> tuple[int, bool, float]:
        return fields.number("Q", entry[0]), bool(fields.number("B", entry[1])), fields.number("d", entry[2])

    observations = fields.number("Q", bound.observations)
    total, low, mid = (fields.number("d", value) for value in (bound.total, bound.low, bound.mid))
    fields.constant("Q", observations)  # VW writes the number twice
    return VwBound(observations, total, low, mid, fields.items(bound.buckets, bucket, empty=(0, False, 0.0)))


class VwDecay(NamedTuple):
    """The state of all models of ``--epsilon_decay``."""

    # For each model, the champion last: bounds on its reward since the start of each earlier model, and since
    # its start.
    evidence: tuple[tuple[VwEstimator, ...], ...] = ()
    place: tuple[int, ...] = ()  # Index of the weights of each model.
    audited: int = 1  # Number of the next event that ``--epsilon_decay_audit`` reports.

    @classmethod
    def of(cls, models: int) -> VwDecay:
        """Return the state of `models` models before the first event."""
        return cls(tuple((VwEstimator(),) * (model + 1) for model in range(models)), tuple(range(models)))


def decay_fields(fields: Fields, decay: VwDecay) -> VwDecay:
    """Read or write the state, with the number of models in `decay`; return it."""
    fields.constant("I", len(decay.evidence))
    evidence = []
    for estimators in decay.evidence:
        fields.constant("I", len(estimators))
        evidence.append(tuple([estimator_fields(fields, estimator) for estimator in estimators]))
    fields.constant("I", len(decay.place))
    position = tuple([fields.number("Q", position) for position in decay.place])
    return VwDecay(tuple(evidence), position, fields.number("Q", decay.audited))
