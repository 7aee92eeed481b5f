"""Learn a file of events and look at the progressive loss."""

from pathlib import Path

from onlineauto import Workspace

DATA = Path(__file__).parent.parent / "datasets" / "cb-penbased-u.txt.gz"

bandit = Workspace(cb_explore_adf=True, quadratic="::", epsilon=0.1)
loss = weight = 0.0
for _, outcomes in bandit.stream(DATA):
    loss += outcomes.loss[outcomes.labelled].sum()
    weight += outcomes.weight[outcomes.labelled].sum()
print(f"average loss {loss / weight:.3f} over {weight:.0f} events")
