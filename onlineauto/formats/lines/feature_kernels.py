"""Read the features of a line, from its first ``|`` on, in native mode."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import hash_name, hash_word
from onlineauto.features.vector_kernels import settle_zeros
from onlineauto.formats.lines.mark_kernels import after_word, is_at, next_one
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.formats.lines.reader_state_kernels import default_number, is_blank, name_slot, report
from onlineauto.formats.numbers.float_kernels import DECIMAL, NOT_FINITE, PARTLY, read_number, short_decimal
from onlineauto.jit import F32, inline_kernel, kernel
from onlineauto.jit.words import load1

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.lines.reader_state_kernels import Text

_BAR, _COLON = 124, 58
_ONE = np.float32(1)
_ZERO = np.float32(0)


@kernel
def hash_string(
    data: NDArray[np.uint8],
    name: tuple[int, int],
    value: tuple[int, int],
    seed: np.uint32,
    hash_all: bool,
) -> np.uint32:
    """Return the hash of ``name:string``: the hash of the string, seeded with the hash of the name."""
    chained = hash_name(data, name[0], name[1], seed, hash_all)
    return hash_name(data, value[0], value[1], chained, hash_all)


@inline_kernel
def _value_problem(text: Text, start: int, stop: int, kind: int, value: F32) -> tuple[ProblemCode, int]:
    """Return the problem of the value ``data[start:stop]``, and the end of the offending text."""
    if start == stop:
        return ProblemCode.NO_VALUE, stop
    if kind == NOT_FINITE or (kind == DECIMAL and not math.isfinite(value)):
        return ProblemCode.VALUE_NOT_FINITE, stop
    if kind != DECIMAL and stop < text.end and text.data[stop] == _BAR:
        return ProblemCode.BAR_IN_VALUE, stop + 1
    if kind == PARTLY:
        return ProblemCode.VALUE_PARTLY_A_NUMBER, stop
    return ProblemCode.FINE, stop


@kernel
def _odd_feature(
    text: Text, name: tuple[int, int], stop: int, seed: np.uint32, weight: F32
) -> tuple[np.uint32, F32, bool, bool]:
    """Read a feature of any form whose value ends at `stop`.

    Returns the hash, the value, whether the feature has no name, and whether it is valid; a problem is
    reported. The caller adds the number of a nameless feature to the hash.
    """
    data = text.data
    start = name[1] + 1
    number, kind = read_number(data, start, stop)
    value = np.float32(weight * number)
    code, wrong_end = _value_problem(text, start, stop, kind, value)
    good = code in (ProblemCode.FINE, ProblemCode.VALUE_PARTLY_A_NUMBER)
    if code != ProblemCode.FINE:
        wrong_start = name[0] if code == ProblemCode.NO_VALUE else start
        report(text.state, code, wrong_start, wrong_end, text.rules.strict and not good)
    if kind != DECIMAL:
        return hash_string(data, name, (start, stop), seed, text.rules.hash_all), weight, False, good
    if name[0] == name[1]:
        return seed, value, True, good
    return hash_word(data, name[0], name[1], seed, text.rules.hash_all), value, False, good


@inline_kernel
def _read_span(text: Text, p: int, seed: np.uint32, weight: F32, features: Records) -> tuple[int, int, bool]:
    """Read features up to a bar; return the position after them, their number, and whether all are valid."""
    data = text.data
    n, n_unnamed, good, has_zeros = text.state.features, 0, True, False
    while good and p < text.end and load1(data, p) != _BAR:
        if is_blank(load1(data, p)):
            p += 1
            continue
        name = p, next_one(text.marks, p)
        p, value, is_plain = name[1], weight, True
        if is_at(data, p, text.end, _COLON):
            start = p + 1
            p = after_word(data, text.marks, start, text.end)
            number, is_plain = short_decimal(data, start, p)
            value = np.float32(weight * number)
            is_plain &= name[0] < name[1] and math.isfinite(value)
        is_zero = False
        if is_plain:
            hash_ = hash_word(data, name[0], name[1], seed, text.rules.hash_all)
        else:
            hash_, value, has_no_name, good = _odd_feature(text, name, p, seed, weight)
            if has_no_name:
                hash_ = np.uint32(hash_ + np.uint32(n_unnamed))
                n_unnamed += 1
                is_zero = value == _ZERO
                has_zeros |= is_zero
        if value != _ZERO or is_zero:
            feature = features[np.uint64(n)]
            feature.hash = hash_
            feature.value = value
            n += 1
    if has_zeros:
        n = settle_zeros(features, text.state.features, n)
    return p, n, good


@inline_kernel
def close_span(state: Records, spans: Records, namespace: int, n_features: int) -> None:
    """Make a span of the features up to `n_features` that are not in a span yet, if there are any."""
    if n_features > state.features:
        span = spans[np.uint64(state.spans)]
        span.namespace = namespace
        span.start = state.features
        state.spans += 1
        state.features = n_features


@kernel
def _weight(text: Text, start: int) -> tuple[F32, int, ProblemCode]:
    """Return a namespace's weight at `start`, after the colon, the position after it, and the problem."""
    stop = after_word(text.data, text.marks, start, text.end)
    weight, kind = read_number(text.data, start, stop)
    code = ProblemCode.FINE
    if start == stop:
        code = ProblemCode.NO_NAMESPACE_WEIGHT
    elif kind == NOT_FINITE:
        code = ProblemCode.NAMESPACE_WEIGHT_NOT_FINITE
    elif kind != DECIMAL:
        code = ProblemCode.NAMESPACE_WEIGHT_NOT_A_NUMBER
    return weight, stop, code


@inline_kernel
def read_features(text: Text, bar: int, spans: Records, features: Records, names: Records) -> bool:
    """Read the features of a line and return whether they are valid; a problem is reported."""
    state = text.state
    p, good = bar, True
    while good and p < text.end:  # the byte at `p` is a bar
        start = p + 1
        p = next_one(text.marks, start)
        weight, seed, code, wrong = _ONE, text.rules.default_hash, ProblemCode.FINE, p
        has_weight = p < text.end and text.data[p] == _COLON
        if p > start:
            name = names[name_slot(text.data, text.rules, text.state, start, p, names)]
            number, seed = name.number, name.hash
            if has_weight:
                wrong = p + 1
                weight, p, code = _weight(text, wrong)
        else:
            number = default_number(state)
            if has_weight:
                code = ProblemCode.NO_NAMESPACE_NAME
                p += 1
        if code != ProblemCode.FINE:
            report(state, code, wrong, p, text.rules.strict)
            return False
        p, n, good = _read_span(text, p, seed, weight, features)
        close_span(state, spans, number, n)
    return good
