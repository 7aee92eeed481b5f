"""How the native search works, from start to end, as a program that is slow and plain.

Read this page, and then the files in the order in which it names them. Nothing here imports the package's
kernels or its decisions; `tests/engine/test_native_twin.py` holds the package to what this program does.

**What is searched.** A model predicts a cost from features. What it can learn hangs on which namespaces are
crossed with one another: "what this user thinks of this page" is a product of two of them. A *config*
(`configs.py`) is a set of such interactions, and perhaps a learning rate of its own. Nobody knows the right
one beforehand, and the stream is seen once. So several *live configs* learn side by side (`--automl N`):
the *champion*, which predicts, and its challengers. Each has weights of its own (`regressor.py`), for
features made of its own interactions (`features.py`). All that is read becomes events (`events.py`): some
actions, what they share, and a label that says which action was logged, with which probability, and what it
cost. A single line is an event with one action; a slot of a conditional bandit is an event like any other.

**An event** (`run.py`) goes through these steps. Its namespaces are counted (`counts.py`), and whatever is
due is decided. All live configs score its actions, and the champion's scores become the prediction. Then
all of them learn the logged action, and the scores from before are compared (`comparing.py`). If that
proves something, the search acts upon it at once. Every decision goes into the journal, with what was known
of the live configs that it is about (`journal.py`).

**Where it begins.** When the first namespaces are met, the oracle (`oracle.py`) names the first champion:
every namespace of the context crossed with every namespace of the action. If more are met soon after, it
names another. It also proposes challengers, which take the empty places before the next event is learnt. A
challenger begins with a copy of the champion's weights. What it crosses besides, it has yet to learn.

**What orders the proposals.** There are far more interactions than places. So up to a thousand of them are
*screened* (`screening.py`), beside the stream and at little cost. An interaction that the champion lacks
has a tiny model of what the champion's predictions leave unexplained, and gains what that model explains.
One that the champion has gains, by leaving, the loss that it causes. Gains prove nothing. They say what to
try first: the interactions that gain anything, the four that gain most, the first of these.

**What proves that a challenger is better.** Two tests (`bets.py`). One compares *rewards*: it takes in only
events on which the two would act differently, and weighs what was logged by its probability, within the
range of rewards and probabilities that is known (`scale.py`). The other compares *losses*: how far off each
prediction was for the action that was logged. It learns something from every event and so tells sooner, but
it speaks of predictions and not of rewards. So it decides nothing that rewards lean against, and it has no
say where learning rates differ. (Single lines have losses only.) Nor does it decide anything
while hardly more than one action was logged; and where a log draws one action for many events in turn, proofs
have to be that much stronger (`tests/naive/draws.py`). Both tests bet against the statement "the
challenger is no better". Whoever bets against what is true gets no richer on average, so wealth is proof,
and one may look after every event. The k-th test that is ever begun has 1/(k(k+1)) of the level, so that
all tests of a run together err with a probability of 0.05 at most. A challenger that is dearer to run than
the champion has to win by more than a small price. The intervals in the journal (`intervals.py`) are for
people and decide nothing.

**What follows** (`decisions.py`, which sees no weights). A challenger that is proved *better* exchanges its
place with the champion. The other challengers stay, keep what they have learnt, and are tested anew,
against the new champion. What waited is forgotten, and the oracle is asked for neighbours of the new
champion. A challenger that is proved *worse* makes room for one that waits, and is not tried again under
this champion. Most are neither for a long time; hence *leases*. A challenger is given so many events. When
they are over its lease is doubled; but unless it is one of the half with the most evidence, it makes room
if something waits whose lease is no longer. It is remembered with its weights and its evidence (`live.py`)
and goes on from there when it comes back, since to begin anew would cost a test more. So every proposal
gets its events, the promising ones get more, and none has to wait for ever.

**Reviews.** Gains change, so the oracle is asked again: often under a new champion, later every quarter of
a first lease, and then after a sixteenth of the events for which nothing has changed. What it proposed before
and was never tried is forgotten. Namespaces that are met late need no review: the champion with all that
crosses them is tried from that very event on, in the place of the challenger that promises least.

**Drift** (`drift.py`). At every review, and as soon as there are 256 of them, the champion's new losses go
into a window, which notices when they have become larger. Then proofs of the past are void: configs that
were given up may be tried again and all tests begin anew. With `--on_drift`, so does what the challengers,
or all live configs, have learnt.

**The prediction.** For several actions it is the champion's alone, spread over them by ε-greedy. Single
lines are predicted by all live configs together: the say of each falls with its loss, but never to nothing.

Numbers are float32 or float64 wherever those of the kernels are, and sums have the order of theirs. So both
agree to the last bit, and a single wrong sign shows. `options.py` says what this program does not know of
the package: other explorers, oracles and update rules, and input that is not finite.
"""

from __future__ import annotations

from tests.naive.native_search.events import events_of
from tests.naive.native_search.options import Options
from tests.naive.native_search.run import NativeSearch, Step

__all__ = ["NativeSearch", "Options", "Step", "events_of"]
