"""JSON that is read by the rule of dicts: no line is read by the rule of Vowpal Wabbit instead."""

from __future__ import annotations

import pytest

from onlineauto import Workspace
from onlineauto.formats.lines.diagnostics import Diagnostics

ACTIONS = b'"_multi":[{"arm":"a"},{"arm":"b"}]}'


def _read(context: bytes, *, log: bool) -> tuple[set[int], int]:
    """Return the hashes of the features of an event with this context, and the number of problems."""
    line = context + ACTIONS
    before, _, event = line.partition(b"{")
    line = before + b'{"c":{' + event + b"}" if log else line
    problems = Diagnostics()
    workspace = Workspace(cb_explore_adf=True, names="columns", **{"dsjson" if log else "json": True})
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
