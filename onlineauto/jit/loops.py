"""``short_loop``: keep LLVM from unrolling a loop.

LLVM unrolls every loop of unknown length as if it were long: it handles several turns at once and first
computes how many are left over. The loops over an event's namespaces and features take one or two turns. The
preparation took longer than these turns, and used up their registers.
"""

from __future__ import annotations

from typing import Any

from onlineauto.jit.operation import Operation

__all__ = ["short_loop"]

short_loop: Any = Operation("loops", "short_loop")
"""Mark the body of a loop that takes few turns; it emits no instruction."""
