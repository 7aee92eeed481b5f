"""Messages about malformed input, and the events around it, which are read."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from onlineauto.errors import InputError, ParseError
from onlineauto.features.block import UNLABELLED, Block
from onlineauto.formats.lines.diagnostics import Diagnostics, ProblemCode, make_diagnostic
from tests.formats.reading import SHAPES, events, messages, text_reader
from tests.naive.lines import unpack

pytestmark = pytest.mark.lane("sampled")

GOOD = b"shared |u a\n0:1:0.5 |a x\n|a y\n\n"
SIMPLE = [
    (b"x |a x", "1: label 'x' is not a number"),
    (b"1x |a x", "1: label '1x' is not a number"),
    (b"1 y |a x", "3: importance weight 'y' is not a number"),
    (b"1 -2 |a x", "3: importance weight '-2' is negative"),
    (b"1 2 z |a x", "5: initial prediction 'z' is not a number"),
    (b"1 2 inf |a x", "5: initial prediction 'inf' is infinite, NaN or too large"),
    (b"1 2 3 4 |a x", "7: '4' after label, weight and initial prediction"),
    (b"1 no bar", "1: no '|' in '1 no bar'"),
    (b'{"a": 1}', "1: no '|' in '{\"a\": 1}'"),
    (b"1 |a x\0y", "7: not text (control byte '\\x00')"),
    (b"1 |a x\ry", "7: not text (control byte '\\x0d')"),
    (b"1 |:3 x", "4: ':' after '|', where a name or a blank belongs"),
    (b"1 |a: x", "6: no weight after the ':' of a namespace"),
    (b"1 |a:b x", "6: weight 'b' of a namespace is not a number"),
    (b"1 |a:2x x", "6: weight '2x' of a namespace is not a number"),
    (b"1 |a:nan x", "6: weight 'nan' of a namespace is infinite, NaN or too large"),
    (b"1 |a d: x", "6: no value after the ':' of feature 'd:'"),
    (b"1 |a d:|b x", "6: no value after the ':' of feature 'd:'"),
    (b"1 |a x:inf", "8: value 'inf' of a feature is infinite, NaN or too large"),
    (b"1 |a x:-NaN", "8: value '-NaN' of a feature is infinite, NaN or too large"),
    (b"1 |a x:1e39", "8: value '1e39' of a feature is infinite, NaN or too large"),
    (b"1 |a:1e30 x:1e30", "13: value '1e30' of a feature is infinite, NaN or too large"),
    (b"1 |a color:red|b x", "12: '|' right after the string 'red|', without a blank between"),
]
BANDIT = [
    (b"|a x\n0:1 |a y", "2:1: label '0:1' has no probability, see --missing_probability"),
    (b"|a x\n0:1: |a y", "2:5: probability '' is not a number"),
    (b"|a x\n0:1:0 |a y", "2:5: probability '0' is 0: the logged action cannot have been chosen"),
    (b"|a x\n0:1:1e-99 |a y", "2:5: probability '1e-99' is 0: the logged action cannot have been chosen"),
    (b"|a x\n0:1:1.5 |a y", "2:5: probability '1.5' is above 1"),
    (b"|a x\n0:1:-.5 |a y", "2:5: probability '-.5' is negative"),
    (b"|a x\n0:1:p |a y", "2:5: probability 'p' is not a number"),
    (b"|a x\n0:c:.5 |a y", "2:3: cost 'c' is not a number"),
    (b"|a x\n0 |a y", "2:1: label '0' has no cost and no probability"),
    (b"|a x\n:1:.5 |a y", "2:1: no action before ':' in label ':1:.5'"),
    (b"|a x\n0:1:.5:2 |a y", "2:1: label '0:1:.5:2' has more parts than action:cost:probability"),
    (b"0:1:.5 |a x\n1:0:.5 |a y", "2:1: label '1:0:.5' on a second line of the event"),
    (b"|a x\n0:1:.5 1:0:.5 |a y", "2:8: second label '1:0:.5' on a line that is one action"),
    (b"|a x\nshared |u b", "2:1: 'shared' not on the first line of the event"),
    (b"shared 0:1:.5 |u b\n|a x", "1:8: label '0:1:.5' on a shared line"),
    (b"shared:1:.5 |u b\n|a x", "1:1: label 'shared:1:.5' on a shared line"),
    (b"shared |u b", "1:1: event has a shared line and no action"),
]
CB = [
    (b"1:2 |a x", "1: label '1:2' has no probability, see --missing_probability"),
    (b"best:2:.5 |a x", "1: action of label 'best:2:.5' is not a number"),
    (b"1:2:0 |a x", "5: probability '0' is 0: the logged action cannot have been chosen"),
]


UNUSED = [
    (b"nan |a x", "1: label 'nan' is infinite, NaN or too large"),
    (b"-inf |a x", "1: label '-inf' is infinite, NaN or too large"),
    (b"3.4028235e38 |a x", "1: label '3.4028235e38' is infinite, NaN or too large"),
    (b"1 1e99 |a x", "3: importance weight '1e99' is infinite, NaN or too large"),
]
"""Lines whose label is not finite: they are read without it."""
UNUSED_BANDIT = [
    (b"|a x\n0:1:nan |a y", "2:5: probability 'nan' is infinite, NaN or too large"),
    (b"|a x\n0:nan:.5 |a y", "2:3: cost 'nan' is infinite, NaN or too large"),
    (b"|a x\n0:inf:.5 |a y", "2:3: cost 'inf' is infinite, NaN or too large"),
]


@pytest.mark.parametrize(("line", "message"), SIMPLE)
def test_a_bad_line_is_skipped_and_the_rest_is_used(line: bytes, message: str) -> None:
    n, reports = messages(b"1 |a x\n" + line + b"\n0 |a y\n")
    assert (n, reports) == (2, [f"file:2:{message}; line skipped"])


@pytest.mark.parametrize(("line", "message"), CB)
def test_a_bad_line_of_cb_is_skipped(line: bytes, message: str) -> None:
    n, reports = messages(b"1:2:1 |a x\n" + line + b"\n|a y\n", "cb")
    assert (n, reports) == (2, [f"file:2:{message}; line skipped"])


@pytest.mark.parametrize(("event", "message"), BANDIT)
def test_an_event_with_a_bad_line_is_skipped(event: bytes, message: str) -> None:
    line, _, rest = message.partition(":")
    n, reports = messages(GOOD + event + b"\nnonsense\n\n" + GOOD, "cb_adf")
    assert n == 2
    if event != b"shared |u b":  # there the second line is what is wrong
        assert reports == [f"file:{int(line) + 4}:{rest}; event skipped"]
    assert messages(event, "cb_adf") == (0, [f"file:{message}; event skipped"])


@pytest.mark.parametrize(("line", "message"), UNUSED)
def test_a_line_whose_label_is_not_finite_has_no_label(line: bytes, message: str) -> None:
    n, reports = messages(b"1 |a x\n" + line + b"\n0 |a y\n")
    assert (n, reports) == (3, [f"file:2:{message}; label not used"])
    [read] = unpack(text_reader(line, **SHAPES["simple"]))
    assert (read[0].label, read[0].weight) == (float(UNLABELLED), 1.0)


def test_a_line_without_its_label_keeps_its_initial_prediction() -> None:
    [read] = unpack(text_reader(b"nan 1 0.5 |a x", **SHAPES["simple"]))
    assert (read[0].label, read[0].initial) == (float(UNLABELLED), 0.5)


@pytest.mark.parametrize(("event", "message"), UNUSED_BANDIT)
def test_an_event_whose_label_is_not_finite_has_no_label(event: bytes, message: str) -> None:
    line, _, rest = message.partition(":")
    n, reports = messages(GOOD + event + b"\n\n" + GOOD, "cb_adf")
    assert (n, reports) == (3, [f"file:{int(line) + 4}:{rest}; label not used"])
    [read] = unpack(text_reader(event, **SHAPES["cb_adf"]))
    assert [each.costs for each in read] == [[], []]


def test_one_of_several_costs_that_is_not_finite_is_not_used() -> None:
    n, reports = messages(b"1:2:1 |a x\n1:2:.5 2:nan:.5 |a x\n|a y\n", "cb")
    message = "10: cost 'nan' is infinite, NaN or too large"
    assert (n, reports) == (3, [f"file:2:{message}; label not used"])


@pytest.mark.parametrize(("line", "message"), SIMPLE + UNUSED)
def test_strict_reading_stops_at_a_bad_line_after_the_events_before(line: bytes, message: str) -> None:
    reader = text_reader(
        b"1 |a x\n1 |a y\n" + line + b"\n0 |a y\n", multiline=False, strict=True, name="file"
    )
    blocks = iter(reader)
    assert len(next(blocks)) == 2
    with pytest.raises(ParseError) as caught:
        next(blocks)
    assert str(caught.value) == f"file:3:{message}; reading stopped"
    assert (caught.value.line, caught.value.column) == (3, int(message.partition(":")[0]))


def test_strict_reading_yields_whole_events_only() -> None:
    reader = text_reader(GOOD + b"|a x\n0:1 |a y\n\n" + GOOD, **SHAPES["cb_adf"], strict=True, name="file")
    blocks = iter(reader)
    assert [len(block) for block in [next(blocks)]] == [1]
    with pytest.raises(
        ParseError,
        match=r"file:6:1: label '0:1' has no probability, see --missing_probability; reading stopped",
    ):
        next(blocks)


def test_a_value_that_begins_like_a_number_is_a_reported_string() -> None:
    n, reports = messages(b"1 |a d:2020-01-01 x\n1 |a d:2020-01-01 x\n", strict=True)
    message = "8: value '2020-01-01' begins like a number and is none; used as a string"
    assert (n, reports) == (2, [f"file:{line}:{message}" for line in (1, 2)])


@pytest.mark.parametrize(
    ("text", "kind"), [(b"1|a x", "simple"), (b"0:1:0.5|a x", "cb_adf"), (b"shared|a x\n|b y", "cb_adf")]
)
def test_a_label_that_touches_the_bar_is_reported(text: bytes, kind: str) -> None:
    label = text.partition(b"|")[0].decode()
    n, reports = messages(text, kind)
    assert n == 1
    assert reports == [f"file:1:1: '{label}' touches '|', which makes a label a tag; used as the tag"]


def test_a_truncated_file_yields_all_whole_events() -> None:
    text = b"".join(b"%d |a x:%d y\n" % (i % 2, i + 1) for i in range(100))
    for cut in range(len(text) - 12, len(text)):
        found = events(text[:cut])
        assert len(found) >= 99
    n, reports = messages(text[: text.rindex(b"|")])
    assert (n, reports) == (99, ["file:100:1: no '|' in '1 '; line skipped"])


@pytest.mark.parametrize(
    ("kept", "least", "most", "reason"),
    [
        (0.5, 10_000, 40_000, "the gzip data end too early: the file is truncated; everything"),
        (1.0, 50_000, 50_000, "the gzip data are damaged ("),  # a wrong checksum
    ],
)
def test_a_damaged_gzip_file_yields_the_events_before_the_damage(
    kept: float, least: int, most: int, reason: str
) -> None:
    packed = gzip.compress(b"".join(b"%d |a x:%d\n" % (i % 2, i * i) for i in range(50_000)), mtime=0)
    damaged = packed[: int(kept * len(packed))] if kept < 1 else packed[:-8] + bytes(8)
    blocks: list[Block] = []
    with pytest.raises(InputError) as caught:
        blocks.extend(text_reader(damaged, multiline=False, name="file.gz"))
    n = sum(map(len, blocks))
    assert least <= n <= most
    assert str(caught.value).startswith(f"file.gz:{n + 1}: {reason}")


def test_a_binary_file_is_counted_and_not_read() -> None:
    noise = np.random.default_rng(3).integers(0, 256, 100_000, dtype=np.uint8).tobytes()
    reader = text_reader(b"1 |a x\n" + noise + b"\n0 |a y\n", multiline=False)
    n = sum(map(len, reader))
    assert n < 30
    assert len(reader.diagnostics.kept) == 100
    assert reader.diagnostics.total > 200
    assert reader.diagnostics.counts[ProblemCode.CONTROL_BYTE] > 100


def test_a_line_of_ten_megabytes_is_a_line() -> None:
    words = b" ".join(b"w%d:%d" % (i, i % 7) for i in range(1_000_000))
    assert len(words) > 8_000_000
    long = b"1 |a " + words + b" " * 2_000_000
    blocks = list(text_reader(b"0 |b y\n" + long + b"\n0 |b z\n", multiline=False))
    assert sum(map(len, blocks)) == 3
    assert sum(block.n_features for block in blocks) == 1_000_000 - 1_000_000 // 7 - 1 + 2


def test_an_event_without_end_is_rejected_after_the_events_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("onlineauto.formats.lines.line_reader.LARGEST_EVENT", 2**21)
    blocks = iter(text_reader(b"1 |a x\n" + bytes(2**23), multiline=False))
    assert len(next(blocks)) == 1
    with pytest.raises(InputError, match=r":2: no event ends within 2097152 bytes; is this text\?"):
        list(blocks)


def test_an_event_that_does_not_fit_into_memory_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = text_reader(b"1 |a x\n" + bytes(2**23), multiline=False)
    monkeypatch.setattr(reader, "_size_for", lambda _: 2**62)
    with pytest.raises(InputError, match="bytes of text do not fit into memory"):
        list(reader)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("separator", [b" ", b"\n1 "])
def test_a_hundred_thousand_namespaces(exact: bool, separator: bytes) -> None:
    text = b"1 " + separator.join(b"|name%d x" % i for i in range(100_000)) + b"\n"
    reader = text_reader(text, multiline=False, exact=exact)
    spans = np.concatenate([block.span_namespace for block in reader])
    assert spans.tolist() == list(range(100_000))
    assert reader.namespaces.names == [b"name%d" % i for i in range(100_000)]
    assert not reader.diagnostics.kept


def test_names_may_be_any_utf8() -> None:
    ((line,),) = events("1 |été 日本:2 ß |日 naïve:2 ключ:значение\n".encode())
    assert [name.decode() for name, _ in line.spans] == ["été", "日"]
    assert [len(features) for _, features in line.spans] == [2, 2]


def test_no_value_that_reaches_the_learner_is_infinite_or_nan() -> None:
    words = b"inf -inf nan 1e39 -1e39 1e-50 infinity 1e400 0e99 nan(1)".split()
    text = b"".join(b"1 |a x:%b\n%b |a x\n1 %b |a x\n1 |a:%b x\n" % (w, w, w, w) for w in words)
    for block in text_reader(text, multiline=False):
        for column in (block.label, block.weight, block.initial, block.value):
            assert np.isfinite(column).all()
    text = b"".join(b"0:%b:.5 |a x\n\n0:1:%b |a x\n\n" % (w, w) for w in words)
    for block in text_reader(text, **SHAPES["cb_adf"]):
        assert np.isfinite(block.cost).all()
        assert ((block.probability > 0) & (block.probability <= 1)).all()


def test_exact_mode_warns_as_vw_does() -> None:
    text = b"1 |a x:nan d:2020-01-01 b |m c\n1 |n:abc x\n1 2 3 4 |a x\nz -1 |a x\n1 |:3\n1 |a:2\n"
    n, reports = messages(text, exact=True)
    assert n == 6
    malformed, dropped = "malformed example!", "rest of the line dropped"
    assert reports == [
        "file:1:8: Invalid feature value:'nan d:2020-01-01 b |m c' read as NaN; 0 used instead",
        f"file:1:3: {malformed} '|',space, or EOL expected after : '|a x:nan d:2020'; {dropped}",
        f"file:1:3: {malformed} '|' or EOL expected after : '|a x:nan d:2020'; {dropped}",
        f"file:2:3: {malformed} '|',space, or EOL expected after : '|n:'; {dropped}",
        f"file:2:3: {malformed} '|' or EOL expected after : '|n:'; {dropped}",
        "file:3:1: too many tokens for a simple label: '1 2 3 4 '; label dropped",
        "file:4:1: 'z' is not a good float; 0 used instead",
        "file:4:1: invalid importance weight ('z -1 '); importance weights must be non-negative; not trained",
        f"file:5:3: {malformed} '|',String,space, or EOL expected after : '|'; {dropped}",
        f"file:5:3: {malformed} '|' or EOL expected after : '|'; {dropped}",
        f"file:6:3: {malformed} Float expected after : '|a:'; used as it is",
    ]


def test_exact_mode_stops_where_vw_stops() -> None:
    reader = text_reader(
        GOOD + b"|a x\n0:1:.5:2 |a y\n\n" + GOOD, **SHAPES["cb_adf"], exact=True, name="file"
    )
    blocks = iter(reader)
    assert [len(event) for event in [next(blocks).event_start]] == [3]  # VW learns the line before, too
    with pytest.raises(
        ParseError, match=r"file:6:1: malformed cost specification: '0:1:.5:2'; reading stopped"
    ):
        next(blocks)


def test_strict_exact_mode_stops_at_a_malformed_line() -> None:
    reader = text_reader(
        b"1 |a x\nz |a x\n1 |a x:2:3\n", multiline=False, exact=True, strict=True, name="file"
    )
    blocks = iter(reader)
    assert len(next(blocks)) == 2
    with pytest.raises(ParseError) as caught:
        next(blocks)
    assert str(caught.value) == (
        "file:3:3: malformed example! '|',space, or EOL expected after : '|a x:2'; reading stopped"
    )


def test_exact_mode_rejects_a_command_to_save() -> None:
    n, reports = messages(b"1 |a x\nsave_model\n1 |a y\n", exact=True)
    message = "'save_model' is a command to save the model, which the text cannot give; line skipped"
    assert (n, reports) == (2, [f"file:2:1: {message}"])


def test_problems_are_counted_and_the_first_hundred_are_reported() -> None:
    told: list[str] = []
    diagnostics = Diagnostics(listener=lambda diagnostic: told.append(str(diagnostic)))
    text = b"x |a x\n" * 1000 + b"1 |a x\n"
    assert sum(map(len, text_reader(text, multiline=False, diagnostics=diagnostics, block_bytes=256))) == 1
    assert diagnostics.counts == {ProblemCode.LABEL_NOT_A_NUMBER: 1000}
    assert diagnostics.total == 1000
    assert told == [str(d) for d in diagnostics.kept]
    assert [d.line for d in diagnostics.kept] == list(range(1, 101))


def test_a_fatal_problem_is_reported_after_a_thousand_others() -> None:
    text = b"|a x:nan\n" * 1000 + b"1:2:3:4 |a x\n"
    reader = text_reader(text, label="cb", multiline=False, exact=True, name="file")
    with pytest.raises(ParseError, match=r"^file:1001:1: malformed cost specification: '1:2:3:4'"):
        list(reader)


# -- messages --------------------------------------------------------------------------------------------


def worded(code: ProblemCode, text: bytes) -> str:
    return str(make_diagnostic(code, file="f", line=3, column=7, text=text, unit="event"))


@pytest.mark.quick
@pytest.mark.parametrize("code", [code for code in ProblemCode if code != ProblemCode.FINE])
def test_every_code_has_a_message(code: ProblemCode) -> None:
    reports = worded(code, b"what")
    assert reports.startswith("f:3:7: ")
    assert "; " in reports
    assert "{" not in reports


@pytest.mark.quick
def test_long_text_is_shortened_and_unprintable_characters_are_escaped() -> None:
    assert worded(ProblemCode.NO_BAR, b"a" * 61) == f"f:3:7: no '|' in '{'a' * 60}...'; event skipped"
    assert worded(ProblemCode.NO_BAR, b"a" * 60) == f"f:3:7: no '|' in '{'a' * 60}'; event skipped"
    assert worded(ProblemCode.NO_BAR, b"\xff\x00\t") == "f:3:7: no '|' in '\\xff\\x00\\x09'; event skipped"
    assert (
        worded(ProblemCode.NO_BAR, "日".encode() * 30) == f"f:3:7: no '|' in '{'日' * 20}...'; event skipped"
    )


@pytest.mark.quick
def test_a_fatal_problem_stops_the_reading() -> None:
    diagnostic = make_diagnostic(
        ProblemCode.NO_VALUE, file="f", line=1, column=1, text=b"x:", unit="line", fatal=True
    )
    assert str(diagnostic) == "f:1:1: no value after the ':' of feature 'x:'; reading stopped"
