"""Declaring options: what a field of a dataclass says about its flag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from onlineauto.options import Registry, option, options_of, title_of

pytestmark = pytest.mark.lane("quick")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    title: ClassVar[str] = "All kinds"

    switch: bool = option(False, "A switch.")
    count: int = option(3, "A whole number.", short="c", minimum=1, maximum=9)
    rate: float = option(0.5, "A number.", above=0, metavar="RATE")
    word: str = option("one", "A word.", choices=("one", "two"))
    perhaps: float | None = option(None, "A number, or not.")
    many: tuple[str, ...] = option((), "Words.", keep=True, vw=False)


def test_a_field_is_a_flag() -> None:
    found = {each.name: each for each in options_of(Kinds)}
    assert list(found) == ["switch", "count", "rate", "word", "perhaps", "many"]
    assert [each.kind for each in found.values()] == [bool, int, float, str, float, str]
    assert [name for name, each in found.items() if each.optional] == ["perhaps"]
    assert [name for name, each in found.items() if each.repeatable] == ["many"]
    assert [name for name, each in found.items() if each.switch] == ["switch"]
    assert found["many"].keep
    assert not found["many"].vw
    assert found["count"].flag == "--count"
    assert [each.metavar for each in found.values()] == ["", "INT", "RATE", "STR", "FLOAT", "STR"]
    assert title_of(Kinds) == "All kinds"


def test_the_dataclass_is_an_ordinary_one() -> None:
    assert Kinds() == Kinds(count=3, rate=0.5)
    assert Kinds(many=("a",)).many == ("a",)


def test_a_field_without_option_is_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Forgotten:
        count: int = 3

    with pytest.raises(TypeError, match=r"Forgotten\.count is not declared with option\(\)"):
        options_of(Forgotten)


def test_an_annotation_that_no_flag_can_take_is_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Odd:
        plane: complex = option(0j, "No.")

    with pytest.raises(TypeError, match="--plane: an option cannot be annotated"):
        options_of(Odd)


def test_two_options_of_one_name_are_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class SameName:
        count: int = option(1, "Again.")

    @dataclass(frozen=True, kw_only=True)
    class SameLetter:
        other: int = option(1, "Again.", short="c")

    with pytest.raises(ValueError, match="--count is declared twice"):
        Registry([Kinds, SameName])
    with pytest.raises(ValueError, match="-c is declared twice"):
        Registry([Kinds, SameLetter])
