"""``explain``: the features and the members that moved the score of each action of an event.

The ensemble's score of an action is a sum: a level that all actions share, and for each member its weight
times its score. Scores of live configs and of members that are linear are sums of their features' terms, so
these are listed by feature; the rest of a score, such as that of a member that is not linear, is listed by
member. Both lists add up to the score: the level and all members; the level, all features and the rest.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from onlineauto.engine.ensemble.combiner_kernels import LEVEL_FACTOR
from onlineauto.engine.ensemble.ensemble import predicts
from onlineauto.engine.ensemble.shrinkage_kernels import find_factors
from onlineauto.engine.ensemble.states import constant_of, states_of
from onlineauto.engine.records.ensemble import MOST_ACTIONS, Known
from onlineauto.errors import OptionError
from onlineauto.explorers.options import choose_explorer
from onlineauto.formats.mappings.encoded_event import EncodedEvent
from onlineauto.formats.mappings.named_event import named_event
from onlineauto.interop.named_blocks import line_names
from onlineauto.learners.gradient_kernels import CONTRACTION, GRAVITY, ORIGIN
from onlineauto.workspace.inspection.named_examples import NamedExamples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onlineauto.engine.stream.event_readers import OneEventLike
    from onlineauto.interop.names import LineNames
    from onlineauto.options import Configuration
    from onlineauto.workspace.inspection.named_examples import NamedExample
    from onlineauto.workspace.predictor import Predictor, Scored
    from onlineauto.workspace.workspace import Workspace

_MOST = 1000
"""Number of products of an interaction up to which each is listed."""

_find_factors = cast("Any", find_factors).py_func
_ROUNDING = 1e-5
"""Size of a difference, in relation to a cost, that float32 explains."""


Explanation: TypeAlias = dict[str, Any]
"""The result of `explain`, which JSON can write."""


def explain(model: Workspace | Predictor, event: OneEventLike) -> Explanation:
    r"""Return which features and members moved the predicted cost of each action of an event.

    Parameters
    ----------
    model : Workspace or Predictor
        A model of ``--cb_explore_adf`` or ``--cb_adf``. It does not change.
    event : str, bytes, mapping or list of str
        The event, as for `Workspace.predict`.

    Returns
    -------
    dict
        ``predicts`` is "ensemble" or "champion". ``actions`` has for each action its number ``action``, its
        ``probability`` (not with ``--cb_adf``), its predicted ``cost``, the ``level`` that all actions share,
        and three mappings from names to parts of the cost, the largest first: ``members``, ``features`` and
        ``rest``. The cost is the level and all members, and the level, all features and all of the rest.

    Raises
    ------
    OptionError
        The model has other events, is of ``--vw_exact``, or its explorer has several models.
    InputError
        The argument is not exactly one event.

    Examples
    --------
    >>> from onlineauto import Workspace
    >>> bandit = Workspace(cb_explore_adf=True).fit(["shared |u tom\n0:-1:0.5 |a art\n|a sports\n"] * 9)
    >>> art = explain(bandit, "shared |u tom\n|a art\n|a sports\n")["actions"][0]
    >>> {name: round(part, 2) for name, part in art["features"].items()}
    {'a^art': -0.33, 'Constant': -0.33, 'u^tom': -0.33}
    """
    configuration = model.configuration
    if model.kind not in ("cb_explore_adf", "cb_adf"):
        raise OptionError("explain needs a model of --cb_explore_adf or --cb_adf")
    explorer = choose_explorer(configuration)
    if explorer.models(configuration):
        raise OptionError(f"explain needs one model, but --{explorer.name} has several")
    return model.scored(event, lambda scored: _explain_scored(scored, _names(event, configuration)))


def _names(event: OneEventLike, configuration: Configuration) -> LineNames:
    """Return the names of the features of an event."""
    names = line_names(configuration)
    if isinstance(event, str | bytes):
        lines = event.decode("utf-8", "surrogateescape") if isinstance(event, bytes) else event
        event = lines.split("\n")
    if isinstance(event, list | tuple):
        for line in event:
            names.read(line.decode("utf-8", "surrogateescape") if isinstance(line, bytes) else line)
        return names
    mapping = event.mapping() if isinstance(event, EncodedEvent) else event
    for line in named_event(mapping).lines:  # type: ignore[arg-type]
        for namespace, features in line.spans:
            for feature, _ in features:
                names.note(namespace, str(feature))
    return names


class _Model(NamedTuple):
    """The attributes of a workspace that `NamedExamples` reads."""

    layout: Any
    learner: Any
    semantics: Any


class _Learner(NamedTuple):
    shape: Any
    task: Any


class _Shape(NamedTuple):
    cells: int


def as_rewards(explanation: Explanation) -> Explanation:
    """Return an explanation of costs as one of rewards, which are negative costs."""
    rows = []
    for cost in explanation["actions"]:
        row = {name: value for name, value in cost.items() if name in ("action", "probability")}
        row |= {"reward": -cost["cost"], "level": -cost["level"] + 0.0}
        row |= {
            part: {name: -value for name, value in cost[part].items()}
            for part in ("members", "features", "rest")
        }
        rows.append(row)
    return explanation | {"actions": rows}


def _explain_scored(scored: Scored, names: LineNames) -> Explanation:
    """Return the result of `explain` for a scored event."""
    context, outcomes = scored.context, scored.outcomes
    ensemble = context.live.ensemble
    cells = len(context.model.weights)
    model = _Model(scored.layout, _Learner(_Shape(cells), context.task), scored.semantics)
    examples = list(NamedExamples(model, names, most=_MOST).examples_of(scored.block))  # type: ignore[arg-type]
    serves = predicts(ensemble) and ensemble.range[1] > ensemble.range[0]
    terms = _Terms(scored, examples, names, serves=serves)
    actions = []
    for action in range(len(examples)):
        members, features, rest = (defaultdict[str, float](float) for _ in range(3))
        level = terms.origin
        for score in terms.scores(action) if serves else [_Score("champion", 1.0, action, 0)]:
            part, listed = terms.contribution_of(score, features)
            members[score.member] += part
            rest[score.member] += part - listed
        if serves:
            level = terms.level()
        row: dict[str, Any] = {"action": action}
        if context.task.exploration.active:
            row["probability"] = float(outcomes.one_prediction()[action])
        row |= {"cost": level + sum(members.values()), "level": level, "members": _order_parts(members)}
        row |= {"features": _order_parts(features), "rest": _order_parts(rest)}
        actions.append(row)
    return {"predicts": "ensemble" if serves else "champion", "actions": actions}


def _order_parts(parts: Mapping[str, float]) -> dict[str, float]:
    """Return the parts that are not zero, the largest first."""
    return dict(
        sorted(((name, part) for name, part in parts.items() if part), key=lambda item: -abs(item[1]))
    )


class _Score(NamedTuple):
    """A score of an action, and its weight in the ensemble."""

    member: str
    weight: float
    action: int
    column: int  # in the scores


class _Terms:
    """The scores of an event's actions, and their terms."""

    def __init__(
        self, scored: Scored, examples: list[NamedExample], names: LineNames, *, serves: bool
    ) -> None:
        context = scored.context
        self._model, self._live, self._examples = context.model, context.live, examples
        self._holders, self._score = scored.layout.interactions.holders, context.buffers.score
        self._memory, self._serves = context.buffers.members, serves
        self._ensemble = ensemble = context.live.ensemble
        self._constant = constant_of(ensemble)
        self._joined = bool(ensemble.members.inputs.tally[Known.ACTIONS] > MOST_ACTIONS)
        self._first = self._score.shape[1] - 1 - len(ensemble.members.rests)
        states = states_of(ensemble)
        self._members = [
            (member, state, name)
            for member, state in zip(states.members, states.records, strict=True)
            for name in member.names
        ]
        self._named = _named_inputs(scored, names)
        self.origin = float(self._model.shared[ORIGIN])
        self._factors = 1.0, 0.0
        if ensemble.means >= 0 and len(examples) > 1 and self._memory.scored[ensemble.means]:
            self._factors = _find_factors(ensemble.shrinkage)

    def scores(self, action: int) -> Iterator[_Score]:
        """Yield the scores of an action, with their weights in the shrunk score of the ensemble."""
        alpha, beta = self._factors
        for score in self._weighted(action):
            is_means = score.column == self._first + self._ensemble.means
            yield score._replace(weight=alpha * score.weight + beta * is_means)

    def _weighted(self, action: int) -> Iterator[_Score]:
        """Yield the scores of an action that the ensemble adds up, with their weights."""
        weights = self._ensemble.weights
        for slot in range(self._live.n):
            yield _Score(f"live config {slot}" if slot else "champion", float(weights[slot]), action, slot)
        for at, (_, _, name) in enumerate(self._members):
            if self._memory.scored[at]:
                weight = float(weights[self._constant - len(self._members) + at])
                yield _Score(name, weight, action, self._first + at)

    def level(self) -> float:
        """Return the part of the ensemble's score that all actions share."""
        low, high = (float(bound) for bound in self._ensemble.range)
        weights, last, n = self._ensemble.weights, self._constant, len(self._examples)
        level = low + (high - low) * float(weights[last])
        alpha, beta = self._factors
        for score in self._weighted(0):
            level += score.weight * (self.origin - low)
            if self._ensemble.n_levels and not self._joined:
                at = last + 1 + score.column
                if score.column >= self._first:
                    at = len(weights) - len(self._members) + score.column - self._first
                mean = self._mean_cost(score)
                level += float(weights[at]) * LEVEL_FACTOR * (self._clip(mean) - low)
            parts = (
                self._clip(self._cost(score._replace(action=number))) - self.origin for number in range(n)
            )
            level += (1.0 - alpha) * score.weight * sum(parts) / n
            if score.column == self._first + self._ensemble.means:
                level -= beta * (self._mean_cost(score) - self.origin)
        return level

    def _mean_cost(self, score: _Score) -> float:
        """Return the mean of a score over all actions."""
        n = len(self._examples)
        return sum(self._cost(score._replace(action=number)) for number in range(n)) / n

    def contribution_of(self, score: _Score, features: dict[str, float]) -> tuple[float, float]:
        """Add a score's terms to those of the features; return the parts of the score and of all terms."""
        cost = self._cost(score)
        within = self._clip(cost) if self._serves else cost
        part = score.weight * (within - self.origin)
        listed = 0.0
        if abs(within - cost) <= _ROUNDING * max(1.0, abs(cost)):
            for name, term in self._terms_of(score):
                features[name] += score.weight * term
                listed += score.weight * term
        rounding = abs(part - listed) <= _ROUNDING * max(1.0, abs(score.weight * cost))
        return part, part if rounding else listed

    def _cost(self, score: _Score) -> float:
        """Return the cost that a score predicts: scores of members lack the origin."""
        cost = float(self._score[score.action, score.column])
        return cost + self.origin if score.column >= self._first else cost

    def _clip(self, cost: float) -> float:
        """Return a cost, clipped as the ensemble clips the scores."""
        low, high = (float(bound) for bound in self._ensemble.range)
        return min(max(cost, low - (high - low)), high + (high - low)) if cost == cost else low - (high - low)

    def _terms_of(self, score: _Score) -> Iterator[tuple[str, float]]:
        """Yield the terms of a score with the names of their features; none if the score is not linear."""
        if score.column < self._first:
            yield from self._terms_of_config(score)
            return
        known = int(self._memory.known[score.action])
        member, state, _ = self._members[score.column - self._first]
        terms = member.terms(state, self._ensemble.members.inputs, self._memory.taken.values, known)
        if known >= 0 and terms is not None:
            for at, term in zip(*(array.tolist() for array in terms), strict=True):
                if term:
                    yield self._named.get(at, "numbers that are missing"), term

    def _terms_of_config(self, score: _Score) -> Iterator[tuple[str, float]]:
        """Yield the terms of a live config, which is linear in its features and their products."""
        example, weights = self._examples[score.action], self._model.weights
        penalties = self._model.lanes[self._model.penalised[score.column]]
        gravity, contraction = np.float32(penalties[GRAVITY]), float(penalties[CONTRACTION])
        for feature in example.features:
            if self._holders[feature.run, score.column] and feature.used:
                raw = weights[feature.cell, score.column]
                if abs(raw) > gravity and feature.value:
                    weight = float(raw - np.sign(raw) * gravity) * contraction
                    yield _readable(feature.name), weight * float(feature.value)
        for wide in example.wide:
            if self._holders[wide.run, score.column]:
                raws = weights[wide.cell, score.column]
                kept = np.where(np.abs(raws) > gravity, raws - np.sign(raws) * gravity, 0)
                yield "products of many features", float(kept @ wide.value) * contraction


def _named_inputs(scored: Scored, names: LineNames) -> dict[int, str]:
    """Return the name of each input of the members that a feature of the context gives a value."""
    inputs, block = scored.context.live.ensemble.members.inputs, scored.block
    named, by_number = {0: "Constant"}, dict[int, str]()
    filled = np.flatnonzero(inputs.feature)
    input_of = dict(
        zip((inputs.feature[filled] - np.uint64(1)).tolist(), inputs.input[filled].tolist(), strict=True)
    )
    for span in range(block.line_start[0], block.line_start[1] if block.shared[0] else block.line_start[0]):
        number = int(block.span_namespace[span])
        span_features = slice(block.span_start[span], block.span_start[span + 1])
        name, seed = block.namespaces.names[number], block.namespaces.hashes[number]
        for hash_ in block.hash[span_features].tolist():
            spelt = _readable(names.name_of(name, hash_, seed=seed))
            at = input_of.get(hash_)
            if at is None:
                continue
            named[at] = spelt
            if (number_of := max(int(inputs.number[at]), int(inputs.names[at]))) >= 0:
                by_number[number_of] = spelt
    for number, spelt in by_number.items():
        named[int(inputs.numbers.of_number[number])] = spelt
        for bin_ in range(int(inputs.numbers.bins[number])):
            if inputs.numbers.of_bin[number, bin_]:
                named[int(inputs.numbers.of_bin[number, bin_])] = spelt
    return named


def _readable(name: str) -> str:
    """Return the name of a feature without the name of its namespace where the feature begins with that.

    >>> _readable("user^user=tom*article^topic=art")
    'user=tom*article^topic=art'
    """
    parts = []
    for word in name.split("*"):
        namespace, _, feature = word.partition("^")
        parts.append(feature if feature == namespace or feature.startswith(f"{namespace}=") else word)
    return "*".join(parts)
