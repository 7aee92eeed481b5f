"""Features of a line: what follows its first ``|``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.formats.code_kernels import Code
from onlineauto.formats.column_kernels import FEATURES, SPANS, is_blank, report
from onlineauto.formats.float_kernels import parse_vw_float
from onlineauto.formats.name_kernels import number_of_default, number_of_name
from onlineauto.formats.number_kernels import DECIMAL, NOT_FINITE, PARTLY, read_number
from onlineauto.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.formats.column_kernels import Reader, Rules

__all__ = ["read_features", "read_vw_features"]

_BAR, _COLON, _TAB, _NEWLINE, _RETURN, _SPACE = 124, 58, 9, 10, 13, 32
_ONE = np.float32(1)
_ZERO = np.float32(0)

_ENDS_NAME = np.zeros(256, np.bool_)
_ENDS_NAME[[_SPACE, _TAB, _RETURN, _BAR, _COLON]] = True

_ENDS_FEATURE = np.zeros(256, np.bool_)
_ENDS_FEATURE[[_SPACE, _TAB, _RETURN, _BAR]] = True

_ENDS_STRING = np.zeros(256, np.bool_)
_ENDS_STRING[[_SPACE, _TAB, _RETURN, _NEWLINE]] = True


@kernel
def _after_name(data: NDArray[np.uint8], p: int, end: int) -> int:
    while p < end and not _ENDS_NAME[data[p]]:
        p += 1
    return p


@kernel
def _append(reader: Reader, n: int, hash_: np.uint32, value: np.float32) -> int:
    """Write feature `n` unless its value is 0; return the number of features then."""
    if value == _ZERO:
        return n
    reader.columns.hash[n] = hash_
    reader.columns.value[n] = value
    return n + 1


@kernel
def _close_span(reader: Reader, number: int, n: int) -> None:
    """Make a span of the features up to `n` that belong to none yet."""
    at, columns = reader.at, reader.columns
    if n > at[FEATURES]:
        span = at[SPANS]
        columns.span_namespace[span] = number
        columns.span_start[span] = at[FEATURES]
        at[SPANS] = span + 1
        at[FEATURES] = n


@kernel
def _hash_string(
    data: NDArray[np.uint8],
    name: tuple[int, int],
    value: tuple[int, int],
    seed: np.uint32,
    rules: Rules,
) -> np.uint32:
    """Hash of ``name:string``."""
    chained = hash_name(data, name[0], name[1], seed, rules.hash_all)
    return hash_name(data, value[0], value[1], chained, rules.hash_all)


# -- exact -----------------------------------------------------------------------------------------------------


@kernel
def _vw_string(data: NDArray[np.uint8], p: int, end: int) -> tuple[int, int]:
    """VW's string value at `p`: blanks are skipped first; empty if nothing else is left."""
    start = p
    while start < end and _ENDS_STRING[data[start]]:
        start += 1
    if start == end:
        return p, p
    stop = start
    while stop < end and not _ENDS_STRING[data[stop]]:
        stop += 1
    return start, stop


@kernel
def _vw_feature(
    data: NDArray[np.uint8],
    p: int,
    end: int,
    n: int,
    anonymous: int,
    seed: np.uint32,
    weight: np.float32,
    rules: Rules,
    reader: Reader,
) -> tuple[int, int, int]:
    """Read the feature at `p`; return the byte after it, the number of features, and that of anonymous ones."""
    name = p, _after_name(data, p, end)
    p = name[1]
    value = weight
    string = p, p
    if p < end and data[p] == _COLON:
        p += 1
        number, after = parse_vw_float(data, p, end)
        if after == p:
            string = _vw_string(data, p, end)
            after = string[1]
            value = _ONE
        elif math.isnan(number):
            report(reader, Code.VW_VALUE_NAN, p, end, rules.strict)
            value = np.float32(weight * _ZERO)
        else:
            value = np.float32(weight * np.float32(number))
        p = after
    if string[0] < string[1]:
        hash_ = _hash_string(data, name, string, seed, rules)
    elif name[0] < name[1]:
        hash_ = hash_name(data, name[0], name[1], seed, rules.hash_all)
    else:
        hash_ = np.uint32(seed + np.uint32(anonymous))
        anonymous += 1
    return p, _append(reader, n, hash_, value), anonymous


@kernel
def _vw_namespace_weight(
    data: NDArray[np.uint8], p: int, bar: int, end: int, rules: Rules, reader: Reader
) -> tuple[np.float32, int]:
    """Read ``:weight`` at `p`, if that is what stands there."""
    if p >= end or data[p] != _COLON:
        return _ONE, p
    p += 1
    number, after = parse_vw_float(data, p, end)
    if after >= end:
        report(reader, Code.VW_NAMESPACE_FLOAT, bar, p, rules.strict)
    if math.isnan(number):
        report(reader, Code.VW_NAMESPACE_NAN, p, end, rules.strict)
        return _ONE, after
    return np.float32(number), after


@kernel
def _vw_namespace(data: NDArray[np.uint8], p: int, bar: int, end: int, rules: Rules, reader: Reader) -> int:
    """Read a namespace whose ``|`` is before `p`; return the byte after it."""
    weight = _ONE
    if p >= end or _ENDS_FEATURE[data[p]]:
        number = number_of_default(rules, reader)
    else:
        after = _after_name(data, p, end)
        number = number_of_name(data, p, after, rules, reader)
        weight, p = _vw_namespace_weight(data, after, bar, end, rules, reader)
    seed = reader.names.hash[number]
    n, anonymous = reader.at[FEATURES], 0
    while p < end and is_blank(data[p]):
        p += 1
        if p < end and not _ENDS_FEATURE[data[p]]:
            p, n, anonymous = _vw_feature(data, p, end, n, anonymous, seed, weight, rules, reader)
    if p < end and data[p] != _BAR and data[p] != _RETURN:
        report(reader, Code.VW_FEATURES, bar, p, rules.strict)
    _close_span(reader, number, n)
    return p


@kernel
def read_vw_features(data: NDArray[np.uint8], bar: int, end: int, rules: Rules, reader: Reader) -> None:
    """Read the features of a line as VW does, its oddities included.

    Source
    ------
    VW 9.11.9, ``tc_parser`` in ``parse_example_text.cc``.
    """
    p = bar
    while p < end and data[p] == _BAR:
        p += 1
        if p < end and data[p] == _COLON:
            report(reader, Code.VW_NAMESPACE, bar, p, rules.strict)
        else:
            p = _vw_namespace(data, p, bar, end, rules, reader)
    if p < end and data[p] != _RETURN:
        report(reader, Code.VW_END, bar, p, rules.strict)


# -- native ----------------------------------------------------------------------------------------------------


@kernel
def _after_value(data: NDArray[np.uint8], p: int, end: int) -> int:
    while p < end and not _ENDS_FEATURE[data[p]]:
        p += 1
    return p


@kernel
def _fail(reader: Reader, code: Code, start: int, end: int, rules: Rules) -> bool:
    report(reader, code, start, end, rules.strict)
    return False


@kernel
def _feature(
    data: NDArray[np.uint8],
    p: int,
    end: int,
    n: int,
    anonymous: int,
    seed: np.uint32,
    weight: np.float32,
    rules: Rules,
    reader: Reader,
) -> tuple[int, int, int, bool]:
    """Read the feature at `p`; return the byte after it, the counts, and whether it was good."""
    name = p, _after_name(data, p, end)
    if name[1] >= end or data[name[1]] != _COLON:
        hash_ = hash_name(data, name[0], name[1], seed, rules.hash_all)
        return name[1], _append(reader, n, hash_, weight), anonymous, True
    start = name[1] + 1
    stop = _after_value(data, start, end)
    if start == stop:
        return stop, n, anonymous, _fail(reader, Code.NO_VALUE, p, stop, rules)
    number, kind = read_number(data, start, stop)
    value = np.float32(weight * number)
    if kind == NOT_FINITE or (kind == DECIMAL and not math.isfinite(value)):
        return stop, n, anonymous, _fail(reader, Code.VALUE_NOT_FINITE, start, stop, rules)
    if kind != DECIMAL:
        if stop < end and data[stop] == _BAR:
            return stop, n, anonymous, _fail(reader, Code.BAR_IN_VALUE, start, stop + 1, rules)
        if kind == PARTLY:
            report(reader, Code.VALUE_PARTLY_A_NUMBER, start, stop, False)
        hash_ = _hash_string(data, name, (start, stop), seed, rules)
        return stop, _append(reader, n, hash_, weight), anonymous, True
    if name[0] < name[1]:
        hash_ = hash_name(data, name[0], name[1], seed, rules.hash_all)
    else:
        hash_ = np.uint32(seed + np.uint32(anonymous))
        anonymous += 1
    return stop, _append(reader, n, hash_, value), anonymous, True


@kernel
def _namespace_weight(
    data: NDArray[np.uint8], p: int, end: int, rules: Rules, reader: Reader
) -> tuple[np.float32, int, bool]:
    """Read ``:weight`` at `p`, if that is what stands there; the byte after it, and whether it was good."""
    if p >= end or data[p] != _COLON:
        return _ONE, p, True
    start = p + 1
    stop = _after_value(data, start, end)
    if start == stop:
        return _ONE, stop, _fail(reader, Code.NO_NAMESPACE_WEIGHT, p, stop, rules)
    weight, kind = read_number(data, start, stop)
    if kind == NOT_FINITE:
        return _ONE, stop, _fail(reader, Code.NAMESPACE_WEIGHT_NOT_FINITE, start, stop, rules)
    if kind != DECIMAL:
        return _ONE, stop, _fail(reader, Code.NAMESPACE_WEIGHT_NOT_A_NUMBER, start, stop, rules)
    return weight, stop, True


@kernel
def _namespace(data: NDArray[np.uint8], p: int, end: int, rules: Rules, reader: Reader) -> tuple[int, bool]:
    """Read a namespace whose ``|`` is before `p`; return the byte after it and whether it was good."""
    weight, good = _ONE, True
    if p >= end or _ENDS_FEATURE[data[p]]:
        number = number_of_default(rules, reader)
    elif data[p] == _COLON:
        return p, _fail(reader, Code.NO_NAMESPACE_NAME, p, p + 1, rules)
    else:
        after = _after_name(data, p, end)
        number = number_of_name(data, p, after, rules, reader)
        weight, p, good = _namespace_weight(data, after, end, rules, reader)
    seed = reader.names.hash[number]
    n, anonymous = reader.at[FEATURES], 0
    while good and p < end and data[p] != _BAR:
        if is_blank(data[p]):
            p += 1
        else:
            p, n, anonymous, good = _feature(data, p, end, n, anonymous, seed, weight, rules, reader)
    _close_span(reader, number, n)
    return p, good


@kernel
def read_features(data: NDArray[np.uint8], bar: int, end: int, rules: Rules, reader: Reader) -> bool:
    """Read the features of a line; False, with the problem reported, if something is wrong with them."""
    p, good = bar, True
    while good and p < end:
        p, good = _namespace(data, p + 1, end, rules, reader)
    return good
