"""``Snapshot``: all blocks at one tick, in memory or in a file."""

from __future__ import annotations

import zipfile
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from onlineauto.cluster.elastic.learning.combine_kernels import FIELDS
from onlineauto.cluster.elastic.learning.header import EVENTS, LOSS, SKIPPED, WEIGHTS, Header
from onlineauto.cluster.elastic.learning.rows import HEADER, Cells, write_block
from onlineauto.cluster.elastic.running.recipe import Cutting
from onlineauto.errors import InputError
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    import os

_FORMAT = 1


class _SnapshotHead(msgspec.Struct):
    """The metadata of a snapshot file, without its arrays."""

    format: int
    tick: int
    command: str
    cutting: dict[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A sharded model after some ticks of its stream.

    Attributes
    ----------
    tick : int
        Number of learned ticks.
    command : str
        The options, as a command line.
    cutting : Cutting
        The division of the stream and the table.
    blocks : dict
        The content of each block.
    """

    tick: int
    command: str
    cutting: Cutting
    blocks: dict[int, Any] = field(repr=False)

    @property
    def header(self) -> Header:
        """The numbers of the model that do not belong to cells, and the account of learned events."""
        header: Header = self.blocks[HEADER]
        return header

    @property
    def events(self) -> int:
        """Number of learned events."""
        return int(self.header.account[EVENTS])

    @property
    def loss(self) -> float:
        """The mean progressive loss of the events with a label; NaN if there are none."""
        account = self.header.account
        return float(account[LOSS] / account[WEIGHTS]) if account[WEIGHTS] else float("nan")

    @property
    def skipped(self) -> int:
        """Number of malformed lines."""
        return int(self.header.account[SKIPPED])

    def workspace(self) -> Workspace:
        """Return the model as an ordinary workspace, which can predict, learn and be saved."""
        workspace = Workspace(configuration=REGISTRY.parse(self.command))
        self.header.write_to(workspace.learner.model)
        size = workspace.learner.shape.cells // self.cutting.blocks
        for block, cells in self.blocks.items():
            if block != HEADER:
                write_block(workspace, (block - 1) * size, cells)
        return workspace

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the snapshot to a file, without pickle."""
        about = _SnapshotHead(_FORMAT, self.tick, self.command, asdict(self.cutting))
        arrays = {"about": np.frombuffer(msgspec.json.encode(about), np.uint8)}
        for name, array in self.header._asdict().items():
            arrays[f"header.{name}"] = array
        for block, cells in self.blocks.items():
            if block != HEADER:
                arrays[f"{block}.cell"], arrays[f"{block}.value"] = cells
        with open(path, "wb") as file:  # noqa: PTH123 - a path in any form
            np.savez_compressed(file, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Snapshot:
        """Return the snapshot of a file.

        Raises
        ------
        InputError
            The file is not a snapshot, or was written by a later version.
        """
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:  # noqa: PTH123
                about = msgspec.json.decode(arrays["about"].tobytes(), type=_SnapshotHead)
                if about.format != _FORMAT:
                    raise InputError(
                        f"{path} is a snapshot of format {about.format}, but this onlineauto reads "
                        f"format {_FORMAT}"
                    )
                cutting = Cutting(**about.cutting)
                blocks: dict[int, Any] = {
                    block: Cells(arrays[f"{block}.cell"], arrays[f"{block}.value"])
                    for block in range(1, cutting.blocks + 1)
                }
                blocks[HEADER] = Header(*(arrays[f"header.{name}"] for name in Header._fields))
            snapshot = cls(about.tick, about.command, cutting, blocks)
            snapshot._check()
        except (KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile, msgspec.MsgspecError) as error:
            raise InputError(
                f"{path} is not a snapshot of a sharded learner, or is damaged ({error})"
            ) from error
        return snapshot

    def _check(self) -> None:
        """Check that the content fits a learner with these options, before it is used.

        Raises
        ------
        ValueError
            The content does not fit.
        """
        fresh = Workspace(configuration=REGISTRY.parse(self.command)).learner
        cells, lanes = fresh.model.weights.shape
        if self.tick < 0 or self.cutting.blocks < 1 or cells % self.cutting.blocks:
            raise ValueError(f"tick {self.tick}, {self.cutting.blocks} blocks")
        for name, array in self.header._asdict().items():
            expected = np.zeros(4) if name == "account" else getattr(fresh.model, name)
            if array.shape != expected.shape or array.dtype != expected.dtype:
                raise ValueError(f"{name} is {array.dtype}{list(array.shape)}")
        if not (
            np.isfinite(self.header.account).all() and (self.header.account[[EVENTS, SKIPPED]] >= 0).all()
        ):
            raise ValueError(f"account is {self.header.account.tolist()}")
        for block, (cell, value) in ((block, each) for block, each in self.blocks.items() if block != HEADER):
            shapes = cell.dtype == np.uint32 and value.dtype == np.float32 and cell.ndim == 1
            if not shapes or value.shape != (len(cell), FIELDS * lanes):
                raise ValueError(f"block {block} has other arrays")
            if len(cell) and (
                cell[-1] >= cells // self.cutting.blocks or (np.diff(cell.astype(np.int64)) <= 0).any()
            ):
                raise ValueError(f"block {block} has other cells")
