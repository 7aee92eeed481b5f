"""Models that Vowpal Wabbit cannot represent are rejected with the reason."""

from __future__ import annotations

import io
from typing import Any

import pytest

from onlineauto import Workspace
from onlineauto.errors import OptionError
from onlineauto.interop import read_vw_model, write_vw_model
from onlineauto.interop.vw.champion import vw_model_bytes

pytestmark = pytest.mark.lane("quick")

EVENT = "shared |user tom |day mon\n0:-1:0.5 |item a\n|item b\n"


def test_a_loaded_model_is_the_same() -> None:
    made = Workspace(cb_explore_adf=True, quadratic="ui", vw_exact=True).fit([EVENT] * 5)
    file = io.BytesIO()
    write_vw_model(made, file)
    read = read_vw_model(file.getvalue())
    assert (read.weights == made.weights)[:, :3].all()
    assert read.predict(EVENT).tolist() == made.predict(EVENT).tolist()
    assert read.learn(EVENT).tolist() == made.learn(EVENT).tolist()
    assert (read.weights == made.weights).all()


def test_two_namespaces_of_one_letter() -> None:
    event = EVENT.replace("|day", "|uptime")
    made = Workspace(cb_explore_adf=True, quadratic="ui").fit([event])
    with pytest.raises(OptionError, match="'uptime' and 'user' begin with one letter, and are one to it"):
        vw_model_bytes(made)
    vw_model_bytes(Workspace(cb_explore_adf=True, quadratic="ui", vw_exact=True).fit([event]))


def test_a_letter_beyond_ascii() -> None:
    made = Workspace(cb_explore_adf=True, quadratic="::").fit([EVENT.replace("|day", "|été")])
    with pytest.raises(OptionError, match="it does not cross namespace 'été'"):
        vw_model_bytes(made)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"cover": 2}, "arranges its policies differently with --cover"),
        ({"regcb": True}, "uses other plausible costs with --regcb"),
        ({"squarecb": True, "elim": True}, "uses other plausible costs with --elim"),
        ({"cb_sample": True}, "draws otherwise with --cb_sample"),
        ({"rnd": 2}, "random predictions with --rnd differ"),
        ({"automl": 2, "search": "namespaces,interactions"}, "--search namespaces excludes namespaces"),
        ({"experimental_full_name_interactions": "user|:"}, "--experimental_full_name_interactions with ':'"),
    ],
    ids=str,
)
def test_models_that_vw_predicts_differently_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        vw_model_bytes(Workspace(cb_explore_adf=True, **options).fit([EVENT]))


def test_native_slots_are_drawn_otherwise() -> None:
    event = "ccb shared |u a\nccb action |i x\nccb action |i y\nccb slot 1:-1:0.5 |\n"
    with pytest.raises(OptionError, match="draws otherwise with --ccb_explore_adf"):
        vw_model_bytes(Workspace(ccb_explore_adf=True).fit([event]))


def test_names_become_letters() -> None:
    made = Workspace(cb_explore_adf=True, experimental_full_name_interactions=["user|item", "day|day"])
    data = vw_model_bytes(made.fit([EVENT]))
    assert b" --cb_explore_adf --interactions iu --interactions dd\0" in data


def test_vw_explores_the_champion_of_a_search_with_epsilon_greedy() -> None:
    searched = Workspace(cb_explore_adf=True, automl=2, gamma_scale=20.0).fit([EVENT] * 50)
    read = read_vw_model(vw_model_bytes(searched))
    assert read.predict(EVENT) == pytest.approx([0.975, 0.025])
    with pytest.raises(OptionError, match="it has no --scaled_squarecb"):
        vw_model_bytes(Workspace(cb_explore_adf=True, scaled_squarecb=True).fit([EVENT]))


def test_vw_gets_the_least_probability_of_synthetic_cover() -> None:
    both = [EVENT, EVENT.replace("0:-1:0.5 ", "").replace("|item b", "0:0:0.5 |item b")]
    made = Workspace(cb_explore_adf=True, synthcover=True, synthcoverpsi=0.01).fit(both * 50)
    assert made.predict(EVENT) == pytest.approx([0.995, 0.005])
    assert read_vw_model(vw_model_bytes(made)).predict(EVENT) == pytest.approx([0.995, 0.005])


def test_the_interactions_of_a_champion_are_options() -> None:
    made = Workspace(cb_explore_adf=True, automl=2).fit([EVENT] * 3)
    data = vw_model_bytes(made)
    assert b" --cb_explore_adf --interactions di --interactions iu\0" in data
    assert b"automl" not in data
