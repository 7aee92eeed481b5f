"""Bad lines are located, counted and skipped; what is good is learnt."""

from onlineauto import Workspace
from onlineauto.formats.lines.diagnostics import Diagnostics

TEXT = b"""1 |a good
one |a label
2 |a x:nan
3 |a good again
"""

diagnostics = Diagnostics()
model = Workspace()
learnt = sum(len(outcomes) for _, outcomes in model.stream(TEXT, diagnostics=diagnostics))
print(learnt, "events learnt")
for diagnostic in diagnostics.kept:
    print(diagnostic)
