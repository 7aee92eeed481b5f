"""The state of ``--automl`` in Vowpal Wabbit's model files.

Source: VW 9.11.9 ``automl_iomodel.cc``, ``confidence_sequence_robust.cc``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from onlineauto.interop.vw.fields import Fields

__all__ = [
    "NO_SEARCH",
    "VwBound",
    "VwConfig",
    "VwEstimator",
    "VwLive",
    "VwSearch",
    "estimator_fields",
    "search_fields",
]


class VwBound(NamedTuple):
    """One confidence sequence.

    Attributes
    ----------
    observations : int
        How many.
    total, low, mid : float
        Their sum; squared errors up to 0, and up to 1.
    buckets : tuple of (int, bool, float)
        Of larger errors: the number of the bucket, whether it is the term for interpolation, and its weight.
    """

    observations: int = 0
    total: float = 0.0
    low: float = 0.0
    mid: float = 0.0
    buckets: tuple[tuple[int, bool, float], ...] = ()


class VwEstimator(NamedTuple):
    """Bounds on the reward of a config: events, the weight and the reward seen last, and both bounds."""

    updates: int = 0
    weight: float = 0.0
    reward: float = 0.0
    lower: VwBound = VwBound()
    upper: VwBound = VwBound()


class VwConfig(NamedTuple):
    """A config: its elements, its lease, and the codes of its state and of its kind."""

    elements: tuple[bytes, ...] = ()
    lease: int = 0
    state: int = 0
    kind: int = 0


class VwLive(NamedTuple):
    """A live slot: the bounds of its config, which config that is, whether it gives way; the champion's."""

    own: VwEstimator = VwEstimator()
    config: int = 0
    gives_way: bool = False
    champion: VwEstimator = VwEstimator()


class VwSearch(NamedTuple):
    """All of it.

    Attributes
    ----------
    learnt : int
        Events learnt.
    valid : int
        Configs under consideration.
    counts : tuple of (int, int)
        First byte of each namespace that was met, and on how many actions.
    configs : tuple of VwConfig
        The configs.
    live : tuple of VwLive
        The live slots, the champion's first.
    queue : tuple of (float, int)
        Priorities and numbers of the configs that wait, the next one first.
    """

    learnt: int = 0
    valid: int = 0
    counts: tuple[tuple[int, int], ...] = ()
    configs: tuple[VwConfig, ...] = ()
    live: tuple[VwLive, ...] = ()
    queue: tuple[tuple[float, int], ...] = ()


NO_SEARCH = VwSearch()
"""That of a model without ``--automl``."""


def search_fields(fields: Fields, it: VwSearch) -> VwSearch:
    """Lay the state out."""
    fields.constant("i", 0)  # its one state
    learnt = fields.number("Q", it.learnt)
    fields.constant("Q", 0)  # the champion's slot

    def count(each: tuple[int, int]) -> tuple[int, int]:
        return fields.number("B", each[0]), fields.number("Q", each[1])

    def config(each: VwConfig) -> VwConfig:
        elements = fields.items(each.elements, fields.bytes_, empty=b"")
        return VwConfig(
            elements,
            fields.number("Q", each.lease),
            fields.number("i", each.state),
            fields.number("i", each.kind),
        )

    def live(each: VwLive) -> VwLive:
        own = estimator_fields(fields, each.own)
        index, gives_way = fields.number("Q", each.config), bool(fields.number("B", each.gives_way))
        return VwLive(own, index, gives_way, estimator_fields(fields, each.champion))

    def waiting(each: tuple[float, int]) -> tuple[float, int]:
        return fields.number("f", each[0]), fields.number("Q", each[1])

    return VwSearch(
        learnt,
        fields.number("Q", it.valid),
        fields.items(it.counts, count, empty=(0, 0)),
        fields.items(it.configs, config, empty=VwConfig()),
        fields.items(it.live, live, empty=VwLive()),
        fields.items(it.queue, waiting, empty=(0.0, 0)),
    )


def estimator_fields(fields: Fields, it: VwEstimator) -> VwEstimator:
    """Lay an estimator out."""
    return VwEstimator(
        fields.number("Q", it.updates),
        fields.number("d", it.weight),
        fields.number("d", it.reward),
        _bound(fields, it.lower),
        _bound(fields, it.upper),
    )


def _bound(fields: Fields, it: VwBound) -> VwBound:
    def bucket(each: tuple[int, bool, float]) -> tuple[int, bool, float]:
        return fields.number("Q", each[0]), bool(fields.number("B", each[1])), fields.number("d", each[2])

    observations = fields.number("Q", it.observations)
    total, low, mid = (fields.number("d", value) for value in (it.total, it.low, it.mid))
    fields.constant("Q", observations)  # they are there twice
    return VwBound(observations, total, low, mid, fields.items(it.buckets, bucket, empty=(0, False, 0.0)))
