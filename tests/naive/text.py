"""Read VW text by the rules of native mode: one line at a time, with splits and regular expressions."""

from __future__ import annotations

import re

import numpy as np

from onlineauto.features.block import UNLABELLED
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from tests.naive.floats import parse_decimal
from tests.naive.hashing import hash_name
from tests.naive.lines import NOTHING, BadLineError, Feature, Line, Reading, Settings
from tests.naive.slots import CONFINED, event_problem

Words = list[tuple[bytes, int]]
"""Words and their columns."""
Problems = list[tuple[ProblemCode, int]]


def read(text: bytes, settings: Settings) -> Reading:
    """Read a text."""
    reading = Reading()
    event: list[Line] = []
    skipping = False
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, raw in enumerate(lines, start=1):
        begin = 3 if raw.startswith(b"\xef\xbb\xbf") else 0
        content = raw[begin:]
        content = content.rstrip(b"\r")
        if not content.strip(b" \t\r"):
            close(event, settings, reading)
            event, skipping = [], False
            continue
        if skipping:
            continue
        problems: Problems = []
        line = Line(number=number)
        try:
            read_line(content, settings, line, event, problems)
            event.append(line)
        except BadLineError as bad:
            problems.append((bad.code, bad.column))
            event, skipping = [], settings.multiline
        reading.problems += [(number, begin + column + 1, code) for code, column in problems]
        if not settings.multiline:
            close(event, settings, reading)
            event = []
    close(event, settings, reading)
    return reading


def close(event: list[Line], settings: Settings, reading: Reading) -> None:
    if settings.label == "ccb":
        if problem := event_problem(event):
            reading.problems.append((problem[1].number, 1, problem[0]))
        elif event:
            reading.events.append(list(event))
    elif settings.multiline and len(event) == 1 and event[0].shared:
        reading.problems.append((event[0].number, 1, ProblemCode.NO_ACTIONS))
    elif event:
        reading.events.append(list(event))


def read_line(content: bytes, settings: Settings, line: Line, event: list[Line], problems: Problems) -> None:
    if control := re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", content):
        raise BadLineError(ProblemCode.CONTROL_BYTE, control.start())
    head, bar, rest = content.partition(b"|")
    if not bar:
        raise BadLineError(ProblemCode.NO_BAR, 0)
    words = [(match[0], match.start()) for match in re.finditer(rb"[^ \t]+", head)]
    label_end = 0
    if words and (words[-1][0].startswith(b"'") or words[-1][1] + len(words[-1][0]) == len(head)):
        tag, column = words.pop()
        line.tag = tag.removeprefix(b"'")
        label_end = column
        if not words and not tag.startswith(b"'") and looks_like_label(tag, settings):
            problems.append((ProblemCode.TAG_LIKE_LABEL, column))
    if settings.label == "simple":
        read_simple(words, line, problems)
    elif settings.label == "ccb":
        read_slot_words(words, line, label_end, problems)
    else:
        read_costs(words, settings, line, event, problems)
    column = len(head) + 1
    pieces = rest.split(b"|")
    for i, piece in enumerate(pieces):
        read_namespace(piece, column, i + 1 < len(pieces), settings, line, problems)
        column += len(piece) + 1


def looks_like_label(tag: bytes, settings: Settings) -> bool:
    if settings.label == "simple":
        return number_of(tag)[1] == "decimal"
    return b":" in tag or (settings.multiline and tag == b"shared")


def read_simple(words: Words, line: Line, problems: Problems) -> None:
    unused = False
    for i, (word, column) in enumerate(words):
        try:
            if i == 0:
                line.label = float(label_number(word, column, "LABEL"))
            elif i == 1:
                line.weight = float(label_number(word, column, "WEIGHT"))
        except BadLineError as bad:
            if bad.code not in (ProblemCode.LABEL_NOT_FINITE, ProblemCode.WEIGHT_NOT_FINITE):
                raise
            problems.append((bad.code, column))
            unused = True
        if i == 1 and line.weight < 0:
            raise BadLineError(ProblemCode.WEIGHT_NEGATIVE, column)
        if i < 2:
            continue
        if i == 2:
            line.initial = float(label_number(word, column, "INITIAL"))
        else:
            raise BadLineError(ProblemCode.TOO_MANY_NUMBERS, column)
    if unused:
        line.label, line.weight = NOTHING, 1.0


def read_costs(
    words: Words,
    settings: Settings,
    line: Line,
    event: list[Line],
    problems: Problems,
) -> None:
    for i, (word, column) in enumerate(words):
        shared = settings.multiline and word == b"shared"
        if settings.multiline:
            if i > 0:
                mixed = shared or line.shared
                raise BadLineError(ProblemCode.SHARED_WITH_MORE if mixed else ProblemCode.SECOND_COST, column)
            if shared and event:
                raise BadLineError(ProblemCode.LATE_SHARED, column)
            if not shared and any(other.costs or other.unused for other in event):
                raise BadLineError(ProblemCode.SECOND_LABEL, column)
        if shared:
            line.shared = True
        else:
            try:
                line.costs.append(read_cost(word, column, settings))
                if b":" not in word:
                    problems.append((ProblemCode.BARE_ACTION, column))
            except BadLineError as bad:
                if bad.code not in (ProblemCode.COST_NOT_FINITE, ProblemCode.PROBABILITY_NOT_FINITE):
                    raise
                problems.append((bad.code, bad.column))
                line.unused = True


def read_cost(word: bytes, column: int, settings: Settings) -> tuple[int, float, float]:
    parts = word.split(b":")
    if len(parts) > 3:
        raise BadLineError(ProblemCode.TOO_MANY_PARTS, column)
    if parts[0] == b"":
        raise BadLineError(ProblemCode.NO_ACTION_NAME, column)
    if settings.multiline and parts[0] == b"shared":
        raise BadLineError(ProblemCode.SHARED_WITH_MORE, column)
    if not settings.multiline and not re.fullmatch(rb"[0-9]+", parts[0]):
        raise BadLineError(ProblemCode.ACTION_NOT_A_NUMBER, column)
    action = hash_name(parts[0], 0)
    if len(parts) == 1:
        if settings.multiline:
            raise BadLineError(ProblemCode.NO_COST, column)
        return action, NOTHING, 0.0
    if len(parts) == 2:
        raise BadLineError(ProblemCode.NO_PROBABILITY, column)
    column += len(parts[0]) + 1
    cost = label_number(parts[1], column, "COST")
    column += len(parts[1]) + 1
    probability = label_number(parts[2], column, "PROBABILITY")
    if problem := probability_problem(probability):
        raise BadLineError(problem, column)
    return action, float(cost), float(probability)


SLOT_KINDS = (b"shared", b"action", b"slot")


def read_slot_words(words: Words, line: Line, end: int, problems: Problems) -> None:
    """Read the label of a line with slots; without words, the label is at `end`."""
    words = list(words)
    begin = words[0][1] if words else end
    if len(words) < 2 or words[0][0] != b"ccb" or words[1][0] not in SLOT_KINDS:
        raise BadLineError(ProblemCode.SLOT_LABEL, begin)
    kind = words[1][0]
    line.shared, line.slot = kind == b"shared", kind == b"slot"
    rest = words[2:]
    if line.slot and rest and b":" in rest[0][0]:
        outcome = _outcome(*rest.pop(0), problems)
        line.costs += [outcome] if outcome else []
    if line.slot and rest:
        word, column = rest.pop(0)
        for part, at in _parts(word, column):
            line.costs.append((_action(part, at), NOTHING, CONFINED))
    if rest:
        raise BadLineError(ProblemCode.SLOT_LABEL, rest[0][1])


def _parts(word: bytes, column: int) -> Words:
    """Return the parts between commas, except an empty part at the end."""
    found = [(match[1], column + match.start()) for match in re.finditer(rb"([^,]*)(,|$)", word)]
    return [part for part in found if part[0] or part[1] < column + len(word)]


def _action(word: bytes, column: int) -> int:
    if not re.fullmatch(rb"[0-9]{1,9}", word):
        raise BadLineError(ProblemCode.ACTION_NOT_A_NUMBER, column)
    return int(word)


def _finite(word: bytes, column: int, kind: str, problems: Problems) -> np.float32 | None:
    """Return a number of a label; None if it is not finite, which is a problem."""
    try:
        return label_number(word, column, kind)
    except BadLineError as bad:
        if bad.code != ProblemCode[f"{kind}_NOT_FINITE"]:
            raise
        problems.append((bad.code, column))
        return None


def _outcome(word: bytes, column: int, problems: Problems) -> tuple[int, float, float] | None:
    """Return the outcome of a slot; None if a number of it is not finite."""
    first, *others = _parts(word, column)
    parts = first[0].split(b":")
    if not 2 <= len(parts) <= 3:
        raise BadLineError(ProblemCode.SLOT_OUTCOME, column)
    action = _action(parts[0], column)
    at = column + len(parts[0]) + 1
    cost = _finite(parts[1], at, "COST", problems)
    if cost is None:
        return None
    if len(parts) == 2:
        raise BadLineError(ProblemCode.NO_PROBABILITY, column)
    at += len(parts[1]) + 1
    probability = _finite(parts[2], at, "PROBABILITY", problems)
    if probability is None:
        return None
    if problem := probability_problem(probability):
        raise BadLineError(problem, at)
    total = float(probability)
    for other, place in others:
        name, colon, value = other.partition(b":")
        if not colon:
            raise BadLineError(ProblemCode.SLOT_OUTCOME, place)
        _action(name, place)
        place += len(name) + 1
        more = _finite(value, place, "PROBABILITY", problems)
        if more is not None and more < 0:
            raise BadLineError(ProblemCode.PROBABILITY_NEGATIVE, place)
        total += np.nan if more is None else float(more)
    if np.isnan(total):
        return None
    if b"," in word and abs(total - 1) >= 1e-4:
        raise BadLineError(ProblemCode.SLOT_SUM, column)
    return action, float(cost), float(probability)


def read_namespace(
    piece: bytes,
    column: int,
    bar_follows: bool,
    settings: Settings,
    line: Line,
    problems: Problems,
) -> None:
    """Read the text between two bars, which begins at `column`."""
    match = re.match(rb"([^ \t:]*)(:[^ \t]*)?", piece)
    assert match is not None
    name, weight = match[1], np.float32(1)
    if match[2] is not None:
        if not name:
            raise BadLineError(ProblemCode.NO_NAMESPACE_NAME, column)
        weight = namespace_weight(match[2][1:], column + len(name) + 1)
    namespace_hash = settings.hash(name, settings.hash_seed) if name else settings.default_hash
    features: list[Feature] = []
    nameless = 0
    for word in re.finditer(rb"[^ \t]+", piece[match.end() :]):
        at = column + match.end() + word.start()
        touches = bar_follows and match.end() + word.end() == len(piece)
        feature_hash, value = read_feature(
            word[0], at, touches, namespace_hash, weight, settings, nameless, problems
        )
        nameless += word[0].startswith(b":") and number_of(word[0][1:])[1] == "decimal"
        if value != 0:
            features.append((feature_hash, float(value)))
    if features:
        line.spans.append((name or b" ", features))


def namespace_weight(word: bytes, column: int) -> np.float32:
    value, kind = number_of(word)
    if not word:
        raise BadLineError(ProblemCode.NO_NAMESPACE_WEIGHT, column)
    if kind == "not finite":
        raise BadLineError(ProblemCode.NAMESPACE_WEIGHT_NOT_FINITE, column)
    if kind != "decimal":
        raise BadLineError(ProblemCode.NAMESPACE_WEIGHT_NOT_A_NUMBER, column)
    return value


def read_feature(
    word: bytes,
    column: int,
    touches_bar: bool,
    namespace_hash: int,
    weight: np.float32,
    settings: Settings,
    nameless: int,
    problems: Problems,
) -> tuple[int, np.float32]:
    name, colon, text = word.partition(b":")
    if not colon:
        return settings.hash(name, namespace_hash), weight
    if not text:
        raise BadLineError(ProblemCode.NO_VALUE, column)
    column += len(name) + 1
    value, kind = number_of(text)
    with np.errstate(over="ignore", under="ignore"):
        value = weight * value
    if kind == "not finite" or not np.isfinite(value):
        raise BadLineError(ProblemCode.VALUE_NOT_FINITE, column)
    if kind != "decimal":
        if touches_bar:
            raise BadLineError(ProblemCode.BAR_IN_VALUE, column)
        if kind == "partly":
            problems.append((ProblemCode.VALUE_PARTLY_A_NUMBER, column))
        return settings.hash(text, settings.hash(name, namespace_hash)), weight
    if name:
        return settings.hash(name, namespace_hash), value
    return (namespace_hash + nameless) % 2**32, value


def number_of(word: bytes) -> tuple[np.float32, str]:
    """Return the value of a word, 0 unless it is a finite decimal number, and its kind."""
    value, length = parse_decimal(word)
    if word and length == len(word):
        return (value, "decimal") if np.isfinite(value) else (np.float32(0), "not finite")
    if length:
        return np.float32(0), "partly"
    if re.fullmatch(rb"[+-]?(inf|infinity|nan(\([0-9a-z_]*\))?)", word, re.IGNORECASE):
        return np.float32(0), "not finite"
    return np.float32(0), "word"


def label_number(word: bytes, column: int, kind: str) -> np.float32:
    value, found = number_of(word)
    if found == "not finite" or abs(value) == UNLABELLED:
        raise BadLineError(ProblemCode[f"{kind}_NOT_FINITE"], column)
    if found != "decimal":
        raise BadLineError(ProblemCode[f"{kind}_NOT_A_NUMBER"], column)
    return value


def probability_problem(probability: np.float32) -> ProblemCode | None:
    """Return the problem of a logged probability."""
    if probability < 0:
        return ProblemCode.PROBABILITY_NEGATIVE
    if probability < np.float32(1e-38):  # its inverse is infinite
        return ProblemCode.PROBABILITY_ZERO
    return ProblemCode.PROBABILITY_ABOVE_ONE if probability > 1 else None
