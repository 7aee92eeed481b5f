"""Tune the flags of a learner on the stream that it serves, and hand the winner over to it."""

from onlineauto import Workspace, datasets
from onlineauto.engine.report.search_summary import search_summary
from onlineauto.tune.live import flags_of, hand_over, tune_stream
from onlineauto.tune.live.tuning import used_resource
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.run import Run
from onlineauto.workspace.warm_start import search_from

DATA = datasets.path("cb-surveys-u")
BASE = "--cb_explore_adf"
SEARCHED = ("learning_rate", "power_t", "interactions")
EVENTS = 5_000  # those that there were until now

# A model serves with the default flags.
serving = Workspace(cb_explore_adf=True)
run = Run(serving, DATA)
run.step(EVENTS)
print(f"served: average loss {run.progress.sum_loss / EVENTS:.3f}")

# Meanwhile other flags are tried on the same events. Each trial learns them with flags of its own, and its
# value is the mean progressive loss. Few trials learn all events.
study = tune_stream(DATA, BASE, SEARCHED, max_examples=EVENTS, budget=8 * EVENTS, seed=1)
best = study.best
assert best is not None
print(f"{len(study.trials)} trials learnt {used_resource(study) / EVENTS:.1f} times the events")
about = [(row["offset_from"], row["offset_to"]) for row in study.history() if row["trial"] == best.number]
print(
    f"trial {best.number}: average loss {best.value:.3f} of the events from {about[-1][0]} to {about[-1][1]}"
)
print(f"its flags: {flags_of(best.config, BASE)}")

# The winner comes to the model that serves, with its weights, as a challenger. The test decides.
search = search_from(serving, REGISTRY.parse(f"--automl 2 --search {','.join(SEARCHED)}"))
live = hand_over(study, search)
winner = search.searching.live_configs.configs[live]
rest = Run(search, DATA, stored={"position": run.position._asdict()})
while rest.step(100) and search.searching.live_configs.configs[0] != winner:
    pass
print(f"the winner is the champion after {rest.position.events - EVENTS} more events")
rest.step()
print(f"served since: average loss {rest.progress.sum_loss / rest.progress.weighted_labelled:.3f}")
print("\n".join(search_summary(search.searching)))
