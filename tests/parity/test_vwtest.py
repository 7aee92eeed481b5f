"""The script that runs VW's own tests compares as VW's runner does and refuses by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.parity.vwtest_plan import NotCovered, difference, plan, same_number


@pytest.mark.parametrize(
    ("actual", "reference", "same"),
    [
        (0.00005, 0.0, True),
        (0.0002, 0.0, False),
        (20_001.0, 20_000.0, True),
        (20_003.0, 20_000.0, False),
        (0.5, 0.5002, False),
        (float("nan"), float("nan"), True),
        (float("inf"), float("-inf"), True),
        (float("nan"), 0.0, False),
    ],
)
def test_numbers_are_equal_absolutely_or_above_one_relatively(
    actual: float, reference: float, *, same: bool
) -> None:
    assert same_number(actual, reference) is same


def test_text_is_compared_word_by_word() -> None:
    assert difference("a 1.00001,2:3", "  a   1.0,2:3 ") is None
    assert difference("a 1.1,2:3", "a 1.0,2:3") == "line 1: reference 'a 1.0,2:3', ours 'a 1.1,2:3'"
    assert difference("a 1:2", "a 1,2") is not None
    assert difference("0.5...", "0.5") is None
    assert "ours 2" in (difference("a\nb", "a") or "")


def _plan(command: str, root: Path, **entries: Any) -> tuple[str, ...]:
    (root / "data.txt").write_text("1 |a x\n")
    (root / "pointer.txt").write_text("version https://git-lfs.github.com/spec/v1\n")
    outputs = {"stderr": "ref.stderr", "stdout": "ref.stdout"}
    test = {"vw_command": command, "diff_files": outputs, "input_files": ["data.txt"], **entries}
    return plan(test, root=root).argv


def test_flags_on_caches_are_left_out(tmp_path: Path) -> None:
    command = "-k -c --cache_file c.cache -d data.txt --passes=2 -q ab"
    assert _plan(command, tmp_path) == ("-d", "data.txt", "--passes=2", "-q", "ab")


def test_dependency_of_a_test_runs_before_it(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("1 |a x\n")
    outputs = {"stderr": "ref.stderr"}
    first = {"id": 1, "vw_command": "-d data.txt -f m/a.model", "diff_files": outputs}
    then = {"id": 2, "vw_command": "-d data.txt -i m/a.model -t", "diff_files": outputs, "depends_on": [1]}
    last = {"id": 3, "vw_command": "-d data.txt -i m/a.model", "diff_files": outputs, "depends_on": [2, 1]}
    others: dict[int, dict[str, Any]] = {1: first, 2: then, 3: last}
    found = plan(last, root=tmp_path, others=others)
    assert [each.argv[-1] for each in found.first] == ["m/a.model", "-t"]
    assert found.first[0].written == ("m/a.model",)
    with pytest.raises(NotCovered, match="--nn"):
        plan(then, root=tmp_path, others=others | {1: first | {"vw_command": "-d data.txt --nn 2"}})


@pytest.mark.parametrize(
    ("command", "entries", "reason"),
    [
        ("-d data.txt --csv", {}, "not covered: --csv"),
        ("-d data.txt --affix=2", {}, "not covered: --affix"),
        ("-d data.txt -i old.model", {}, "begins with a model file of Vowpal Wabbit's"),
        ("-d data.txt --cb_type sm", {}, "refused: --cb_type cannot be sm"),
        ("--cb_adf", {}, "no input file"),
        ("-d data.txt", {"input_files": ["gone.txt"]}, "data file missing"),
        ("-d data.txt", {"input_files": ["pointer.txt"]}, "data file missing"),
        ("-d data.txt", {"input_files": ["made.txt"], "depends_on": [1]}, "needs another test's output"),
        ("-d data.txt", {"diff_files": {"stdout": "ref.stdout"}}, "nothing to compare but the log"),
    ],
)
def test_unsupported_options_are_named(
    command: str, entries: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(NotCovered) as refused:
        _plan(command, tmp_path, **entries)
    assert str(refused.value).startswith(reason)


def test_predictions_on_standard_output_are_compared(tmp_path: Path) -> None:
    assert _plan("-d data.txt -p stdout", tmp_path, diff_files={"stdout": "ref.stdout"})
