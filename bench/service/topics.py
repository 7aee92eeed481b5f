"""CPU µs to read a decision of 6 actions and its reward from a topic, to join and to learn them.

*file* reads joined decisions from memory, *topic* reads and joins messages of the broker inside librdkafka:
CPU times of that thread. *learnt* also learns with ``--automl 4``: CPU time of all threads and the broker.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import msgspec

from bench import kit
from onlineauto import Run, Workspace
from onlineauto.service.topics import TopicSource
from tests.service.topics.broker import Broker


def messages(n: int) -> list[tuple[bytes, ...]]:
    """Return `n` decisions of 689 bytes on average, their rewards, and the same decisions with labels."""
    draw, rows = random.Random(3), []
    for number in range(n):
        chosen, event_id = draw.randrange(6), f"{number:028x}"
        user = {f"interest{name}={draw.randrange(20)}": 1 for name in range(7)}
        actions = [{"article": {f"id={a}": 1, f"topic={a % 3}": 1, "age": draw.random()}} for a in range(6)]
        order = [chosen + 1, *(action + 1 for action in range(6) if action != chosen)]
        event = {"EventId": event_id, "a": order, "p": [1 / 6] * 6, "c": {"user": user, "_multi": actions}}
        reward = float(draw.random() < 0.2 + 0.1 * chosen)
        label = {"_label_cost": -reward, "_label_probability": 1 / 6, "_label_Action": chosen + 1}
        row = event, {"EventId": event_id, "RewardValue": reward}, label | {"_labelIndex": chosen} | event
        rows.append(tuple(map(msgspec.json.encode, row)))
    return rows


def measure(decisions: int, rounds: int, learn_at: str = "reward") -> dict[str, list[float]]:
    """Return the CPU microseconds for a decision of each side, by round."""
    rows, broker = messages(decisions), Broker()
    log = [(n % 4, n + 500 * late, row[late]) for n, row in enumerate(rows) for late in (0, 1)]
    broker.send("log", sorted(log, key=lambda sent: sent[1]))
    join = {"learn_at": learn_at, "reward_wait": 1.0}

    def run(side: str) -> float:
        model: Any = Workspace(cb_explore_adf=True, automl=4, dsjson=True)
        with TopicSource(broker.address("log"), rewards="log", join=join, until_end=True) as topic:
            clock = time.process_time if side == "learnt" else time.thread_time
            source = b"\n".join(row[2] for row in rows) if side == "file" else topic
            begin = clock()
            _ = Run(model, source).step() if side == "learnt" else sum(map(len, model.read(source)))
            return (clock() - begin) * 1e6 / decisions

    return kit.samples(("file", "topic", "learnt"), rounds, run)


def main(words: Sequence[str] | None = None) -> None:
    options = kit.parser(__doc__, decisions=26_000, rounds=5, learn_at="reward").parse_args(words)
    for side, times in measure(options.decisions, options.rounds, options.learn_at).items():
        print(f"{side:6} {median(times):6.1f}")


if __name__ == "__main__":
    main()
