"""Learn a policy for clusters: imitate a teacher, improve in a simulator, decide in NumPy."""

from __future__ import annotations

from onlineauto.cluster.learned.guard import Guarded
from onlineauto.cluster.learned.learned import Improving, Learned, WarmUp

__all__ = ["Guarded", "Improving", "Learned", "WarmUp"]
