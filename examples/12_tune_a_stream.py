"""Search flags on the beginning of a stream, and let a search that is at work try what was found."""

from itertools import islice
from pathlib import Path

from onlineauto import Workspace
from onlineauto.engine.report.search_story import story
from onlineauto.tune.live import flags_of, hand_over, tune_stream

DATA = Path(__file__).parent.parent / "datasets" / "cb-diamonds-u.txt.gz"
BASE = "--cb_explore_adf"
EVENTS = 10_000  # the first third of the stream is tuned on

# Each trial learns the stream with flags of its own; its resource is events, its value the mean progressive loss of
# the same events for all. Most trials end early.
study = tune_stream(DATA, BASE, max_examples=EVENTS, budget=12 * EVENTS)
best = study.best
assert best is not None
print(
    f"{len(study.trials)} trials learnt {sum(trial.step for trial in study.trials) / EVENTS:.1f} times the events"
)
print("flags:", flags_of(best.config, BASE))
