"""``NAMED``: the policies of a cluster by name, for `Cluster` and for the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.cluster.learned import Guarded, Learned
from onlineauto.cluster.policies import POLICIES, ClusterPolicy, Fair
from onlineauto.cluster.policies.marginal_gain import UntilKnown
from onlineauto.errors import OptionError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping


def make_policy(name: str, *, policy_file: str | os.PathLike[str] | None = None) -> ClusterPolicy:
    """Return the policy with a name.

    >>> make_policy("learned")  # Fair decides until Learned is proved to be faster
    Guarded(Learned of 6 kinds, by=fair, trusted=False)
    """
    if name not in NAMED:
        raise OptionError(f"policy = {name!r} is unknown; valid are {', '.join(NAMED)}, or your own Policy")
    if policy_file is None:
        return NAMED[name]()
    if name != Learned.name:
        raise OptionError(f"learned = {str(policy_file)!r} needs policy = 'learned', but policy = {name!r}")
    return _guarded_policy(Learned.load(policy_file))


def _guarded_policy(policy: Learned | None = None) -> Guarded:
    return Guarded(Learned.load() if policy is None else policy, by=Fair(), aside=True)


NAMED: Mapping[str, Callable[[], ClusterPolicy]] = {
    **POLICIES,
    UntilKnown.name: UntilKnown,
    Learned.name: _guarded_policy,
}
"""Policies by name; called without arguments, each begins without knowledge of the jobs."""
