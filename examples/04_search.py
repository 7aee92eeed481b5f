"""Let the search find the interactions: one pass over the log, and a report of what was found and why.

Next: 05 does the same on the command line, with a journal that can be replayed.
"""

from collections import Counter

from onlineauto import AutoML, datasets

bandit = AutoML(
    live_configs=4,  # the champion and three challengers, all of them members of the ensemble
    default_lease=2000,  # learnt events after which a challenger is replaced, or gets twice as many
).fit(datasets.path("cb-diamonds-u"))

print(bandit.report())
print("decisions:", dict(Counter(decision["decision"] for decision in bandit.history)))
