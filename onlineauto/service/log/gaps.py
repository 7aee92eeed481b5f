"""``fill_gaps``: writes blanks in place of lost segments, so that the other segments can be read."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Final

from onlineauto.errors import InputError
from onlineauto.service.log.segment_log import SEGMENTS

if TYPE_CHECKING:
    from pathlib import Path

_MOST: Final = 1 << 20
"""Length in bytes of a line of blanks, which a reader of the log skips as a damaged record."""


def fill_gaps(folder: Path) -> list[tuple[int, int]]:
    """Fill the gaps between the segments of a log that is not in use; return the positions of each gap."""
    paths = sorted(folder.glob(SEGMENTS))
    gaps = []
    for path, following in itertools.pairwise(paths):
        begin, end = int(path.stem) + path.stat().st_size, int(following.stem)
        if begin > end:
            raise InputError(
                f"{path} overlaps {following.name}: restore the file, or cut it to "
                f"{end - int(path.stem)} bytes"
            )
        if begin == end:
            continue
        gaps.append((begin, end))
        with path.open("ab") as file:
            for at in range(begin, end, _MOST):
                file.write(b" " * (min(_MOST, end - at) - 1) + b"\n")
            file.flush()
            os.fsync(file.fileno())
    return gaps
