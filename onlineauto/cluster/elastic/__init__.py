"""The sharded streaming learner: workers and servers may join and leave during the stream."""

from __future__ import annotations

from onlineauto.cluster.elastic.learner import ShardedLearner
from onlineauto.cluster.elastic.running.hub import LayoutChange
from onlineauto.cluster.elastic.running.nodes import NodeDemand
from onlineauto.cluster.elastic.running.recipe import Cutting
from onlineauto.cluster.elastic.running.run import ShardedRun
from onlineauto.cluster.elastic.running.snapshot import Snapshot

__all__ = ["Cutting", "LayoutChange", "NodeDemand", "ShardedLearner", "ShardedRun", "Snapshot"]
