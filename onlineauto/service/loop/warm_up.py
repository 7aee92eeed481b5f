"""``warm_up``: load the machine code of a model before the first request."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

import msgspec

from onlineauto.service.learning.values import Values
from onlineauto.workspace.run import Run
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.options import Configuration
    from onlineauto.workspace.predictor import Predictor

_LABEL: Final = b'{"_label_cost":-1,"_label_probability":0.5,"_label_Action":1,"_labelIndex":0,'
_EVENT: Final = b'"a":[1,2],"p":[0.5,0.5],"c":{"u":{"x":1},"_multi":[{"a":{"y":1}},{"a":{"z":1}}]}}\n'


def warm_up(configuration: Configuration) -> None:
    """Rank, learn and evaluate a little with a temporary model."""
    workspace, values = Workspace(configuration=configuration), Values()
    for count in (4, 1):  # a single event has other kernels than a block
        lines = (_LABEL + _EVENT) * count
        run = Run(workspace, iter(list(workspace.read(lines))))
        for _, outcomes in run:
            values.take(outcomes, explored=True)
        warm_predictor(workspace.predictor())
    values.values()
    workspace.save(io.BytesIO(), predict_only="ensemble")


def warm_predictor(predictor: Predictor, names: Sequence[str] = ("u", "a")) -> None:
    """Rank once without effect; a predictor uses its fast path for the namespaces that it knows, `names`."""
    if not names:
        return
    shared, own = ({name: {"x": 1}} for name in (names[0], names[-1]))
    event = msgspec.json.encode({"c": {**shared, "_multi": [own, own]}}) + b"\n"
    for _ in range(3):
        predictor.predict(event)
