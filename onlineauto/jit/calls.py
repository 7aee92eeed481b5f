"""``call_at``: call a kernel by its address, so that what calls it is compiled without it.

A loop that can explore in ten ways would be compiled with all ten, and anew for an eleventh. So each is a
kernel of its own, compiled and loaded when it is chosen, and the loop is given its address.
"""

from __future__ import annotations

from typing import Any

from onlineauto.jit.operation import Operation

__all__ = ["call_at"]

call_at: Any = Operation("calling", "call_at")
"""Call the kernel at an address, inside a kernel: ``call_at(address, (argument, …))``; it returns nothing.

The arguments must be of the kinds that the kernel's `address` was asked for: nothing checks them. A record
that a kernel has by its address is passed on as one that is sealed.
"""
