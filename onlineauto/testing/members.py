"""The conformance suite of members of the ensemble."""

from __future__ import annotations

import copy
import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.automl.decisions import PredictWith
from onlineauto.engine.ensemble.ensemble import names_of
from onlineauto.engine.ensemble.merge import merge_inputs
from onlineauto.engine.ensemble.registry import MEMBERS, register, unregister
from onlineauto.engine.ensemble.states import states_of
from onlineauto.workspace.inspection.inspection import inspection
from onlineauto.workspace.model_file import decoded, encoded
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.engine.ensemble.member import Member

_BANDIT: dict[str, Any] = {"cb_explore_adf": True, "squarecb": True}
_STREAMS: tuple[tuple[dict[str, Any], int, int], ...] = ((_BANDIT, 3, 400), (_BANDIT, 34, 160), ({}, 0, 300))
"""Options, number of actions (0 for single lines) and of events of each stream."""


def check_member(member: Member) -> None:
    """Check a member against the requirements of an ensemble, on simulated streams.

    It has a weight for each score, and all scores and weights are finite. A model that is saved and loaded
    continues to learn identically, bit for bit. Predicting changes nothing, and a snapshot does not change
    when the model learns. A model that only predicts does so like the whole model. A section of an unknown
    version makes the member start empty, with a warning. States that continued from a common base can be
    merged in any order, and are not changed; an empty state has no effect.

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
            _check_stream(member, options, list(_events(actions, n)), f"with {actions} actions")
    finally:
        if is_new:
            unregister(member.name)


def _events(actions: int, n: int) -> Iterator[str]:
    """Yield events of words and numbers, some of which predict the cost of an action."""
    draw = np.random.default_rng(5)
    for _ in range(n):
        x, word = draw.normal(), int(draw.integers(3))
        context = f"|n x:{x:.3f} y:{draw.normal():.3f} |w w{word} v{draw.integers(4)}"
        if not actions:
            yield f"{abs(x) + word + 0.1 * draw.normal():.4f} {context}\n"
            continue
        logged = int(draw.integers(actions))
        cost = 2.0 * word + ((x > 0) != (logged % 2)) + 0.1 * draw.normal()
        lines = [
            f"{f'0:{cost:.4f}:{1 / actions:.5f} ' if k == logged else ''}|a a{k}" for k in range(actions)
        ]
        yield "\n".join([f"shared {context}", *lines]) + "\n\n"


def _check_stream(member: Member, options: dict[str, Any], events: list[str], where: str) -> None:
    """Check a member on a stream."""
    where = f"{member.name} {where}"
    needed = {needs.upon for needs in member.needs if needs.upon}
    names = ",".join([*needed, member.name])
    whole = Workspace(**options, live_configs=3, default_lease=60, hash_bits=10, members=names)
    half = len(events) // 2
    _learn(whole, events[:half])
    model, before = _saved(whole), _saved(whole)
    assert set(member.names) <= set(names_of(_ensemble(whole))), f"{where}: it is not in the ensemble"

    snapshot = whole.predictor()
    predictions = [snapshot.predict(event).tobytes() for event in events[half:]]
    assert _saved(whole) == before, f"{where}: to predict changes the model"
    again = Workspace.load(model)
    assert _saved(again) == model, f"{where}: to load and to save a model changes it"
    copied = copy.deepcopy(whole)
    _learn(whole, events[half:])
    for other in (again, copied):
        _learn(other, events[half:])
        assert _saved(other) == _saved(whole), f"{where}: a copy of the model does not go on like the model"
    later = [snapshot.predict(event).tobytes() for event in events[half:]]
    assert predictions == later, f"{where}: a snapshot changes when the model learns"
    weights = [each["weight"] for each in inspection(whole, names={})["stack"] if each["weight"] is not None]
    assert np.isfinite(weights).all(), f"{where}: weights of the ensemble are not finite"
    _check_predict_only(whole, events, where)
    _check_unknown_version(member, model, where)
    branches = [copy.deepcopy(again), again]
    _learn(branches[0], events[: half // 2])
    _learn(branches[1], events[half // 2 : half])
    _check_merge(member, whole, branches, where)


def _learn(workspace: Workspace, events: list[str]) -> None:
    for event in events:
        workspace.learn(event)


def _saved(workspace: Workspace) -> bytes:
    file = io.BytesIO()
    workspace.save(file)
    return file.getvalue()


def _ensemble(workspace: Workspace) -> Any:
    return workspace.searching.live_configs.arrays.ensemble


def _check_predict_only(workspace: Workspace, events: list[str], where: str) -> None:
    """Check that a model that only predicts does so like the whole model, if the ensemble predicts."""
    workspace = workspace.fork()
    workspace.searching.live_configs.apply(PredictWith("ensemble", "loss"), workspace.learner.model)
    file = io.BytesIO()
    workspace.save(file, predict_only="ensemble")
    small = Workspace.load(file.getvalue(), testonly=True)
    for event in events:
        prediction, wanted = small.predict(event), workspace.predict(event)
        assert np.isfinite(wanted).all(), f"{where}: a score is not finite"
        assert prediction.tobytes() == wanted.tobytes(), (
            f"{where}: a model that only predicts predicts otherwise"
        )


def _check_unknown_version(member: Member, model: bytes, where: str) -> None:
    """Check that a section of a later version makes the member start empty."""
    tree = decoded(model, name="the model")
    tree["model"]["search"]["slots"]["stack"]["members"][member.name] = {"version": member.version + 1}
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        Workspace.load(b"".join(map(bytes, encoded(tree))))
    assert [member.name in str(each.message) for each in heard] == [True], (
        f"{where}: it does not begin from nothing"
    )


def _check_merge(member: Member, base: Workspace, ends: list[Workspace], where: str) -> None:
    """Check the laws of merging, on states that continued from a base."""
    ensembles = [_ensemble(each) for each in (base, *ends)]
    states = [states_of(each).of(member.name) for each in ensembles]
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
        return [each for part in state for each in _numbers(part)]
    return [state]
