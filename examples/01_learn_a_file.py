"""Learn a file of events and look at the progressive loss."""

from onlineauto import Workspace, datasets

DATA = datasets.path("cb-penbased-u")

bandit = Workspace(cb_explore_adf=True, quadratic="::", epsilon=0.1)
loss = weight = 0.0
for _, outcomes in bandit.stream(DATA):
    loss += outcomes.loss[outcomes.labelled].sum()
    weight += outcomes.weight[outcomes.labelled].sum()
print(f"average loss {loss / weight:.3f} over {weight:.0f} events")
