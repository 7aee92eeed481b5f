"""``warm_up``: have everything compiled and loaded that ranking and learning need, before the first one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onlineauto.service.learning.values import Values
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from onlineauto.options import Configuration

__all__ = ["warm_up"]

_LABEL: Final = b'{"_label_cost":-1,"_label_probability":0.5,"_label_Action":1,"_labelIndex":0,'
_EVENT: Final = b'"a":[1,2],"p":[0.5,0.5],"c":{"u":{"x":1},"_multi":[{"a":{"y":1}},{"a":{"z":1}}]}}\n'


def warm_up(configuration: Configuration) -> None:
    """Rank, learn and evaluate a little with a model that is thrown away."""
    workspace, values = Workspace(configuration=configuration), Values()
    workspace.predictor().predict(b"{" + _EVENT)
    for block in workspace.read((_LABEL + _EVENT) * 4):
        values.take(workspace.learn_block(block), explored=True)
    values.values()
