"""Read the features of a line as VW does."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.formats.lines.feature_kernels import close_span, hash_string
from onlineauto.formats.lines.mark_kernels import next_one
from onlineauto.formats.numbers.float_kernels import parse_vw_float
from onlineauto.formats.records.namespace_table_kernels import default_number, name_slot
from onlineauto.formats.records.problem_code_kernels import ProblemCode
from onlineauto.formats.records.reader_state_kernels import is_blank, report
from onlineauto.jit import F32, inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.records.reader_state_kernels import Text

_BAR, _COLON, _TAB, _NEWLINE, _RETURN, _SPACE = 124, 58, 9, 10, 13, 32
_ONE = np.float32(1)
_ZERO = np.float32(0)

_ENDS_FEATURE = np.zeros(256, np.bool_)
_ENDS_FEATURE[[_SPACE, _TAB, _RETURN, _BAR]] = True

_ENDS_STRING = np.zeros(256, np.bool_)
_ENDS_STRING[[_SPACE, _TAB, _RETURN, _NEWLINE]] = True


class Feature(NamedTuple):
    """A feature that was read, and its problem."""

    after: int  # position after the feature
    hash: np.uint32
    value: F32
    nameless: bool  # the feature has no name; its number must be added to its hash
    code: ProblemCode  # the problem, and the bounds of the offending text
    start: int
    end: int


@kernel
def _string(data: NDArray[np.uint8], p: int, end: int) -> tuple[int, int]:
    """Return the bounds of VW's string value at `p`, after blanks; they are equal if nothing else is left."""
    start = p
    while start < end and _ENDS_STRING[data[start]]:
        start += 1
    if start == end:
        return p, p
    stop = start
    while stop < end and not _ENDS_STRING[data[stop]]:
        stop += 1
    return start, stop


@inline_kernel
def _feature(text: Text, name: tuple[int, int], seed: np.uint32, weight: F32) -> Feature:
    """Read the feature of this name; a string has the value 1, independent of the namespace's weight."""
    data, end = text.data, text.end
    p = name[1]
    value = weight
    string = p, p
    code, wrong = ProblemCode.FINE, p
    if p < end and data[p] == _COLON:
        p += 1
        wrong = p
        number, after = parse_vw_float(data, p, end)
        if after == p:
            string = _string(data, p, end)
            after = string[1]
            value = _ONE
        elif math.isnan(number):
            code = ProblemCode.VW_VALUE_NAN
            value = np.float32(weight * _ZERO)
        else:
            value = np.float32(weight * np.float32(number))
        p = after
    n_unnamed = False
    if string[0] < string[1]:
        hash_ = hash_string(data, name, string, seed, text.rules.hash_all)
    elif name[0] < name[1]:
        hash_ = hash_name(data, name[0], name[1], seed, text.rules.hash_all)
    else:
        hash_ = seed
        n_unnamed = True
    return Feature(p, hash_, value, n_unnamed, code, wrong, end)


@kernel
def _weight(text: Text, p: int, bar: int) -> tuple[F32, int]:
    """Return a namespace's weight at `p`, after the colon, and the position after the weight."""
    number, after = parse_vw_float(text.data, p, text.end)
    weight = np.float32(number)
    if after >= text.end:
        report(text.state, ProblemCode.VW_NAMESPACE_FLOAT, bar, p, text.rules.strict)
    if math.isnan(weight):
        report(text.state, ProblemCode.VW_NAMESPACE_NAN, p, text.end, text.rules.strict)
        weight = _ONE
    return weight, after


@inline_kernel
def _read_span(
    text: Text, p: int, bar: int, seed: np.uint32, weight: F32, features: Records
) -> tuple[int, int]:
    """Read VW's list of features; return the position after it and the new number of features."""
    data, state = text.data, text.state
    n, n_unnamed = state.features, 0
    while p < text.end and is_blank(data[p]):
        p += 1
        if p >= text.end or _ENDS_FEATURE[data[p]]:
            continue
        feature = _feature(text, (p, next_one(text.marks, p)), seed, weight)
        p = feature.after
        if feature.code != ProblemCode.FINE:
            report(state, feature.code, feature.start, feature.end, text.rules.strict)
        hash_ = feature.hash
        if feature.nameless:
            hash_ = np.uint32(hash_ + np.uint32(n_unnamed))
            n_unnamed += 1
        if feature.value != _ZERO:
            features[n].hash = hash_
            features[n].value = feature.value
            n += 1
    if p < text.end and data[p] != _BAR and data[p] != _RETURN:
        report(state, ProblemCode.VW_FEATURES, bar, p, text.rules.strict)
    return p, n


@kernel
def read_vw_features(text: Text, bar: int, spans: Records, features: Records, names: Records) -> None:
    """Read the features of a line as VW does, including its oddities.

    Source
    ------
    VW 9.11.9, ``tc_parser`` in ``parse_example_text.cc``.
    """
    data, state = text.data, text.state
    p = bar
    while p < text.end and data[p] == _BAR:
        start = p + 1
        p = next_one(text.marks, start)
        weight, seed = _ONE, text.rules.default_hash
        has_weight = p < text.end and data[p] == _COLON
        if p > start:
            name = names[name_slot(text, start, p, names)]
            number, seed = name.number, name.hash
            if has_weight:
                weight, p = _weight(text, p + 1, bar)
        elif has_weight:
            report(state, ProblemCode.VW_NAMESPACE, bar, p, text.rules.strict)
            break
        else:
            number = default_number(state)
        p, n = _read_span(text, p, bar, seed, weight, features)
        close_span(state, spans, number, n)
    if p < text.end and data[p] != _RETURN:
        report(state, ProblemCode.VW_END, bar, p, text.rules.strict)
