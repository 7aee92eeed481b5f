"""Names of the features of a line, beside the hashes that reading it gives."""

from __future__ import annotations

import re
from typing import Any

import pytest

from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.interop.named_blocks import line_names, named_blocks
from onlineauto.interop.names import LineNames
from onlineauto.workspace.options import REGISTRY
from tests.parity.json_streams import JSON_STREAMS
from tests.parity.streams import STREAMS

pytestmark = pytest.mark.lane("quick")

UNNAMED = re.compile(r"(?:.*\^)?[0-9]{6,}")


def named(text: bytes, **options: Any) -> list[list[str]]:
    """Names of the features of each event, in order."""
    configuration = REGISTRY.from_keywords(**options)
    names, found = line_names(configuration), []
    for block in named_blocks(text, configuration, Diagnostics(), names=names):
        bounds = block.line_start[block.event_start]
        spans = [
            (
                block.namespaces.names[block.span_namespace[i]],
                block.namespaces.hashes[block.span_namespace[i]],
                slice(block.span_start[i], block.span_start[i + 1]),
            )
            for i in range(bounds[0], bounds[1])
        ]
        found.append(
            [
                names.name_of(name, hash_, seed=seed)
                for name, seed, of in spans
                for hash_ in block.hash[of].tolist()
            ]
        )
    return found


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "native"])
def test_text(exact: bool) -> None:
    text = b"1 |user tom age:0.5 day:mon 007 7 | :2 x |user:2 ann\n0 |user tom\n"
    assert named(text, vw_exact=exact) == [
        ["user^tom", "user^age", "user^day^mon", "user^007", "user^7", "", "x", "user^ann"],
        ["user^tom"],
    ]


def test_strings_of_the_exact_text() -> None:
    text = b"1 |a d:|x e: |b f: ::\n"
    assert named(text, vw_exact=True)[0] == ["a^d^|x", "a^e^|b", "a^f^::"]


@pytest.mark.parametrize(
    ("options", "city", "sharp"),
    [({}, "U^cityNew_York", "sharp"), ({"chain_hash": True}, "U^city^New_York", "sharp")],
    ids=["together", "chained"],
)
def test_json(options: dict[str, Any], city: str, sharp: str) -> None:
    text = (
        b'{"U": {"city": "New York", "age": 3, "l": [2, 0, 4]}, "_text": "a b:c", "sharp": true, "no": null}'
    )
    expected = ["l^[0]", "l^[2]", city, "U^age", "a", "b_c", sharp]
    assert named(text, json=True, **options) == [expected]
    assert sorted(named(text, json=True, hash="all", hash_seed=3, **options)[0]) == sorted(expected)


def test_a_log_is_read_in_its_context() -> None:
    text = b'{"c": {"u": 1, "_multi": [{"A": {"x": 2}}, {"z": "w"}]}, "a": [1, 2], "_x": 3}\nnot json\n'
    assert named(text, dsjson=True, cb_adf=True) == [["u", "A^x", "zw"]]


@pytest.mark.parametrize("stream", ["numbers", "weighted", "bandit", "classic_bandit"])
@pytest.mark.parametrize("seed", [0, 9])
def test_every_feature_of_a_text_has_a_name(stream: str, seed: int) -> None:
    kinds: dict[str, dict[str, Any]] = {"bandit": {"cb_adf": True}, "classic_bandit": {"cb": 5}}
    found = named(STREAMS[stream](40, 1), hash_seed=seed, **kinds.get(stream, {}))
    assert found
    assert not [name for names in found for name in names if UNNAMED.fullmatch(name)]


@pytest.mark.parametrize("chained", [True, False])
@pytest.mark.parametrize("hash_", ["strings", "all"])
def test_every_feature_of_a_log_has_a_name(*, chained: bool, hash_: str) -> None:
    text = JSON_STREAMS["log"](40, 1)
    found = named(text, dsjson=True, cb_adf=True, chain_hash=chained, hash=hash_)
    assert found
    assert not [name for names in found for name in names if UNNAMED.fullmatch(name)]


def test_names_with_one_hash_are_returned_in_turn() -> None:
    names = LineNames()
    names.read("1 |a 07 7")
    assert [names.name_of(b"a", hash_, seed=hash_ - 7) for hash_ in [_hash("7")] * 3] == [
        "a^07",
        "a^7",
        "a^07",
    ]
    names.forget()
    assert names.name_of(b"a", _hash("7"), seed=_hash("7") - 7) == "a^7"


def _hash(name: str) -> int:
    from onlineauto.formats.mappings.name_hashes import NameHashes

    hashes = NameHashes()
    return hashes.feature(name, hashes.namespace("a"))
