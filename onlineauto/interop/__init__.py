"""Events of other libraries and of plain Python as Blocks, and events as text and JSON.

* `from_dicts`: mappings, one for each event;
* `from_frame`: frames of pandas, polars and arrow;
* `from_arrays`: arrays of NumPy, and sparse arrays of SciPy;
* `event_text`, `write_text`: events as VW text;
* `event_dsjson`, `write_dsjson`: events as a decision-service log;
* `read_named`: VW text as events with names;
* `read_vw_model`, `write_vw_model`: Vowpal Wabbit's models as workspaces, and workspaces as such models.

`Workspace.fit`, `stream`, `learn_block` and `predict_block` take Blocks. A feature has the same hash as its
name has in a text, and a number becomes the same float32 as there.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlineauto.interop.arrays import from_arrays
    from onlineauto.interop.dicts import from_dicts
    from onlineauto.interop.dsjson import event_dsjson, write_dsjson
    from onlineauto.interop.frames import from_frame
    from onlineauto.interop.named_text import read_named
    from onlineauto.interop.vw.champion import write_vw_model
    from onlineauto.interop.vw.model import read_vw_model
    from onlineauto.interop.vw_text import event_text, write_text

__all__ = [
    "event_dsjson",
    "event_text",
    "from_arrays",
    "from_dicts",
    "from_frame",
    "read_named",
    "read_vw_model",
    "write_dsjson",
    "write_text",
    "write_vw_model",
]

_LAZY = {
    "from_arrays": "onlineauto.interop.arrays",
    "from_dicts": "onlineauto.interop.dicts",
    "event_dsjson": "onlineauto.interop.dsjson",
    "write_dsjson": "onlineauto.interop.dsjson",
    "from_frame": "onlineauto.interop.frames",
    "read_named": "onlineauto.interop.named_text",
    "event_text": "onlineauto.interop.vw_text",
    "write_text": "onlineauto.interop.vw_text",
    "write_vw_model": "onlineauto.interop.vw.champion",
    "read_vw_model": "onlineauto.interop.vw.model",
}
"""Modules of the names, which are imported on first use, since a program uses few of them."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'onlineauto.interop' has no attribute {name!r}")
