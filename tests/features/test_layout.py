"""Layout: names of a stream become groups, and new names extend them."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

import pytest

from onlineauto.exact.dialect import VwLayout
from onlineauto.features import layout as module
from onlineauto.features.block import Block, Namespaces
from onlineauto.features.layout import StreamLayout
from onlineauto.features.options import FeatureOptions
from onlineauto.workspace.options import REGISTRY
from tests.naive.blocks import Line, make_block

pytestmark = pytest.mark.lane("quick")


def block_of(*names: bytes, namespaces: Namespaces | None = None) -> Block:
    spans = tuple((name, ((1, 1.0),)) for name in names)
    return make_block([(Line(spans=spans),)], namespaces)


def layout_of(*, exact: bool = False, **flags: Any) -> StreamLayout:
    return (VwLayout if exact else StreamLayout)(REGISTRY.from_keywords(**flags)[FeatureOptions])


def products_of(layout: StreamLayout) -> set[tuple[int, ...]]:
    start, key = layout.interactions.start, layout.interactions.factor
    return {tuple(key[a:b].tolist()) for a, b in pairwise(start)}


def test_exact_keys_are_first_bytes() -> None:
    layout = layout_of(exact=True, quadratic=["::"])
    layout.update(block_of(b"ab", b"az", b"c"))
    assert layout.kernel_layout.key.tolist() == [97, 97, 99]
    assert layout.n_keys == 256
    assert products_of(layout) == {(97, 97), (97, 99), (99, 99)}
    assert layout.kernel_layout.constant_key == 128


def test_native_keys_are_names() -> None:
    layout = layout_of(quadratic=["::"])
    layout.update(block_of(b"ab", b"az"))
    assert layout.kernel_layout.key.tolist() == [1, 2]
    assert products_of(layout) == {(1, 1), (1, 2), (2, 2)}
    assert layout.kernel_layout.constant_key == 0


def test_letters_and_full_names_in_native_mode() -> None:
    layout = layout_of(quadratic=["ac"], experimental_full_name_interactions=["az|c"])
    layout.update(block_of(b"ab", b"az", b"c"))
    assert products_of(layout) == {(1, 3), (2, 3)}


def test_no_constant() -> None:
    assert layout_of(noconstant=True).kernel_layout.constant_key == -1


@pytest.mark.parametrize("exact", [True, False])
def test_flags_compare_first_bytes(exact: bool) -> None:
    layout = layout_of(exact=exact, ignore=["a"], ignore_linear=["b", "c"])
    layout.update(block_of(b"ab", b"az", b"b", b"d"))
    columns = layout.kernel_layout
    assert columns.ignore[columns.key].tolist() == [True, True, False, False]
    assert columns.ignore_linear[columns.key].tolist() == [False, False, True, False]


@pytest.mark.parametrize(("exact", "dropped"), [(True, True), (False, False)])
def test_letters_beyond_ascii_are_characters_in_native_mode(exact: bool, dropped: bool) -> None:
    layout = layout_of(exact=exact, ignore=["ж"], ignore_linear=["ж"])
    layout.update(block_of("имя".encode(), "жук".encode()))
    columns = layout.kernel_layout
    assert columns.ignore[columns.key].tolist() == [dropped, True]
    assert columns.ignore_linear[columns.key].tolist() == [dropped, True]


def test_keep_ignores_all_other_namespaces() -> None:
    layout = layout_of(keep=["a"], quadratic=["::"])
    layout.update(block_of(b"ab", b"b"))
    assert layout.kernel_layout.ignore.tolist() == [False, False, True]
    assert products_of(layout) == {(1, 1)}


def test_products_grow_with_the_names() -> None:
    layout, names = layout_of(quadratic=["::"]), Namespaces()
    layout.update(block_of(b"a", namespaces=names))
    assert products_of(layout) == {(1, 1)}
    layout.update(block_of(b"b", namespaces=names))
    assert products_of(layout) == {(1, 1), (1, 2), (2, 2)}


def test_names_of_another_reader_get_new_numbers() -> None:
    layout = layout_of(quadratic=["ab"])
    layout.update(block_of(b"a", b"b"))
    assert products_of(layout) == {(1, 2)}
    layout.update(block_of(b"x", b"b", b"a"))
    assert products_of(layout) == {(3, 2)}


def test_products_never_refer_to_names_that_the_block_lacks() -> None:
    """Kernels would otherwise read beyond the column of groups."""
    layout = layout_of(quadratic=["ab"])
    layout.update(block_of(b"a", b"b"))
    layout.update(block_of())
    assert max((max(each) for each in products_of(layout)), default=0) < layout.n_keys


def test_wildcards_stop_growing_at_a_limit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MAX_PRODUCTS", 6)
    layout = layout_of(quadratic=["::"])
    layout.update(block_of(b"a", b"b", b"c", b"d"))
    assert len(products_of(layout)) == 6
    assert "leave out namespace 'd' and others" in caplog.text


def test_limit_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names are in the order d, c, b, a, in one block or in four."""
    monkeypatch.setattr(module, "MAX_PRODUCTS", 3)
    whole, pieces, names = layout_of(quadratic=["::"]), layout_of(quadratic=["::"]), Namespaces()
    whole.update(block_of(b"d", b"c", b"b", b"a"))
    for name in (b"d", b"c", b"b", b"a"):
        pieces.update(block_of(name, namespaces=names))
    assert products_of(whole) == products_of(pieces)


def test_scratch_has_room_for_the_longest_product() -> None:
    layout = layout_of(interactions=["abaab"])
    layout.update(block_of(b"a", b"b"))
    scratch = layout.scratch(spans=2)
    assert scratch.places["group"].tolist() == [-1] * layout.n_keys
    assert len(scratch.factors) == layout.highest_order == 5
    assert len(scratch.groups) >= 4


@pytest.mark.parametrize("flags", [{}, {"leave_duplicate_interactions": True}, {"permutations": True}])
def test_an_action_has_no_more_features_than_are_bounded(flags: dict[str, Any]) -> None:
    for products in (["::"], ["::", "ab", "ba", "ab"], [":::", "aab"], ["ab", "cd"]):
        layout = layout_of(interactions=products, **flags)
        layout.update(block_of(b"a", b"b", b"c", b"d"))
        for sizes in ((1, 1, 1, 1), (5, 0, 3, 9), (7, 7, 0, 0)):
            start, keys = layout.interactions.start, layout.interactions.factor.tolist()
            most = sum(prod(sizes[key - 1] for key in keys[a:b]) for a, b in pairwise(start))
            assert sum(sizes) + most <= layout.most_features(sum(sizes))
