"""Records and requests of a simulated service."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec

from onlineauto.formats.decisions.dsjson import stamp
from onlineauto.service.join.join import Join, JoinSettings, replay
from onlineauto.service.log.segment_log import sealed
from onlineauto.service.loop.front import Front
from onlineauto.service.ranking import RankRequest
from onlineauto.workspace.options import REGISTRY
from tests.waiting import until

CONFIGURATION = REGISTRY.parse("--cb_explore_adf --automl 4 --dsjson --bit_precision 12 --epsilon 0.2")
TOPICS = ("politics", "sports", "music")
BEGIN = 1_700_000_000.0


def rank_request(event_id: str, user: str = "tom") -> RankRequest:
    """Return a request to rank three articles for a user."""
    actions = [[{"article": msgspec.Raw(b'{"%b":1}' % topic.encode())}] for topic in TOPICS]
    return RankRequest(event_id, [{"user": msgspec.Raw(b'{"%b":1}' % user.encode())}], TOPICS, actions)


def join_of(front: Front) -> Join:
    """Return the join of the log of a front, read from the beginning."""
    join = Join(JoinSettings())
    until(lambda: not front.unwritten)
    for _ in replay(join, front.log, 0):
        pass
    return join


def record(kind: str, time: float, **members: Any) -> bytes:
    return sealed(msgspec.json.encode({"Type": kind, "Timestamp": stamp(BEGIN + time), **members}))


def decision(
    event_id: str, time: float, action: int = 0, *, user: str = "tom", age: float = 1, **members: Any
) -> bytes:
    ranked = [action + 1, *(number + 1 for number in range(3) if number != action)]
    actions = [{"_tag": topic, "article": {topic: 1}} for topic in TOPICS]
    chances = {"a": ranked, "p": [0.5, 0.25, 0.25], "mode": "online"}
    context = {"user": {user: age}, "_multi": actions}
    return record("rank", time, EventId=event_id, **{**chances, **members}, c=context)


def reward(event_id: str, time: float, value: float, key: str = "") -> bytes:
    return record("reward", time, EventId=event_id, RewardValue=value, **({"RewardId": key} if key else {}))


def records(count: int, *, seed: int = 1) -> Iterator[bytes]:
    """Yield `count` decisions, a second apart, with rewards for most of them behind them."""
    draw = Random(seed)
    for number in range(count):
        user, action = draw.choice(["tom", "ann"]), draw.randrange(3)
        yield decision(f"e{number}", number, action, user=user)
        if draw.random() < 0.7:
            liked = action == (0 if user == "tom" else 2)
            yield reward(f"e{max(number - draw.randrange(4), 0)}", number + 0.5, float(liked))
    yield record("tick", count + 1000.0)
