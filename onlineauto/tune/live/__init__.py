"""Trials that are live learners: runs on one stream that are compared on the same events."""

from onlineauto.tune.live.handing_over import hand_over
from onlineauto.tune.live.live_learner import LiveLearner
from onlineauto.tune.live.tuning import Budget, flags_of, tune_stream

__all__ = ["Budget", "LiveLearner", "flags_of", "hand_over", "tune_stream"]
