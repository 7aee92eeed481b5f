"""Small seeded streams of events that have slots, in VW's text format."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

_WORDS = ("ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine")


def _shared(draw: random.Random) -> str:
    return f"ccb shared |U {draw.choice(_WORDS)} age:{draw.randrange(18, 80)} |T t{draw.randrange(6)}"


def _action(draw: random.Random) -> str:
    price = f" price:{draw.uniform(0, 4):.2f}" if draw.random() < 0.5 else ""
    extra = f" |V v{draw.randrange(3)}:{draw.uniform(0.1, 2):.3f}" if draw.random() < 0.3 else ""
    return f"ccb action |A item{draw.randrange(9)}{price}{extra}"


def _outcome(draw: random.Random, chosen: int, others: list[int]) -> str:
    """Label of a slot, now and then with the probabilities of the other actions."""
    cost = f"{draw.uniform(-1, 1):.2f}"
    if draw.random() < 0.7 or not others:
        return f"{chosen}:{cost}:{draw.uniform(0.05, 1):.3f}"
    rest = ",".join(f"{action}:{0.5 / len(others):.6f}" for action in others)
    return f"{chosen}:{cost}:0.5,{rest}"


def _text(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def slots(n: int, seed: int) -> bytes:
    """One to four slots, some of them confined to some actions, or without an outcome, or with features."""
    draw = random.Random(seed)
    lines = []
    for _ in range(n):
        n_actions = draw.randrange(2, 7)
        lines += [_shared(draw), *(_action(draw) for _ in range(n_actions))]
        free = list(range(n_actions))
        for _ in range(draw.randrange(1, min(n_actions, 4) + 1)):
            chosen = draw.choice(free)
            free.remove(chosen)
            label = f" {_outcome(draw, chosen, free)}" if draw.random() < 0.85 else ""
            confined = sorted({chosen, *draw.sample(range(n_actions), 2)}) if draw.random() < 0.2 else ()
            listed = f" {','.join(map(str, confined))}" if confined else ""
            features = draw.choice(
                (
                    *("", "|", f"| top wide:{draw.random():.3f}", f"|S top |S side:{draw.random():.3f}"),
                    *("|U ash |A item3 |A y", f"|S s |A x:2 | z:{draw.random():.3f}"),
                )
            )
            lines.append(f"ccb slot{label}{listed} {features}")
        lines.append("")
    return _text(lines)


def slots_at_last(n: int, seed: int) -> bytes:
    """Single slots without features, as those of a contextual bandit, and after some events all kinds."""
    draw = random.Random(seed)
    lines = []
    for _ in range(n // 3):
        n_actions = draw.randrange(2, 5)
        lines += [_shared(draw), *(_action(draw) for _ in range(n_actions))]
        lines += [f"ccb slot {draw.randrange(n_actions)}:{draw.uniform(-1, 0):.2f}:0.5 |", ""]
    return _text(lines) + slots(n - n // 3, seed + 1)


def slots_seeded(n: int, seed: int) -> bytes:
    """Slots are not labelled and have tags, some of which say by what to draw."""
    draw = random.Random(seed)
    lines = []
    for event in range(n):
        lines += [f"{_shared(draw)}", *(_action(draw) for _ in range(4))]
        for slot in range(3):
            tag = draw.choice(("", f"'seed={event}-{slot}", f"'t{slot}"))
            label = f" {slot}:{draw.choice((-1, 0))}:0.4" if draw.random() < 0.3 else ""
            lines.append(f"ccb slot{label} {tag}|S s{slot}")
        lines.append("")
    return _text(lines)


def slots_crowded(n: int, seed: int) -> bytes:
    """Slots are confined to actions that others may have, or that were not logged, or that are none."""
    draw = random.Random(seed)
    lines = []
    for _ in range(n):
        lines += [_shared(draw), *(_action(draw) for _ in range(3))]
        for _ in range(3):
            logged = f" {draw.randrange(5)}:{draw.uniform(-1, 1):.2f}:0.5" if draw.random() < 0.8 else ""
            listed = draw.choice(("", " 0", " 0,1", " 7", " 1,9"))
            lines.append(f"ccb slot{logged}{listed} {draw.choice(('|', '|S a b', '| a'))}")
        lines.append("")
    return _text(lines)


def slots_rewards(n: int, seed: int) -> bytes:
    """Three slots and four actions, costs -1 and 0 that can be learnt."""
    draw = random.Random(seed)
    lines = []
    for _ in range(n):
        word = draw.choice(_WORDS[:4])
        lines += [f"ccb shared |U {word}", *(f"ccb action |A {action}" for action in range(4))]
        for slot, chosen in enumerate(draw.sample(range(4), 3)):
            good = (len(word) + slot) % 4 == chosen
            cost = -1 if draw.random() < (0.9 if good else 0.2) else 0
            lines.append(f"ccb slot {chosen}:{cost}:{1 / (4 - slot):.6f} |S {'abc'[slot]}")
        lines.append("")
    return _text(lines)


SLOT_STREAMS: dict[str, Callable[[int, int], bytes]] = {
    "slots": slots,
    "slots_at_last": slots_at_last,
    "slots_seeded": slots_seeded,
    "slots_crowded": slots_crowded,
    "slots_rewards": slots_rewards,
}
"""The streams by name."""


def _json_event(draw: random.Random) -> tuple[dict[str, object], list[dict[str, object]]]:
    """Context of an event, and what was logged of its slots."""
    n_actions = draw.randrange(2, 6)
    context: dict[str, object] = {"U": {"tree": draw.choice(_WORDS), "age": draw.randrange(18, 80)}}
    if draw.random() < 0.4:
        context["top"] = draw.uniform(0, 2)
    actions: list[dict[str, object]] = [
        {"A": {"id": str(i), "x": draw.randrange(3)}} for i in range(n_actions)
    ]
    if draw.random() < 0.3:
        actions[0]["plain"] = True
    context["_multi"] = actions
    slots, outcomes = [], []
    free = list(range(n_actions))
    for number in range(draw.randrange(1, n_actions + 1)):
        slot: dict[str, object] = {"_id": f"slot{number}"}
        if draw.random() < 0.6:
            slot["S"] = {"place": "abcdef"[number], "w": draw.uniform(0, 1)}
        if draw.random() < 0.3:
            slot["size"] = draw.uniform(0, 3)
        draw.shuffle(free)
        outcome: dict[str, object] = {"_label_cost": round(draw.uniform(-1, 1), 2), "_id": f"slot{number}"}
        outcome |= {"_a": list(free), "_p": [round(1 / len(free), 3) for _ in free], "_o": []}
        if draw.random() < 0.3:
            outcome["_original_label_cost"] = -0.5
        if draw.random() < 0.2:
            (slot if draw.random() < 0.5 else outcome)["_inc"] = sorted({free[0], draw.randrange(n_actions)})
        slots.append(slot)
        outcomes.append(outcome)
        free = free[1:]
    context["_slots"] = slots
    if draw.random() < 0.3:
        context["late"] = draw.choice(("x", "y z"))
    return context, outcomes


def slots_log(n: int, seed: int) -> bytes:
    """Events of a decision-service log: with slots, with ``pdrop``, and single decisions without slots."""
    draw = random.Random(seed)
    lines = []
    for number in range(n):
        context, outcomes = _json_event(draw)
        event: dict[str, object] = {"Timestamp": f"2021-04-26T17:23:{number:02d}", "EventId": str(number)}
        kind = draw.random()
        if kind < 0.1:
            del context["_slots"]
            event |= {"_label_cost": -1, "_label_probability": 0.5, "_label_Action": 1, "_labelIndex": 0}
            event |= {"c": context, "a": [1, 2], "p": [0.5, 0.5]}
        else:
            event |= {"c": context, "_outcomes": outcomes[: draw.randrange(len(outcomes) + 1)]}
            if kind < 0.2:
                event["a"] = [1]
        if draw.random() < 0.1:
            event["pdrop"] = 0.5
        if draw.random() < 0.3:
            event["_ba"] = [draw.randrange(2), 1]
        lines.append(json.dumps(event))
    return _text(lines)


def slots_json(n: int, seed: int) -> bytes:
    """Events as JSON, labels within the slots."""
    draw = random.Random(seed)
    lines = []
    for _ in range(n):
        context, outcomes = _json_event(draw)
        for slot, outcome in zip(context["_slots"], outcomes, strict=True):  # type: ignore[call-overload]
            if draw.random() < 0.8:
                slot |= {key: outcome[key] for key in ("_label_cost", "_a", "_p")}
        lines.append(json.dumps(context))
    return _text(lines)


SLOT_JSON: dict[str, Callable[[int, int], bytes]] = {"slots_log": slots_log, "slots_json": slots_json}
"""The streams of JSON by name."""
