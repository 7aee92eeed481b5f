"""Save a model, continue it from the file with the same bits, and slim it down to predict with."""

import tempfile
from pathlib import Path

from onlineauto import Workspace, datasets

folder = Path(tempfile.mkdtemp())

bandit = Workspace(cb_explore_adf=True, live_configs=4)
bandit.fit(datasets.path("cb-surveys-u")).save(folder / "whole.model")
bandit.save(folder / "ensemble.model", predict_only="ensemble")
bandit.save(folder / "champion.model", predict_only="champion")

again = Workspace.load(folder / "whole.model")
for model in (bandit, again):
    model.fit(datasets.path("cb-surveys-e"))
print("the same weights:", again.weights.tobytes() == bandit.weights.tobytes())

event = "shared |d 3 |h 9\n|Z a\n|Z b\n"
for name in ("ensemble.model", "champion.model"):
    small = Workspace.load(folder / name, testonly=True)
    print(name, "predicts:", small.predict(event).round(3))
sizes = [(folder / name).stat().st_size / 1e6 for name in ("whole.model", "ensemble.model", "champion.model")]
print("{:.1f} MB, {:.1f} MB to predict with the ensemble, {:.1f} MB with the champion".format(*sizes))
