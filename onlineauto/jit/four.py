"""``Four``: four float32 numbers that one instruction works on.

LLVM does not recognise that four lanes of an update, with their conditions, form one vector. So kernels use
this type. A Four is stored in a register. Arithmetic is elementwise, with the rounding of scalar float32.
Comparisons return flags, by which `pick` selects elements.
"""

from __future__ import annotations

from typing import Any

from onlineauto.jit.operation import Operation

splat: Any = Operation("four", "splat")
"""Return a Four with `x` in all elements."""
four: Any = Operation("four", "four")
"""Return the Four of `a`, `b`, `c` and `d`."""
flags: Any = Operation("four", "flags")
"""Return the Flags of `a`, `b`, `c` and `d`."""
load_flags: Any = Operation("four", "load_flags")
"""Return four flags of ``table[row]``, a row of a contiguous bool table, from `column` on."""
flag: Any = Operation("four", "flag")
"""Return flag `i` of `where`."""
some: Any = Operation("four", "some")
"""Return whether any flag of `where` is true."""
element: Any = Operation("four", "element")
"""Return element `i` of `value`."""
load: Any = Operation("four", "load")
"""Return four numbers of ``table[row]``, a row of a contiguous float32 table, from `column` on."""
load_from: Any = Operation("four", "load_from")
"""Return four numbers of a contiguous float32 array of one dimension, from index `at` on."""
store: Any = Operation("four", "store")
"""Write `value` into ``table[row]``, a row of a contiguous float32 table, from `column` on."""
prefetch: Any = Operation("four", "prefetch")
"""Prefetch four numbers of ``table[row]``, from `column` on, for a write that follows soon."""
root: Any = Operation("four", "root")
"""Return the square root of each element."""
at_most: Any = Operation("four", "at_most")
"""Return flags: true where ``one <= other``, false where either is NaN."""
below: Any = Operation("four", "below")
"""Return flags: true where ``one < other``, false where either is NaN."""
both: Any = Operation("four", "both")
"""Return flags: true where both `one` and `other` are true."""
pick: Any = Operation("four", "pick")
"""Return `one` where `where` is true, `other` elsewhere."""
