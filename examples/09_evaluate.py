"""What other policies would have cost over a log, and how sure that is."""

from onlineauto import Evaluation, Workspace, datasets

LOG = datasets.path("cb-surveys-e")

evaluation = Evaluation(
    {
        "without interactions": Workspace(cb_explore_adf=True),
        "all pairs": Workspace(cb_explore_adf=True, quadratic=["::"]),
        "automl": Workspace(cb_explore_adf=True, live_configs=4),
    },
    cost_range=(-1, 0),
)
for value in evaluation.run(LOG):
    print(f"{value.policy:21} {value.dr.value:.3f}  [{value.dr.low:.3f}, {value.dr.high:.3f}]")
