"""Model files of the wheel that were cut off or changed: refused, or models; never anything else."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING

import pytest

from onlineauto.errors import InputError, OptionError
from onlineauto.interop import read_vw_model
from tests.parity.vw_models import ModelCase, lay_out, theirs

if TYPE_CHECKING:
    from pathlib import Path

    from tests.parity.wheel import Wheel

_CASES = (
    ModelCase("numbers", "-b 6"),
    ModelCase("bandit", "-b 6 --cb_explore_adf --squarecb"),
    ModelCase("bandit", "-b 8 --cb_explore_adf --automl 3 --default_lease 10"),
    ModelCase("rewards", "-b 8 --cb_explore_adf --epsilon_decay --min_scope 10"),
    ModelCase("slots", "-b 8 --ccb_explore_adf"),
)
_TIMES = 400
_EVENTS = {
    "simple": "1 |a x:2 y |b z",
    "ccb_explore_adf": "ccb shared |U ash\nccb action |A item3\nccb action |A item1\nccb slot 1:-0.5:0.3 |\n",
    "cb_explore_adf": "shared |U ash age:3 |T t1\n|A item3 price:2 |V v2\n1:-0.5:0.3 |A item1\n",
}


def _saved(case: ModelCase, wheel: Wheel, directory: Path) -> bytes:
    lay_out(case, directory, events=60)
    theirs(wheel, f"{case.flags} -d first -f model.vw", directory=directory)
    return (directory / "model.vw").read_bytes()


def _end_of_options(data: bytes) -> int:
    """Where the checksum ends."""
    (size,) = struct.unpack_from("<I", data, 37)
    return 37 + 4 + int(size) + 8


@pytest.fixture(params=_CASES, ids=lambda case: case.flags)
def saved(request: pytest.FixtureRequest, wheel: Wheel, tmp_path: Path) -> bytes:
    return _saved(request.param, wheel, tmp_path)


def test_no_bit_of_the_options_can_change(saved: bytes) -> None:
    for bit in range(8 * _end_of_options(saved)):
        damaged = bytearray(saved)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(InputError):
            read_vw_model(bytes(damaged))


def test_a_file_that_was_cut_off_is_refused(saved: bytes) -> None:
    cell = 16  # its number and three floats
    for end in range(len(saved) - 1, 0, -1 if len(saved) < 2000 else -7):
        if (len(saved) - end) % cell:
            with pytest.raises(InputError):
                read_vw_model(saved[:end])


def test_damage_behind_the_options_is_refused_or_is_another_model(saved: bytes) -> None:
    draw = random.Random(5)
    begin = _end_of_options(saved)
    n_refused = 0
    for _ in range(_TIMES):
        damaged = bytearray(saved)
        for _ in range(draw.choice((1, 1, 4))):
            damaged[draw.randrange(begin, len(saved))] = draw.randrange(256)
        try:
            model = read_vw_model(bytes(damaged))
        except InputError:
            n_refused += 1
            continue
        for _ in range(3):
            model.learn(_EVENTS[model.kind])
    assert n_refused


def test_what_is_no_model_is_refused_by_name(saved: bytes, tmp_path: Path) -> None:
    draw = random.Random(7)
    for data in (b"", b"0 |a x\n", draw.randbytes(200), saved[:4] + b"8.11.9" + saved[10:]):
        (tmp_path / "other").write_bytes(data)
        with pytest.raises(InputError, match="other is not a whole model file of Vowpal Wabbit: "):
            read_vw_model(tmp_path / "other")
    with pytest.raises(InputError, match=r"version 8\.11\.9, but only version 9\.11\.9 can be read"):
        read_vw_model(saved[:4] + b"8.11.9" + saved[10:])
    with pytest.raises(InputError, match=r"cannot read the model .*: No such file"):
        read_vw_model(tmp_path / "nowhere")


def test_options_that_are_not_reproduced_are_named(wheel: Wheel, tmp_path: Path) -> None:
    _saved(ModelCase("numbers", "--nn 3"), wheel, tmp_path)
    with pytest.raises(
        InputError, match=r"model.vw was made with options that onlineauto does not reproduce: .*--nn"
    ):
        read_vw_model(tmp_path / "model.vw")


def test_options_of_the_file_stay(wheel: Wheel, tmp_path: Path) -> None:
    _saved(ModelCase("bandit", "--cb_explore_adf --epsilon 0.1 --hash all"), wheel, tmp_path)
    assert read_vw_model(tmp_path / "model.vw", epsilon=0.3).configuration.get("epsilon") == 0.3
    with pytest.raises(OptionError, match=r"cannot use --hash strings: .*model.vw was made with --hash all"):
        read_vw_model(tmp_path / "model.vw", hash="strings")
