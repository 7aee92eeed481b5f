"""Look at the log: events in columns, one event with its names, and what happens to bad lines.

Next: 03 asks which features have to be crossed.
"""

from onlineauto import Workspace, datasets, read
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.interop import read_named

LOG = datasets.path("cb-diamonds-u")

block = next(iter(read(LOG, cb_adf=True)))
print(f"the first block: {len(block):,} events, {block.n_lines:,} lines, {block.n_features:,} features")

event = next(iter(read_named(LOG, cb_adf=True)))
context, *actions = event.lines
print("context:", {namespace: dict(features) for namespace, features in context.spans})
print("logged (action, cost, probability):", [cost for line in actions for cost in line.costs])

# A bad line is located, counted and skipped. The good lines are learnt.
PRICES = b"""8.46 |carat c:1.1 |cut Ideal
cheap |carat c:0.3 |cut Good
6.21 |carat c:nan |cut Good
8.77 |carat c:1.3 |cut Ideal
"""
diagnostics = Diagnostics()
model = Workspace()
learnt = sum(len(outcomes) for _, outcomes in model.stream(PRICES, diagnostics=diagnostics))
print(f"{learnt} of 4 lines learnt")
for diagnostic in diagnostics.kept:
    print(diagnostic)
