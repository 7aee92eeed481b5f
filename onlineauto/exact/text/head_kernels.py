"""Read the head of a line, its label and tag before the first ``|``, as VW does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.exact.text.ccb_label_kernels import read_vw_slot_label
from onlineauto.formats.json.text_label_kernels import read_vw_label
from onlineauto.formats.lines.label_kernels import add_tag
from onlineauto.formats.records.problem_code_kernels import ProblemCode
from onlineauto.formats.records.reader_state_kernels import report
from onlineauto.jit import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.records.reader_state_kernels import Text

_SPACE, _TAB, _QUOTE = 32, 9, 39


@kernel
def _after_tab(data: NDArray[np.uint8], start: int, end: int) -> int:
    """Return the position after the first tab, `start` if there is none."""
    for i in range(start, end):
        if data[i] == _TAB:
            return i + 1
    return start


@kernel
def read_vw_head(
    text: Text, start: int, bar: int, line: Records, costs: Records, tag: NDArray[np.uint8]
) -> None:
    """Read label and tag of a line as VW does: a tab discards everything before it.

    Source
    ------
    VW 9.11.9, ``substring_to_example`` in ``parse_example_text.cc`` and the label parsers.
    """
    data = text.data
    start = _after_tab(data, start, bar)
    last = bar
    while last > start and data[last - 1] == _SPACE:
        last -= 1
    first = last
    while first > start and data[first - 1] != _SPACE:
        first -= 1
    if first == last:
        if text.rules.slots:
            report(text.state, ProblemCode.SLOT_LABEL, start, start, True)
        return
    end = bar
    if last == bar or data[first] == _QUOTE:
        add_tag(text, first, last, tag)
        end = first
    if text.rules.slots:
        read_vw_slot_label(text, start, end, line, costs)
    else:
        read_vw_label(text, start, end, line, costs)
