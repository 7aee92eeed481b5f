"""JSON that is read by the rule of dicts: no line is read by the rule of Vowpal Wabbit instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas
import pytest

from onlineauto import InputError, Workspace
from onlineauto.features.block import Block
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.interop import from_dicts, from_frame

pytestmark = pytest.mark.lane("sampled")

OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "json": True, "names": "columns"}
ACTIONS = b'"_multi":[{"arm":"a"},{"arm":"b"}]}'


def _read(context: bytes, *, log: bool) -> tuple[set[int], int]:
    """Return the hashes of the features of an event with this context, and the number of problems."""
    line = context + ACTIONS
    before, _, event = line.partition(b"{")
    line = before + b'{"c":{' + event + b"}" if log else line
    problems = Diagnostics()
    workspace = Workspace(cb_explore_adf=True, names="columns", json=not log, dsjson=log)
    blocks = list(workspace.read(line + b"\n", diagnostics=problems))
    return {int(each) for block in blocks for each in block.hash}, problems.total


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "context",
    [
        b'{"user":"x","q":"Caf\xe9",',
        b'\xef\xbb\xbf{"user":"x",',
        b'{"user":"x","_tag":"Caf\xe9",',
        b'{"user":"x","page":{"Caf\xe9":1},',
    ],
)
def test_bytes_that_json_readers_accept_do_not_change_the_rule(context: bytes, log: bool) -> None:
    found, problems = _read(context, log=log)
    assert _read(b'{"user":"x",', log=log)[0] <= found
    assert not problems


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "context", [b'{"q\\u0000":"a",', b'{"Caf\xe9":"a",', b'{"q":[[1,2]],', b'{"q":1e39,', b'{"_c0":"x",']
)
def test_a_line_that_cannot_be_rewritten_is_malformed(context: bytes, log: bool) -> None:
    assert _read(context, log=log) == (set(), 1)


def test_names_that_begin_with_an_underscore_are_names_of_features() -> None:
    found, problems = _read(b'{"user":{"_id":"x"},', log=False)
    assert len(found) == 3
    assert not problems


def _rows(arms: list[object]) -> Iterator[Block]:
    rows = {"arm": arms, "cost": [1.0] * len(arms), "p": [0.5] * len(arms)}
    return from_frame(pandas.DataFrame(rows), actions="arm", cost="cost", probability="p")


def test_numbers_of_json_do_not_become_identities() -> None:
    line = b'{"_label_cost":1,"_label_probability":0.5,"_labelIndex":0,"user":"x","_multi":[{"arm":%d},{}]}\n'
    later = b'{"_label_cost":1,"_label_probability":0.5,"_labelIndex":0,"_multi":[{"arm":5},{"arm":7}]}\n'
    other = line.replace(b'"arm":%d', b'"kind":1')
    for text in (line % 5, other * 200 + later):
        workspace = Workspace(**OPTIONS).fit(text)
        for door in (workspace.fit, lambda rows, of=workspace: list(map(of.predict_block, rows))):
            with pytest.raises(InputError, match="'arm' has names here, and the model has learnt numbers"):
                door(_rows([5, 7]))


def test_a_model_of_very_many_numbers_refuses_identities() -> None:
    wide = {f"c{number}": 1.0 for number in range(5000)}
    event = {"context": wide, "actions": [{"x": 1}, {"x": 2}], "chosen": 0, "cost": 1, "probability": 0.5}
    workspace = Workspace(cb_explore_adf=True).fit(from_dicts([event]))
    with pytest.raises(InputError, match="numbers of 4,096 columns or more"):
        workspace.fit(_rows([5, 7]))
