"""The features of an example, listed in Python with their names, equal those of a reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from onlineauto import Workspace
from onlineauto.features.block import Namespaces
from onlineauto.workspace.inspection.named_examples import NamedExamples
from tests.naive.blocks import Event, make_block, name_hash
from tests.naive.features import Featurizer
from tests.property.strategies import bandit_events, simple_events

OPTIONS: list[dict[str, Any]] = [
    {},
    {"quadratic": ["::"], "noconstant": True},
    {"cubic": ["aab"], "quadratic": ["aa"], "permutations": True},
    {"interactions": ["::::"], "ignore": ["b"]},
    {
        "quadratic": ["ab", "ba"],
        "leave_duplicate_interactions": True,
        "ignore_linear": ["a"],
        "bit_precision": 6,
    },
]


class Numbers:
    """Calls features by their numbers."""

    def name_of(self, namespace: bytes, hash_: int, *, seed: int) -> str:
        return f"{namespace.decode()}^{(hash_ - seed) % 2**32}"


def _check(event: Event, options: dict[str, Any], *, exact: bool) -> None:
    workspace = Workspace(vw_exact=exact, **options)
    twin = Featurizer(
        cells=len(workspace.weights),
        exact=exact,
        quadratic=options.get("quadratic", ()),
        cubic=options.get("cubic", ()),
        interactions=options.get("interactions", ()),
        ignore=tuple(letter.encode() for text in options.get("ignore", ()) for letter in text),
        ignore_linear=tuple(letter.encode() for text in options.get("ignore_linear", ()) for letter in text),
        noconstant=options.get("noconstant", False),
        permutations=options.get("permutations", False),
        leave_duplicates=options.get("leave_duplicate_interactions", False),
    )
    block = make_block([event], Namespaces())
    twin.see(event)
    shared = event[0] if event[0].shared else None
    actions = event[1:] if shared else event
    found = list(NamedExamples(workspace, Numbers()).examples_of(block))
    assert len(found) == len(actions)
    for example, line in zip(found, actions, strict=True):
        expected = twin.action(line, shared).features
        used = [(each.cell, each.value) for each in example.features if each.used]
        assert [cell for cell, _ in used] == [cell for cell, _ in expected]
        np.testing.assert_array_equal([x for _, x in used], [x for _, x in expected])


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "native"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@given(events=bandit_events(max_size=1))
@settings(max_examples=15, deadline=None)
def test_actions(options: dict[str, Any], exact: bool, events: list[Event]) -> None:
    _check(events[0], {"cb_adf": True, **options}, exact=exact)


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "native"])
@given(events=simple_events(max_size=1))
@settings(max_examples=15, deadline=None)
def test_lines(exact: bool, events: list[Event]) -> None:
    _check(events[0], {"quadratic": ["::"]}, exact=exact)


def test_names_of_crossed_features_are_joined() -> None:
    workspace = Workspace(quadratic="ab")
    block = next(iter(workspace.read(b"1 |a x y |b z\n")))
    [example] = NamedExamples(workspace, Numbers()).examples_of(block)
    x, y, z = (_number(name, of) for name, of in (("x", "a"), ("y", "a"), ("z", "b")))
    names = [each.name for each in example.features]
    assert names == [f"a^{x}", f"a^{y}", f"b^{z}", "Constant", f"a^{x}*b^{z}", f"a^{y}*b^{z}"]


def _number(name: str, namespace: str) -> int:
    from onlineauto.formats.mappings.name_hashes import NameHashes

    hashes = NameHashes()
    return (hashes.feature(name, hashes.namespace(namespace)) - name_hash(namespace.encode())) % 2**32
