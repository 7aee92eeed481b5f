"""Save a model, continue it from the file with the same bits, and make it small if it only predicts.

The second log of the shop chose price classes by a rule, and one in five at random.

Next: 09 asks what other policies would have earned.
"""

import tempfile
from pathlib import Path

from onlineauto import Workspace, datasets

bandit = Workspace(cb_explore_adf=True, live_configs=4).fit(datasets.path("cb-diamonds-u"))
names = ("whole.model", "ensemble.model", "champion.model")
with tempfile.TemporaryDirectory() as directory:
    whole, ensemble, champion = (Path(directory) / name for name in names)
    bandit.save(whole)
    bandit.save(ensemble, predict_only="ensemble")
    bandit.save(champion, predict_only="champion")

    again = Workspace.load(whole)
    for model in (bandit, again):
        model.fit(datasets.path("cb-diamonds-e"))
    print("the same weights:", again.weights.tobytes() == bandit.weights.tobytes())

    event = "shared |c 11 |u Ideal |o H |l SI2 |t 62 |b 55 |x 13\n|Z 7\n|Z 8\n"
    for file in (ensemble, champion):
        print(file.name, "predicts:", Workspace.load(file, testonly=True).predict(event).round(3))
    sizes = [file.stat().st_size / 1e6 for file in (whole, ensemble, champion)]
    print("{:.1f} MB; to predict with the ensemble {:.1f} MB, with the champion {:.1f} MB".format(*sizes))
