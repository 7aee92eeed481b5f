"""Trials that are live learners: runs on one stream, compared on the same events."""

from onlineauto.tune.live.live_learner import LiveLearner
from onlineauto.tune.live.tuning import flags_of, tune_stream

__all__ = ["LiveLearner", "flags_of", "tune_stream"]
