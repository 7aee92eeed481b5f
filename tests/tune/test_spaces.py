"""Spaces: the code of each kind, conditions, TOML, options, and invalid declarations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.errors import OptionError
from onlineauto.tune import Categorical, Choice, Float, Int, Parameter, Space, space_of_options
from onlineauto.workspace.options import REGISTRY

pytestmark = pytest.mark.lane("quick")

numbers = st.floats(-1e6, 1e6, allow_nan=False)
positive = st.floats(1e-6, 1e6)


@st.composite
def parameters(draw: st.DrawFn) -> Parameter:
    kind = draw(st.sampled_from(["float", "log", "int", "log int", "choice"]))
    if kind == "choice":
        return Categorical(
            draw(st.lists(st.sampled_from(["a", "b", 1, 2.5, None, True]), min_size=1, unique_by=str))
        )
    if kind in ("float", "log"):
        low, high = sorted(draw(st.tuples(*[positive if kind == "log" else numbers] * 2)))
        return Float(low, high, log=kind == "log")
    low, high = sorted(
        draw(st.tuples(*[st.integers(1, 10**6) if kind == "log int" else st.integers(-99, 99)] * 2))
    )
    return Int(low, high, log=kind == "log int")


@given(parameters(), st.lists(st.floats(0, 1), min_size=6, max_size=6))
def test_every_code_is_a_value_that_has_a_code(parameter: Parameter, code: list[float]) -> None:
    value = parameter.decode(code[: parameter.width])
    assert parameter.holds(value)
    again = parameter.encode(value)
    assert len(again) == parameter.width
    assert all(0 <= number <= 1 for number in again)
    back = parameter.decode(again)
    assert back == (pytest.approx(value, rel=1e-9) if isinstance(parameter, Float) else value)
    assert json.loads(json.dumps(value)) == value


@given(parameters(), st.integers(1, 9))
def test_a_grid_has_values_without_repetitions(parameter: Parameter, points: int) -> None:
    values = parameter.grid(points)
    assert all(parameter.holds(value) for value in values)
    assert len({(type(value), value) for value in values}) == len(values) or isinstance(parameter, Float)
    assert 1 <= len(values) <= max(points, parameter.categories)


def test_whole_numbers_are_equally_likely() -> None:
    values = [Int(0, 3).decode([at / 40]) for at in range(41)]
    assert [values.count(number) for number in range(4)] == [10, 10, 10, 11]
    rng = np.random.default_rng(0)
    counts = np.bincount([Int(5, 9).decode([each]) for each in rng.random(20000).tolist()])[5:]
    assert (abs(counts - 4000) < 300).all()


def test_words_are_equally_likely_and_one_block() -> None:
    choice = Categorical(["a", "b", "c"])
    rng = np.random.default_rng(0)
    drawn = [choice.decode(rng.random(3).tolist()) for _ in range(9000)]
    assert all(abs(drawn.count(each) - 3000) < 300 for each in choice.values)
    assert (Categorical(["a"]).width, Categorical([0, 1]).width, choice.width) == (0, 1, 3)


def test_true_and_1_are_different_words() -> None:
    choice = Categorical([True, 1, 0, False])
    assert [choice.index(value) for value in (True, 1, 0, False)] == [0, 1, 2, 3]
    assert not Categorical([0, 1]).holds(True)


CONDITIONAL = Space(
    {
        "margin": Float(0, 1, when={"loss": ["hinge"]}),
        "loss": Categorical(["squared", "hinge"]),
        "steps": Int(1, 3, when={"margin": 0.0}),
    }
)


def test_parameters_exist_where_their_conditions_hold() -> None:
    assert CONDITIONAL.decode([0.5, 0.0, 0.5]) == {"loss": "squared"}
    assert CONDITIONAL.decode([0.5, 1.0, 0.5]) == {"loss": "hinge", "margin": 0.5}
    assert CONDITIONAL.decode([0.0, 1.0, 0.5]) == {"loss": "hinge", "margin": 0.0, "steps": 2}
    assert CONDITIONAL.encode({"loss": "squared"}).tolist() == [0.5, 0.25, 0.5]


def test_a_space_may_be_declared_in_toml(tmp_path: Path) -> None:
    text = """
        rate = {type = "float", low = 1e-4, high = 1, log = true}
        [loss]
        type = "choice"
        values = ["squared", "hinge"]
        [margin]
        type = "float"
        low = 0
        high = 1
        when = {loss = "hinge"}
    """
    file = tmp_path / "space.toml"
    file.write_text(text, "utf-8")
    space = Space.from_toml(text)
    assert space.described() == Space.from_toml(file).described() == Space.from_toml(str(file)).described()
    assert space.parameters["margin"] == Float(0, 1, when={"loss": "hinge"})
    assert Space(json.loads(json.dumps(space.described()))).described() == space.described()


def test_every_tunable_option_is_a_parameter() -> None:
    tunable = {option.name for option in REGISTRY.options if option.tunable}
    space = space_of_options(REGISTRY)
    assert set(space.parameters) == tunable
    assert space.parameters["cb_type"] == Categorical(("mtr", "dr", "ips"))
    for name, parameter in space_of_options(REGISTRY, ["power_t"]).parameters.items():
        assert (name, parameter.kind) == ("power_t", "float")
    with pytest.raises(OptionError, match=r"'bit_precision' cannot be searched; these can: learning_rate"):
        space_of_options(REGISTRY, ["bit_precision"])


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({}, "no parameters"),
        ({"x": 3}, "x: give a Float, Int or Categorical"),
        ({"x": {"type": "real"}}, r"type = float \| int \| choice"),
        ({"x": {"type": "float", "low": 0}}, "x: .*high"),
        ({"x": {"type": "float", "low": 2, "high": 1}}, r"x: Float\(2, 1\) has no values"),
        ({"x": {"type": "float", "low": 0, "high": 1, "log": True}}, "lower bound must be positive"),
        ({"x": {"type": "float", "low": "0", "high": 1}}, "bounds must be numbers"),
        ({"x": {"type": "float", "low": 0, "high": float("inf")}}, "bounds must be finite"),
        ({"x": {"type": "int", "low": 0.5, "high": 1}}, "whole numbers"),
        ({"x": {"type": "choice", "values": []}}, "no values"),
        ({"x": {"type": "choice", "values": "abc"}}, "not one text"),
        ({"x": {"type": "choice", "values": ["a", "a"]}}, "is repeated"),
        ({"x": {"type": "choice", "values": [[1]]}}, "is not a text, number"),
        ({"x": {"type": "float", "low": 0, "high": 1, "when": {"y": 1}}}, "'y', which is not in the space"),
        (
            {"x": Float(0, 1, when={"y": 5}), "y": Int(0, 3)},
            "x depends on y = 5, which is outside type int, low 0, high 3",
        ),
        ({"x": Int(0, 1, when={"y": 1}), "y": Int(0, 1, when={"x": 1})}, "in a circle: x, y"),
    ],
)
def test_invalid_spaces_are_rejected(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Space(declared)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"loss": "squared", "z": 1}, "'z' is not in the space; it has margin, loss, steps"),
        (
            {"loss": "cubic"},
            r"loss = 'cubic' is outside the space; valid is type choice, values \['squared', 'hinge'\]",
        ),
        ({"loss": "hinge"}, "the config has no 'margin'; valid is type float, low 0, high 1"),
        ({"loss": "hinge", "margin": 2.0}, "margin = 2.0 is outside"),
        ({"loss": "squared", "margin": 0.5}, "'margin' does not exist in this config"),
    ],
)
def test_a_config_outside_the_space_is_rejected(config: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        CONDITIONAL.check(config)


def test_invalid_toml_is_reported_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "space.toml"
    file.write_text("x = {", "utf-8")
    with pytest.raises(OptionError, match=r"space\.toml: "):
        Space.from_toml(file)
    with pytest.raises(OptionError, match=r"none\.toml: "):
        Space.from_toml(str(tmp_path / "none.toml"))


def test_the_earlier_name_of_a_categorical_is_accepted() -> None:
    assert Choice is Categorical
    described = Space({"loss": Choice(["a", "b"])}).described()
    assert described == {"loss": {"type": "choice", "values": ["a", "b"]}}
