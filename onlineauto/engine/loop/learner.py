"""Learner: the table of weights, the rule of their updates, and the task, from the options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.automl.options import AutomlOptions
from onlineauto.engine.event.example_kernels import EXPONENTIAL, GLF1, IDENTITY, LOGIT
from onlineauto.engine.options.registry import RunOptions, excludes_ensemble
from onlineauto.engine.records.loop import Outlier
from onlineauto.engine.records.task import Decay, Output, Shape, Task, Thinning
from onlineauto.errors import OptionError
from onlineauto.estimators.robust_kernels import Test
from onlineauto.estimators.typical_size_kernels import LARGEST_SIZE, MANY
from onlineauto.explorers.exploration import make_exploration
from onlineauto.explorers.kinds.epsilon_decay import EpsilonDecayOptions, models_of
from onlineauto.explorers.options import ExplorerOptions, choose_explorer
from onlineauto.features.options import FeatureOptions
from onlineauto.features.records import Numbering
from onlineauto.formats.options import InputOptions
from onlineauto.learners.gradient_kernels import materialize
from onlineauto.learners.model import (
    FIELDS,
    begin_again,
    initial_table,
    make_model,
    model_state,
    restore_model,
    unlearnt_cell,
    views_of,
    with_table,
)
from onlineauto.learners.options import CbOptions, LossOptions, UpdateOptions
from onlineauto.learners.rule import make_rule
from onlineauto.state.schema import copy, make, read, save

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.loop.semantics import Semantics
    from onlineauto.engine.records.quirks import Quirks
    from onlineauto.explorers.ranking_kernels import Exploration
    from onlineauto.learners.model import TableShape
    from onlineauto.options import Configuration
    from onlineauto.state.stored import Stored

KINDS = ("cost", "weight", "probability", "value")
"""Kinds of outliers: a cost or label, an importance weight, a probability, the value of a feature."""

_KEPT_SEED = 0x6B656570
"""Separates the choice of kept events from the draws of explorers, which have the same seed."""
_ALL_BITS = 2**32 - 1
_LINKS = {"identity": IDENTITY, "logistic": LOGIT, "glf1": GLF1, "poisson": EXPONENTIAL}
_SHAPES = {
    "simple": Shape.SIMPLE,
    "cb_adf": Shape.CB_ADF,
    "cb_explore_adf": Shape.CB_ADF,
    "ccb_explore_adf": Shape.CB_ADF,
    "cb": Shape.CB,
    "cb_explore": Shape.CB,
}


def make_decay(configuration: Configuration, *, unlearnt: NDArray[np.float32], quirks: Quirks) -> Decay:
    """Return the models of ``--epsilon_decay``; `unlearnt`, float32[4], is a cell before the first event."""
    in_part = quirks.begins_anew_in_part
    options, shared = configuration[EpsilonDecayOptions], configuration[AutomlOptions]
    models = models_of(configuration)
    share = np.float32(options.bonferroni_denominator or options.model_count)
    low, high = shared.rewards() if shared.cost_range is not None else (0.0, 1.0)
    return make(
        Decay,
        {"models": models},
        test=Test(
            alpha=np.float64(np.float32(options.epsilon_decay_significance_level) / share),
            tol_x=np.float64(np.float32(shared.tol_x)),
        ),
        initial=np.float32(options.initial_epsilon),
        constant=options.constant_epsilon,
        explores=options.challenger_epsilon,
        cost_is_reward=shared.reward_as_cost,
        low=np.float32(low),
        high=np.float32(high),
        min_scope=options.min_scope,
        min_events=options.min_champ_examples,
        shift=options.shift_model_bounds,
        unlearnt=np.zeros(4, np.float32) if in_part else unlearnt,
        everywhere=in_part and bool(unlearnt.any()),
        place=np.arange(models),
    )


def parts_of_slot(configuration: Configuration, *, kind: str, estimates: bool, semantics: Semantics) -> int:
    """Return the number of lanes of a live config, including those for `estimates` of costs, if any."""
    if kind == "simple":
        return 1
    explorer = choose_explorer(configuration)
    return explorer.parts(configuration, estimates=estimates, quirks=semantics.exploring)


def make_task(
    configuration: Configuration,
    *,
    kind: str,
    exploration: Exploration,
    shape: TableShape,
    unlearnt: NDArray[np.float32],
    semantics: Semantics,
) -> Task:
    """Return the task for a kind of events (`Workspace.kind`); `unlearnt` is a cell before any event."""
    cb, loss, run = configuration[CbOptions], configuration[LossOptions], configuration[RunOptions]
    uniform = configuration[InputOptions].missing_probability == "uniform"
    n_actions = cb.cb or configuration[ExplorerOptions].cb_explore or 0
    return Task(
        shape=int(_SHAPES[kind]),
        slots=kind == "ccb_explore_adf",
        n_actions=n_actions,
        numbering=Numbering(
            kept=np.uint32(_ALL_BITS << n_actions.bit_length() & _ALL_BITS), mask=np.uint32(shape.hash_mask)
        ),
        exploration=exploration,
        decay=make_decay(configuration, unlearnt=unlearnt, quirks=semantics.quirks),
        parts=shape.parts,
        predicts_apart=exploration.active and choose_explorer(configuration).predicts_apart,
        clip_p=np.float32(cb.clip_p),
        uniform=semantics.fills_in_probabilities and uniform,
        output=Output(_LINKS[loss.link], loss.binary),
        training=not run.testonly,
        thinning=Thinning(float(cb.keep_unrewarded), np.uint64(run.random_seed ^ _KEPT_SEED)),
        finds_origin=_finds_origin(configuration, kind=kind, semantics=semantics),
        quirks=semantics.quirks,
        mask=np.uint64(shape.cells - 1),
    )


def _finds_origin(configuration: Configuration, *, kind: str, semantics: Semantics) -> bool:
    """Return whether costs get an origin: those of searches that can have an ensemble and have a constant."""
    lines = _SHAPES[kind] == Shape.CB_ADF and not configuration[FeatureOptions].noconstant
    return semantics.guarded and lines and not excludes_ensemble(configuration)


class Learner:
    """The weights of all live configs, and the constants by which they predict and learn."""

    def __init__(self, configuration: Configuration, *, kind: str, semantics: Semantics) -> None:
        run, automl = configuration[RunOptions], configuration[AutomlOptions]
        estimates = configuration[CbOptions].cb_type == "dr" or "cb_type" in automl.searched()
        exploration = make_exploration(
            configuration,
            quirks=semantics.exploring,
            seed=run.random_seed,
            active="explore" in kind,
            samples=kind == "ccb_explore_adf",
        )
        self._semantics, self._configuration = semantics, configuration
        self.width = parts_of_slot(configuration, kind=kind, estimates=estimates, semantics=semantics)
        self.shape = semantics.table(
            configuration[FeatureOptions].bit_precision,
            configs=automl.automl or 1,
            parts=self.width,
            policies=exploration.policies,
        )
        self.unlearnt = unlearnt_cell(configuration)
        self.task = make_task(
            configuration,
            kind=kind,
            exploration=exploration,
            shape=self.shape,
            unlearnt=self.unlearnt,
            semantics=semantics,
        )
        table = _make_table(configuration, self.shape)
        self.model = make_model(configuration, table, self.shape, training=not run.testonly)
        self.rule = make_rule(configuration, guarded=semantics.guarded)
        if run.testonly and exploration.bounds and not semantics.bounds_by_rates:
            self.rule = self.rule._replace(adaptive=False, normalized=False)
        self.current_pass = 0
        self.fields = FIELDS
        self._decay = np.float32(configuration[UpdateOptions].decay_learning_rate)
        self._first_rate = self.rule.learning_rate

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes of a copy; of the weights only the memory, because copies share none."""
        views = views_of(np.zeros(0, np.float32), cells=0, lanes=1)
        return vars(self) | {"model": self.model._replace(**views._asdict())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy, and let the weights share its memory again."""
        vars(self).update(state)
        self.model = with_table(self.model, self.model.table)

    @property
    def outliers(self) -> dict[str, int]:
        """The number of events not learnt because of an outlier, by the kind of number."""
        return dict(
            zip(KINDS, self.model.outliers[Outlier.FAR_COST : Outlier.BEGINS_AGAIN].tolist(), strict=True)
        )

    def accept_all(self) -> None:
        """Accept numbers of any size from now on, and learn them as they are."""
        self.model.sizes[:] = LARGEST_SIZE, MANY, 0, 0

    def accept_labels(self) -> None:
        """Accept labels of any size from now on: the caller, which rescales labels, checks for outliers."""
        self.model.sizes[Outlier.FAR_COST] = LARGEST_SIZE, MANY, 0, 0

    def champion_lanes(self) -> list[int]:
        """Return the lanes of the table that contain the champion's weights, part by part."""
        return self.lanes_of(0)

    def lanes_of(self, live: int) -> list[int]:
        """Return the lanes of the table that contain a live config's weights, part by part."""
        return [self.shape.lane(part, live) for part in range(self.width)]

    def champion_lane(self) -> int:
        """Return the lane with which the champion predicts; with several models, that of their champion."""
        lanes, place = self.champion_lanes(), self.task.decay.place
        return lanes[int(place[-1]) * (self.width // len(place))] if len(place) else lanes[0]

    def begin_again(self) -> None:
        """Reset the model to its state before the first event; the sequence of random numbers continues."""
        configuration, training = self._configuration, self.task.training
        begin_again(configuration, self.model, self.shape, training=training)
        self.task.exploration.costs[:] = 0.0
        self.task.exploration.errors[:] = 0.0
        self.task.decay.evidence[:] = 0.0

    def end_pass(self) -> None:
        """Close a pass: decay the learning rate."""
        self.rule = self.rule._replace(learning_rate=np.float32(self.rule.learning_rate * self._decay))
        self.current_pass += 1

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        return {
            "pass": self.current_pass,
            "learning_rate": {"first": self._first_rate, "now": self.rule.learning_rate},
            "model": model_state(self.model, fields=self.fields),
            "explorer": save(self.task.exploration),
            "decay": save(self.task.decay),
        }

    def take_after(self, other: Learner) -> None:
        """Copy from another learner the state that predictions depend on, except the model."""
        by_rates = other._semantics.bounds_by_rates
        if by_rates:
            self.rule = self.rule._replace(learning_rate=other.rule.learning_rate)
        self.current_pass = other.current_pass
        self.fields = FIELDS if other.task.exploration.bounds and by_rates else 1
        copy(other.task.exploration, self.task.exploration)
        copy(other.task.decay, self.task.decay)

    def restore(self, stored: Stored) -> None:
        """Restore a state that was stored with the same options, apart from the learning rate."""
        self.current_pass = stored["pass"].count()
        rates = {name: stored["learning_rate"][name].single() for name in ("first", "now")}
        if rates["first"] == self._first_rate:
            self.rule = self.rule._replace(learning_rate=rates["now"])
        self.fields = restore_model(self.model, stored["model"], finite=self.rule.guarded)
        if self._semantics.penalises_on_load and not self.task.training:
            materialize(self.model, 0)
        read(stored["explorer"], self.task.exploration)
        read(stored["decay"], self.task.decay)


def _make_table(configuration: Configuration, shape: TableShape) -> NDArray[np.float32]:
    """Return the memory of the weights and statistics before the first event."""
    try:
        return initial_table(configuration, cells=shape.cells, lanes=shape.lanes)
    except (MemoryError, OSError):  # OSError: the table is mapped.
        bits = configuration[FeatureOptions].bit_precision
        raise OptionError(
            f"{shape.configs} live configs of 2^{bits} cells do not fit into memory: lower --bit_precision"
        ) from None
