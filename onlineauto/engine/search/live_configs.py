"""Live configs: the arrays of the champion and its challengers, and how decisions change them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.automl.config import Config
from onlineauto.automl.decisions import (
    ENSEMBLE,
    PredictWith,
    Remove,
    Reopen,
    RestMembers,
    Rotate,
    Swap,
    Widen,
)
from onlineauto.automl.options import AutomlOptions
from onlineauto.automl.oracles import ORACLES
from onlineauto.engine.ensemble import ensemble as ensembles
from onlineauto.engine.ensemble.ensemble import begin_again, make_ensemble
from onlineauto.engine.event.live_config_kernels import take_losses
from onlineauto.engine.records.search import (
    GROUP,
    NEVER,
    Due,
    Live,
    LiveStatistics,
    NamespaceCounts,
    RewardOwner,
    Schedule,
    Tally,
    Tests,
)
from onlineauto.engine.records.task import Shape
from onlineauto.engine.search.drift import make_drift
from onlineauto.engine.search.lanes import (
    Lanes,
    WaitingConfig,
    events_before,
    learnt_cells,
    prepare_waiting,
    put_back,
    stored_waiting,
    unlearn,
)
from onlineauto.estimators.interval_kernels import BOUND, FIRST_BOUND
from onlineauto.estimators.paired_kernels import BETTER, level
from onlineauto.estimators.robust_kernels import Test
from onlineauto.estimators.scale_kernels import HIGH, LOW, make_scale
from onlineauto.jit import prepare
from onlineauto.learners.loss_kernels import MTR
from onlineauto.state.schema import copy, make, put, read, save, take
from onlineauto.state.stored import MOST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from onlineauto.automl.config import Interaction
    from onlineauto.automl.control import Control
    from onlineauto.automl.decisions import Decision
    from onlineauto.engine.ensemble.member import Member
    from onlineauto.engine.loop.learner import Learner
    from onlineauto.features.layout import StreamLayout
    from onlineauto.learners.gradient_kernels import Model
    from onlineauto.learners.rule import Hyperparameters
    from onlineauto.options import Configuration
    from onlineauto.state.stored import Stored

_PARKED = 4
"""Maximum number of waiting configs that retain their weights, per possible live config."""
_HIGHEST_PRICE = 0.24


def forget_evidence(live: Live, fresh: Live) -> None:
    """Reset the evidence, the mix and the ensemble to `fresh` arrays, but not counts, leases and levels."""
    copy(fresh, live, forgets=True)
    live.mix[: live.n] = 1.0 / live.n
    if live.ensemble.on:
        begin_again(live.ensemble, fresh.ensemble)


def _is_sparing(options: AutomlOptions, learner: Learner, control: Control, *, predicts_with: str) -> bool:
    """Return whether rewards are compared on some events only, because nothing else needs all scores."""
    task, settings = learner.task, learner.model.settings[0]
    return (
        predicts_with == "champion"
        and task.shape != Shape.SIMPLE
        and not task.exploration.policies
        and options.is_paired(control.paired)
        and options.tests_losses()
        and ORACLES[options.oracle_type or control.oracle].renews
        and settings["cb_type"] == MTR
        and "cb_type" not in options.searched()
    )


def make_live(
    configuration: Configuration,
    learner: Learner,
    control: Control,
    *,
    predicts_with: str,
    members: Sequence[Member],
) -> Live:
    """Return the arrays of a search, or of a single champion, before the first event."""
    options = configuration[AutomlOptions]
    max_live, simple, shape = options.automl or 1, learner.task.shape == Shape.SIMPLE, learner.shape
    alpha = float(np.float32(options.automl_significance_level))
    share = 1 if options.fixed_significance_level else max_live
    sizes = {"slots": max_live}
    return make(
        Live,
        sizes,
        n=1,
        slot_step=shape.config_step,
        part_step=shape.part_step,
        searching=options.automl is not None,
        reversed=options.debug_reversed_learn,
        mixing=simple and predicts_with != "champion",
        mix=np.eye(1, max_live)[0],
        schedule=make(Schedule, sizes, due=np.array([0, 0, NEVER, NEVER, NEVER], np.int64)),
        tests=make(
            Tests,
            sizes,
            paired=options.is_paired(control.paired),
            by_reward=not simple and options.tests_rewards(),
            by_loss=options.tests_losses(),
            sparing=_is_sparing(options, learner, control, predicts_with=predicts_with),
            cost_is_reward=options.reward_as_cost,
            robust=Test(
                alpha=np.float64(np.float32(np.float32(alpha) / np.float32(share))),
                tol_x=np.float64(np.float32(options.tol_x)),
            ),
        ),
        statistics=make(LiveStatistics, sizes, scale=make_scale(*options.rewards(), floor=options.min_prob)),
        drift=make_drift(),
        namespaces=make_counts(np.zeros(0, bool)),
        ensemble=make_ensemble(
            max_live,
            on=predicts_with == "ensemble",
            simple=simple,
            members=members,
            configuration=configuration,
            cells=learner.shape.cells,
        ),
    )


def make_counts(seen: NDArray[np.bool_]) -> NamespaceCounts:
    """Return counts of namespaces before the first event; `seen` marks namespaces that count as seen."""
    n = len(seen)
    return NamespaceCounts(np.zeros(n, np.int64), np.zeros(n, np.int64), seen, np.zeros(n, np.int64))


class LiveConfigs:
    """The live configs, each with estimators and lanes of weights. Number 0 is the champion."""

    def __init__(
        self,
        configuration: Configuration,
        layout: StreamLayout,
        learner: Learner,
        *,
        control: Control,
        first: Config,
        hyperparameters: Hyperparameters,
        predicts_with: str,
        members: Sequence[Member],
        interactions: Callable[[Config, Sequence[bytes]], Sequence[Interaction]],
    ) -> None:
        options = configuration[AutomlOptions]
        max_live, simple, shape = options.automl or 1, learner.task.shape == Shape.SIMPLE, learner.shape
        self._simple, self._unlearnt, self._decay = simple, learner.unlearnt, learner.task.decay
        self._hyperparameters = hyperparameters
        self.waiting: dict[Config, WaitingConfig] = {}
        self._removed: set[int] = set()
        self._since = 0
        self._layout, self._interactions = layout, interactions
        self._control, self._shape = control, shape
        self._lanes = Lanes(control, shape, max_live=max_live)
        self.configs = [first]
        self.indices = [0]
        self.namespaces: list[bytes] = []
        self._crossed: dict[Config, Sequence[Interaction]] = {}  # of live configs, with these namespaces
        self._counts: dict[bytes, tuple[int, int]] = {}
        self._keys: dict[bytes, int] = {}
        self._version = -1
        self._n_tests = self._n_ensemble_tests = 0
        self._predicts = False
        self._alpha = float(np.float32(options.automl_significance_level))
        self._fresh = partial(
            make_live, configuration, learner, control, predicts_with=predicts_with, members=members
        )
        self.arrays = self._fresh()
        if self.arrays.ensemble.on:
            self._restart_ensemble_tests()

    @property
    def max_live(self) -> int:
        """The largest number of live configs."""
        return len(self.arrays.schedule.lease)

    def prepare(self, model: Model) -> None:
        """Compile or load the machine code that moves weights, penalties and losses."""
        self._lanes.prepare(model)
        statistics = self.arrays.statistics
        prepare(take_losses, statistics.recent, statistics.fresh, np.empty_like(statistics.recent))
        if self._control.keeps_waiting_weights:
            prepare_waiting(model, self._unlearnt)

    def open_block(self) -> None:
        """Adopt the layout's numbers of namespaces, if they have changed since the last block."""
        layout, arrays = self._layout, self.arrays
        if layout.version == self._version:
            return
        self._note_counts()
        self._version, self._keys = layout.version, layout.keys()
        namespaces = make_counts(~layout.crossable())
        for name, key in self._keys.items():
            namespaces.counts[key], namespaces.sizes[key] = self._counts.get(name, (0, 0))
            namespaces.seen[key] |= name in self.namespaces
        arrays.tally[Tally.MARK] = 0
        self.arrays = arrays._replace(namespaces=namespaces)
        self.cross()

    def _note_counts(self) -> None:
        """Store the counts by name, because the numbers of namespaces are about to change."""
        counts, sizes = self.arrays.namespaces.counts, self.arrays.namespaces.sizes
        counted = ((name, key) for name, key in self._keys.items() if counts[key])
        self._counts |= {name: (int(counts[key]), int(sizes[key])) for name, key in counted}

    def count(self, name: bytes) -> int:
        """Return the number of actions so far that had features in a namespace."""
        key = self._keys.get(name)
        return self._counts.get(name, (0, 0))[0] if key is None else int(self.arrays.namespaces.counts[key])

    def size(self, name: bytes) -> int:
        """Return the number of features that all actions so far had in a namespace."""
        key = self._keys.get(name)
        return self._counts.get(name, (0, 0))[1] if key is None else int(self.arrays.namespaces.sizes[key])

    @property
    def champion_events(self) -> int:
        """Number of events learnt since the last change of champion."""
        return int(self.arrays.tally[Tally.LEARNT]) - self._since

    def interval_sums(self, live: int, owner: int) -> NDArray[np.float64]:
        """Return the sums for an interval on the reward of a live config (`owner` is `RewardOwner.SELF`)."""
        if live == ENSEMBLE:
            sums: NDArray[np.float64] = self.arrays.ensemble.test.policies[owner]
            return sums
        policies = self.arrays.statistics.policies
        sums = policies[live, RewardOwner.SELF]
        if owner == RewardOwner.SELF:
            return sums
        sums = policies[0, RewardOwner.SELF] - policies[live, RewardOwner.CHAMPION]
        sums[[FIRST_BOUND, BOUND]] = policies[0, RewardOwner.SELF, [FIRST_BOUND, BOUND]]
        return sums

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and highest reward seen."""
        if self._simple:
            return -float(self.arrays.statistics.reach[0]), 0.0
        low, high = float(self.arrays.statistics.scale[LOW]), float(self.arrays.statistics.scale[HIGH])
        return (low, high) if low <= high else (0.0, 1.0)

    def promise(self, live: int) -> float:
        """Return the evidence that a challenger is better than the champion; 1 is no evidence."""
        arrays = self.arrays
        tests = arrays.tests
        evidence = max(tests.pairs[live, BETTER], tests.losses[live, BETTER] if tests.alike[live] else 0.0)
        return float(evidence) or 1.0

    def new_names(self) -> tuple[bytes, ...]:
        """Return the namespaces that are counted but not yet seen, in ascending order; mark them as seen."""
        new = np.flatnonzero((self.arrays.namespaces.counts > 0) & ~self.arrays.namespaces.seen)
        self.arrays.namespaces.seen[new] = True
        return tuple(sorted(self._layout.name_of(int(key)) for key in new))

    def interactions(self, live: int) -> Sequence[Interaction]:
        """Return the interactions of live config `live`."""
        config = self.configs[live]
        if config not in self._crossed:
            self._crossed[config] = self._interactions(config, self.namespaces)
        return self._crossed[config]

    def cross(self) -> None:
        """Set the interactions of each live config in the layout."""
        crossed = [self.interactions(live) for live in range(len(self.configs))]
        self._crossed = dict(zip(self.configs, crossed, strict=True))
        self._layout.cross([*crossed, *[()] * (self.max_live - len(crossed))])

    def lease(self, leases: Sequence[int], *, fill: bool, replaceable: bool) -> None:
        """Set the lease of each live config, in learnt events."""
        self.arrays.schedule.lease[: len(leases)] = [min(lease, NEVER) for lease in leases]
        self.arrays.schedule.due[: Due.REVIEW] = fill, replaceable

    def review(self, learnt: int, *, look: int = NEVER, stop: int = NEVER) -> None:
        """Set after how many learnt events, and after how many losses, the loop looks for drift or stops."""
        self.arrays.schedule.due[Due.REVIEW :] = min(learnt, NEVER), look, stop

    def take_losses(self) -> NDArray[np.float64]:
        """Return the champion's mean losses since the last call, over `GROUP` events each, and clear them."""
        statistics = self.arrays.statistics
        losses = np.empty_like(statistics.recent)
        return losses[: take_losses(statistics.recent, statistics.fresh, losses)]

    def price(self, live: int, price: float) -> None:
        """Set the gain per event that a challenger must exceed, as a part of the range."""
        self.arrays.tests.prices[live] = min(max(price, 0.0), _HIGHEST_PRICE)

    def apply(self, decision: Decision, model: Model) -> None:
        """Apply a decision to the live configs and to the model."""
        self.arrays.tests.decided[:] = False
        if isinstance(decision, Remove):
            self._removed.add(decision.live)
        elif isinstance(decision, Reopen):
            self._reopen(decision, model)
        elif isinstance(decision, Widen):
            self.namespaces, self._crossed = sorted({*self.namespaces, *decision.names}), {}
        elif isinstance(decision, Rotate):
            self._rotate(decision, model)
        elif isinstance(decision, PredictWith):
            ensemble = self.arrays.ensemble._replace(serves=decision.who == "ensemble")
            self.arrays = self.arrays._replace(ensemble=ensemble)
            self._restart_ensemble_tests()
        elif isinstance(decision, RestMembers):
            ensembles.rest(self.arrays.ensemble, decision.members)
        elif isinstance(decision, Swap) and decision.keeps:
            self._exchange(decision.live, model)
        elif isinstance(decision, Swap):
            self._swap(decision.live, decision.config, model)

    def begin_again(self) -> None:
        """Reset all evidence and the ensemble, but not counts, leases and levels."""
        self.waiting.clear()
        forget_evidence(self.arrays, self._fresh())

    def follow(self, configs: Sequence[Config], namespaces: Sequence[bytes], *, serves: bool) -> None:
        """Have the same live configs, namespaces and predictor as another search; it copies the arrays."""
        self.configs, self.namespaces, self._crossed = list(configs), list(namespaces), {}
        ensemble = self.arrays.ensemble._replace(serves=serves)
        self.arrays = self.arrays._replace(n=len(configs), ensemble=ensemble)
        self.arrays.schedule.due[: Due.REVIEW] = 0
        self.cross()

    def counts(self) -> dict[bytes, tuple[int, int]]:
        """Return the number of actions with features in each namespace so far, and of these features."""
        self._note_counts()
        return dict(self._counts)

    def add_counts(self, counts: Sequence[tuple[bytes, int, int]]) -> None:
        """Add counts of namespaces from events that another process has learnt."""
        self._note_counts()
        for name, n, size in counts:
            before = self._counts.get(name, (0, 0))
            self._counts[name] = before[0] + n, before[1] + size
            if name in self._keys:
                key = self._keys[name]
                self.arrays.namespaces.counts[key], self.arrays.namespaces.sizes[key] = self._counts[name]

    def add_losses(self, losses: NDArray[np.float64], rest: float, n_rest: int) -> NDArray[np.float64]:
        """Return mean losses of another process, and a mean that its `n_rest` last losses complete."""
        statistics = self.arrays.statistics
        last, n = divmod(int(statistics.fresh[0]), GROUP)
        statistics.recent[last] += rest
        if n + n_rest < GROUP:
            statistics.fresh[0] += n_rest
            return losses
        mean, statistics.recent[last] = statistics.recent[last] / (n + n_rest), 0.0
        statistics.fresh[0] -= n
        return np.append(losses, mean)

    def only_predict(self) -> None:
        """Drop, here and in the state, what only learning needs."""
        self._predicts = True
        ensemble = ensembles.to_predict(self.arrays.ensemble, range(self.max_live))
        self.arrays = self.arrays._replace(ensemble=ensemble)

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        self._note_counts()
        arrays = self.arrays
        tally = arrays.tally.copy()
        tally[Tally.MARK] = 0
        ensemble = {"ensemble": ensembles.ensemble_state(arrays.ensemble, tests=self._n_ensemble_tests)}
        return {
            "configs": self.configs,
            "indices": self.indices,
            "namespaces": self.namespaces,
            "counts": sorted((name, *counts) for name, counts in self._counts.items()),
            "removed": self._removed,
            "since": self._since,
            "tests": self._n_tests,
            "parked": [{"config": config} | kept._asdict() for config, kept in self.waiting.items()],
            "tally": tally,
            "arrays": save(arrays, predicts=self._predicts),
        } | (ensemble if arrays.ensemble.on else {})

    def restore(self, stored: Stored, model: Model, configs: Sequence[Config]) -> None:
        """Restore a state that was stored with the same options; the search sets the leases afterwards."""
        self.configs, self.indices = list(configs), stored["indices"].convert(list[int])
        self.namespaces, self._counts = stored["namespaces"].name_list(), _stored_counts(stored["counts"])
        self._removed = stored["removed"].convert(set[int])
        self._since, self._n_tests = stored["since"].count(), stored["tests"].count()
        self.waiting = {
            section["config"].convert(Config): stored_waiting(
                section, model, self._shape.parts, self.arrays, self._decay
            )
            for section in stored["parked"].items()
        }
        read(stored["arrays"], self.arrays, predicts=self._predicts)
        self.arrays.tally[:] = stored["tally"].counts(self.arrays.tally.shape)
        ensemble = self.arrays.ensemble
        if ensemble.on and "ensemble" in stored:
            ensemble = ensembles.restore_ensemble(stored["ensemble"], ensemble)
            self._n_ensemble_tests = stored["ensemble"]["tests"].count()
        self.arrays = self.arrays._replace(n=len(self.configs), ensemble=ensemble)
        for live, config in enumerate(self.configs):
            self._hyperparameters.write(model.settings[live], dict(config.settings))
        self._keys, self._version, self._crossed = {}, -1, {}
        self.cross()

    def _rotate(self, decision: Rotate, model: Model) -> None:
        """Make a config live; a challenger starts from its parked state, or from a copy of the champion."""
        live, config, n = decision.live, decision.config, len(self.configs)
        settings = self.configs[live].settings if live < n else None
        if 0 < live < len(self.configs) and live not in self._removed and self._control.keeps_waiting_weights:
            self._park(live, model)
        self._removed.discard(live)
        self.configs[live:] = [config, *self.configs[live + 1 :]]
        self.indices[live:] = [decision.index, *self.indices[live + 1 :]]
        if len(self.configs) != n:
            self.arrays = self.arrays._replace(n=len(self.configs))
        self._reset(live)
        if live == 0 or config.settings != settings:
            self._set(live, model)
        if live > 0:
            self._join(live)
            ensembles.join(self.arrays.ensemble, live)
            if config in self.waiting:
                self._unpark(live, self.waiting.pop(config), model)
            else:
                self._lanes.copy(0, live, model)
                self._restart_test(live)

    def _join(self, live: int) -> None:
        """Give a live config the weight 1/n in mixed predictions; scale down all others."""
        mix, n = self.arrays.mix, self.arrays.n
        mix[live] = 0.0
        mix *= (1.0 - 1.0 / n) / max(mix.sum(), 1e-300)
        mix[live] = 1.0 / n

    def _set(self, live: int, model: Model) -> None:
        """Write the settings of a live config into the model; update which losses can be compared."""
        self._hyperparameters.write(model.settings[live], dict(self.configs[live].settings))
        settings = self.configs[0].settings
        compared = {**self._hyperparameters.defaults, **dict(settings)}["cb_type"] == "mtr"
        for other, config in enumerate(self.configs):
            self.arrays.tests.alike[other] = self._simple or (compared and config.settings == settings)

    def _park(self, live: int, model: Model) -> None:
        """Store the weights and the evidence of a config until it is live again."""
        lanes = self._lanes.lanes_of(live, model)
        cells, weights = learnt_cells(model, lanes, self._unlearnt)
        evidence = take(self.arrays, "waits", slots=[live])
        evidence["policies"][0, RewardOwner.CHAMPION] = self.interval_sums(live, RewardOwner.CHAMPION)
        self.waiting[self.configs[live]] = WaitingConfig(
            weights=weights,
            cells=cells,
            lanes=model.lanes[lanes],
            sums=model.sums[live].copy(),
            began=events_before(self._decay, int(self.arrays.tally[Tally.LEARNT])),
            evidence=evidence,
        )
        while len(self.waiting) > _PARKED * self.max_live:
            del self.waiting[next(iter(self.waiting))]

    def _unpark(self, live: int, parked: WaitingConfig, model: Model) -> None:
        """Restore a waiting config. Models that were reset since are copied from the champion."""
        same = parked.began == events_before(self._decay, int(self.arrays.tally[Tally.LEARNT]))
        if not same.all():
            self._lanes.copy(0, live, model)
        lanes = self._lanes.lanes_of(live, model)
        put_back(parked, model, live, lanes=lanes, same=same, unlearnt=self._unlearnt)
        put(self.arrays, "waits", parked.evidence, slots=[live])
        policies = self.arrays.statistics.policies
        policies[live, RewardOwner.CHAMPION] = (
            policies[0, RewardOwner.SELF] - policies[live, RewardOwner.CHAMPION]
        )

    def _exchange(self, live: int, model: Model) -> None:
        """Swap the champion with challenger `live`; all challengers continue, each with a new test."""
        self._lanes.swap(live, model)
        self.arrays.mix[[0, live]] = self.arrays.mix[[live, 0]]
        if self.arrays.ensemble.on:
            ensembles.exchange(self.arrays.ensemble, live)
            self._restart_ensemble_tests()
        configs = self.configs
        configs[0], configs[live] = configs[live], configs[0]
        self.indices = list(range(len(configs)))
        self.waiting.clear()
        self._since = int(self.arrays.tally[Tally.LEARNT])
        self._reset(slice(None))
        if configs[0].settings != configs[live].settings:
            self._set(0, model)
            self._set(live, model)
        for index in range(1, len(configs)):
            self._restart_test(index)

    def _reopen(self, decision: Reopen, model: Model) -> None:
        """Restart all tests; if the decision says so, also reset the challengers or all configs."""
        self.indices = list(decision.indices)
        self.waiting.clear()
        self._since = int(self.arrays.tally[Tally.LEARNT])
        self._reset(slice(None))
        if decision.what == "reset_model":
            unlearn(model, self._lanes.lanes_of(0, model), self._unlearnt)
            model.sums[0] = 0
        if len(self.arrays.ensemble.members.rests):
            ensembles.rest(self.arrays.ensemble, ())
            ensembles.forget(self.arrays.ensemble)
        if decision.what != "reopen":
            ensembles.begin(self.arrays.ensemble)
        for live in range(1, len(self.configs)):
            self._restart_test(live)
            if decision.what != "reopen":
                self._lanes.copy(0, live, model)

    def _swap(self, live: int, config: Config, model: Model) -> None:
        """Make challenger `live` the champion and the champion challenger 1; drop all other challengers."""
        arrays = self.arrays
        schedule, tests, statistics = arrays.schedule, arrays.tests, arrays.statistics
        self._lanes.swap(live, model)
        if live != 1:
            self._lanes.copy(live, 1, model)
        if arrays.mixing:
            mix = arrays.mix[[live, 0]]
            arrays.mix[:] = 0.0
            arrays.mix[:2] = mix / mix.sum()
        if arrays.ensemble.on:
            ensembles.promote(arrays.ensemble, live, arrays.n)
            self._restart_ensemble_tests()
        self.waiting.clear()
        self._since = int(arrays.tally[Tally.LEARNT]) - int(schedule.updates[live])
        former = self.interval_sums(live, RewardOwner.CHAMPION)
        for column in (tests.evidence, statistics.last):
            column[0] = column[live]
            column[1] = column[0][[RewardOwner.CHAMPION, RewardOwner.SELF]]
        policies = statistics.policies
        policies[0, RewardOwner.SELF], policies[1, RewardOwner.SELF] = (
            policies[live, RewardOwner.SELF].copy(),
            former,
        )
        policies[:2, RewardOwner.CHAMPION] = 0
        schedule.updates[:2], tests.compared[:2] = schedule.updates[live], tests.compared[live]
        self._reset(slice(2, None))
        self._restart_test(1)
        self.configs, self.indices = [config, self.configs[0]], [0, 1]
        self.arrays = arrays._replace(n=2)

    def _restart_test(self, live: int) -> None:
        """Start a new test of a challenger; all tests ever started share the significance level."""
        self._n_tests += 1
        tests = self.arrays.tests
        tests.pairs[live] = tests.losses[live] = tests.spread[live] = 0
        tests.levels[live] = level(self._alpha, self._n_tests)

    def _restart_ensemble_tests(self) -> None:
        """Start new tests of the ensemble against the champion; these share a significance level too."""
        self._n_ensemble_tests += 1
        ensembles.test_anew(self.arrays.ensemble, level(self._alpha, self._n_ensemble_tests))

    def _reset(self, live: int | slice) -> None:
        """Reset the estimators of one or several live configs, but not the paired tests."""
        tests, statistics = self.arrays.tests, self.arrays.statistics
        tests.evidence[live] = 0
        statistics.policies[live, RewardOwner.SELF] = 0
        statistics.policies[live, RewardOwner.CHAMPION] = statistics.policies[0, RewardOwner.SELF]
        statistics.last[live] = 0
        self.arrays.schedule.updates[live] = tests.compared[live] = 0


def _stored_counts(stored: Stored) -> dict[bytes, tuple[int, int]]:
    """Return the number of actions and of features of each namespace that was seen."""
    counts = stored.convert(list[tuple[bytes, int, int]])
    if not all(name and 0 <= count <= MOST and 0 <= size <= MOST for name, count, size in counts):
        raise stored.fail("counts of namespaces")
    return {name: (count, size) for name, count, size in counts}
