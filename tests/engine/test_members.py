"""Members from outside of the package, and the conformance suite of members."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

from onlineauto import InputError, OptionError, Workspace
from onlineauto.engine.ensemble.calibration import PRICES
from onlineauto.engine.ensemble.member import ClassMember, EnsembleLearner
from onlineauto.engine.ensemble.merge import merge_ensembles
from onlineauto.engine.ensemble.registry import MEMBERS, member_of, register, unregister
from onlineauto.engine.ensemble.states import states_of
from onlineauto.testing import check_member
from onlineauto.workspace.inspection.inspection import inspection
from tests.engine.broken_members import BROKEN
from tests.engine.ensemble_streams import odd
from tests.engine.toy_member import TOY, Toy

pytestmark = pytest.mark.lane("quick")

OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "automl": 2, "default_lease": 60, "bit_precision": 10}


@pytest.fixture
def toy() -> Iterator[Toy]:
    register(TOY)
    yield TOY
    if "toy" in MEMBERS:
        unregister("toy")


def ensemble_of(workspace: Workspace) -> Any:
    return workspace.searching.live_configs.arrays.ensemble


def test_the_price_of_each_score_is_calibrated() -> None:
    members = [member_of(name) for name, entry in MEMBERS.items() if entry.costs]
    assert {name for member in members for name in member.names} == PRICES.keys()


def test_a_member_from_outside_is_weighed_journalled_inspected_saved_and_removed(
    toy: Toy, tmp_path: Path
) -> None:
    text = odd(300, numbers=1)
    events = [f"{event}\n\n" for event in text.decode().strip().split("\n\n")]
    workspace, journal = Workspace(**OPTIONS, members="features,toy", member_budget=0.2), []
    workspace.observe(lambda entry: journal.append(msgspec.to_builtins(entry)))
    workspace.fit(text)

    shown = {each["who"]: each for each in inspection(workspace, names={})["ensemble"]}
    assert list(shown) == ["live config 0", "live config 1", "features", "toy", "constant"]
    assert shown["toy"]["weight"] != 0.0
    assert shown["toy"]["price"] > 0.0
    assert any("toy" in line["prices"] for line in journal if line["decision"] == "rest_members")
    costs: dict[int, list[float]] = {}
    for event in events:
        lines = event.split("\n")[1:-2]
        (logged,) = (at for at, line in enumerate(lines) if not line.startswith("|"))
        costs.setdefault(logged, []).append(float(lines[logged].split(":")[1]))
    sums = states_of(ensemble_of(workspace)).state_of("toy").sums
    assert sorted(sums[:4, 0]) == sorted(map(len, costs.values()))
    np.testing.assert_allclose(sorted(sums[:4, 1]), sorted(map(sum, costs.values())), rtol=0.02)

    workspace.save(tmp_path / "with.model")
    without = Workspace.load(tmp_path / "with.model", members="features")
    before, after = (
        {each["who"]: each["weight"] for each in inspection(each, names={})["ensemble"]}
        for each in (workspace, without)
    )
    assert before.keys() - after.keys() == {"toy"}
    without.fit(text)
    without.save(tmp_path / "without.model")
    unregister("toy")
    Workspace.load(tmp_path / "without.model").fit(text)
    with pytest.raises(
        InputError, match=r"--members cannot be features,toy; .*; register toy before it is used"
    ):
        Workspace.load(tmp_path / "with.model")


def test_a_member_that_joins_a_model_begins_from_nothing(toy: Toy, tmp_path: Path) -> None:
    text = odd(200, numbers=1)
    Workspace(**OPTIONS, members="features").fit(text).save(tmp_path / "model")
    joined = Workspace.load(tmp_path / "model", members="features,toy")
    shown = {each["who"]: each["weight"] for each in inspection(joined, names={})["ensemble"]}
    assert shown["toy"] == 0.0
    joined.fit(text)
    shown = {each["who"]: each["weight"] for each in inspection(joined, names={})["ensemble"]}
    assert shown["toy"] != 0.0


def test_two_states_of_a_member_merge_into_that_of_all_events(toy: Toy) -> None:
    text = odd(200)
    events = [f"{event}\n\n" for event in text.decode().strip().split("\n\n")]
    whole, one, other = (Workspace(**OPTIONS, members="toy", cost_range="-3,3") for _ in range(3))
    for workspace in (whole, one, other):
        workspace.fit("".join(events[:20]).encode())  # so that all know the same actions
    base = copy.deepcopy(ensemble_of(whole))
    for at, event in enumerate(events[20:]):
        (one if at % 2 else other).learn(event)
        whole.learn(event)
    merged = merge_ensembles(base, [ensemble_of(one), ensemble_of(other)], learnt=[90, 90], floor=True)
    sums = states_of(merged).state_of("toy").sums
    np.testing.assert_allclose(sums, states_of(ensemble_of(whole)).state_of("toy").sums, rtol=0.1, atol=0.5)


def test_names_of_members_are_taken_once(toy: Toy) -> None:
    with pytest.raises(ValueError, match="there is a member toy already"):
        register(TOY)
    with pytest.raises(ValueError, match="no member features was registered"):
        unregister("features")


class Incomplete(ClassMember):
    """A member of classes without kernels."""

    name = "incomplete"
    class_scores: ClassVar = {"incomplete": 1.0}


class ToyWithScores(Toy):
    """A member of costs with a part of what a member of classes has."""

    name = "toy-with-scores"
    scores = ("toy-with-scores",)
    class_scores: ClassVar = {"toy-with-scores": 1.0}


@pytest.mark.parametrize("member", [Incomplete(), ToyWithScores()])
def test_a_member_of_classes_without_kernels_is_rejected(member: EnsembleLearner) -> None:
    with pytest.raises(ValueError, match=f"the member {member.name} has no class_kernels: "):
        register(member)
    assert member.name not in MEMBERS


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            "feature",
            r"takes some of features, .*, separated by commas, or none; register feature",
        ),
        ("features,,", ""),
        (" ", "--members cannot be"),
        (
            "layer",
            "cannot have layer without features, from whose scores it is computed; write features,layer",
        ),
        ("logistic", "cannot have logistic for costs; members of costs are features, waves, crosses, "),
        ("features,logistic", "cannot have logistic for costs"),
    ],
)
def test_members_that_cannot_be_are_named(members: str, message: str) -> None:
    if not message:
        Workspace(**OPTIONS, members=members)
        return
    with pytest.raises(OptionError, match=message):
        Workspace(**OPTIONS, members=members)


@pytest.mark.ci
@pytest.mark.parametrize("name", [*(name for name, entry in MEMBERS.items() if entry.costs), "toy"])
def test_members_meet_the_requirements_of_an_ensemble(name: str) -> None:
    check_member(TOY if name == "toy" else member_of(name))


@pytest.mark.parametrize(("member", "message"), BROKEN, ids=lambda each: getattr(each, "name", ""))
def test_a_mistake_of_a_member_is_named(member: Toy, message: str) -> None:
    with pytest.raises(AssertionError, match=f"^{member.name} with 3 actions: .*{message}"):
        check_member(member)
