"""Small seeded streams of JSON: decision-service logs, contexts with actions, single lines.

Every function takes the number of events and a seed and returns the bytes of a file. What a writer of JSON
may do differently, they do: blanks, escapes, the order of keys as far as VW allows it, numbers of all shapes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from tests.parity.slot_streams import SLOT_JSON

_CITIES = ("Oslo", "New York", "são paulo", "a|b:c", "7", "", "tab\there", 'quote"d', "\u65e5\u672c")
_NUMBERS = ("1", "-2", "0.25", "1e-3", "2.993", "123456789.125", "0", "-0.0", "3E+2", "4294967296", "0.1e-7")
_LONG_NUMBERS = (
    "0.12345678901234567",
    "17.000000000000000001",
    "18446744073709551616",
    "1e-40",
    "123456789012.5",
)


def _number(draw: random.Random) -> str:
    if draw.random() < 0.3:
        return draw.choice(_NUMBERS)
    return f"{draw.uniform(-2, 2):.{draw.randrange(1, 17)}g}"


def _member(draw: random.Random, key: str) -> str:
    """Return a feature of one of the kinds that there are."""
    kind = draw.randrange(6)
    if kind < 3:
        return f'"{key}":{_number(draw)}'
    if kind == 3:
        return f'"{key}": {draw.choice(("true", "false", "null"))}'
    value = json.dumps(draw.choice(_CITIES), ensure_ascii=draw.random() < 0.5)
    return f'"{key}" :\t{value}'


def _object(draw: random.Random, n: int = 3) -> str:
    keys = draw.sample(("age", "x1", "12", "a b", "city", "h\u00f6he", "k\\u00e4se", "z"), n)
    return "{" + ",".join(_member(draw, key) for key in keys) + "}"


def _array(draw: random.Random) -> str:
    if draw.random() < 0.3:
        return "[" + ", ".join(_object(draw, 2) for _ in range(draw.randrange(3))) + "]"
    return "[" + ",".join(draw.choice((_number(draw), "0", "null")) for _ in range(draw.randrange(5))) + "]"


def _namespaces(draw: random.Random) -> list[str]:
    """Members of a context: namespaces that nest, repeat and interleave with features of their own."""
    members = [f'"User":{_object(draw)}', f'"Geo": {_object(draw, 2)}']
    if draw.random() < 0.5:
        members.append(f'"vector":{_array(draw)}')
    if draw.random() < 0.4:
        inner = f'"Uptime":{_object(draw, 1)}'
        members.append(
            f'"Nest":{{{_member(draw, "p")},{inner},{_member(draw, "q")},"Nest":{_object(draw, 1)}}}'
        )
    if draw.random() < 0.4:
        members.append(_member(draw, "own"))
    if draw.random() < 0.3:
        members.append(f'"_text":"{draw.choice(("some words here", " a:b  c|d ", ""))}"')
    if draw.random() < 0.3:
        members.append('"_ignored":' + draw.choice(("[1,{}]", '{"a":"}"}', '"x,y"', "12")))
    draw.shuffle(members)
    return members


def _action(draw: random.Random, i: int) -> str:
    members = [f'"A":{{"id":"a{i}","v":{_number(draw)}}}', f'"{draw.choice("TU")}":{_object(draw, 1)}']
    if draw.random() < 0.3:
        members.append(_member(draw, "loose"))
    if draw.random() < 0.2:
        members.append(f'"_tag":"t{i}"')
    draw.shuffle(members)
    return "{" + ",".join(members) + "}"


def _context(draw: random.Random, n_actions: int) -> str:
    actions = '"_multi":[' + ",".join(_action(draw, i) for i in range(n_actions)) + "]"
    members = _namespaces(draw)
    members.insert(len(members) if draw.random() < 0.7 else draw.randrange(len(members)), actions)
    return "{" + ",".join(members) + "}"


def _label(draw: random.Random, chosen: int, n_actions: int) -> list[str]:
    """Keys of a label, which may be missing."""
    if draw.random() < 0.1:
        return []
    cost = draw.choice(("0", "-1", f"{-draw.random():.4f}"))
    probability = draw.choice(("0.5", f"{1 / n_actions:.6f}", "1"))
    return [
        f'"_label_cost":{cost}',
        f'"_label_probability":{probability}',
        f'"_label_Action":{chosen + 1}',
        f'"_labelIndex":{chosen}',
    ]


def log(n: int, seed: int) -> bytes:
    """Return a decision-service log with late rewards, skipped events, empty lines and truncated ones."""
    draw = random.Random(seed)
    lines = []
    for event in range(n):
        n_actions = draw.randrange(1, 5)
        chosen = draw.randrange(n_actions)
        keys = _label(draw, chosen, n_actions)
        draw.shuffle(keys)
        ranking: list[Any] = draw.sample(range(1, n_actions + 1), n_actions)
        keys += [
            f'"Timestamp":"2026-01-01T00:{event % 60:02}:00.0000000Z"',
            '"Version":"1"',
            f'"EventId":"e{event}"',
        ]
        keys += [f'"a":{json.dumps(ranking)}', f'"c":{_context(draw, n_actions)}']
        keys += [
            f'"p":{json.dumps([1 / n_actions] * n_actions)}',
            '"VWState":{"m":"x/y"}',
            '"rewards":["}", {}]',
        ]
        if draw.random() < 0.3:
            keys.insert(0, f'"_original_label_cost":{_number(draw)}')
        if draw.random() < 0.05:
            keys.append('"_skipLearn":true')
        if draw.random() < 0.2:
            keys.append(f'"pdrop":{draw.choice(("0.5", "0.9", "null"))}')
        lines.append("{" + ",".join(keys) + "}")
        if draw.random() < 0.1:
            lines.append(draw.choice((f'{{"RewardValue":1,"EventId":"e{event}"}}', "", lines[-1][:-9])))
    return ("\n".join(lines) + "\n").encode()


def contexts(n: int, seed: int) -> bytes:
    """Contexts with actions; labels as keys of their own, as an object, or as an action's."""
    draw = random.Random(seed)
    lines = []
    for _ in range(n):
        n_actions = draw.randrange(1, 5)
        chosen, kind = draw.randrange(n_actions), draw.randrange(3)
        keys = _label(draw, chosen, n_actions)
        context = _context(draw, n_actions)
        if kind == 0 and keys:
            context = "{" + ",".join(keys) + "," + context[1:]
        elif kind == 1:
            where = context.index("[") if context.startswith('{"_multi"') else context.index('"_multi":[') + 9
            text = draw.choice(
                ('"_label":"1:-0.5:0.25",', '"_label":{"Cost":-1,"Probability":0.5,"Action":1},')
            )
            context = context[: where + 2] + text + context[where + 2 :]
        lines.append(context)
    return ("\r\n".join(lines)).encode()


def lines(n: int, seed: int) -> bytes:
    """Single lines with simple labels."""
    draw = random.Random(seed)
    found = []
    for i in range(n):
        label = draw.choice(
            (
                f'"_label":{draw.uniform(-1, 1):.4f},',
                f'"_label":"{draw.uniform(-1, 1):.3f} 2",',
                f'"_label":{{"Label":{draw.uniform(-1, 1):.3f},"Weight":0.5,"initial":0.1}},',
                f'"_label_label":{draw.randrange(3)},"_label_Weight":1.5,',
                "",
            )
        )
        tag = f'"_tag":"t{i}",' if draw.random() < 0.2 else ""
        found.append("{" + label + tag + ",".join(_namespaces(draw)) + "}")
    return ("\n".join(found) + "\n").encode()


def classic(n: int, seed: int) -> bytes:
    """Single lines with the costs of actions."""
    draw = random.Random(seed)
    found = []
    for _ in range(n):
        label = f'"_label_Action":{draw.randrange(1, 5)},"_label_Cost":{draw.uniform(-1, 0):.3f},'
        label += f'"_label_Probability":{draw.choice((0.25, 0.5, 1))},'
        found.append("{" + (label if draw.random() < 0.9 else "") + ",".join(_namespaces(draw)) + "}")
    return ("\n".join(found) + "\n").encode()


def long_numbers(n: int, seed: int) -> bytes:
    """Single lines with numbers that have more digits than a float64."""
    draw = random.Random(seed)
    found = []
    for _ in range(n):
        digits = "".join(draw.choice("0123456789") for _ in range(draw.randrange(1, 30)))
        numbers = [
            *draw.sample(_LONG_NUMBERS, 2),
            f"{draw.randrange(1, 9)}.{digits}",
            f"{draw.randrange(1, 9)}{digits}e-{len(digits)}",
        ]
        members = ",".join(f'"x{i}":{number}' for i, number in enumerate(numbers))
        found.append(f'{{"_label":{draw.uniform(-1, 1):.20f},"N":{{{members}}}}}')
    return ("\n".join(found) + "\n").encode()


JSON_STREAMS: dict[str, Callable[[int, int], bytes]] = {
    **SLOT_JSON,
    "log": log,
    "contexts": contexts,
    "lines": lines,
    "classic": classic,
    "long_numbers": long_numbers,
}
"""Streams by name."""
