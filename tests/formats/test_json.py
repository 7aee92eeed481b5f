"""Events of JSON, differences of native mode from VW, messages about bad lines, and reading in chunks."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
import pytest

import onlineauto
from onlineauto.errors import InputError, OptionError, ParseError
from onlineauto.formats.lines.diagnostics import Diagnostics, LogCounts
from tests.formats.odd_json import JSON_KINDS
from tests.formats.reading import json_reader
from tests.naive.hashing import hash_name
from tests.naive.lines import Line, unpack
from tests.parity.json_streams import JSON_STREAMS

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

pytestmark = pytest.mark.lane("sampled")

LABEL = {"_label_cost": -1, "_label_probability": 0.5, "_label_Action": 2, "_labelIndex": 1}
CONTEXT = {"User": {"age": 3}, "_multi": [{"A": {"x": 1}}, {"A": {"x": 2}}]}
GOOD = json.dumps({**LABEL, "a": [2, 1], "c": CONTEXT}).encode()


class Drop(io.RawIOBase):
    """A file that hands out one byte at a time, as a slow pipe would."""

    def __init__(self, text: bytes) -> None:
        self.text, self.given = text, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        part = self.text[self.given : self.given + 1]
        memoryview(buffer).cast("B")[: len(part)] = part
        self.given += len(part)
        return len(part)


def events(text: bytes, kind: str = "log", **options: Any) -> list[list[Line]]:
    reader = json_reader(text, **({"log": False} | JSON_KINDS[kind] | options))
    found = unpack(reader)
    assert not reader.diagnostics.kept
    return found


def messages(text: bytes, kind: str = "log", **options: Any) -> tuple[int, list[str]]:
    reader = json_reader(text, name="file", **({"log": False} | JSON_KINDS[kind] | options))
    n = sum(len(block) for block in reader)
    return n, [str(diagnostic) for diagnostic in reader.diagnostics.kept]


# -- native mode -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [False, True])
def test_an_event_of_a_log(exact: bool) -> None:
    [[shared, first, second]] = events(GOOD, exact=exact)
    assert (shared.shared, shared.costs, first.costs) == (True, [], [])
    assert second.costs == [(2, -1.0, 0.5)]
    assert shared.spans == [(b"User", [(hash_name(b"age", hash_name(b"User", 0)), 3.0)])]
    assert [value for _, [(_, value)] in (first.spans[0], second.spans[0])] == [1.0, 2.0]


def test_the_keys_of_an_event_may_have_any_order() -> None:
    late = json.dumps({"c": CONTEXT, "a": [2, 1], **LABEL}).encode()
    assert events(late) == events(GOOD)
    [[_, _, second]] = events(late, exact=True)
    assert second.costs == []


@pytest.mark.parametrize("left_out", ["_labelIndex", "_label_Action"])
def test_either_index_or_action_locates_the_label(left_out: str) -> None:
    label = {key: value for key, value in LABEL.items() if key != left_out}
    [[_, first, second]] = events(json.dumps({**label, "c": CONTEXT}).encode())
    assert (first.costs, [cost[1:] for cost in second.costs]) == ([], [(-1.0, 0.5)])


@pytest.mark.parametrize(
    "label", ['"_label":"2:-1:0.5"', '"_label":{"Cost":-1,"Probability":0.5,"Action":2}']
)
def test_a_label_may_be_inside_its_action(label: str) -> None:
    text = '{"_multi":[{"a":1},{' + label + ',"a":1}]}'
    for exact in (False, True):
        [[_, first, second]] = events(text.encode(), "contexts", exact=exact)
        assert (first.costs, second.costs) == ([], [(2, -1.0, 0.5)])


def test_strings_and_truth_values_of_an_array_are_features() -> None:
    [[line]] = events('{"Tags":["a b",true,2,null,"é",false]}'.encode(), "simple")
    seed = hash_name(b"Tags", 0)
    of_strings = [(hash_name(word, seed), 1.0) for word in (b"a_b", "é".encode())]
    assert line.spans == [(b"Tags", [of_strings[0], (seed + 1, 1.0), (seed + 2, 2.0), of_strings[1]])]
    for array in (b'["a"]', b"[true]"):
        n, found = messages(b'{"Tags":' + array + b"}", "simple", exact=True)
        assert (n, len(found)) == (0, 1)


def test_a_namespace_may_have_any_name() -> None:
    text = '{"日本":{"a":1},"User":{"b":1}}'.encode()
    assert [name for name, _ in events(text, "simple")[0][0].spans] == ["日本".encode(), b"User"]
    assert [name for name, _ in events(text, "simple", exact=True)[0][0].spans] == [b"User"]


@pytest.mark.parametrize(("chain", "expected"), [(False, b"kv_w"), (True, b"v_w")])
def test_strings_are_hashed_with_their_key(chain: bool, expected: bytes) -> None:
    [[line]] = events(b'{"N":{"k":"v w"}}', "simple", chain_hash=chain)
    seed = hash_name(b"N", 0)
    assert line.spans[0][1] == [(hash_name(expected, hash_name(b"k", seed) if chain else seed), 1.0)]


def test_namespaces_count_in_the_order_in_which_they_are_closed() -> None:
    [[line]] = events(b'{"a":1,"N":{"x":1,"M":{"y":1},"z":1},"b":1}', "simple")
    assert [name for name, _ in line.spans] == [b"M", b"N", b"N", b" ", b" "]


def test_members_after_the_actions_are_shared() -> None:
    [[shared, action]] = events(b'{"_multi":[{"x":1}],"User":{"a":1}}', "contexts")
    assert [name for name, _ in shared.spans] == [b"User"]
    assert [name for name, _ in action.spans] == [b" "]


def test_pdrop_sets_the_weight_of_the_event() -> None:
    reader = json_reader(GOOD[:-1] + b', "pdrop": 0.75}', **JSON_KINDS["log"])
    [block] = reader
    assert block.weight.tolist() == [4.0] * 3
    assert not reader.diagnostics.kept


# -- bad lines ---------------------------------------------------------------------------------------------

BAD = [
    (b"nothing", "1: line is no JSON object: 'nothing'"),
    (b"[1]", "1: line is no JSON object: '[1]'"),
    (b'{"c":{}', "8: '' where '}', or ',' and a name in quotes belong"),
    (b'{"c" 1}', "6: '1}' where the ':' after a name belongs"),
    (b'{"c":{"a":tru}}', "11: 'tru}}' where a JSON value belongs"),
    (b'{"c":{"a":01}}', "11: '01}}' where a JSON value belongs"),
    (b'{"c":{"a":"x}}', "11: string '\"x}}' has no end, a control byte or an unknown escape"),
    (b'{"c":{"a":"\\x"}}', "12: string '\\x\"}}' has no end, a control byte or an unknown escape"),
    (b'{"c":{"a":[1 2]}}', "14: '2]}}' where ',' or ']' belongs"),
    (b'{"c":{"a":[[1]]}}', "12: '[1]]}}' is of a type that does not belong there"),
    (b'{"c":{"a":1e39}}', "11: value '1e39' of a feature is infinite, NaN or too large"),
    (b'{"c":{"a":1}}', "1: the event has no actions: '_multi' is missing or empty"),
    (b'{"c":{"_slots":[]}}', "7: key '\"_slots\"' does not belong there, or not to this kind of learning"),
    (b'{"c":{"_labels":1}}', "7: key '\"_labels\"' does not belong there, or not to this kind of learning"),
    (b'{"c":{"_multi":[{}]}} x', "23: 'x' after the end of the JSON object"),
    (b'{"c":' + b'{"a":' * 300, "1281: too many nested objects and arrays: 256 are allowed"),
    (GOOD.replace(b"0.5", b"0"), "43: probability '0' is 0: the logged action cannot have been chosen"),
    (GOOD.replace(b'Index": 1', b'Index": 2'), "83: '2' labels an action that the event does not have"),
    (GOOD[:-1] + b', "pdrop": 1}', None),
    (b'{"_label_cost":1,"_label_probability":1,"c":{"_multi":[{}]}}', None),
    (b'{"c":{"_multi":[{"_label":"1:x:1"}]}}', "27: label '\"1:x:1\"' is malformed"),
    (b'{"c":{"_multi":[{}]},"c":{}}', "26: second context '{'"),
]


@pytest.mark.parametrize(("line", "message"), BAD)
def test_a_bad_line_is_reported_and_skipped(line: bytes, message: str | None) -> None:
    n, found = messages(GOOD + b"\n" + line + b"\n\n" + GOOD)
    assert n == 2
    assert len(found) == 1
    assert found[0].startswith("file:2:")
    assert found[0].endswith("; line skipped")
    if message is not None and b"1e39" not in line:
        assert found[0] == f"file:2:{message}; line skipped"


UNUSED = [
    (GOOD.replace(b"0.5", b'"NaN"'), "43: probability '\"NaN\"' is infinite, NaN or too large"),
    (GOOD.replace(b": -1", b': "NaN"'), "17: cost '\"NaN\"' is infinite, NaN or too large"),
    (b'{"c":{"_multi":[{"_label":"1:NaN:1"}]}}', "27: cost '\"1:NaN:1\"' is infinite, NaN or too large"),
]
"""Events whose label is not finite: they are read without it."""


@pytest.mark.parametrize(("line", "message"), UNUSED)
def test_an_event_whose_label_is_not_finite_has_no_label(line: bytes, message: str) -> None:
    n, found = messages(GOOD + b"\n" + line + b"\n\n" + GOOD)
    assert (n, found) == (3, [f"file:2:{message}; label not used"])
    [read] = unpack(json_reader(line, **JSON_KINDS["log"]))
    assert not any(each.costs for each in read)


def test_null_keeps_its_index_in_an_array() -> None:
    [[with_null]] = events(b'{"a":[0.5,null,2]}', "simple")
    [[with_zero]] = events(b'{"a":[0.5,0,2]}', "simple")
    assert with_null.spans == with_zero.spans


@pytest.mark.parametrize(("line", "message"), [*BAD, *UNUSED])
def test_strict_parse_stops_at_a_bad_line(line: bytes, message: str | None) -> None:
    reader = json_reader(GOOD + b"\n" + line + b"\n" + GOOD, strict=True, **JSON_KINDS["log"])
    blocks = reader.blocks()
    assert len(next(blocks)) == 1
    with pytest.raises(ParseError, match="reading stopped") as caught:
        next(blocks)
    assert caught.value.line == 2


@pytest.mark.parametrize(
    "line",
    [
        *(line for line, _ in BAD[:10] + BAD[12:16] + BAD[20:]),
        GOOD[:-1] + b', "pdrop": 1}',
        GOOD[:-1] + b', "pdrop": -1}',
        GOOD + b"\0",
        b'{"c":{"_multi":[{"_label":{"Action":-1,"Cost":1}}]}}',
    ],
)
def test_both_modes_report_malformed_json_equally(line: bytes) -> None:
    text = GOOD + b"\n" + line + b"\n\n" + GOOD
    assert messages(text, exact=True) == messages(text)
    assert messages(text, exact=True)[0] == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"c":{"_multi":[{}]},"x" :1}', "22: '\"x\" :' where the ':' after a name belongs"),
        (b'{"c":{"_multi":[{},null]}}', "20: 'null]}}' is of a type that does not belong there"),
        (b'{"c":{"_multi":[{}],"_multi":[{}]}}', "30: '[{}]}}' is of a type that does not belong there"),
        (b" " + GOOD, None),
    ],
)
def test_exact_mode_locates_json_that_vw_cannot_read(line: bytes, message: str | None) -> None:
    text = GOOD + b"\n" + line + b"\n" + GOOD
    n, found = messages(text, exact=True)
    assert (n, len(found)) == (2, 1)
    assert found[0].startswith(f"file:2:{message or '1: line is no JSON object'}")
    assert messages(text) == (3, [])


# -- chunks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("stream", ["log", "contexts", "lines"])
def test_chunks_of_any_size_give_the_same(stream: str, exact: bool) -> None:
    text = JSON_STREAMS[stream](20, 1)
    options: dict[str, Any] = {"log": False} | JSON_KINDS["simple" if stream == "lines" else stream]
    options |= {"exact": exact}
    whole = unpack(json_reader(text, **options))
    assert len(whole) > 10
    for block_bytes in (1, 7, 1000):
        assert unpack(json_reader(text, block_bytes=block_bytes, **options)) == whole
    assert unpack(json_reader(cast("BinaryIO", Drop(text)), **options)) == whole


def test_each_event_comes_with_the_end_of_its_line() -> None:
    text = JSON_STREAMS["contexts"](6, 1).replace(b"\r\n", b"\n") + b"\n"
    pipe = Drop(text)
    ends = [i + 1 for i, byte in enumerate(text) if byte == 10]
    came = []
    for block in json_reader(cast("BinaryIO", pipe), log=False, **JSON_KINDS["contexts"]):
        assert len(block) == 1
        came.append(pipe.given)
    assert came == ends


# -- counts, and the rest of the house ---------------------------------------------------------------------


def test_events_and_costs_of_a_log_are_counted() -> None:
    lines = [
        json.dumps({"EventId": "é", "_original_label_cost": -2, "a": [1], "c": CONTEXT}),
        json.dumps({"EventId": "late", "RewardValue": 1}),
        json.dumps({"EventId": "", "Timestamp": "now", "_skipLearn": True, "a": [2], "c": CONTEXT}),
        "x",
        json.dumps({"EventId": "last", "_original_label_cost": -0.5, "a": [2, 1], "c": CONTEXT}),
    ]
    for block_bytes in (16, 1 << 18):
        diagnostics = Diagnostics()
        reader = json_reader(
            "\n".join(lines).encode(), diagnostics=diagnostics, block_bytes=block_bytes, **JSON_KINDS["log"]
        )
        assert sum(len(block) for block in reader) == 2
        assert (
            diagnostics.log
            == reader.counts
            == LogCounts(
                line_parse_error=1,
                number_events_zero_actions=1,
                number_skipped_events=1,
                dsjson_sum_cost_original=-2.5,
                dsjson_sum_cost_original_baseline=-2.0,
                first_event_id="é",
                first_event_time="now",
                last_event_id="last",
            )
        )


def test_several_files_of_a_log_are_counted_together() -> None:
    draw, lines = np.random.default_rng(0), []
    for n in range(60):
        event: dict[str, Any] = {"a": [2 - n % 2, 1], "_ba": [2], "c": CONTEXT} if n % 5 else {"a": []}
        event |= {"_original_label_cost": float(draw.random()), "_skipLearn": n % 7 == 3}
        event |= {"EventId": f"e{n}" if n % 3 else "", "Timestamp": f"t{n}"}
        lines.append(json.dumps(event).encode() + b"\n")
    options: dict[str, Any] = {"cb_explore_adf": True, "dsjson": True}
    found: list[Any] = []
    for parts in (1, 2, 4):
        each = len(lines) // parts
        files = [io.BytesIO(b"".join(lines[i : i + each])) for i in range(0, len(lines), each)]
        workspace = onlineauto.Workspace(**options).fit(files)
        found.append(workspace.diagnostics.log)
    assert found[0] == found[1] == found[2]
    assert (found[0].first_event_id, found[0].last_event_time) == ("e1", "t59")
    originals = np.array([json.loads(line)["_original_label_cost"] for line in lines], np.float32)
    assert found[0].dsjson_sum_cost_original == np.add.accumulate(originals)[-1]


def test_a_workspace_learns_json() -> None:
    text = JSON_STREAMS["log"](80, 2)
    one, other = (onlineauto.Workspace(dsjson=True, cb_explore_adf=True, quadratic="::") for _ in range(2))
    with pytest.warns(UserWarning, match=r"2, of which the first: <bytes>:56:722: '\['"):
        one.fit(text)
    with pytest.warns(UserWarning, match="2, of which the first: .*'\\['"):
        other.fit(line for line in text.split(b"\n") if line)
    np.testing.assert_array_equal(one.weights, other.weights)
    assert one.weights.any()
    event = GOOD.decode()
    np.testing.assert_array_equal(one.predict(event), one.learn(event))
    with pytest.raises(InputError, match="no actions"):
        one.learn('{"c":{}}')
    [read] = onlineauto.read(GOOD, dsjson=True, cb_adf=True).events()
    assert read.actions[1].costs == ((2, -1.0, 0.5),)


def test_two_formats_are_rejected() -> None:
    with pytest.raises(OptionError, match="--json and --dsjson are two formats"):
        onlineauto.Workspace(json=True, dsjson=True)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" * 400, "1." + "0" * 70 + "e400"])
@pytest.mark.parametrize("key", ["age", "_label_cost", "_label_probability", "_labelIndex", "list"])
def test_a_number_that_is_too_large_is_reported_as_one(key: str, number: str) -> None:
    text = json.dumps({**LABEL, "a": [2, 1], "c": {**CONTEXT, "User": {"list": [3], "age": 2}}})
    before, name, after = text.partition(f'"{key}": ')
    listed = key == "list"
    after = after[listed:].lstrip("-0123456789.")
    line = f"{before}{name}{'[' * listed}{number}{after}"
    column = len(before) + len(name) + listed + 1
    shown = number if len(number) <= 60 else number[:60] + "..."
    found = [f"file:1:{column}: number '{shown}' is too large; line skipped"]
    assert messages(f"{line}\n".encode() + GOOD) == (1, found)


@pytest.mark.parametrize("number", ["01", "1.", "1e", "-", "x"])
def test_a_malformed_number_is_not_too_large(number: str) -> None:
    n, (found,) = messages(b'{"c":{"a":' + number.encode() + b"}}\n" + GOOD)
    assert n == 1
    assert "where a JSON value belongs" in found


@pytest.mark.parametrize("index", ["-1", "-5", "0.5", "2", "4294967295", "99999999999"])
@pytest.mark.parametrize("has_action", [True, False])
def test_an_index_of_no_action_is_reported(index: str, has_action: bool) -> None:
    label = {key: value for key, value in LABEL.items() if key != "_label_Action" or has_action}
    text = json.dumps({**label, "c": CONTEXT}).replace('"_labelIndex": 1', f'"_labelIndex": {index}')
    n, (found,) = messages(f"{text}\n".encode() + GOOD)
    assert n == 1
    assert found.endswith(f": '{index}' labels an action that the event does not have; line skipped")
