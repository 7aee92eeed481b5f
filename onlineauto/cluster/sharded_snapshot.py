"""``load_sharded_snapshot``: read a file that the removed ``ShardedLearner`` wrote with ``Snapshot.save``."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from onlineauto.errors import InputError
from onlineauto.learners.cells import write_cells
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    import os


def load_sharded_snapshot(path: str | os.PathLike[str]) -> Workspace:
    """Return the model of a snapshot as an ordinary workspace, which can predict, learn and be saved.

    Raises
    ------
    InputError
        The file is not a snapshot.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:  # noqa: PTH123
            about = msgspec.json.decode(arrays["about"].tobytes(), type=dict)
            if about["format"] != 1:
                raise ValueError(f"format {about['format']}")
            workspace = Workspace(configuration=REGISTRY.parse(about["command"]))
            model, n_blocks = workspace.learner.model, int(about["cutting"]["blocks"])
            n_cells, lanes = model.weights.shape
            for name in ("shared", "lanes", "sums"):
                getattr(model, name)[...] = arrays[f"header.{name}"]
            for block in range(n_blocks):
                cells, values = arrays[f"{block + 1}.cell"], arrays[f"{block + 1}.value"]
                rows = block * (n_cells // n_blocks) + cells.astype(np.int64)
                write_cells(model, rows, values.reshape(len(rows), 3, lanes))
                model.touched[rows] = True
    except (
        *(KeyError, ValueError, TypeError, EOFError, IndexError, ZeroDivisionError),
        *(zipfile.BadZipFile, msgspec.MsgspecError),
    ) as error:
        raise InputError(f"{path} is not a snapshot of a sharded learner, or is damaged ({error})") from error
    return workspace
