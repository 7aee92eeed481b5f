"""The search engine: turn the loop's signals into decisions, and apply these to the live configs."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from onlineauto.automl.config import Config, Interaction
from onlineauto.automl.control import control_of
from onlineauto.automl.decide import can_fill, can_replace, decide, interactions_for, invite, start
from onlineauto.automl.decisions import (
    ENSEMBLE,
    BoundCrossed,
    EnsembleCrossed,
    Extend,
    LeaseDue,
    NewNamespaces,
    PredictWith,
    ProvedWorse,
    Reopen,
    RestMembers,
    ReviewDue,
    Rotate,
    Swap,
    Widen,
)
from onlineauto.automl.options import AutomlOptions
from onlineauto.automl.oracles import ORACLES
from onlineauto.automl.proposals import space_of
from onlineauto.automl.search import Search, SearchRules, config_problem, search_problem
from onlineauto.engine.ensemble.ensemble import names_of
from onlineauto.engine.ensemble.inputs import can_have_members
from onlineauto.engine.ensemble.options import EnsembleOptions
from onlineauto.engine.ensemble.registry import members_of
from onlineauto.engine.ensemble.vector_kernels import FEW
from onlineauto.engine.event.live_config_kernels import loss_level, reward_level
from onlineauto.engine.options.registry import RunOptions, predicts_with
from onlineauto.engine.records.loop import Cursor, LoopSignal
from onlineauto.engine.records.search import GROUP, NEVER, Tally
from onlineauto.engine.records.task import Shape
from onlineauto.engine.search.drift import LOOK, Drift
from onlineauto.engine.search.estimates import Estimates
from onlineauto.engine.search.journal import (
    Bounds,
    End,
    Promotion,
    bounds_of,
    decision_of,
    entries_to_replay,
    entry_of,
)
from onlineauto.engine.search.live_configs import LiveConfigs
from onlineauto.engine.search.observers import Observers
from onlineauto.engine.search.screening import Screening
from onlineauto.errors import InputError, OptionError
from onlineauto.features.slots import INDEX_NAME, SLOT_NAME
from onlineauto.jit import prepare
from onlineauto.learners.rule import Hyperparameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from onlineauto.automl.decisions import Decision, Signal
    from onlineauto.automl.oracles.oracle import SearchSpace
    from onlineauto.engine.loop.learner import Learner
    from onlineauto.engine.search.deferred import Deferred, Findings
    from onlineauto.engine.search.journal import Entry
    from onlineauto.features.block import Block
    from onlineauto.features.layout import StreamLayout
    from onlineauto.learners.gradient_kernels import Model
    from onlineauto.options import Configuration
    from onlineauto.state.stored import Stored

_KEPT = 20
_SCREEN_CELLS = 1 << 18
_NO_LOSSES = np.zeros(0)
_SIGNAL, _REVIEW_DUE = int(Cursor.SIGNAL), int(LoopSignal.REVIEW_DUE)
_CROSSING = Widen, Rotate, Swap  # decisions that change the interactions of live configs


def of_actions(block: Block, event: int) -> frozenset[bytes]:
    """Return the names of the namespaces of an event that belong to its actions."""
    first, last = block.event_start[event : event + 2].tolist()
    last -= int(np.count_nonzero(block.slot[first:last]))
    if block.shared[first]:
        spans = block.span_namespace[block.line_start[first + 1] : block.line_start[last]]
        return frozenset(block.namespaces.names[number] for number in set(spans.tolist()))
    if last - first == 1:
        return frozenset()
    lines = [_contents(block, line) for line in range(first, last)]
    names = set().union(*lines)
    return frozenset(
        block.namespaces.names[number]
        for number in names
        if any(line.get(number) != lines[0].get(number) for line in lines)
    )


def vectors_of(block: Block, event: int) -> frozenset[bytes]:
    """Return the names of the namespaces of an event that are long vectors."""
    lines = block.line_start[block.event_start[event : event + 2]].tolist()
    starts = block.span_start[lines[0] : lines[1] + 1].tolist()
    spans = [span for span, (begin, end) in enumerate(pairwise(starts)) if end - begin > FEW]
    return frozenset(
        block.namespaces.names[block.span_namespace[lines[0] + span]]
        for span in spans
        if (np.diff(block.features["hash"][starts[span] : starts[span + 1]]) == 1).all()
    )


def _contents(block: Block, line: int) -> dict[int, bytes]:
    """Return the features of a line, as bytes, by the number of their namespace."""
    contents: dict[int, bytes] = {}
    for span in range(int(block.line_start[line]), int(block.line_start[line + 1])):
        begin, end = int(block.span_start[span]), int(block.span_start[span + 1])
        number = int(block.span_namespace[span])
        contents[number] = contents.get(number, b"") + block.features[begin:end].tobytes()
    return contents


class Searching:
    """A running search on a stream."""

    def __init__(self, configuration: Configuration, layout: StreamLayout, learner: Learner) -> None:
        options, control = configuration[AutomlOptions], control_of(configuration)
        hyperparameters = Hyperparameters(configuration)
        slot_namespaces = (SLOT_NAME, INDEX_NAME) if control.protects_slot_namespaces and layout.slots else ()
        self.options = options
        predictor = predicts_with(configuration, simple=learner.task.shape == Shape.SIMPLE)
        has_members = predictor == "ensemble" and can_have_members(learner.task)
        members = members_of(configuration[EnsembleOptions].members) if has_members else ()
        self._rules = SearchRules.of(
            options,
            control=control,
            defaults=hyperparameters.defaults,
            tunable=hyperparameters.tunable,
            slot_namespaces=slot_namespaces,
            members=bool(members),
        )
        self._feature_cost = options.feature_cost
        self.search: Search = start(self._rules, random_seed=configuration[RunOptions].random_seed)
        self.live_configs = LiveConfigs(
            configuration,
            layout,
            learner,
            control=control,
            first=self.search.champion,
            hyperparameters=hyperparameters,
            predicts_with=predictor,
            members=members,
            interactions=partial(_interactions, self._rules, layout.slots),  # a method would be a cycle
        )
        self.screening = Screening(layout, cells=min(learner.shape.cells, _SCREEN_CELLS))
        self.estimates = Estimates(self.live_configs, self.screening, alpha=options.automl_significance_level)
        self.n_events = self.n_switches = self.n_alarms = self._predicts_since = 0
        self._drift, self._late = Drift(self.live_configs.arrays.drift), _NO_LOSSES
        self.observers = Observers()
        self.deferred: Deferred | None = None
        replayed = entries_to_replay(configuration)
        self._replayed = None if replayed is None else iter(replayed)
        self._next: Entry | End | None = None
        self._ended: int | None = None
        self._drifted: bool | None = None  # if a decision is due that `is_due` has found
        self.changes: deque[Promotion] = deque(maxlen=_KEPT)
        if self._replayed is None:
            self._set_leases()
        else:
            self._next = next(self._replayed, None)

    @property
    def replays(self) -> bool:
        """True if the decisions are those of a journal."""
        return self._replayed is not None

    @property
    def replay_warning(self) -> str | None:
        """Warning that a replayed journal ends before or after the stream; None otherwise."""
        if self._replayed is None or self._ended == self.n_events:
            return None
        if self._next is not None:
            return "the stream ended before the journal that was replayed"
        if self._ended is None:
            return "the journal that was replayed is incomplete; decisions at its end may be missing"
        return f"the journal that was replayed ended after {self._ended} events; nothing was decided since"

    @property
    def n_learnt(self) -> int:
        """Number of events learnt."""
        return int(self.live_configs.arrays.tally[Tally.LEARNT])

    @property
    def predicts(self) -> tuple[str, int]:
        """The predictor, "champion", "mix" or "ensemble", and the number of events before it took over."""
        arrays = self.live_configs.arrays
        without = "mix" if arrays.mixing else "champion"
        leads = int(arrays.ensemble.test.leads[0])
        if leads and not arrays.ensemble.serves:
            return "ensemble", leads
        return "ensemble" if arrays.ensemble.serves else without, self._predicts_since

    def interactions(self, live: int) -> Sequence[Interaction]:
        """Return the interactions of live config `live`."""
        return self.live_configs.interactions(live)

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        if self.replays:
            raise OptionError("a replay cannot be saved: it has decisions, but not the search that made them")
        return {
            "search": self.search,
            "events": self.n_events,
            "changes": self.n_switches,
            "alarms": self.n_alarms,
            "predicts_since": self._predicts_since,
            "latest_changes": list(self.changes),
            "drift": self._drift.state(),
            "late": self._late,
            "slots": self.live_configs.state(),
            "screening": self.screening.state(),
        }

    def restore(self, stored: Stored, model: Model) -> None:
        """Restore a state that was stored with the same options."""
        if self.replays:
            raise OptionError("a replay must begin with an empty model, at the start of the stream")
        self.search = stored["search"].convert(Search)
        configs = stored["slots"]["configs"].convert(list[Config])
        problems = [search_problem(self._rules, self.search)]
        problems += [config_problem(self._rules, config) for config in configs]
        if any(problems):
            raise ValueError(f"its search is not valid: {next(filter(None, problems))}")
        if len(configs) != len(self.search.slots):
            raise stored["slots"]["configs"].fail(f"the configs of {len(self.search.slots)} live configs")
        self.n_events, self.n_switches = stored["events"].count(), stored["changes"].count()
        self.n_alarms = stored["alarms"].count()
        if "predicts_since" in stored and self.live_configs.arrays.ensemble.on:
            self._predicts_since = stored["predicts_since"].count()
        self.changes.extend(stored["latest_changes"].convert(list[Promotion]))
        self._drift.restore(stored["drift"])
        self._late = stored["late"].finite(np.float64, (-1,)).copy()
        self.live_configs.restore(stored["slots"], model, configs)
        self.screening.restore(
            stored["screening"], lambda names: not config_problem(self._rules, Config((names,)))
        )
        self._set_leases()

    def prepare(self, model: Model) -> None:
        """Compile or load the machine code of all later decisions, so that no later event waits for it."""
        if not self.live_configs.arrays.searching:
            return
        self.live_configs.prepare(model)
        self.estimates.prepare()
        if self._rules.on_drift != "ignore":
            self._drift.prepare()
        if self.live_configs.arrays.tests.paired:
            prepare(loss_level, self.live_configs.arrays, 0)
            prepare(reward_level, self.live_configs.arrays, 0)

    def begin_again(self) -> None:
        """Reset all evidence; the search continues with the same live configs and queue."""
        self.live_configs.begin_again()
        self.screening.begin_again()
        self._drift.restart()

    def open_block(self) -> None:
        """Adopt the layout's numbers of namespaces."""
        self.live_configs.open_block()
        self.screening.open_block()

    def stop(self, begin: int, end: int) -> int:
        """Return the event before which the loop must stop, of the events [begin, end) of a block."""
        return end if self._next is None else min(end, begin + self._next.events - self.n_events)

    def answer(
        self,
        cursor: NDArray[np.int64],
        block: Block | None,
        model: Model,
        *,
        event: int,
        through: int,
        random: NDArray[np.uint64] | None = None,
    ) -> None:
        """Decide on the signal at which the loop stopped, `through` events after the last one."""
        self.n_events += through
        if self.deferred is not None:
            self.deferred.take()
        elif self._replayed is not None:
            self._replay(model)
        elif signal := self._signal(cursor, block, event):
            before = self.search if random is None else replace(self.search, random_state=int(random[0]))
            search, decisions = decide(self._rules, before, signal, self.estimates)
            if random is not None:
                random[0] = search.random_state
            for decision in decisions:
                self._carry_out(decision, model)
            turned = search.turn != self.search.turn
            self.search = search
            self._set_leases()
            crosses = any(isinstance(decision, _CROSSING) for decision in decisions)
            screens = turned or any(isinstance(decision, (Widen, Swap)) for decision in decisions)
            if crosses or screens:
                space = space_of(self._rules, search, self.estimates)
            if crosses:
                self.live_configs.cross()
                self._set_prices(space)
            if screens:
                champion = search.champion
                pool = ORACLES[self._rules.oracle].screened(champion, space=space, turn=search.turn)
                self.screening.choose(pool, champion.elements)

    def challenge(self, config: Config, model: Model, *, names: Iterable[bytes], why: str) -> int:
        """Make a config from outside the search a challenger, with the weights of the champion."""
        if self.replays or not self._rules.renews or self._rules.max_live == 1:
            raise OptionError(
                "a challenger can be added only to a search with --oracle_type stepwise and --automl 2 or "
                "more, not to a replay"
            )
        if problem := config_problem(self._rules, config):
            raise OptionError(f"{problem} here: name it in search= (--search)")
        search, decisions = invite(self._rules, self.search, config, self.estimates, names=names, why=why)
        self.live_configs.waiting.pop(config, None)  # it starts with the champion's weights
        for decision in decisions:
            self._carry_out(decision, model)
        self.search = search
        self._set_leases()
        self.live_configs.cross()
        self._set_prices(space_of(self._rules, search, self.estimates))
        return self.live_configs.configs.index(config, 1)

    def _signal(self, cursor: NDArray[np.int64], block: Block | None, event: int) -> Signal | None:
        """Return the signal at the cursor, with the data for its decision; None at the end of a block."""
        reason = cursor.item(_SIGNAL)
        if block is None or reason == LoopSignal.BLOCK_END:
            return None
        if reason == LoopSignal.NEW_NAMESPACE:
            new = self.live_configs.new_names()
            return NewNamespaces(new, of_actions(block, event), vectors_of(block, event))
        if reason == _REVIEW_DUE:
            due = self.is_due(cursor) if self._drifted is None else True
            drifted, self._drifted = bool(self._drifted), None
            if not due:
                return None
            return ReviewDue(drifted, of_actions(block, event), vectors_of(block, event))
        if reason in (LoopSignal.BOUND_CROSSED, LoopSignal.LOSS_CROSSED):
            return BoundCrossed(
                int(cursor[Cursor.SLOT]), "loss" if reason == LoopSignal.LOSS_CROSSED else "reward"
            )
        if reason == LoopSignal.PROVED_WORSE:
            return ProvedWorse(int(cursor[Cursor.SLOT]))
        if reason in (LoopSignal.ENSEMBLE_EARNS, LoopSignal.ENSEMBLE_PREDICTS):
            return EnsembleCrossed(True, "loss" if reason == LoopSignal.ENSEMBLE_PREDICTS else "reward")
        if reason in (LoopSignal.CHAMPION_EARNS, LoopSignal.CHAMPION_PREDICTS):
            return EnsembleCrossed(False, "loss" if reason == LoopSignal.CHAMPION_PREDICTS else "reward")
        return LeaseDue()

    def is_due(self, cursor: NDArray[np.int64]) -> bool:
        """Return whether the signal of the loop needs a decision; a look at the latest losses may not."""
        if cursor.item(_SIGNAL) != _REVIEW_DUE or self.deferred is not None:
            return True
        drifted = self._has_drifted()
        due = drifted or self.n_learnt >= self.search.review
        self._drifted = drifted if due else None
        return due

    def note_losses(self, losses: NDArray[np.float64]) -> None:
        """Add mean losses of the champion from workers to those that the next review looks at."""
        self._late = np.concatenate([self._late, losses])
        self._set_leases()

    def adopt(self, findings: Sequence[Findings], learnt: int) -> None:
        """Add what the workers of a round have found in `learnt` events, in the order of the stream."""
        self.n_events += learnt
        before = np.array(list(self.screening.gains().values()))
        self.screening.set_gains(
            before + sum((part.gains - before for part in findings), np.zeros_like(before))
        )
        for part in findings:
            self.live_configs.add_counts(part.counts)
            self.note_losses(self.live_configs.add_losses(part.losses, *part.rest))

    def _has_drifted(self) -> bool:
        """Return whether the champion predicts worse than before."""
        looks = self._rules.on_drift != "ignore"
        if looks and not len(self._late):
            drifted = self._drift.take_found()
        else:
            losses = np.concatenate([self._late, self.live_configs.take_losses()])
            drifted = looks and self._drift.alarms(losses)
            if len(self._late):
                self._late = _NO_LOSSES
                self._set_leases()
        self.n_alarms += drifted
        return drifted

    def _replay(self, model: Model) -> None:
        """Apply the journal's decisions up to the current event."""
        assert self._replayed is not None
        new = self.live_configs.new_names()
        while self._next is not None and self._next.events <= self.n_events:
            if isinstance(self._next, End):
                self._ended = self._next.events
            else:
                self._check(self._fits(self._next))
                self._carry_out(decision_of(self._next), model)
            self._next = next(self._replayed, None)
        self._check(self._next is None or set(new) <= set(self.live_configs.namespaces))
        self.live_configs.cross()

    def _fits(self, entry: Entry) -> bool:
        """Return whether a line fits this stream: its decision is possible, and its bounds are the same."""
        if not self._can_be_decided(decision_of(entry)):
            return False
        decides_on_ensemble = isinstance(decision_of(entry), PredictWith)
        recorded: Bounds | None = getattr(entry, "ensemble" if decides_on_ensemble else "bounds", None)
        live: int = ENSEMBLE if decides_on_ensemble else getattr(entry, "slot", 0)
        if recorded is None or live >= len(self.estimates):
            return recorded is None
        pairs = zip(
            msgspec.structs.astuple(bounds_of(live, self.estimates)),
            msgspec.structs.astuple(recorded),
            strict=True,
        )
        return all(math.isclose(now, before, abs_tol=1e-9) for now, before in pairs)

    def _can_be_decided(self, decision: Decision) -> bool:
        """Return whether the live configs, namespaces and options of a decision exist."""
        n_live = len(self.estimates)
        if isinstance(decision, Widen):
            return all(decision.names)
        if isinstance(decision, PredictWith):
            return self.live_configs.arrays.ensemble.on
        if isinstance(decision, RestMembers):
            return set(decision.members) <= set(names_of(self.live_configs.arrays.ensemble))
        if isinstance(decision, Reopen):
            return len(decision.indices) == n_live and decision.what == self._rules.on_drift
        if isinstance(decision, Rotate | Swap) and config_problem(self._rules, decision.config):
            return False
        if isinstance(decision, Rotate):
            return decision.live < min(n_live + 1, self._rules.max_live)
        return int(not isinstance(decision, Extend)) <= decision.live < n_live

    def _check(self, fits: bool) -> None:
        """Raise an error if a replayed journal does not fit the stream."""
        if not fits:
            raise InputError(
                f"after {self.n_events} events: the journal to be replayed belongs to another stream"
            )

    def _carry_out(self, decision: Decision, model: Model) -> None:
        """Report a decision to the observers, then apply it."""
        if self.observers:
            self.observers.tell(entry_of(decision, events=self.n_events, statistics=self.estimates))
        if isinstance(decision, Swap):
            self._note(decision)
        if isinstance(decision, PredictWith):
            self._predicts_since = self.n_events
        if isinstance(decision, Reopen):
            self._drift.restart()
        if isinstance(decision, Swap | Reopen):
            self.screening.fade()
        self.live_configs.apply(decision, model)

    def _note(self, swap: Swap) -> None:
        """Record a change of champion that is about to be applied."""
        self.n_switches += 1
        before, after = tuple(self.interactions(0)), tuple(self.interactions(swap.live))
        bounds, arrays = bounds_of(swap.live, self.estimates), self.live_configs.arrays
        by = loss_level if swap.by == "loss" else reward_level
        level = float(by(arrays, swap.live)) if arrays.tests.paired else None
        settings = self.live_configs.configs[0].settings, self.live_configs.configs[swap.live].settings
        self.changes.append(Promotion(self.n_events, before, after, bounds, level, swap.by, *settings))

    def _set_leases(self) -> None:
        """Set the events at which the loop stops: ends of leases, a review, and a check of losses."""
        search = self.search
        leases = [search.lease(live) for live in range(len(search.slots))]
        fill, replaceable = can_fill(self._rules, search), can_replace(self._rules, search)
        self.live_configs.lease(leases, fill=fill, replaceable=replaceable)
        review, look = search.review, NEVER if self._rules.on_drift == "ignore" else LOOK
        if not len(self._late):
            self.live_configs.review(review, look=look)
        else:
            self.live_configs.review(0 if len(self._late) * GROUP >= LOOK else review, stop=look)

    def _set_prices(self, space: SearchSpace) -> None:
        """Set the gain that a challenger with more features than the champion must exceed."""
        if not (self._rules.renews and self._feature_cost):
            return
        namespaces = () if "namespaces" in space.searched else space.namespaces
        singles = sum(space.terms([(name,)]) for name in namespaces)
        terms = [singles + space.terms(config.elements) for config in self.live_configs.configs]
        for live, many in enumerate(terms):
            self.live_configs.price(live, self._feature_cost * math.log2(max(many, 1.0) / max(terms[0], 1.0)))


def _interactions(
    rules: SearchRules, slots: bool, config: Config, namespaces: Sequence[bytes]
) -> Sequence[Interaction]:
    """Return the interactions of a config; with slots, also those with the slot's index feature."""
    result = interactions_for(rules, config, namespaces)
    if not slots:
        return result
    indexed = [(*names, INDEX_NAME) for names in (*result, *((name,) for name in namespaces))]
    return sorted({*result, *indexed}, key=lambda names: (len(names), names))
