"""Check the log of another program, and estimate what its policy is worth beside others.

A partner's shop sends what its program displayed, with which probability, and whether it was clicked.
A log with wrong probabilities gives wrong answers, so check it first. Needs the extra `frames`, and pandas.

Next: 12 stays within a budget.
"""

import numpy as np
import pandas

from onlineauto import Evaluation
from onlineauto.api.log_check import check_log

P = {"rings": 0.5, "chains": 0.3, "watches": 0.2}
CLICKS = {"rings": 0.04, "chains": 0.10, "watches": 0.20}

draw = np.random.default_rng(1)
log = pandas.DataFrame({"kind": draw.choice(list(P), 4000, p=list(P.values())), "p": 1 / 3})
log["click"] = draw.random(4000) < log["kind"].map(CLICKS)

# The program drew with other probabilities than it has logged.
for finding in check_log(log, actions="kind", reward="click", probability="p").findings:
    print(f"{finding.severity}: {finding.message}")
log["p"] = log["kind"].map(P)
print("with the right ones:", check_log(log, actions="kind", reward="click", probability="p").findings)

found = Evaluation.from_frame(
    log,
    {"always watches": np.full(4000, "watches"), "uniform": np.full(4000, 1 / 3)},
    actions="kind",
    probability="p",
    reward="click",
    reward_range=(0, 1),
    min_prob=0.2,
)
print(found)
print("may be the best:", *found.best)
