"""A model is saved, gone on with as if it had never stopped, and slimmed down to predict with."""

import tempfile
from pathlib import Path

from onlineauto import Workspace

DATA = Path(__file__).parent.parent / "datasets"
folder = Path(tempfile.mkdtemp())

bandit = Workspace(cb_explore_adf=True, automl=4)
bandit.fit(DATA / "cb-surveys-u.txt.gz").save(folder / "whole.model")
bandit.save(folder / "champion.model", predict_only=True)

again = Workspace.load(folder / "whole.model")
for each in (bandit, again):
    each.fit(DATA / "cb-surveys-e.txt.gz")
print("the same weights:", again.weights.tobytes() == bandit.weights.tobytes())

champion = Workspace.load(folder / "champion.model", testonly=True)
print("probabilities:", champion.predict("shared |u x\n|Z a\n|Z b\n").round(3))
sizes = [(folder / name).stat().st_size for name in ("whole.model", "champion.model")]
print(f"{sizes[0] / 1e6:.1f} MB, and {sizes[1] / 1e6:.1f} MB to predict with")
