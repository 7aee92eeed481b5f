"""Learn from a frame, keep it as blocks, and write events as text."""

from pathlib import Path
from tempfile import TemporaryDirectory

import polars

from onlineauto import Workspace, convert
from onlineauto.interop import event_text, from_dicts, from_frame

LOG = polars.DataFrame(
    {
        "user": ["tom", "ann", "tom", "eve"] * 500,
        "hour": [7, 12, None, 23] * 500,
        "article": ["politics", "sports", "sports", "politics"] * 500,
        "cost": [-1.0, 0.0, 0.0, -1.0] * 500,
        "probability": [0.5] * 2000,
    }
)

blocks = list(
    from_frame(
        LOG,
        context=["user", "hour"],  # a namespace each
        actions="article",  # the one that was shown
        choices=["politics", "sports"],  # of these
        cost="cost",
        probability="probability",
    )
)
with TemporaryDirectory() as directory:
    path = Path(directory) / "log.blocks"
    print(convert(blocks, path, cb_explore_adf=True), "events converted")
    bandit = Workspace(cb_explore_adf=True, quadratic="::", epsilon=0.1).fit(path)

event = {
    "context": {"user": "tom", "hour": 8},
    "actions": [{"article": "politics"}, {"article": "sports"}],
}
[block] = from_dicts([event])
print("probabilities:", bandit.predict_block(block).by_action().round(2))
print(event_text(event | {"chosen": 0, "cost": -1, "probability": 0.95}))
