"""Evaluates alerts of Prometheus over scraped metrics, for the part of its language that our alerts use.

Numbers, selectors with ``=``, ``=~`` and ``!~``, ``*``, comparisons that filter, ``and``, ``or`` and
``unless``, with ``on`` and ``ignoring``, ``absent``, and ``increase`` and ``last_over_time`` of an hour. All
else fails.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Samples = dict[str, Vector]

_TOKEN: Final = re.compile(r'\s*(?:([a-zA-Z_]\w*)|(\d+(?:\.\d+)?)|("[^"]*")|(==|=~|!~|\[1h\]|[*<>(){},=]))')
_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0}


def samples_of(text: str, **labels: str) -> Samples:
    """Return the samples of a scrape by name, each with more labels."""
    samples: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = frozenset({**sample.labels, **labels}.items())
            samples.setdefault(sample.name, {})[key] = sample.value
    return samples


def evaluate(expression: str, scrapes: Sequence[Samples]) -> Vector:
    """Return the elements of an expression, given the scrapes of the last hour."""
    parser = _Parser(expression, scrapes)
    result = parser.union()
    assert not parser.tokens, f"{expression!r}: {parser.tokens[0]!r} is not understood"
    assert isinstance(result, dict), f"{expression!r} is a number"
    return result


class _Parser:
    def __init__(self, expression: str, scrapes: Sequence[Samples]) -> None:
        self.scrapes, self.samples, self.tokens, at = scrapes, scrapes[-1], list[str](), 0
        while at < len(expression.rstrip()):
            match = _TOKEN.match(expression, at)
            assert match, f"{expression[at:]!r} is not understood"
            self.tokens.append(match[0].strip())
            at = match.end()

    def next(self, *wanted: str) -> str:
        """Return the next token if it is one of those wanted, else an empty string."""
        return self.tokens.pop(0) if self.tokens and (not wanted or self.tokens[0] in wanted) else ""

    def union(self) -> Vector | float:
        left = self.intersection()
        while self.next("or"):
            key = self.matching()
            right = self.intersection()
            assert isinstance(left, dict)
            assert isinstance(right, dict)
            known = {key(labels) for labels in left}
            left = {**left, **{labels: value for labels, value in right.items() if key(labels) not in known}}
        return left

    def intersection(self) -> Vector | float:
        left = self.comparison()
        while word := self.next("and", "unless"):
            key = self.matching()
            right = self.comparison()
            assert isinstance(left, dict)
            assert isinstance(right, dict)
            known = {key(labels) for labels in right}
            left = {
                labels: value for labels, value in left.items() if (key(labels) in known) == (word == "and")
            }
        return left

    def comparison(self) -> Vector | float:
        left = self.product()
        word = self.next(*_COMPARISONS)
        if not word:
            return left
        key = self.matching()
        right = self.product()
        assert isinstance(left, dict), "a comparison filters what is on its left"
        if isinstance(right, float):
            return {labels: value for labels, value in left.items() if _COMPARISONS[word](value, right)}
        others = {key(labels): value for labels, value in right.items()}
        assert len(others) == len(right), "several elements match"
        return {
            labels: value
            for labels, value in left.items()
            if key(labels) in others and _COMPARISONS[word](value, others[key(labels)])
        }

    def product(self) -> Vector | float:
        left = self.single()
        while self.next("*"):
            right = self.single()
            assert isinstance(left, float), "a number times a vector is understood"
            assert isinstance(right, dict)
            factor = left
            left = {labels: factor * value for labels, value in right.items()}
        return left

    def single(self) -> Vector | float:
        word = self.next()
        if re.fullmatch(r"\d+(\.\d+)?", word):
            return float(word)
        assert re.fullmatch(r"[a-zA-Z_]\w*", word), f"{word!r} is not understood"
        if word not in ("absent", "increase", "last_over_time"):
            return self.selected(word, self.samples)
        assert self.next("(")
        name, tokens = self.next(), list(self.tokens)
        found = []
        for scrape in self.scrapes:
            self.tokens = list(tokens)
            found.append(self.selected(name, scrape))
        assert word == "absent" or self.next("[1h]")
        assert self.next(")")
        before, now = found[0], found[-1]
        if word == "absent":
            return {} if now else {frozenset(): 1.0}
        if word == "last_over_time":
            return dict(pair for each in found for pair in each.items())
        return {labels: max(now[labels] - before[labels], 0.0) for labels in now if labels in before}

    def selected(self, name: str, samples: Samples) -> Vector:
        """Return the samples of a name whose labels match the selector that may follow."""
        wanted: list[tuple[str, re.Pattern[str], bool]] = []
        if self.next("{"):
            while not self.next("}"):
                label, sign = self.next(), self.next("=", "=~", "!~")
                value = self.next().strip('"')
                pattern = re.compile(re.escape(value) if sign == "=" else value)
                wanted.append((label, pattern, sign != "!~"))
                self.next(",")
        return {
            labels: value
            for labels, value in samples.get(name, {}).items()
            if all(
                bool(pattern.fullmatch(dict(labels).get(label, ""))) == matches
                for label, pattern, matches in wanted
            )
        }

    def matching(self) -> Callable[[Labels], Any]:
        """Return the function of labels by which two sides match."""
        word = self.next("on", "ignoring")
        if not word:
            return lambda labels: labels
        assert self.next("(")
        names = set()
        while not self.next(")"):
            names.add(self.next())
            self.next(",")
        return lambda labels: frozenset(pair for pair in labels if (pair[0] in names) == (word == "on"))


class Alerts:
    """The state of all alerts over scrapes; `fired` are those that have fired at any time."""

    def __init__(self, rules: Iterable[dict[str, Any]]) -> None:
        self._rules = list(rules)
        self._since: dict[tuple[str, Labels], float] = {}
        self._scrapes: list[tuple[float, Samples]] = []
        self.fired: set[str] = set()

    def evaluate(self, samples: Samples, time: float) -> None:
        """Evaluate all rules at a time."""
        active: dict[tuple[str, Labels], float] = {}
        self._scrapes = [each for each in self._scrapes if each[0] >= time - 3600.0] + [(time, samples)]
        for rule in self._rules:
            duration = float(rule["for"][:-1]) * _UNITS[rule["for"][-1]]
            for labels in evaluate(rule["expr"], [each for _, each in self._scrapes]):
                key = rule["alert"], labels
                active[key] = self._since.get(key, time)
                if time - active[key] >= duration:
                    self.fired.add(rule["alert"])
        self._since = active
