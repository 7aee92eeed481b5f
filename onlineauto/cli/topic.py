"""The verb ``topic``: learn from a topic of Kafka; the model file has the offsets."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from onlineauto.cli.terminal import warn
from onlineauto.cli.verb import Verb
from onlineauto.engine.options.registry import ModelOptions, OutputOptions, PartitionOptions, RunOptions
from onlineauto.errors import OptionError
from onlineauto.formats.options import FORMATS, InputOptions
from onlineauto.options import Registry, option, options_of
from onlineauto.workspace.options import REGISTRY as LEARNING

if TYPE_CHECKING:
    from onlineauto.options import Configuration
    from onlineauto.service.topics.topic_source import TopicSource


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOptions:
    """Options of the verb ``topic``, apart from those of learning."""

    title: ClassVar[str] = "Topic"
    vw: ClassVar[bool] = False

    rewards: str | None = option(
        None,
        "Topic of rewards, joined with the decisions by event id; it may be the topic of the decisions. "
        "Needs --dsjson.",
        metavar="TOPIC",
    )
    reward_wait: str | None = option(
        None,
        "How long a decision waits for its reward, by the times of the messages: seconds, or a duration like "
        "PT10M. Not supplied: 600.",
        metavar="SECONDS",
    )
    default_reward: float | None = option(
        None, "Reward of a decision that receives none. Not supplied: 0.", metavar="REWARD"
    )
    reward_aggregation: str | None = option(
        None,
        "How several rewards of a decision are combined: first, last, sum, mean, min or max. Not supplied: "
        "first.",
        metavar="NAME",
    )
    learn_at: str | None = option(
        None,
        "When a decision is learnt: after its wait, with or without a reward (wait), or at its first reward "
        "(reward), if every decision gets one. Not supplied: wait.",
        metavar="TIME",
    )
    dead_letters: str | None = option(
        None, "Topic that receives the messages that cannot be used.", metavar="TOPIC"
    )
    until_end: bool = option(
        False, "Stop after the messages that the topics have now. Without it, wait for more."
    )
    client_settings: str | None = option(
        None,
        "File of name=value lines for the client, librdkafka, such as security.protocol=SASL_SSL.",
        metavar="FILE",
    )
    group: str = option(
        "onlineauto", "Group under which offsets are committed after each save, for monitoring."
    )


_PATIENCE: Final = 1.0
"""Seconds of waiting for messages after which workers learn the events that are there."""
_JOIN: Final = {
    "reward_wait": "reward_wait",
    "default_reward": "default_reward",
    "reward_aggregation": "aggregation",
    "learn_at": "learn_at",
}
"""Options and the settings of the join that they are."""


def run(configuration: Configuration) -> int:
    """Learn until a signal arrives or the topic ends (``--until_end``); return the exit code of learning."""
    options, output = configuration[TopicOptions], configuration[OutputOptions]
    addresses = configuration[InputOptions].data
    if len(addresses) != 1:
        raise OptionError("topic takes one address: onlineauto topic localhost:9092/events --dsjson")
    if configuration[RunOptions].passes > 1:
        raise OptionError("--passes cannot be used with a topic, which has no end")
    from onlineauto.cli.learn import run as learn

    own_options = {declared.name for declared in options_of(TopicOptions)}
    supplied = {name: configuration.get(name) for name in configuration.supplied - own_options}
    if configuration[ModelOptions].final_regressor is not None:
        supplied = {"resume": True} | supplied
    with _source(addresses[0], options) as source:
        source.patience = None if configuration[PartitionOptions].workers is None else _PATIENCE
        code = learn(LEARNING.from_keywords(**supplied), source)
        if not output.quiet:
            _print_join(source)
    return code


def _source(address: str, options: TopicOptions) -> TopicSource:
    from onlineauto.service.join.settings import seconds_of
    from onlineauto.service.topics.partitions import read_client_settings
    from onlineauto.service.topics.topic_source import TopicSource

    join: dict[str, Any] = {setting: getattr(options, name) for name, setting in _JOIN.items()}
    join = {setting: value for setting, value in join.items() if value is not None}
    if "reward_wait" in join:
        join["reward_wait"] = seconds_of(join["reward_wait"], name="reward_wait")
    return TopicSource(
        address,
        rewards=options.rewards,
        join=join,
        dead_letters=options.dead_letters,
        until_end=options.until_end,
        settings=None if options.client_settings is None else read_client_settings(options.client_settings),
        group=options.group,
    )


def _print_join(source: TopicSource) -> None:
    """Print the counts of the join, and warn of what was lost, on standard error."""
    if (join := source.join) is not None:
        counts = join.counts
        lost = counts.late + counts.dangling
        print(
            f"decisions: {counts.joined} with a reward, {counts.defaulted} without one, {join.waiting} wait, "
            f"{counts.repeated} repeated; rewards: {lost} without a decision that waits, "
            f"{counts.duplicate} repeated, {join.early} wait for a decision",
            file=sys.stderr,
        )
        if join.waiting and not counts.joined + counts.defaulted:
            warn(
                "no decision has waited yet, so none is learnt: give a shorter --reward_wait, or --learn_at "
                "reward if every decision gets a reward"
            )
        if 2 * (lost + join.early) > counts.rewarded:
            warn(
                "most rewards have no decision that waits: they came after --reward_wait, or their ids are "
                "those of no decision"
            )
        if source.disordered:
            warn(
                f"{source.disordered} messages are older, by more than --reward_wait, than a message before "
                "them: the wait is measured by the times of messages, so send them in order"
            )
    if source.undelivered:
        warn(f"{source.undelivered} dead letters were not delivered")


VERB: Final = Verb(
    Registry((TopicOptions, *LEARNING.groups)),
    run,
    "Usage: onlineauto topic [options] BROKER:PORT/TOPIC",
    "Learn from a topic of Kafka, one event in each message: text, --json or --dsjson. The model of -f has "
    "the offsets of all partitions, is saved at intervals (--save_every) and is continued if it "
    "exists, so that each message is learnt once, also after kill -9. All options of learning: onlineauto "
    "learn --help.",
    """\
Examples:
  onlineauto topic localhost:9092/events --cb_explore_adf --automl 4 --dsjson -f my.model
  onlineauto topic localhost:9092/decisions --rewards rewards --reward_wait PT30M \\
      --cb_explore_adf --automl 4 --dsjson -f my.model --dead_letters poison
  onlineauto topic kafka://a:9092,b:9092/events --client_settings client.properties --until_end""",
    options=(
        *(declared.name for declared in options_of(TopicOptions)),
        *("final_regressor", "save_every", *FORMATS, "cb_explore_adf", "automl", "predictions"),
        *("examples", "workers", "servers", "partitions", "quiet"),
    ),
)
