"""Reading a line of VW text as VW does, the slow and obvious way."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from onlineauto.features.block import UNLABELLED
from onlineauto.formats.records.problem_code_kernels import ProblemCode
from tests.naive.floats import parse_vw_float
from tests.naive.hashing import hash_name
from tests.naive.lines import FatalError, Feature, Line, Settings
from tests.naive.numbers import vw_number, vw_probability
from tests.naive.slot_labels import read_vw_slot_words


def read_vw_line(
    content: bytes, settings: Settings, line: Line, problems: list[tuple[ProblemCode, int]]
) -> bool:
    head, bar, rest = content.partition(b"|")
    labels = head[head.find(b"\t") + 1 :]
    begin = len(head) - len(labels)
    words = [(match[0], begin + match.start()) for match in re.finditer(rb"[^ ]+", labels)]
    if words and (words[-1][0].startswith(b"'") or not labels.endswith(b" ")):
        line.tag = words.pop()[0].removeprefix(b"'")
    if settings.label == "simple":
        read_vw_simple(content, words, line, problems)
    elif settings.label == "ccb":
        read_vw_slot_words(content, words, begin, line, problems)
    else:
        read_vw_costs(content, words, line, problems)
    VwFeatures(bar + rest, len(head), settings, line, problems).read()
    if line.weight < 0:
        problems.append((ProblemCode.VW_WEIGHT, 0))
    if line.tag.startswith(b"save") and not line.spans:
        problems.append((ProblemCode.VW_SAVE, 0))
        return False
    return True


def read_vw_simple(
    content: bytes, words: list[tuple[bytes, int]], line: Line, problems: list[tuple[ProblemCode, int]]
) -> None:
    if len(words) > 3:
        problems.append((ProblemCode.VW_TOO_MANY_TOKENS, content.partition(b"|")[0].find(b"\t") + 1))
        return
    names = ("label", "weight", "initial")
    for name, (word, column) in zip(names, words, strict=False):
        setattr(line, name, float(vw_number(content, word, column, problems)))


def read_vw_costs(
    content: bytes, words: list[tuple[bytes, int]], line: Line, problems: list[tuple[ProblemCode, int]]
) -> None:
    for word, column in words:
        parts = [(match[0], column + match.start()) for match in re.finditer(rb"[^:]+", word)]
        if not 1 <= len(parts) <= 3:
            raise FatalError(ProblemCode.VW_MALFORMED_COST, column)
        cost, probability = UNLABELLED, np.float32(0)
        if len(parts) > 1:
            cost = vw_number(content, *parts[1], problems)
        if len(parts) > 2:
            probability = vw_probability(content, *parts[2], problems)
        if parts[0][0] == b"shared":
            if len(parts) == 1:
                probability = np.float32(-1)
            else:
                problems.append((ProblemCode.VW_SHARED_WITH_COST, column))
        if parts[0][0] == b"graph":
            raise FatalError(ProblemCode.VW_GRAPH, column)
        line.costs.append((hash_name(parts[0][0], 0), float(cost), float(probability)))
    if len(line.costs) == 1 and line.costs[0][2] == -1:
        line.shared, line.costs = True, []


@dataclass
class VwFeatures:
    """VW's recursive descent, from the first bar on."""

    text: bytes
    column: int
    settings: Settings
    line: Line
    problems: list[tuple[ProblemCode, int]]
    at: int = 0

    def next(self, stops: bytes) -> bool:
        """Whether one of `stops` is next, or the end is."""
        return self.at >= len(self.text) or self.text[self.at] in stops

    def take(self, stops: bytes) -> bytes:
        """Everything up to one of `stops`."""
        start = self.at
        while not self.next(stops):
            self.at += 1
        return self.text[start : self.at]

    def warn(self, code: ProblemCode, at: int = 0) -> None:
        self.problems.append((code, self.column + at))

    def read(self) -> None:
        while self.text[self.at : self.at + 1] == b"|":
            self.at += 1
            if self.text[self.at : self.at + 1] == b":":
                self.warn(ProblemCode.VW_NAMESPACE)
                break
            self.namespace()
        if not self.next(b"\r"):
            self.warn(ProblemCode.VW_END)

    def namespace(self) -> None:
        name = self.take(b" \t|:\r")
        weight = np.float32(1)
        namespace_hash = self.settings.default_hash
        if name:
            namespace_hash = self.settings.hash(name, self.settings.hash_seed)
            if self.text[self.at : self.at + 1] == b":":
                self.at += 1
                weight = self.weight()
        features: list[Feature] = []
        nameless = 0
        while self.text[self.at : self.at + 1] in (b" ", b"\t"):
            self.at += 1
            if self.next(b" \t|\r"):
                continue
            feature_hash, value = self.feature(namespace_hash, weight)
            if feature_hash is None:
                feature_hash = (namespace_hash + nameless) % 2**32
                nameless += 1
            if value != 0:
                features.append((feature_hash, float(value)))
        if not self.next(b"|\r"):
            self.warn(ProblemCode.VW_FEATURES)
        if features:
            self.line.spans.append((name or b" ", features))

    def weight(self) -> np.float32:
        value, length = parse_vw_float(self.text[self.at :])
        if self.at + length >= len(self.text):
            self.warn(ProblemCode.VW_NAMESPACE_FLOAT)
        if np.isnan(value):
            self.warn(ProblemCode.VW_NAMESPACE_NAN, self.at)
            value = np.float32(1)
        self.at += length
        return value

    def feature(self, namespace_hash: int, weight: np.float32) -> tuple[int | None, np.float32]:
        """Hash (None for a nameless feature) and value of the next feature."""
        name = self.take(b" \t|:\r")
        string = b""
        value = np.float32(1)
        if self.text[self.at : self.at + 1] == b":":
            self.at += 1
            value, length = parse_vw_float(self.text[self.at :])
            if length == 0:
                string, value, weight = self.string(), np.float32(1), np.float32(1)
            elif np.isnan(value):
                self.warn(ProblemCode.VW_VALUE_NAN, self.at)
                value = np.float32(0)
            self.at += length
        with np.errstate(all="ignore"):
            value = weight * value
        if string:
            return self.settings.hash(string, self.settings.hash(name, namespace_hash)), value
        if name:
            return self.settings.hash(name, namespace_hash), value
        return None, value

    def string(self) -> bytes:
        rest = self.text[self.at :]
        stripped = rest.lstrip(b" \t\r\n")
        if not stripped:
            return b""
        self.at += len(rest) - len(stripped)
        return self.take(b" \t\r\n")
