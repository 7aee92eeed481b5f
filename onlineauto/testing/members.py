"""The conformance suite of members of the ensemble."""

from __future__ import annotations

import copy
import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.automl.decisions import PredictWith
from onlineauto.engine.ensemble.ensemble import NO_SHRINKAGE, able_scores, begin_again, names_of, weight_of
from onlineauto.engine.ensemble.member import ANY, Need
from onlineauto.engine.ensemble.merge import merge_ensembles, merge_inputs
from onlineauto.engine.ensemble.registry import MEMBERS, register, unregister
from onlineauto.engine.ensemble.states import states_of
from onlineauto.workspace.inspection.inspection import inspection
from onlineauto.workspace.model_file import decode_tree, encode_tree
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.engine.ensemble.member import Member

_BANDIT: dict[str, Any] = {"cb_explore_adf": True, "squarecb": True}
_STREAMS: tuple[tuple[dict[str, Any], int, int], ...] = ((_BANDIT, 3, 400), (_BANDIT, 34, 160), ({}, 0, 300))
"""Options, number of actions (0 for single lines) and of events of each stream."""
_IN_VECTOR = 50


def check_member(member: Member) -> None:
    """Check a member against the requirements of an ensemble, on simulated streams that it works on.

    It has a weight for each score, and all scores and weights are finite. Scoring does not change the state.
    A score learns only while its needs are true. The member reads the inputs of an event only if it declares
    that. A model that is saved and loaded continues to learn identically, bit for bit. Predicting changes
    nothing, and a snapshot does not change when the model learns. A model that only predicts does so like the
    whole model. A section of an unknown version makes the member start empty, with a warning. States that
    continued from a common base can be merged in any order, and are not changed; an empty state has no
    effect. Unless `Member.any_order` is false, branches may have found features and actions in different
    orders.

    Parameters
    ----------
    member : Member
        The member; if it is not registered, it is during the check.

    Raises
    ------
    AssertionError
        If a requirement is violated; the message names the requirement and the stream.

    Examples
    --------
    >>> from onlineauto.engine.ensemble.registry import member_of
    >>> check_member(member_of("features"))
    """
    is_new = member.name not in MEMBERS
    if is_new:
        register(member)
    try:
        for options, actions, n in _STREAMS:
            if not (member.on_actions if actions else member.on_lines):
                continue
            where = f"{member.name} with {actions} actions"
            _check_stream(member, options, list(_events(actions, n)), where)
            _check_inputs(member, options, list(_events(actions, n // 2, numbers=False)), where)
            if member.any_order:
                ends = [list(_events(actions, 60, seed=seed, backwards=seed == 1)) for seed in range(2)]
                _check_orders(member, options, ends, where)
    finally:
        if is_new:
            unregister(member.name)


def _events(
    actions: int, n: int, *, seed: int = 5, numbers: bool = True, backwards: bool = False
) -> Iterator[str]:
    """Yield events of words, numbers and a vector; some of these predict the cost of an action.

    If they are `backwards`, actions and features are in the opposite order.
    """
    draw, order = np.random.default_rng(seed), -1 if backwards else 1
    for _ in range(n):
        x, word = draw.normal(), int(draw.integers(3))
        vector = " ".join(f":{number:.3f}" for number in draw.normal(size=_IN_VECTOR))
        parts = [f"|n x:{x:.3f}", f"|n y:{draw.normal():.3f}", f"|e {vector}"] * numbers
        context = " ".join([*parts, f"|w w{word}", f"|w v{draw.integers(4)}"][::order])
        if not actions:
            yield f"{abs(x) + word + 0.1 * draw.normal():.4f} {context}\n"
            continue
        logged = int(draw.integers(actions))
        cost = 2.0 * word + ((x > 0) != (logged % 2)) + 0.1 * draw.normal()
        lines = [
            f"{f'0:{cost:.4f}:{1 / actions:.5f} ' if k == logged else ''}|a a{k}" for k in range(actions)
        ]
        yield "\n".join([f"shared {context}", *lines[::order]]) + "\n\n"


def _check_stream(member: Member, options: dict[str, Any], events: list[str], where: str) -> None:
    """Check a member on a stream."""
    whole = _workspace(member, options)
    half = len(events) // 2
    _learn(whole, events[:half])
    model, before = _save(whole), _save(whole)
    assert set(member.names) <= set(names_of(_ensemble(whole))), f"{where}: it is not in the ensemble"

    _check_scoring(member, whole, events[half:], where)
    _check_needs(member, whole, events[half:], where)
    snapshot = whole.predictor()
    predictions = [snapshot.predict(event).tobytes() for event in events[half:]]
    assert _save(whole) == before, f"{where}: to predict changes the model"
    again = Workspace.load(model)
    assert _save(again) == model, f"{where}: to load and to save a model changes it"
    copied = copy.deepcopy(whole)
    _learn(whole, events[half:])
    for other in (again, copied):
        _learn(other, events[half:])
        assert _save(other) == _save(whole), f"{where}: a copy of the model does not go on like the model"
    later = [snapshot.predict(event).tobytes() for event in events[half:]]
    assert predictions == later, f"{where}: a snapshot changes when the model learns"
    weights = [
        each["weight"] for each in inspection(whole, names={})["ensemble"] if each["weight"] is not None
    ]
    assert np.isfinite(weights).all(), f"{where}: weights of the ensemble are not finite"
    _check_predict_only(whole, events, where)
    _check_unknown_version(member, model, where)
    branches = [copy.deepcopy(again), again]
    _learn(branches[0], events[: half // 2])
    _learn(branches[1], events[half // 2 : half])
    _check_merge(member, whole, branches, where)


def _workspace(member: Member, options: dict[str, Any], *more: str) -> Workspace:
    """Return a workspace with a member, those that it needs, and `more` members."""
    needed = {needs.upon for needs in member.needs if needs.upon}
    names = ",".join({*needed, *more, member.name})
    flags = {"automl": 3, "default_lease": 60, "bit_precision": 10, "member_budget": 1e9} | options
    return Workspace(members=names, **flags)


def _learn(workspace: Workspace, events: list[str]) -> None:
    for event in events:
        workspace.learn(event)


def _save(workspace: Workspace) -> bytes:
    file = io.BytesIO()
    workspace.save(file)
    return file.getvalue()


def _ensemble(workspace: Workspace) -> Any:
    return workspace.searching.live_configs.arrays.ensemble


def _state(workspace: Workspace, member: Member) -> list[Any]:
    """Return copies of the arrays and numbers of a member's state."""
    return _numbers(copy.deepcopy(states_of(_ensemble(workspace)).state_of(member.name)))


def _are_same(one: list[Any], other: list[Any]) -> bool:
    return all(map(np.array_equal, one, other))


def _copy_with_one_score(workspace: Workspace, name: str) -> Workspace:
    """Return a copy that predicts with one score alone, as the member computes it."""
    workspace = copy.deepcopy(workspace)
    workspace.searching.live_configs.apply(PredictWith("ensemble", "loss"), workspace.learner.model)
    ensemble = _ensemble(workspace)
    ensemble.weights[:] = 0.0
    ensemble.weights[weight_of(ensemble, name)] = 1.0
    ensemble.shrinkage[:] = NO_SHRINKAGE
    return workspace


def _check_scoring(member: Member, workspace: Workspace, events: list[str], where: str) -> None:
    """Check that scoring does not change the state."""
    for name in member.names:
        asked = _copy_with_one_score(workspace, name)
        before = _state(asked, member)
        for event in events:
            asked.predict(event)
        assert _are_same(_state(asked, member), before), (
            f"{where}: its score kernel changes the state; write to the scratch memory instead, or in learn"
        )


def _check_needs(member: Member, workspace: Workspace, events: list[str], where: str) -> None:
    """Check that a score whose needs are not true does not learn."""
    before = _state(workspace, member)
    for name in member.names:
        with_needs, without_needs = copy.deepcopy(workspace), copy.deepcopy(workspace)
        ensemble = _ensemble(without_needs)
        ensemble.members.needs[names_of(ensemble).index(name), Need.EVENTS] = ANY
        works = able_scores(_ensemble(with_needs))[name]
        for each in (with_needs, without_needs):
            _learn(each, events)
        works = works and able_scores(_ensemble(with_needs))[name]
        learnt = _state(with_needs, member)
        assert (
            not works or _are_same(learnt, before) or not _are_same(learnt, _state(without_needs, member))
        ), (
            f"{where}: its score {name} learns while its needs are not true; let the learn kernel ask "
            "works(context.live.ensemble.members, lesson.score) for each score"
        )


def _check_inputs(member: Member, options: dict[str, Any], events: list[str], where: str) -> None:
    """Check that the member does not read inputs that only another member lets the ensemble collect."""
    alone, beside = _workspace(member, options), _workspace(member, options, "features")
    for workspace in (alone, beside):
        _learn(workspace, events)
    same = _are_same(_state(alone, member), _state(beside, member))
    for name in member.names:
        one, other = _copy_with_one_score(alone, name), _copy_with_one_score(beside, name)
        same = same and all(np.array_equal(one.predict(event), other.predict(event)) for event in events)
    assert same, (
        f"{where}: it reads MemberBuffers.taken, which is filled for it only if its needs say so; declare "
        "Needs(inputs=True)"
    )


def _check_orders(member: Member, options: dict[str, Any], events: list[list[str]], where: str) -> None:
    """Check that branches that found actions and features in different orders merge alike in any order."""
    scores: dict[str, Any] = {"cb_adf": True} if options else {}  # predictions are scores
    base, *ends = (_workspace(member, scores | {"automl": 1, "default_lease": 10**6}) for _ in range(3))
    for end, part in zip(ends, events, strict=True):
        _learn(end, part)
    for name in member.names:
        predictions = []
        for order in (ends, ends[::-1]):
            merged, learnt = copy.deepcopy(ends[0]), [len(part) for part in events]
            begin_again(
                _ensemble(merged),
                merge_ensembles(_ensemble(base), list(map(_ensemble, order)), learnt=learnt, floor=True),
            )
            merged = _copy_with_one_score(merged, name)
            predictions.append([merged.predict(event) for part in events for event in part])
        assert np.allclose(predictions[0], predictions[1], rtol=1e-3, atol=1e-3), (
            f"{where}: merge takes the actions or inputs of a branch for those of another order; map them "
            "with Branch.actions and Branch.inputs, or declare any_order = False"
        )


def _check_predict_only(workspace: Workspace, events: list[str], where: str) -> None:
    """Check that a model that only predicts does so like the whole model, if the ensemble predicts."""
    workspace = workspace.fork()
    workspace.searching.live_configs.apply(PredictWith("ensemble", "loss"), workspace.learner.model)
    file = io.BytesIO()
    workspace.save(file, predict_only="ensemble")
    small = Workspace.load(file.getvalue(), testonly=True)
    for event in events:
        prediction, expected = small.predict(event), workspace.predict(event)
        assert np.isfinite(expected).all(), f"{where}: a score is not finite"
        assert prediction.tobytes() == expected.tobytes(), (
            f"{where}: a model that only predicts predicts otherwise"
        )


def _check_unknown_version(member: Member, model: bytes, where: str) -> None:
    """Check that a section of a later version makes the member start empty."""
    tree = decode_tree(model, name="the model")
    tree["model"]["search"]["slots"]["ensemble"]["members"][member.name] = {"version": member.version + 1}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Workspace.load(b"".join(map(bytes, encode_tree(tree))))
    assert [member.name in str(warning.message) for warning in caught] == [True], (
        f"{where}: it does not begin from nothing"
    )


def _check_merge(member: Member, base: Workspace, ends: list[Workspace], where: str) -> None:
    """Check the laws of merging, on states that continued from a base."""
    ensembles = [_ensemble(each) for each in (base, *ends)]
    states = [states_of(each).state_of(member.name) for each in ensembles]
    before = list(map(_numbers, map(copy.deepcopy, states)))
    inputs, bare = merge_inputs(ensembles[0].members.inputs, [each.members.inputs for each in ensembles[1:]])
    whole, one, other = (branch._replace(state=state) for branch, state in zip(bare, states, strict=True))
    idle = whole._replace(seen=np.repeat(whole.seen[:, :1], 2, axis=1))
    both = member.merge(whole, [one, other], inputs)
    for state, old in zip(states, before, strict=True):
        assert all(map(np.array_equal, _numbers(state), old)), f"{where}: merging changes a state"
    assert type(both) is type(states[0]), f"{where}: merging returns a state of another type"
    assert _close(both, member.merge(whole, [other, one], inputs)), (
        f"{where}: merging depends on the order of states"
    )
    alone = member.merge(whole, [one], inputs)
    assert _close(alone, member.merge(whole, [one, idle], inputs)), (
        f"{where}: a state that has learnt nothing changes what is merged"
    )
    assert _close(member.merge(whole, [idle], inputs), member.merge(whole, [idle, idle], inputs)), (
        f"{where}: states that have learnt nothing change the base"
    )


def _close(one: Any, other: Any) -> bool:
    """Return whether all numbers of two states are equal up to rounding."""
    pairs = zip(_numbers(one), _numbers(other), strict=True)
    return all(
        np.isfinite(mine).all() and np.allclose(mine, yours, rtol=1e-4, atol=1e-6) for mine, yours in pairs
    )


def _numbers(state: Any) -> list[Any]:
    """Return the arrays and numbers of a state."""
    if isinstance(state, tuple):
        return [number for part in state for number in _numbers(part)]
    return [state]
