"""Check histories of concurrent clients, as Elle and Knossos do: list-append transactions, and a mutex.

    python -m tests.tune.store.histories list-append|mutex HISTORY

A history is a list of events in their real order, in the form of Jepsen: ``process``, ``f``, ``value`` and
``type`` (``invoke``, ``ok``, ``fail`` for what has not happened, ``info`` for what is unknown). The command
also reads histories of elle-cli, JSON or EDN, known good or known bad, which are not in this repository.

Source: Kingsbury and Alvaro: Elle: inferring isolation anomalies from experimental observations, 2020.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Operation:
    process: Any
    f: str
    value: Any
    start: float
    end: float
    kind: str


def _operations(history: Sequence[Mapping[str, Any]]) -> list[_Operation]:
    """Return each invocation with its completion; one without a completion has an unknown result."""
    found: list[_Operation] = []
    begun: dict[Any, tuple[int, Mapping[str, Any]]] = {}
    for at, event in enumerate(history):
        process, kind = event["process"], str(event["type"])
        if kind == "invoke":
            begun[process] = at, event
        elif process in begun:
            start, invoked = begun.pop(process)
            value = event["value"] if kind == "ok" and "value" in event else invoked.get("value")
            end = inf if kind == "info" else at
            found.append(_Operation(process, str(invoked.get("f", "txn")), value, start, end, kind))
    for process, (start, invoked) in begun.items():
        found.append(
            _Operation(process, str(invoked.get("f", "txn")), invoked.get("value"), start, inf, "info")
        )
    return found


def list_append(history: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the anomalies of a history of transactions that append unique elements and read lists.

    An empty list means that the history is strictly serializable as far as its reads show.
    """
    transactions = [each for each in _operations(history) if each.value is not None]
    anomalies: list[str] = []
    writers: dict[tuple[Any, Any], int] = {}
    appended: dict[tuple[int, Any], list[Any]] = defaultdict(list)
    reads: list[tuple[int, Any, list[Any]]] = []
    for at, each in enumerate(transactions):
        own: dict[Any, list[Any]] = defaultdict(list)
        seen: dict[Any, list[Any]] = {}
        for f, key, value in each.value:
            if f == "append":
                if (key, value) in writers:
                    anomalies.append(f"duplicate append of {value!r} to {key!r}")
                writers[key, value] = at
                appended[at, key].append(value)
                own[key].append(value)
            elif each.kind == "ok":
                items = list(value or ())
                expected = [*seen.get(key, ()), *own[key]]
                if key in seen and items != expected:
                    anomalies.append(f"internal: {key!r} is {items}, and has to be {expected}")
                elif own[key] and items[-len(own[key]) :] != own[key]:
                    anomalies.append(f"internal: {key!r} is {items}, without its own {own[key]}")
                seen[key] = items
                outside = items[: len(items) - len(own[key])] if own[key] else items
                own[key] = []
                reads.append((at, key, outside))
    orders = _orders(reads, anomalies)
    for at, key, items in reads:
        for position, item in enumerate(items):
            writer = writers.get((key, item))
            if writer is None:
                anomalies.append(f"read of {item!r} in {key!r}, which was never appended")
            elif transactions[writer].kind == "fail":
                anomalies.append(f"G1a: read of {item!r} in {key!r}, whose transaction has failed")
            elif position == len(items) - 1 and writer != at and item != appended[writer, key][-1]:
                anomalies.append(f"G1b: read of {item!r} in {key!r} within a transaction")
    if anomalies:
        return anomalies
    return _cycles(_edges(transactions, writers, orders, reads), len(transactions))


def _orders(reads: Iterable[tuple[int, Any, list[Any]]], anomalies: list[str]) -> dict[Any, list[Any]]:
    """Return the longest read of each key; all other reads must be prefixes of it."""
    orders: dict[Any, list[Any]] = {}
    for _, key, items in reads:
        if len(set(map(repr, items))) < len(items):
            anomalies.append(f"duplicate elements in {key!r}: {items}")
        longest = max(orders.get(key, []), items, key=len)
        shortest = min(orders.get(key, []), items, key=len)
        if longest[: len(shortest)] != shortest:
            anomalies.append(f"incompatible orders of {key!r}: {shortest} and {longest}")
        orders[key] = longest
    return orders


def _edges(
    transactions: Sequence[_Operation],
    writers: Mapping[tuple[Any, Any], int],
    orders: Mapping[Any, list[Any]],
    reads: Sequence[tuple[int, Any, list[Any]]],
) -> dict[tuple[int, int], str]:
    """Return the dependencies: (first, second) to ww, wr, rw or realtime."""
    edges: dict[tuple[int, int], str] = {}

    def add(first: int, second: int, kind: str) -> None:
        if first != second:
            edges.setdefault((first, second), kind)

    for key, order in orders.items():
        for one, other in pairwise(order):
            add(writers[key, one], writers[key, other], "ww")
    unread: dict[Any, list[int]] = defaultdict(list)
    for (key, item), writer in writers.items():
        if transactions[writer].kind == "ok" and item not in orders.get(key, []):
            unread[key].append(writer)  # it comes after everything that was read
    for at, key, items in reads:
        if items:
            add(writers[key, items[-1]], at, "wr")
        order = orders[key]
        for later in [writers[key, item] for item in order[len(items) : len(items) + 1]] or unread[key]:
            add(at, later, "rw")
        for later in unread[key]:
            add(at, later, "rw")
    for first, one in enumerate(transactions):
        for second, other in enumerate(transactions):
            if one.kind == "ok" and other.kind != "fail" and one.end < other.start:
                add(first, second, "realtime")
    return edges


def _cycles(edges: Mapping[tuple[int, int], str], count: int) -> list[str]:
    """Return a description of each strongly connected component with more than one transaction."""
    forward: list[list[int]] = [[] for _ in range(count)]
    backward: list[list[int]] = [[] for _ in range(count)]
    for first, second in edges:
        forward[first].append(second)
        backward[second].append(first)
    order: list[int] = []
    visited: set[int] = set()
    for root in range(count):
        stack = [(root, False)]
        while stack:
            node, is_left = stack.pop()
            if is_left:
                order.append(node)
            elif node not in visited:
                visited.add(node)
                stack.append((node, True))
                stack += [(each, False) for each in forward[node]]
    found, grouped = [], set[int]()
    for root in reversed(order):
        group, waiting = set[int](), [root]
        while waiting:
            node = waiting.pop()
            if node not in grouped:
                grouped.add(node)
                group.add(node)
                waiting += backward[node]
        if len(group) > 1:
            kinds = {kind for pair, kind in edges.items() if set(pair) <= group}
            name = "G2" if "rw" in kinds else "G1c" if "wr" in kinds else "G0"
            found.append(f"{name}: cycle of {', '.join(sorted(kinds))} between {sorted(group)}")
    return found


def mutex(history: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a history of ``acquire`` and ``release`` is linearizable.

    Source: Wing and Gong: Testing and verifying concurrent objects, 1993; Lowe, 2017, for the memory.
    """
    operations = [each for each in _operations(history) if each.kind != "fail"]
    needed = sum(1 << at for at, each in enumerate(operations) if each.kind == "ok")
    stack: list[tuple[int, Any]] = [(0, None)]
    visited = set(stack)
    while stack:
        done, holder = stack.pop()
        if done & needed == needed:
            return True
        left = [(at, each) for at, each in enumerate(operations) if not done >> at & 1]
        first_end = min(each.end for _, each in left)
        for at, each in left:
            is_free = holder is None if each.f == "acquire" else holder == each.process
            if each.start < first_end and is_free:
                state = done | 1 << at, each.process if each.f == "acquire" else None
                if state not in visited:
                    visited.add(state)
                    stack.append(state)
    return False


def from_edn(text: str) -> list[Event]:
    """Return a history from EDN: a vector of maps, or one map per line.

    >>> from_edn("{:process 0, :type :ok, :value [[:r 4 [1 2]] [:append 5 nil]]}")
    [{'process': 0, 'type': 'ok', 'value': [['r', 4, [1, 2]], ['append', 5, None]]}]
    """
    stack: list[tuple[str, list[Any]]] = [("[", [])]
    for word in re.findall(r'"(?:\\.|[^"])*"|[][{}()]|[^\s,\]\[{}()"]+', text):
        if word in "[{(":
            stack.append((word, []))
        elif word in "]})":
            kind, items = stack.pop()
            pairs = zip(items[::2], items[1::2], strict=True)
            stack[-1][1].append(dict(pairs) if kind == "{" else items)
        else:
            number = re.fullmatch(r"-?\d+", word)
            known = {"nil": None, "true": True, "false": False}
            plain = int(word) if number else known.get(word, word.lstrip(":").strip('"'))
            stack[-1][1].append(plain)
    found = stack[0][1]
    return found[0] if found and isinstance(found[0], list) else found


def main(arguments: Sequence[str]) -> int:
    """Print the anomalies of a history in a file; return 0 if there are none."""
    kind, path = arguments
    text = Path(path).read_text("utf-8")
    history = json.loads(text) if path.endswith(".json") else from_edn(text)
    anomalies = (
        list_append(history) if kind == "list-append" else [] if mutex(history) else ["not linearizable"]
    )
    sys.stdout.write("\n".join(anomalies or ["valid"]) + "\n")
    return int(bool(anomalies))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
