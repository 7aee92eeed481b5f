"""Operations on many bytes of a text: as a little-endian number, or as a word of one bit for each of 64.

Reading a text byte by byte costs one or two branches for each byte, and LLVM does not vectorise a search that
may stop anywhere. So readers use these instructions. Their results are the same on every machine.
"""

from __future__ import annotations

from typing import Any

from onlineauto.jit.operation import Operation

LANES = 64
"""Number of bytes that `equal` and `below` compare at once."""

load1: Any = Operation("words", "load1")
"""Return byte `i` of a contiguous uint8 array, without the test for a negative index that ``data[i]`` has."""
load4: Any = Operation("words", "load4")
"""Return four bytes of a contiguous uint8 array, from `i` on, as a uint32."""
load8: Any = Operation("words", "load8")
"""Return eight bytes of a contiguous uint8 array, from `i` on, as a uint64."""
store8: Any = Operation("words", "store8")
"""Write the uint64 `word` as eight bytes of a contiguous uint8 array, from `i` on."""
equal: Any = Operation("words", "equal")
"""Return the 64-bit word whose bit j says whether ``data[i + j]``, of a uint8 array, equals `byte`."""
below: Any = Operation("words", "below")
"""Return the 64-bit word whose bit j says whether ``data[i + j]``, of a uint8 array, is less than `byte`."""
first_one: Any = Operation("words", "first_one")
"""Return the index of the lowest bit of a uint64 that is 1; 64 if none is."""
ones: Any = Operation("words", "ones")
"""Return the number of bits of a uint64 that are 1."""
