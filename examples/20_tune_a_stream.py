"""Tune the flags of a learner on the stream that it serves, and hand the winner over to it.

Next: 21 tunes other models.
"""

from io import BytesIO

from onlineauto import AutoML, Workspace, datasets, read
from onlineauto.tune.live import flags_of, hand_over, tune_stream

BASE = "--cb_explore_adf"
SEARCHED = ("learning_rate", "power_t", "interactions")

blocks = list(read(datasets.path("cb-diamonds-u"), cb_adf=True))
past, future = blocks[:2], blocks[2:]
n_past = sum(map(len, past))

# A model serves with the default flags.
serving, model = Workspace(cb_explore_adf=True).fit(past), BytesIO()
serving.save(model)

# Meanwhile other flags are tried on the same events. Each trial learns them with flags of its own, and its
# value is the mean progressive loss. Few trials learn all events.
study = tune_stream(past, BASE, SEARCHED, budget=8 * n_past, seed=1)
best = study.best
assert best is not None
flags = flags_of(best.config, BASE).split(" --")
print(f"best of {len(study.trials)} trials: number {best.number}, average loss {best.value:.3f}")
print(f"its flags: {sum('interactions' in flag for flag in flags)} interactions", *flags[-3:-1], sep=", ")

# The winner comes to the model that serves, with its weights, as a challenger. The test decides.
bandit = AutoML(live_configs=2, search=",".join(SEARCHED)).warm_start(model.getvalue())
hand_over(study, bandit)
bandit.fit(future)
print(bandit.report())
