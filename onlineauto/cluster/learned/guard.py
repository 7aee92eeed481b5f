"""``Guarded``: a policy that decides only while it is proved to be faster than another policy."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from threading import Thread
from typing import TYPE_CHECKING, ClassVar, Final

from onlineauto.cluster.history import Head, History
from onlineauto.cluster.policies.policy import ClusterPolicy
from onlineauto.cluster.simulator.simulation import Compared, compare
from onlineauto.cluster.simulator.workload import draw_traces
from onlineauto.errors import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from onlineauto.cluster.history import Record
    from onlineauto.cluster.policies.situation import Floats, Situation
    from onlineauto.cluster.simulator.workload import Workload

_TRACES: Final = 24
_SEED: Final = 700_000


class Guarded(ClusterPolicy):
    """Use `policy` while its simulated jobs finish faster than those of `by`, and `by` otherwise.

    Both policies are compared in simulated clusters: those of `judge`, or clusters fitted to the observed
    records. `by` decides before the first comparison, and while the 95 % interval of the ratio of completion
    times contains 1.

    Parameters
    ----------
    policy, by : Policy
        The guarded policy, and the reference policy.
    every : int
        Number of slots between two judgements.
    aside : bool
        True to judge in a separate thread, because with long jobs a judgement takes minutes.

    Attributes
    ----------
    trusted : bool
        True if `policy` decides.
    found : Compared or None
        The result of the last judgement.
    """

    name: ClassVar[str] = "guarded"

    def __init__(
        self, policy: ClusterPolicy, by: ClusterPolicy, *, every: int = 50, aside: bool = False
    ) -> None:
        self.policy, self.by, self.every, self.aside = policy, by, every, aside
        self.trusted = False
        self.found: Compared | None = None
        self._history: History | None = None
        self._judged, self._places = 0, 12
        self._thread: Thread | None = None

    def __repr__(self) -> str:
        """Return both policies and which of them decides, as text."""
        return f"Guarded({self.policy!r}, by={self.by.name}, trusted={self.trusted})"

    def judge(self, workload: Workload | None = None) -> bool:
        """Compare both policies in simulated clusters; return whether `policy` decides from now on.

        By default the clusters are fitted to the observed records; with too few of them, nothing changes.
        """
        if workload is not None:
            return self._judge(workload, self.policy, self.by)
        if self._history is not None:
            self._judge_by(self._history, self.policy, self.by)
        return self.trusted

    def _judge(self, workload: Workload, policy: ClusterPolicy, baseline: ClusterPolicy) -> bool:
        traces = draw_traces(workload, range(_SEED, _SEED + _TRACES))
        compared = compare({"policy": policy, "by": baseline}, traces, by="by")
        self.found = found = next(row for row in compared if row.name == "policy")
        self.trusted = found.high < 1 and found.finished == 1
        return self.trusted

    def score(self, situation: Situation) -> Floats:
        """Return the scores of the policy that decides."""
        return (self.policy if self.trusted else self.by).score(situation)

    def see(self, situation: Situation) -> None:
        """Pass the situation of a slot to both policies."""
        self._places = situation.places
        self.policy.see(situation)
        self.by.see(situation)

    def keep(self, path: str | os.PathLike[str]) -> None:
        """Let `policy` continue with the state of a file."""
        self.policy.keep(path)

    def observe(self, records: Sequence[Record]) -> None:
        """Learn from a slot; every `every` slots, fit a workload to all slots, and judge again."""
        self.policy.observe(records)
        self.by.observe(records)
        if not records:
            return
        if self._history is None:
            self._history = History(Head(capacity={}))
        self._history.records.extend(records)
        now = records[-1].slot
        if now - self._judged < self.every or (self._thread is not None and self._thread.is_alive()):
            return
        self._judged = now
        if not self.aside:
            self.judge()
            return
        history = History(self._history.head, list(self._history.records))
        self._thread = Thread(
            target=self._judge_by,
            args=(history, deepcopy(self.policy), deepcopy(self.by)),
            name="guard of a cluster",
            daemon=True,
        )
        self._thread.start()

    def _judge_by(self, history: History, policy: ClusterPolicy, baseline: ClusterPolicy) -> None:
        from onlineauto.cluster.simulator.fitting import fit_workload

        with suppress(InputError):  # too few jobs have worked
            self._judge(fit_workload(history, places=self._places), policy, baseline)
