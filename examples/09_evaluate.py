"""Estimate what other policies would have cost over the log, and how sure that is.

Next: 10 serves the better policy.
"""

from onlineauto import Evaluation, Workspace, datasets

evaluation = Evaluation(
    {
        "without interactions": Workspace(cb_explore_adf=True),
        "all pairs": Workspace(cb_explore_adf=True, quadratic=["::"]),
        "automl": Workspace(cb_explore_adf=True, live_configs=4),
    },
    cost_range=(-1, 0),
)
for value in evaluation.run(datasets.path("cb-diamonds-u")):
    print(f"{value.policy:21} {value.dr.value:.3f}  [{value.dr.low:.3f}, {value.dr.high:.3f}]")
