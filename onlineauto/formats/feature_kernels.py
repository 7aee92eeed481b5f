"""Features of a line in native mode: what follows its first ``|``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.formats.code_kernels import Code
from onlineauto.formats.name_kernels import default_number, name_slot
from onlineauto.formats.number_kernels import DECIMAL, NOT_FINITE, PARTLY, read_number
from onlineauto.formats.reading_kernels import is_blank, report
from onlineauto.jit import F32, inline_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.reading_kernels import Rules

__all__ = ["ENDS_FEATURE", "Feature", "after_name", "close_span", "hash_string", "read_features"]

_BAR, _COLON, _TAB, _RETURN, _SPACE = 124, 58, 9, 13, 32
_ONE = np.float32(1)
_ZERO = np.float32(0)

_ENDS_NAME = np.zeros(256, np.bool_)
_ENDS_NAME[[_SPACE, _TAB, _RETURN, _BAR, _COLON]] = True

ENDS_FEATURE = np.zeros(256, np.bool_)
"""Bytes that end a feature, with or without a value."""
ENDS_FEATURE[[_SPACE, _TAB, _RETURN, _BAR]] = True


class Feature(NamedTuple):
    """A feature that was read, or why it was not."""

    after: int  # the byte after it
    hash: np.uint32
    value: F32
    nameless: bool  # its number is still to be added to its hash
    code: Code  # what is wrong, and the bounds of that
    start: int
    end: int


@inline_kernel
def after_name(data: NDArray[np.uint8], p: int, end: int) -> int:
    """The byte after the name at `p`."""
    while p < end and not _ENDS_NAME[data[p]]:
        p += 1
    return p


@inline_kernel
def _after_value(data: NDArray[np.uint8], p: int, end: int) -> int:
    while p < end and not ENDS_FEATURE[data[p]]:
        p += 1
    return p


@inline_kernel
def hash_string(
    data: NDArray[np.uint8],
    name: tuple[int, int],
    value: tuple[int, int],
    seed: np.uint32,
    hash_all: bool,
) -> np.uint32:
    """Hash of ``name:string``: the string's, seeded with the name's."""
    chained = hash_name(data, name[0], name[1], seed, hash_all)
    return hash_name(data, value[0], value[1], chained, hash_all)


@inline_kernel
def _value_problem(
    data: NDArray[np.uint8], start: int, stop: int, end: int, kind: int, value: F32
) -> tuple[Code, int]:
    """What is wrong with the value ``data[start:stop]``, and where that ends."""
    if start == stop:
        return Code.NO_VALUE, stop
    if kind == NOT_FINITE or (kind == DECIMAL and not math.isfinite(value)):
        return Code.VALUE_NOT_FINITE, stop
    if kind != DECIMAL and stop < end and data[stop] == _BAR:
        return Code.BAR_IN_VALUE, stop + 1
    if kind == PARTLY:
        return Code.VALUE_PARTLY_A_NUMBER, stop
    return Code.FINE, stop


@inline_kernel
def _feature(
    data: NDArray[np.uint8], p: int, end: int, seed: np.uint32, weight: F32, hash_all: bool
) -> Feature:
    """Read the feature at `p`."""
    name = p, after_name(data, p, end)
    if name[1] >= end or data[name[1]] != _COLON:
        hash_ = hash_name(data, name[0], name[1], seed, hash_all)
        return Feature(name[1], hash_, weight, False, Code.FINE, p, p)
    start = name[1] + 1
    stop = _after_value(data, start, end)
    number, kind = read_number(data, start, stop)
    value = np.float32(weight * number)
    code, wrong_end = _value_problem(data, start, stop, end, kind, value)
    wrong_start = p if code == Code.NO_VALUE else start
    nameless = False
    if kind != DECIMAL:
        hash_ = hash_string(data, name, (start, stop), seed, hash_all)
        value = weight
    elif name[0] < name[1]:
        hash_ = hash_name(data, name[0], name[1], seed, hash_all)
    else:
        hash_ = seed
        nameless = True
    return Feature(stop, hash_, value, nameless, code, wrong_start, wrong_end)


@inline_kernel
def _read_span(
    data: NDArray[np.uint8],
    p: int,
    end: int,
    seed: np.uint32,
    weight: F32,
    rules: Rules,
    state: Records,
    features: Records,
) -> tuple[int, int, bool]:
    """Read features up to a bar: the byte after them, how many there are now, and whether all were good."""
    n, nameless, good = state.features, 0, True
    while good and p < end and data[p] != _BAR:
        if is_blank(data[p]):
            p += 1
            continue
        feature = _feature(data, p, end, seed, weight, rules.hash_all)
        p = feature.after
        if feature.code != Code.FINE:
            good = feature.code == Code.VALUE_PARTLY_A_NUMBER
            report(state, feature.code, feature.start, feature.end, rules.strict and not good)
        hash_ = feature.hash
        if feature.nameless:
            hash_ = np.uint32(hash_ + np.uint32(nameless))
            nameless += 1
        if feature.value != _ZERO:
            features[n].hash = hash_
            features[n].value = feature.value
            n += 1
    return p, n, good


@inline_kernel
def close_span(state: Records, spans: Records, namespace: int, n_features: int) -> None:
    """Make a span of the features up to `n_features` that belong to none yet."""
    if n_features > state.features:
        span = spans[state.spans]
        span.namespace = namespace
        span.start = state.features
        state.spans += 1
        state.features = n_features


@inline_kernel
def _weight(data: NDArray[np.uint8], start: int, end: int) -> tuple[F32, int, Code]:
    """Read a namespace's weight at `start`, after the colon: the byte after it, and what is wrong."""
    stop = _after_value(data, start, end)
    weight, kind = read_number(data, start, stop)
    code = Code.FINE
    if start == stop:
        code = Code.NO_NAMESPACE_WEIGHT
    elif kind == NOT_FINITE:
        code = Code.NAMESPACE_WEIGHT_NOT_FINITE
    elif kind != DECIMAL:
        code = Code.NAMESPACE_WEIGHT_NOT_A_NUMBER
    return weight, stop, code


@inline_kernel
def read_features(
    data: NDArray[np.uint8],
    bar: int,
    end: int,
    rules: Rules,
    state: Records,
    spans: Records,
    features: Records,
    names: Records,
) -> bool:
    """Read the features of a line; False, with the problem reported, if something is wrong with them."""
    p, good = bar, True
    while good and p < end:  # the byte at `p` is a bar
        start = p + 1
        p = after_name(data, start, end)
        weight, seed, code, wrong = _ONE, rules.default_hash, Code.FINE, p
        has_weight = p < end and data[p] == _COLON
        if p > start:
            name = names[name_slot(data, start, p, rules, state, names)]
            number, seed = name.number, name.hash
            if has_weight:
                wrong = p + 1
                weight, p, code = _weight(data, wrong, end)
        else:
            number = default_number(state)
            if has_weight:
                code = Code.NO_NAMESPACE_NAME
                p += 1
        if code != Code.FINE:
            report(state, code, wrong, p, rules.strict)
            return False
        p, n, good = _read_span(data, p, end, seed, weight, rules, state, features)
        close_span(state, spans, number, n)
    return good
