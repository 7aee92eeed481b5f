"""The name of an event, a tag ``seed=NAME``, which seeds the draw of its action."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers.sample_kernels import fnv1a
from onlineauto.features.hash_kernels import murmur3
from onlineauto.jit import entry_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SEED = np.frombuffer(b"seed=", np.uint8)


@entry_kernel
def name_events(
    tag: NDArray[np.uint8],
    tag_start: NDArray[np.int64],
    first_line: NDArray[np.int64],
    name: NDArray[np.uint64],
    named: NDArray[np.bool_],
    murmur: bool,
) -> None:
    """Fill `name` with the hash of each event's name, and `named` with whether it has one.

    Parameters
    ----------
    tag, tag_start : uint8[], int64[n_lines + 1]
        Bytes of all tags, and the start of each line's tag.
    first_line : int64[n_events]
        Line of each event, or slot, whose tag is read.
    name, named : uint64[n_events], bool[n_events]
        Arrays to fill; `named` must be false and `name` 0 before the call.
    murmur : bool
        Hash with MurmurHash3 instead of FNV-1a.
    """
    for event in range(len(name)):
        start, end = tag_start[first_line[event]], tag_start[first_line[event] + 1]
        if end - start <= len(_SEED):
            continue
        named[event] = True
        for i in range(len(_SEED)):
            named[event] = named[event] and tag[start + i] == _SEED[i]
        if named[event]:
            start += len(_SEED)
            if murmur:
                name[event] = murmur3(tag, start, end, np.uint32(0))
            else:
                name[event] = fnv1a(tag, start, end)
