"""The list of sections: what is measured, how much of it, and how long it takes."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass

from bench.publish import quality, speed


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the night: it returns tables by the name of their file."""

    name: str
    run: Callable[[Namespace], quality.Tables]
    minutes: float  # on two cores that do nothing else
    sizes: str  # what a figure is the median of, for pages
    alone: bool = False  # measures time, so nothing else may run


SECTIONS = (
    Section("kinds", speed.kinds, 3, "5 rounds", alone=True),
    Section("one-event", speed.one, 0.5, "9 rounds", alone=True),
    Section("files", speed.files, 2, "5 rounds", alone=True),
    Section("start", speed.first_run, 1, "3 runs", alone=True),
    Section("parquet", speed.parquet, 1.5, "3 rounds of 1,000,000 rows", alone=True),
    Section("models", speed.models, 0.5, "5 rounds", alone=True),
    Section("service", speed.pairs, 6, "3 rounds of 2 seconds", alone=True),
    Section("loops", speed.many_loops, 3, "5 rounds of a second, 1,000 loops", alone=True),
    Section("router", speed.router, 1, "2,000 requests", alone=True),
    Section("topics", speed.topics, 0.5, "5 rounds of 26,000 decisions", alone=True),
    Section("capymoa", speed.streams, 8, "one seed of at most 5,000 events", alone=True),
    Section("workers", speed.workers, 3.5, "3 rounds of 2,000,000 events", alone=True),
    Section("logs-peers", quality.logs_peers, 14, "3 seeds"),
    Section("partitions", quality.in_partitions, 10, "200,000 events"),
    Section("regression", quality.regression, 5, "3 orders of at most 8,000 rows"),
    Section("tuners", quality.tuners, 4.5, "10 seeds"),
    Section("cluster", quality.simulated_cluster, 4, "16 traces"),
    Section("logs", quality.logs_ours, 3.5, "5 seeds"),
    Section("acting", quality.acting, 2, "3 seeds of 12,000 events"),
    Section("budgets", quality.of_budgets, 2.5, "5 orders of 1,793 prompts"),
    Section("off-policy", quality.evaluation, 1.5, "3 policies with 200 seeds of 3,000 events"),
)
"""Those that run alone come first; the others run two at a time, the longest first."""
