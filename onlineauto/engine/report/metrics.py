"""``Metrics``: the JSON file of ``--extra_metrics``, with VW's keys.

The counts are named after the reductions in VW's stack: ``extra_metrics`` counts the driver's calls of the
learner, ``shared_feature_merger`` the events with a shared line. Averages are truncated to whole numbers.
``total_log_calls`` is the number of diagnostics here and of messages in VW, which may differ.

In native mode, an event that was not learnt is not counted as a learning call, and an event without a usable
cost has no label. Another object, ``onlineauto``, has the number of diagnostics by code. An infinite sum is
``null``, where VW writes a file that is not JSON.

Source: VW ``metrics.cc``, ``shared_feature_merger.cc``, ``cb_explore_adf_common.h``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from onlineauto.automl.options import AutomlOptions
from onlineauto.engine.options.registry import ModelOptions, RunOptions
from onlineauto.engine.report.header import has_wildcards
from onlineauto.engine.report.predictions import open_sink
from onlineauto.engine.report.search_summary import search_metrics
from onlineauto.engine.stream.counters import Counters
from onlineauto.explorers.kinds.epsilon_decay import models_of
from onlineauto.explorers.options import choose_explorer
from onlineauto.explorers.sampling import SampleOptions
from onlineauto.features.block import UNLABELLED
from onlineauto.features.options import FeatureOptions, letters_of
from onlineauto.formats.options import TEXT, format_of
from onlineauto.learners.options import CbOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.loop.semantics import Semantics
    from onlineauto.engine.search.search_engine import Searching
    from onlineauto.engine.stream.counters import Count
    from onlineauto.features.block import Block
    from onlineauto.features.slots import Slots
    from onlineauto.formats.lines.diagnostics import LogCounts, SlotLogCounts
    from onlineauto.options import Configuration


class Metrics(Counters):
    """Counts the metrics of ``--extra_metrics``."""

    counted = ("_learn_calls", "_predict_calls", "_shared")

    def __init__(
        self,
        configuration: Configuration,
        *,
        kind: str,
        semantics: Semantics,
        searching: Searching | None = None,
    ) -> None:
        run, options = configuration[RunOptions], configuration[FeatureOptions]
        self._kind, self._as_vw, self._training = kind, semantics.reports_as_vw, not run.testonly
        mtr = configuration[CbOptions].cb_type == "mtr"
        searches = configuration[AutomlOptions].automl is not None  # a search predicts and learns at once
        self._slots = kind == "ccb_explore_adf"
        explorer = choose_explorer(configuration)
        samples = self._slots or configuration[SampleOptions].cb_sample
        twice = explorer.predicts_apart or (explorer.name == "greedy" and mtr and not searches)
        self._predicts_first = kind == "cb_explore_adf" and twice and not samples
        self._explorer = explorer.reductions[0]
        self._messages = int(has_wildcards(options) and not options.leave_duplicate_interactions)
        self._messages += int(kind == "cb_adf" and not searches and _asks_for_interactions(configuration))
        files = configuration[ModelOptions]
        texts = files.readable_model is not None or files.invert_hash is not None
        self._messages += int(texts and not files.predict_only()) + int(files.save_resume)
        self._learn_calls = self._predict_calls = self._shared = 0
        self._searching = searching if searches else None
        self._verbose = configuration[AutomlOptions].verbose_metrics
        self._explored: _Explored | None = None
        if "explore" in kind:
            multiline = kind.endswith("_adf")
            models = models_of(configuration)
            self._explored = _Explored(options, as_vw=self._as_vw, multiline=multiline, models=models)

    def update(self, block: Block, outcomes: Outcomes) -> None:
        """Count the outcomes of a block."""
        if outcomes.slots is not None:
            self._update_slots(outcomes, outcomes.slots)
            return
        learns = self._learns(block, outcomes)
        n_actions = np.diff(outcomes.action_start)
        self._learn_calls += int(learns.sum())
        self._predict_calls += int((~learns).sum())
        if self._predicts_first:
            self._predict_calls += int(learns.sum())
        if self._kind.endswith("_adf"):
            self._shared += int((learns & block.shared[outcomes.line] & (n_actions > 0)).sum())
        if self._explored is not None:
            has_cost = outcomes.labelled
            if self._as_vw and self._kind == "cb_explore_adf":
                has_cost = _any_per_run(_is_known(block), block.cost_start[block.event_start])
            self._explored.update(block, outcomes, learns=learns & (n_actions > 0), has_cost=has_cost)

    def _update_slots(self, outcomes: Outcomes, slots: Slots) -> None:
        """Count events that have slots; counts of an explorer by event are 0 in VW."""
        held_out = np.zeros(len(slots.start) - 1, bool)
        held_out[slots.event] = outcomes.holdout
        learns = self._training & (self._as_vw | ~held_out)
        self._learn_calls += int(learns.sum())
        self._predict_calls += int((~learns).sum())
        learnt = learns[slots.event] & (np.diff(outcomes.action_start) > 0)
        self._shared += int(learnt.sum())
        assert self._explored is not None
        self._explored.update_slots(outcomes, learnt)

    def counts(self) -> dict[str, Count]:
        """Return the counts, for `recount`."""
        explored = {} if self._explored is None else self._explored.counts()
        return super().counts() | explored

    def recount(self, counts: Mapping[str, Count]) -> None:
        """Set the counts to those of a resumed run."""
        super().recount(counts)
        if self._explored is not None:
            self._explored.recount(counts)

    def report(
        self, diagnostics: Mapping[str, int], *, log: LogCounts | SlotLogCounts | None = None
    ) -> dict[str, Any]:
        """Return the metrics; `diagnostics` are counts by code, `log` those of a decision-service log."""
        counts: dict[str, Any] = {} if log is None else msgspec.to_builtins(log)
        report: dict[str, Any] = {name: value for name, value in counts.items() if isinstance(value, int)}
        report["total_log_calls"] = self._messages + sum(diagnostics.values())
        report |= counts  # VW's order: whole numbers, numbers, texts
        if self._searching is not None:
            report["automl"] = search_metrics(self._searching, verbose=self._verbose)
        if self._explored is not None:
            report[self._explorer] = self._explored.report()
        report["extra_metrics"] = {
            "total_learn_calls": self._learn_calls,
            "total_predict_calls": self._predict_calls,
        }
        if self._kind != "simple":
            report["shared_feature_merger"] = {"sfm_count_learn_example_with_shared": self._shared}
        if not self._as_vw:
            report["onlineauto"] = {"diagnostics": dict(diagnostics)}
        return report

    def write(
        self, path: str, *, diagnostics: Mapping[str, int], log: LogCounts | SlotLogCounts | None = None
    ) -> None:
        """Write the metrics to a file; `open_sink` says which names are standard output."""
        with open_sink(path) as sink:
            sink.write(msgspec.json.encode(self.report(diagnostics, log=log)))

    def _learns(self, block: Block, outcomes: Outcomes) -> NDArray[np.bool_]:
        """Return for which events the driver calls learn and not predict: bool[n]."""
        if not self._training:
            return np.zeros(len(outcomes), bool)
        if self._kind.endswith("_adf"):
            return np.ones(len(outcomes), bool) if self._as_vw else ~outcomes.holdout
        labelled = outcomes.labelled
        if self._as_vw and self._kind != "simple":
            labelled = _any_per_run(
                _is_known(block) & (block.probability > 0), block.cost_start[block.event_start]
            )
        return labelled & ~outcomes.holdout


class _Explored(Counters):
    """The ``cbea_`` counts of an explorer."""

    counted = (
        *("_labelled", "_unlabelled", "_first", "_non_zero", "_features", "_namespaces", "_actions"),
        *("_max_actions", "_min_actions", "_cost", "_first_cost"),
    )

    def __init__(self, options: FeatureOptions, *, as_vw: bool, multiline: bool, models: int) -> None:
        self._as_vw, self._multiline = as_vw, multiline
        self._calls_per_label = models if as_vw and models else 1  # VW counts a label once for each model
        self._decays = bool(as_vw and models)  # VW then calls no model for an event without a label
        self._constant = int(not options.noconstant)
        self._dropped, self._kept = (
            tuple(letter for text in texts for letter in letters_of(text, bytewise=as_vw))
            for texts in (options.ignore, options.keep)
        )
        self._labelled = self._unlabelled = self._first = self._non_zero = 0
        self._features = self._namespaces = 0
        self._actions = self._max_actions = 0
        self._min_actions: int | None = None
        self._cost = self._first_cost = np.float32(0)

    def update(
        self,
        block: Block,
        outcomes: Outcomes,
        *,
        learns: NDArray[np.bool_],
        has_cost: NDArray[np.bool_],
    ) -> None:
        """Count a block; the events in `learns` were learnt if they have a cost."""
        self._features += int(outcomes.n_features.sum())
        self._namespaces += self._count_namespaces(block, outcomes)
        self._count_labels(outcomes, learns & has_cost)
        self._unlabelled += 0 if self._decays else int((learns & ~has_cost).sum())

    def update_slots(self, outcomes: Outcomes, learns: NDArray[np.bool_]) -> None:
        """Count slots; a logged action that is not available to its slot is not a label."""
        slot = np.repeat(np.arange(len(outcomes)), np.diff(outcomes.action_start))
        logged = outcomes.known_action
        has_cost = np.zeros(len(outcomes), bool)
        has_cost[slot[outcomes.action == logged[slot]]] = True
        self._count_labels(outcomes, learns & has_cost)
        self._unlabelled += int((learns & ~has_cost).sum())

    def _count_labels(self, outcomes: Outcomes, labelled: NDArray[np.bool_]) -> None:
        """Count the labels; an action's number is its index among those available to the slot."""
        logged, cost = outcomes.known_action, outcomes.known_cost[labelled]
        slot = np.repeat(np.arange(len(outcomes)), np.diff(outcomes.action_start))
        before = np.bincount(slot[outcomes.action < logged[slot]], minlength=len(outcomes))
        action, calls = before[labelled], self._calls_per_label
        self._labelled += calls * int(labelled.sum())
        self._first += calls * int((action == 0).sum())
        self._non_zero += calls * int((cost != 0).sum())
        with np.errstate(over="ignore"):
            self._cost = _total(self._cost, cost.repeat(calls))
            self._first_cost = _total(self._first_cost, cost[action == 0].repeat(calls))
        n_actions = np.diff(outcomes.action_start)[labelled]
        if len(n_actions):
            self._actions += calls * int(n_actions.sum())
            self._max_actions = max(self._max_actions, int(n_actions.max()))
            least = int(n_actions.min())
            self._min_actions = least if self._min_actions is None else min(self._min_actions, least)

    def report(self) -> dict[str, int | float]:
        counts = {
            "cbea_label_first_action": self._first,
            "cbea_label_not_first": self._labelled - self._first,
            "cbea_labeled_ex": self._labelled,
            "cbea_max_actions": self._max_actions or None,
            "cbea_min_actions": self._min_actions,
            "cbea_non_zero_cost": self._non_zero,
            "cbea_predict_in_learn": self._unlabelled,
        }
        averages = {
            "cbea_avg_actions_per_event": _average(self._actions, self._labelled),
            "cbea_avg_feat_per_action": _average(self._features, self._actions),
            "cbea_avg_feat_per_event": _average(self._features, self._labelled),
            "cbea_avg_ns_per_action": _average(self._namespaces, self._actions),
            "cbea_avg_ns_per_event": _average(self._namespaces, self._labelled),
        }
        numbers = {key: value for key, value in (counts | averages).items() if value is not None}
        costs = {"cbea_sum_cost": float(self._cost), "cbea_sum_cost_baseline": float(self._first_cost)}
        return numbers | costs

    def _count_namespaces(self, block: Block, outcomes: Outcomes) -> int:
        """Return the number of namespaces of all actions, including the constant's and the shared line's."""
        per_line = self._namespaces_of_lines(block) + self._constant
        start, n_lines = block.event_start, np.diff(block.event_start)
        if not self._multiline:
            return int((per_line[start[:-1]] * np.diff(outcomes.action_start)).sum())
        lines = slice(start[0], start[-1])
        times = np.where(block.shared[lines], np.repeat(n_lines, n_lines) - 1, 1)
        return int((times * per_line[lines]).sum())

    def _namespaces_of_lines(self, block: Block) -> NDArray[np.int64]:
        """Return the number of distinct namespaces of each line: int64[n_lines]."""
        names = block.namespaces.names
        group = np.array([name[0] for name in names], np.int64) if self._as_vw else np.arange(len(names))
        used = np.array([not name.startswith(self._dropped) for name in names], bool)
        if self._kept:
            used &= np.array([name.startswith(self._kept) for name in names], bool)
        line = np.repeat(np.arange(block.n_lines), np.diff(block.line_start))
        n_groups = int(group.max(initial=0)) + 1
        pairs = line * n_groups + group[block.span_namespace]
        different = np.unique(pairs[used[block.span_namespace]])
        return np.bincount(different // n_groups, minlength=block.n_lines)


def _asks_for_interactions(configuration: Configuration) -> bool:
    """Return whether VW recommends ``-q ::``, which it does for JSON only."""
    features = configuration[FeatureOptions]
    products = (features.quadratic, features.cubic, features.interactions)
    interactions = (*products, features.experimental_full_name_interactions)
    return format_of(configuration) is not TEXT and not any(interactions)


def _is_known(block: Block) -> NDArray[np.bool_]:
    labelled: NDArray[np.bool_] = block.cost != UNLABELLED
    return labelled


def _any_per_run(mask: NDArray[np.bool_], start: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each run of entries, from one start to the next, whether the mask is true for any entry."""
    count = np.concatenate(([0], np.cumsum(mask)))[start]
    return np.diff(count) > 0


def _total(start: np.float32, terms: NDArray[np.float32]) -> np.float32:
    """Return `start` plus float32 terms, added one after the other in float32."""
    return np.float32(np.cumsum(np.concatenate(([start], terms)), dtype=np.float32)[-1])


def _average(total: int, count: int) -> float | None:
    return float(np.float32(total // count)) if count else None
