"""Learn frames: prices of diamonds from one, decisions from another, which is stored as blocks.

Needs the extras `frames` and `blocks`, and pandas.

Next: 15 predicts the prices in river's way.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas

from onlineauto import AutoMLRegressor, Workspace, convert
from onlineauto.interop import event_text, from_dicts, from_frame
from stones import stones

frame = pandas.DataFrame([stone | {"price": price} for stone, price in stones(5000)])
model = AutoMLRegressor(seed=1).fit_table(frame[:4000], label="price")
rest = frame[4000:].drop(columns="price")
error = abs(model.predict_each(rest) - frame.price[4000:]).mean()
print(f"logarithms of the last 1,000 prices: mean absolute error {error:.3f}")

log = pandas.DataFrame(
    {
        "visitor": ["tom", "ann", "tom", "eve"] * 500,
        "hour": [7, 12, None, 23] * 500,
        "kind": ["watches", "rings", "rings", "watches"] * 500,
        "cost": [-1.0, 0.0, 0.0, -1.0] * 500,
        "probability": [0.5] * 2000,
    }
)
blocks = from_frame(
    log,
    context=["visitor", "hour"],  # a namespace each
    actions="kind",  # the one that was displayed
    choices=["watches", "rings"],  # of these
    cost="cost",
    probability="probability",
)
with TemporaryDirectory() as directory:
    path = Path(directory) / "log.blocks"
    print(convert(blocks, path, cb_explore_adf=True), "decisions converted")
    bandit = Workspace(cb_explore_adf=True, quadratic="::", epsilon=0.1).fit(path)

event = {
    "context": {"visitor": "tom", "hour": 8},
    "actions": [{"kind": "watches"}, {"kind": "rings"}],
}
[block] = from_dicts([event])
print("probabilities:", bandit.predict_block(block).by_action().round(2))
print(event_text(event | {"chosen": 0, "cost": -1, "probability": 0.95}).strip())
