"""Read events without learning them: in columns, and one by one."""

from onlineauto import read

TEXT = b"""shared |user tom age:0.3 |where home
0:-1:0.5 |article politics
|article sports
"""

for block in read(TEXT, cb_adf=True):
    print(len(block), "event,", block.n_lines, "lines,", block.n_features, "features")

for event in read(TEXT, cb_adf=True).events():
    print("shared namespaces:", list(event.shared.features) if event.shared else [])
    print("logged (action, cost, probability):", event.actions[0].costs)
