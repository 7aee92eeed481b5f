"""The state of ``--epsilon_decay`` in Vowpal Wabbit's model files.

Source: VW 9.11.9 ``epsilon_decay.cc``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from onlineauto.interop.vw.search import VwEstimator, estimator_fields

if TYPE_CHECKING:
    from onlineauto.interop.vw.fields import Fields


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
    for each in decay.evidence:
        fields.constant("I", len(each))
        evidence.append(tuple([estimator_fields(fields, estimator) for estimator in each]))
    fields.constant("I", len(decay.place))
    position = tuple([fields.number("Q", position) for position in decay.place])
    return VwDecay(tuple(evidence), position, fields.number("Q", decay.audited))
