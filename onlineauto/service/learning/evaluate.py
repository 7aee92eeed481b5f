"""``evaluate_policies``: the value of policies over a log, with intervals that hold at all times."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

import msgspec

from onlineauto.engine.options.registry import ModelOptions, OutputOptions
from onlineauto.errors import OptionError
from onlineauto.evaluation.evaluation import Evaluation
from onlineauto.formats.options import InputOptions
from onlineauto.options import options_of
from onlineauto.service.learning.joined import join_log_lines
from onlineauto.service.learning.values import Value
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.evaluation.evaluation import PolicyValue
    from onlineauto.options import Configuration
    from onlineauto.service.log.segment_log import SegmentLog

_REFUSED: Final = {
    option.name for group in (OutputOptions, ModelOptions, InputOptions) for option in options_of(group)
}
_MOST_BITS: Final = 22


class Estimate(msgspec.Struct, frozen=True):
    """A policy's value in rewards: with its own probabilities (SNIPS), and doubly robust."""

    snips: Value
    doubly_robust: Value


def evaluate_policies(
    log: SegmentLog, policies: Sequence[str], configuration: Configuration
) -> dict[str, Estimate]:
    """Return the values of policies, given as flags, that learn from the log, and of ``(as logged)``.

    The policies read events with the options of the service, `configuration`.
    """
    workspaces = {flags: Workspace(configuration=_policy(flags, configuration)) for flags in policies}
    evaluation = Evaluation(workspaces)
    for _ in evaluation.stream(join_log_lines(log, explored=True), trace=False):
        pass
    return {each.policy: _estimate(each) for each in evaluation.values()}


def _policy(flags: str, configuration: Configuration) -> Configuration:
    try:
        policy = REGISTRY.parse(shlex.split(flags))
    except ValueError as error:
        raise OptionError(f"policy {flags!r}: {error}") from None
    for name in sorted(_REFUSED & policy.supplied):
        raise OptionError(f"policy {flags!r}: --{name} is not an option of a policy here")
    if int(str(policy.get("bit_precision"))) > _MOST_BITS:
        raise OptionError(f"policy {flags!r}: --bit_precision is at most {_MOST_BITS} here")
    reading = {
        name: configuration.get(name) for name in ("chain_hash", "hash", "hash_seed", "missing_probability")
    }
    options = {name: policy.get(name) for name in policy.supplied}
    return REGISTRY.from_keywords(**{**reading, **options, "dsjson": True})


def _estimate(value: PolicyValue) -> Estimate:
    def in_rewards(way: str) -> Value:
        bounded = getattr(value, way)
        is_bounded = abs(bounded.low) < float("inf") and abs(bounded.high) < float("inf")
        return Value(
            policy=value.policy,
            events=value.events,
            reward=0.0 - bounded.value,
            low=0.0 - bounded.high if is_bounded else None,
            high=0.0 - bounded.low if is_bounded else None,
            effective_sample_size=value.effective_sample_size,
        )

    return Estimate(in_rewards("snips"), in_rewards("dr"))
