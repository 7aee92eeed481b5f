"""``ServeOptions``: the options of a service, and ``Limits``, the bounds on its requests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from onlineauto.errors import OptionError
from onlineauto.options import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on the size of requests, and on the number of waiting records."""

    body_bytes: int = 1 << 16  # Size of the body of a request.
    actions: int = 256  # Number of actions of a rank.
    decisions: int = 256  # Number of ranks of a batch, which are answered together.
    slots: int = 32  # Number of slots of a rank of slots. Each is logged with its context and its actions.
    features: int = 1024  # Number of features of the context and of one action together.
    members: int = 64  # Number of namespaces, and of features without one, of the context and of each action.
    name_bytes: int = 128  # Length of an id, and of the name of a namespace.
    namespaces: int = 128  # Number of distinct names of namespaces over all requests.
    # The accepted names of namespaces; by default any name, up to `namespaces` of them.
    only: tuple[str, ...] | None = None
    # Number of decisions that wait for their rewards, and of ids whose rewards wait for a decision.
    pending: int = 8_000_000
    parts: int = 64  # Number of rewards of one decision that have keys, or arrived before the decision.
    queue: int = 10_000  # Number of records that wait to be written.


_LIMITS: Final = Limits()
DEFAULT_LOOP: Final = "default"
"""The name of the loop whose folder is that of the service."""
LOOP_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""The names that other loops can have."""
PART_BYTES: Final = 1 << 19
"""Maximum number of bytes of a log in one request of ``POST /v1/records``."""
RECORDED_BY: Final = ("recorded-by", "onlineauto")
"""The header of an answer without a body, which an empty answer of a proxy does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Options of a service, apart from those of its model."""

    title: ClassVar[str] = "Service"
    vw: ClassVar[bool] = False

    host: str = option("127.0.0.1", "Address to listen to. Another than this machine's own needs tokens.")
    port: int = option(8001, "Port to listen to.", minimum=0, maximum=65535, metavar="N")
    follow: str | None = option(
        None,
        "Rank with the models of a learner, and hand the log over to it. Its token is ONLINEAUTO_TOKEN in "
        "the environment.",
        metavar="URL",
    )
    reward_wait: str | None = option(
        None,
        "How long a decision waits for its reward: seconds, or a duration like PT10M. Not supplied: the "
        "value in the log, or 600.",
        metavar="SECONDS",
    )
    default_reward: float | None = option(
        None,
        "Reward of a decision that receives none. Not supplied: the value in the log, or 0.",
        metavar="REWARD",
    )
    reward_aggregation: str | None = option(
        None,
        "How several rewards of a decision are combined: first, last, sum, mean, min or max. Not supplied: "
        "the value in the log, or first.",
        metavar="NAME",
    )
    learn_at: str | None = option(
        None,
        "When a decision is learnt: after its wait, with or without a reward (wait), or at its first reward "
        "(reward), if every decision gets one. Not supplied: the value in the log, or wait.",
        metavar="TIME",
    )
    mode: str | None = option(
        None,
        "Who decides: the model (online), or the baseline, which is the first action, while the model learns "
        "(apprentice) or does not (logging-only). Not supplied: the value in the log, or online.",
        metavar="MODE",
    )
    app: str = option(
        DEFAULT_LOOP,
        "Name of the service; actions are drawn by it and the id of the event. Of a loop that is not the "
        "default: its name.",
    )
    tokens: str | None = option(None, "File of tokens; not supplied: tokens in the folder.", metavar="FILE")
    publish_every: float = option(0.5, "Seconds between two models that rank.", minimum=0)
    snapshot_every: float = option(30.0, "Seconds between two snapshots.", above=0)
    keep_every: float = option(3600.0, "Seconds between two models of the history.", above=0)
    keep_models: int = option(10, "Number of models in the history.", minimum=1, metavar="N")
    keep_log: float | None = option(
        None, "Days for which the log is kept. Not supplied: all of it is.", above=0, metavar="DAYS"
    )
    learners: int = option(
        1,
        "Number of threads that learn together while 4 MB or more of the log are not learnt. For --automl.",
        minimum=1,
        maximum=256,
        metavar="N",
    )
    reward_range: str | None = option(
        None,
        "The lowest and the highest reward; others are rejected. Not supplied: the value in the log, or a "
        "bound learnt from the rewards, which replaces far larger ones.",
        metavar="LOW,HIGH",
    )
    max_pending: int | None = option(
        None,
        "Maximum number of decisions that wait for their reward. Not supplied: as many as fit into two "
        "fifths of the memory, and at most 8,000,000.",
        minimum=1,
        metavar="N",
    )
    max_finished: int | None = option(
        None,
        "Maximum number of finished decisions that are remembered until their wait is over, to recognise "
        "repetitions. Not supplied: the value in the log, or 1,000,000.",
        minimum=1,
        metavar="N",
    )
    control: str | None = option(
        None,
        "Share of the units, such as 5%, for which the baseline decides: the control arm of an experiment, "
        "which is not learnt. Not supplied: the value in the log, or none.",
        metavar="SHARE",
    )
    guardrails: str | None = option(
        None,
        "Metrics that must not fall below the control arm, separated by commas; reward is one, too. Behind a "
        "name, :rollback lets the baseline decide for all once it has fallen.",
        metavar="NAMES",
        listed=True,
    )
    budget: float | None = option(
        None,
        "Mean cost of a decision that is held by a price on the costs of actions, each declared as cost "
        "beside its features, or reported with its reward. Not supplied: the value in the log, or none.",
        above=0,
        metavar="COST",
    )
    ship: str | None = option(
        None,
        "Existing folder on a second disk that receives a copy of the log, the models and the snapshot, at "
        "most a moment behind. onlineauto loop --restore begins from it.",
        metavar="FOLDER",
    )
    standby: str | None = option(
        None,
        "Folder that several processes share. One of them serves, and holds its lease; the others wait, and "
        "one takes over if the lease is not renewed. It is FOLDER itself, or receives the copy of --ship.",
        metavar="SHARED",
    )
    lease_seconds: float = option(4.0, "Seconds for which the lease of --standby is valid.", minimum=0.5)
    log_topic: str | None = option(
        None,
        "Topic of Kafka, BROKER:PORT/TOPIC, that receives the decisions and rewards of the log, too, at "
        "least once each.",
        metavar="ADDRESS",
    )
    client_settings: str | None = option(
        None, "File of name=value lines for the client of --log_topic.", metavar="FILE"
    )
    max_actions: int = option(_LIMITS.actions, "Maximum number of actions of a rank.", minimum=1, metavar="N")
    max_features: int = option(
        _LIMITS.features,
        "Maximum number of features of the context and of one action together; a list of 16 numbers or more "
        "counts as one.",
        minimum=1,
        metavar="N",
    )
    max_namespaces: int = option(
        _LIMITS.namespaces,
        "Maximum number of names of namespaces, over all requests.",
        minimum=1,
        metavar="N",
    )
    namespaces: str | None = option(
        None,
        "Accepted names of namespaces, separated by commas; others are rejected. Not supplied: any names, up "
        "to --max_namespaces.",
        metavar="NAMES",
        listed=True,
    )
    max_body: int = option(
        _LIMITS.body_bytes, "Maximum size of a request in bytes.", minimum=256, metavar="BYTES"
    )
    max_requests: int = option(1000, "Maximum number of requests at the same time.", minimum=1, metavar="N")
    max_rate: float | None = option(
        None,
        "Maximum number of requests a second; a request counts as one more for each 4 KB of its body. Not "
        "supplied: any number.",
        above=0,
        metavar="N",
    )
    max_open_loops: int = option(
        12,
        "Maximum number of loops, besides the default, whose models are in memory. One more closes the loop "
        "that was asked least recently, until it is asked again.",
        minimum=1,
        metavar="N",
    )
    close_idle: float = option(
        60.0, "Seconds without a request after which a loop is closed. Not the default.", above=0
    )
    max_connections: int | None = option(
        None,
        "Maximum number of connections; one more closes the longest idle one. Not supplied: as many as the "
        "limit of open files allows, and at most 4096.",
        minimum=1,
        metavar="N",
    )

    def settings(self) -> dict[str, Any]:
        """Return the supplied settings of the join of rewards; the log determines all others."""
        named = {
            "reward_wait": self.reward_wait,
            "default_reward": self.default_reward,
            "aggregation": self.reward_aggregation,
            "learn_at": self.learn_at,
            "mode": self.mode,
            "reward_range": None if self.reward_range is None else _range(self.reward_range),
            "max_finished": self.max_finished,
            "control": None if self.control is None else _share(self.control),
            "budget": self.budget,
            "guardrails": None if self.guardrails is None else self.guardrails.split(","),
        }
        return {name: value for name, value in named.items() if value is not None}


def _range(text: str) -> tuple[float, float]:
    """Return the two numbers of a range."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise OptionError(f"--reward_range takes two numbers, such as 0,1, not {text!r}") from None
    return low, high


def _share(text: str) -> float:
    """Return a share from 0 to 1."""
    try:
        return float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        raise OptionError(f"--control takes a share such as 5% or 0.05, not {text!r}") from None
