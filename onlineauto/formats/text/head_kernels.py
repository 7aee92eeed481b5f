"""Read the head of a line, its label and tag before the first ``|``, in native mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.formats.lines.ccb_kernels import read_slot_label
from onlineauto.formats.lines.label_kernels import add_tag, is_word, next_word, read_costs, read_simple
from onlineauto.formats.lines.mark_kernels import next_one
from onlineauto.formats.numbers.number_kernels import DECIMAL, read_number
from onlineauto.formats.records.problem_code_kernels import ProblemCode
from onlineauto.formats.records.reader_state_kernels import is_blank, report
from onlineauto.jit import inline_kernel, kernel
from onlineauto.jit.words import load1

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.records.reader_state_kernels import Text

_QUOTE = 39
_SHARED = np.frombuffer(b"shared", np.uint8)


@inline_kernel
def _last_word(data: NDArray[np.uint8], start: int, end: int) -> tuple[int, int]:
    """Return the bounds of the last word between blanks and tabs; they are equal if there is none."""
    while end > start and is_blank(load1(data, end - 1)):
        end -= 1
    first = end
    while first > start and not is_blank(load1(data, first - 1)):
        first -= 1
    return first, end


@inline_kernel
def _looks_like_label(text: Text, start: int, end: int) -> bool:
    """Return whether a tag is probably meant as a label."""
    if text.rules.simple:
        return read_number(text.data, start, end)[1] == DECIMAL
    return next_one(text.marks, start) < end or (
        text.rules.multiline and is_word(text.data, start, end, _SHARED)
    )


@kernel
def read_head(
    text: Text, start: int, bar: int, line: Records, costs: Records, tag: NDArray[np.uint8]
) -> bool:
    """Read label and tag of a line and return whether they are valid; a problem is reported.

    The tag is the last word, if no blank separates it from the bar or if it begins with ``'``.
    """
    data, rules = text.data, text.rules
    first, last = _last_word(data, start, bar)
    if first == last:
        if rules.slots:
            report(text.state, ProblemCode.SLOT_LABEL, start, start, rules.strict)
        return not rules.slots
    end = bar
    if last == bar or data[first] == _QUOTE:
        add_tag(text, first, last, tag)
        end = first
        alone = next_word(text, start, end)[0] == end
        if alone and data[first] != _QUOTE and _looks_like_label(text, first, last):
            report(text.state, ProblemCode.TAG_LIKE_LABEL, first, last, False)
    if rules.simple:
        return read_simple(text, start, end, line)
    if rules.slots:
        return read_slot_label(text, start, end, line, costs)
    return read_costs(text, start, end, line, costs)
