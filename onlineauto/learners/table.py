"""The shape of the weight table: the number of cells and lanes, and the lanes of each live config."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.features.records import CONSTANT_HASH

if TYPE_CHECKING:
    from numpy.typing import NDArray


class TableShape(NamedTuple):
    """The position of each live config's weights in the table.

    A live config that estimates costs, or has several policies, has several parts, each in a lane.
    """

    configs: int  # live configs
    policies: int  # policies of each live config; 0 if the explorer has none
    parts: int  # lanes of a live config
    cells: int
    lanes: int
    config_step: int  # lanes between two live configs
    part_step: int  # lanes between two parts of a live config
    penalised: NDArray[np.int64]  # [lanes]: the row that holds a lane's penalties
    constant: tuple[int, int]  # cell and lane that ``--constant`` initialises
    hash_mask: int  # bits of a hash that ``--cb N`` keeps when it numbers the actions

    def lane(self, part: int, live: int = 0) -> int:
        """Return the lane of a part of a live config, by default of the champion."""
        return part * self.part_step + live * self.config_step


def lanes_side_by_side(bits: int, *, configs: int, parts: int, policies: int) -> TableShape:
    """Return the table of native mode: each live config has one or more lanes of every cell.

    The more parts a live config has, the fewer cells the table has. Kernels process four lanes at a time, so
    with several live configs the number of lanes is a multiple of four.
    """
    lanes = configs * parts
    if configs > 1:
        lanes = -(-lanes // 4) * 4
    cells = max(1, 2**bits >> (parts - 1).bit_length())
    lane, together = np.arange(lanes), configs * max(parts // max(policies, 1), 1)
    return TableShape(
        configs=configs,
        policies=policies,
        parts=parts,
        cells=cells,
        lanes=lanes,
        config_step=1,
        part_step=configs,
        penalised=lane // together * together + lane % configs,
        constant=(int(CONSTANT_HASH) % cells, 0),
        hash_mask=2**32 - 1,
    )
