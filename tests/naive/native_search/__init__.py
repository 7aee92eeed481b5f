"""The native search as a slow, plain program.

The package's kernels and decisions are not imported; `tests/engine/test_native_twin.py` compares the package
with this program.

**Configs.** A model predicts a cost from features. Its quality depends on which namespaces are crossed: the
taste of a user for a page is a product of two namespaces. A *config* (`configs.py`) is a set of such
interactions, and perhaps a learning rate. The best config is unknown and the stream is seen once, so several
*live configs* learn at the same time (`--automl N`): the *champion*, which predicts, and its challengers.
Each has separate weights (`regressor.py`) for the features of its interactions (`features.py`). Input becomes
events (`events.py`): actions, their context, and a label with the logged action, its probability and its
cost. A single line is an event of one action; a slot of a conditional bandit is a separate event.

**An event** (`run.py`). Namespaces are counted, and decisions that are due are applied. All live configs
score the actions, and the champion's scores become the prediction. Then all live configs learn the logged
action, and their earlier scores are compared (`comparing.py`). A proof is applied at once. Each decision is a
line of the journal (`journal.py`).

**The first champion.** When namespaces are first seen, the oracle (`oracle.py`) proposes the first champion:
every namespace of the context crossed with every namespace of the action. If more namespaces follow soon, it
proposes another. It also proposes challengers, which become live before the next event is learnt. A
challenger begins with a copy of the champion's weights.

**The order of proposals.** There are many more interactions than live configs. So up to a thousand are
*screened* (`screening.py`) at little cost. An interaction that the champion lacks has a small model of the
champion's residuals, and its gain is the loss that this model would save. The gain of removing an interaction
of the champion is the loss that it causes. Gains prove nothing; they order the proposals: all interactions
with a gain, the four largest gains, the largest gain.

**Proofs.** Two tests compare a challenger with the champion (`bets.py`). One compares *rewards*: it uses only
events on which both would act differently, and weights the logged reward by its probability, within the known
range of rewards and probabilities (`scale.py`). The other compares *losses* of predictions for logged
actions. It uses every event and so decides earlier, but it is about predictions, not rewards. So it decides
nothing that rewards contradict, and it is not used where learning rates differ. (Single lines have losses
only.) It decides nothing while almost only one action is logged. If a log draws one action for many events in
turn, proofs must be stronger by that factor (`tests/naive/draws.py`). Both tests bet against the statement
"the challenger is not better". Capital does not grow on average if the statement is true, so it is evidence,
and may be examined after every event. The k-th test has 1/(k(k+1)) of the level, so that all tests of a run
together err with a probability of at most 0.05. A challenger that is more expensive to run than the champion
must be better by a small price.

**Decisions** (`decisions.py`, which sees no weights). A *better* challenger and the champion swap. The other
challengers remain, keep their weights, and are tested again, against the new champion. Waiting configs are
dropped, and the oracle proposes neighbours of the new champion. A *worse* challenger is replaced by a waiting
config, and is not tried again under this champion. Most challengers are neither for a long time. So a
challenger has a *lease*, a number of events. At its end the lease is doubled; but a challenger that is not in
the half with the most evidence is replaced if a waiting config has no longer lease. It waits with its weights
and its evidence (`live.py`) and continues later. So every proposal gets its events, and promising ones get
more.

**Reviews.** Gains change, so the oracle is asked again: often under a new champion, later every quarter of a
first lease, and then after a sixteenth of the events since the last change. Its earlier proposals that were
never live are dropped. Namespaces that are first seen late need no review: the champion, crossed with them,
is tried from that event on, in place of the least promising challenger.

**Drift** (`drift.py`). At every review, and whenever there are 256 of them, the champion's new losses are
added to a window that detects an increase. After an increase earlier proofs are void: rejected configs may be
tried again, and all tests restart. With `--on_drift`, the weights of challengers, or of all live configs, are
reset.

**The prediction.** For several actions it is the champion's, with ε-greedy probabilities. Single lines are
predicted by a mixture of all live configs, whose shares fall with their losses, but never to zero.

Numbers are float32 or float64 like those of the kernels, and sums have the same order, so that both agree to
the bit. `options.py` lists what this program lacks: other explorers, oracles and update rules, and input that
is not finite.
"""

from __future__ import annotations

from tests.naive.native_search.events import events_of
from tests.naive.native_search.options import Options
from tests.naive.native_search.run import NativeSearch, Step

__all__ = ["NativeSearch", "Options", "Step", "events_of"]
