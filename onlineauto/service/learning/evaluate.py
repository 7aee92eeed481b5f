"""``evaluate_policies``: the value of policies over a log, with intervals that hold at all times.

``join_log_lines`` yields the labelled lines of a log's decisions, in the order in which they are learnt.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from onlineauto.engine.options.registry import ModelOptions, OutputOptions
from onlineauto.errors import OnlineautoError, OptionError
from onlineauto.evaluation.evaluation import Evaluation
from onlineauto.formats.decisions.dsjson import LogRecord, labelled_line
from onlineauto.formats.options import InputOptions
from onlineauto.options import options_of
from onlineauto.service.join.join import Join, replay
from onlineauto.service.join.settings import JoinSettings, read_settings
from onlineauto.service.learning.experiment import CONTROL
from onlineauto.service.learning.paced_policy import LoggedCosts, PacedPolicy, split_budget
from onlineauto.service.learning.values import Value
from onlineauto.service.log.segment_log import read_record
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onlineauto.evaluation.evaluation import PolicyValue
    from onlineauto.options import Configuration
    from onlineauto.service.log.segment_log import SegmentLog

_REFUSED: Final = {
    option.name for group in (OutputOptions, ModelOptions, InputOptions) for option in options_of(group)
}
_MOST_BITS: Final = 22


def is_explored(line: bytes) -> bool:
    """Return whether a model made a decision, and not a baseline, which explores no other actions.

    >>> is_explored(b'{"mode":"online","c":{}}'), is_explored(b'{"mode":"apprentice","c":{"mode":"online"}}')
    (True, False)
    """
    return line.find(b'"mode":"online"', 0, line.find(b',"c":')) >= 0


def label_line(line: bytes, decision: LogRecord, reward: float) -> bytes:
    """Return the line of a decision, with the label that its reward gives."""
    action, probability = decision.ranked[0], decision.probabilities[0]
    return labelled_line(line, 0.0 - reward, action=action, probability=probability)


def _first_settings(log: SegmentLog) -> JoinSettings:
    """Return the first settings of a log, whose beginning may have been removed."""
    for _, line in log.lines(log.begin):
        if line.startswith(b'{"Type":"settings"'):
            with suppress(OnlineautoError):
                return read_settings(read_record(line).settings)
    return JoinSettings()


def join_log_lines(log: SegmentLog, *, explored: bool = False) -> Iterator[bytes]:
    """Yield the lines of all decisions of a log that have ended, as ``onlineauto -d - --dsjson`` reads them.

    With `explored`, decisions of a baseline are left out, because they have no information on other actions.
    Records that the learner skips are left out, too, and so are decisions of a control arm.
    """
    join = Join(_first_settings(log))
    for entry in replay(join, log, log.begin):
        for ended in entry.ended:
            line = log.line_at(ended.position, ended.size)
            if entry.mode != "logging-only" and (is_explored(line) or not explored):
                with suppress(OnlineautoError, LookupError, ValueError, TypeError):  # the learner skips it
                    record = read_record(line)
                    if record.arm != CONTROL:
                        yield label_line(line, record, ended.reward)


class Estimate(msgspec.Struct, frozen=True):
    """A policy's value in rewards: with its own probabilities (SNIPS), and doubly robust.

    A policy with ``--budget`` has the mean cost that it expects, and its latest price.
    """

    snips: Value
    doubly_robust: Value
    mean_cost: float | None = None
    price: float | None = None


def evaluate_policies(
    log: SegmentLog, policies: Sequence[str], configuration: Configuration
) -> dict[str, Estimate]:
    """Return the values of policies, given as flags, that learn from the log, and of ``(as logged)``.

    The policies read events with the options of the service, `configuration`.
    """
    costs = LoggedCosts()
    workspaces = {flags: _policy(flags, configuration, costs) for flags in policies}
    evaluation = Evaluation(workspaces)
    for _ in evaluation.stream(costs.read(join_log_lines(log, explored=True)), trace=False):
        pass
    estimates = {value.policy: _estimate(value) for value in evaluation.values()}
    for name, policy in paced_policies(evaluation):
        pacing = policy.pacing
        estimates[name] = msgspec.structs.replace(
            estimates[name], mean_cost=pacing.mean_cost if pacing.costed else None, price=pacing.price
        )
    return estimates


def paced_policies(evaluation: Evaluation) -> Iterator[tuple[str, PacedPolicy]]:
    """Yield the policies of an evaluation that have a budget, with their names."""
    for name, policy in evaluation.policies.items():
        if isinstance(policy, PacedPolicy):
            yield name, policy


def _policy(flags: str, configuration: Configuration, costs: LoggedCosts) -> Workspace:
    try:
        words, budget = split_budget(shlex.split(flags))
        policy = REGISTRY.parse(words)
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
    configuration = REGISTRY.from_keywords(**{**reading, **options, "dsjson": True})
    if budget is not None:
        return PacedPolicy(configuration, budget, costs)
    return Workspace(configuration=configuration)


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
