"""Other inputs and outputs than a text file and ``-p``: packed input, raw predictions, metrics."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from tests.parity.case import content
from tests.parity.ours import command_line, without_diagnostics
from tests.parity.wheel import printed_lines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.parity.wheel import Wheel

COMMANDS = """
-d numbers.txt.gz -p predictions
-d numbers.txt --compressed -p predictions
-d weighted.txt -r raw -p predictions --link logistic
-d signs.txt -r raw -p predictions --binary --loss_function logistic
-d numbers.txt --extra_metrics metrics
-d weighted.txt --extra_metrics metrics
-d bandit.txt --cb_explore_adf --extra_metrics metrics
-d bandit.txt --cb_adf --extra_metrics metrics
-d classic_bandit.txt --cb_explore 4 --extra_metrics metrics
-d classic_bandit.txt --cb 4 --extra_metrics metrics
-d log.txt --dsjson --cb_explore_adf --extra_metrics metrics
-d log.txt --dsjson --cb_adf --extra_metrics metrics -p predictions
-d log.txt --dsjson --cb_adf -q UA --extra_metrics metrics
-d contexts.txt --json --cb_explore_adf --extra_metrics metrics
-d numbers.txt --quiet -p predictions
-d numbers.txt --random_seed 5 --holdout_off
-d bandit.txt --cb_explore_adf --strict_parse
-d numbers.txt -q ab --cubic bcd --ignore d --keep a --ignore_linear a --l1 0.1 --l2 0.3 --power_t 0.123456789
-d numbers.txt --decay_learning_rate 0.5 --initial_t 1234567.5 -b 12 -l 1e-7 --sgd
""".strip().splitlines()

STREAMS = ("numbers", "weighted", "signs", "bandit", "classic_bandit", "json/log", "json/contexts")
WRITTEN = ("predictions", "raw", "metrics")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for stream in STREAMS:
        text = content(stream, events=100)
        stream = stream.removeprefix("json/")
        (tmp_path / f"{stream}.txt").write_bytes(text)
        (tmp_path / f"{stream}.txt.gz").write_bytes(gzip.compress(text))
    return tmp_path


def _written(directory: Path) -> dict[str, bytes]:
    files = [directory / name for name in WRITTEN if (directory / name).exists()]
    found = {file.name: file.read_bytes() for file in files}
    for file in files:
        file.unlink()
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_other_outputs_are_as_the_wheel_writes_them(command: str, wheel: Wheel, directory: Path) -> None:
    argv = command.split()
    code, _, err = wheel.command_line(argv, directory=directory)
    theirs = _written(directory)
    mine = command_line(["learn", *argv, "--vw_exact"], directory=directory)
    assert (code, mine[0]) == (0, 0)
    assert _written(directory) == theirs
    assert printed_lines(without_diagnostics(mine[2])) == printed_lines(err)
