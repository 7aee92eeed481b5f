"""Models of VW are read and written with the same predictions; damaged files are rejected."""

from __future__ import annotations

import random
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.errors import InputError, OptionError
from onlineauto.interop import read_vw_model, write_vw_model
from onlineauto.interop.vw.file import VwHead, VwShape, read_vw_file, vw_file_bytes
from onlineauto.interop.vw.model import load_vw_model
from onlineauto.interop.vw.options import configuration_of, shape_of
from onlineauto.workspace.options import REGISTRY
from tests.parity.flag_sets import CASES
from tests.parity.test_parity import STALE
from tests.parity.vw import VwRunner
from tests.parity.vw_models import FROM_VW, NATIVE, TO_VW, ModelCase, lay_out, run_exact, run_vw, same_text

_NUMBER = re.compile(r"(?<=[:\n ,])-?\d[\d.]*(?:e-?\d+)?")

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


def _saved(case: ModelCase, vw: VwRunner, directory: Path) -> bytes:
    lay_out(case, directory, events=60)
    run_vw(vw, f"{case.flags} -d first -f model.vw", directory=directory)
    return (directory / "model.vw").read_bytes()


def _end_of_options(data: bytes) -> int:
    """Return the offset behind the checksum."""
    (size,) = struct.unpack_from("<I", data, 37)
    return 37 + 4 + int(size) + 8


@pytest.fixture(params=_CASES, ids=lambda case: case.flags)
def saved(request: pytest.FixtureRequest, vw: VwRunner, tmp_path: Path) -> bytes:
    return _saved(request.param, vw, tmp_path)


def test_no_bit_of_the_options_can_change(saved: bytes) -> None:
    for bit in range(8 * _end_of_options(saved)):
        damaged = bytearray(saved)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(InputError):
            read_vw_model(bytes(damaged))


def test_truncated_file_is_rejected(saved: bytes) -> None:
    cell = 16  # its number and three floats
    for end in range(len(saved) - 1, 0, -1 if len(saved) < 2000 else -7):
        if (len(saved) - end) % cell:
            with pytest.raises(InputError):
                read_vw_model(saved[:end])


def test_damage_after_the_options_is_rejected_or_gives_another_model(saved: bytes) -> None:
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


def test_files_that_are_no_models_are_rejected(saved: bytes, tmp_path: Path) -> None:
    draw = random.Random(7)
    for data in (b"", b"0 |a x\n", draw.randbytes(200), saved[:4] + b"8.11.9" + saved[10:]):
        (tmp_path / "other").write_bytes(data)
        with pytest.raises(InputError, match="other is not a whole model file of Vowpal Wabbit: "):
            read_vw_model(tmp_path / "other")
    with pytest.raises(InputError, match=r"version 8\.11\.9, but only version 9\.11\.9 .*: let .* -f new"):
        read_vw_model(saved[:4] + b"8.11.9" + saved[10:])
    with pytest.raises(InputError, match=r"cannot read the model .*: No such file"):
        read_vw_model(tmp_path / "nowhere")


def test_options_that_are_not_reproduced_are_named(vw: VwRunner, tmp_path: Path) -> None:
    _saved(ModelCase("numbers", "--nn 3"), vw, tmp_path)
    with pytest.raises(InputError, match="--nn"):
        read_vw_model(tmp_path / "model.vw")


def test_options_of_the_file_stay(vw: VwRunner, tmp_path: Path) -> None:
    _saved(ModelCase("bandit", "--cb_explore_adf --epsilon 0.1 --hash all"), vw, tmp_path)
    assert read_vw_model(tmp_path / "model.vw", epsilon=0.3).configuration.get("epsilon") == 0.3
    with pytest.raises(OptionError, match=r"cannot use --hash strings: .*model.vw was made with --hash all"):
        read_vw_model(tmp_path / "model.vw", hash="strings")


def by_id(cases: list[ModelCase]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.id)


@by_id(FROM_VW)
def test_model_of_vw_is_loaded(case: ModelCase, vw: VwRunner, tmp_path: Path) -> None:
    lay_out(case, tmp_path)
    extra = "--cache_file c -k" if "--passes" in case.flags else ""
    run_vw(vw, f"{case.flags} -d first -f model.vw {extra}", directory=tmp_path)
    run_vw(vw, f"-t -i model.vw {case.again} -d second -p tested", directory=tmp_path)
    run_vw(vw, f"-i model.vw {case.again} -d second -p learnt -f later.vw", directory=tmp_path)
    run_exact(f"convert model.vw model.oam {case.again}", directory=tmp_path)
    run_exact("-t -i model.oam -d second -p our_tested", directory=tmp_path)
    run_exact("-i model.oam -d second -p our_learnt -f later.oam", directory=tmp_path)
    assert same_text(tmp_path, "tested", "our_tested")
    assert same_text(tmp_path, "learnt", "our_learnt")
    _same_weights(tmp_path, case)


def _same_weights(directory: Path, case: ModelCase) -> None:
    expected = load_vw_model(directory / "later.vw", REGISTRY.parse(case.again))[0].weights[:, :3]
    found = Workspace.load(directory / "later.oam").weights[:, :3]
    assert (expected.view(np.uint32) == found.view(np.uint32)).all()


@by_id(TO_VW)
def test_saved_model_is_loaded_by_vw(case: ModelCase, vw: VwRunner, tmp_path: Path) -> None:
    lay_out(case, tmp_path, events=600 if case.stream == "odd" else 300)
    for name, flags in (("model", ""), ("small", "--predict_only_model")):
        run_exact(f"{case.flags} --vw_exact -d first -f {name}.oam {flags}", directory=tmp_path)
        given = "-t " if flags else ""
        run_exact(f"convert {given}{name}.oam {name}.vw", directory=tmp_path)
        run_exact(f"-t -i {name}.oam -d second -p our_{name}", directory=tmp_path)
        run_vw(vw, f"-t -i {name}.vw -d second -p their_{name} {_again(case)}", directory=tmp_path)
        assert same_text(tmp_path, f"their_{name}", f"our_{name}")


def _again(case: ModelCase) -> str:
    """VW wants a loss to be named that it has options for, though a model may not have learnt by it."""
    return case.again if "--loss_function" in case.again else ""


@by_id([case for case in TO_VW if "--automl" not in case.flags])
def test_vw_continues_learning_from_a_saved_model(case: ModelCase, vw: VwRunner, tmp_path: Path) -> None:
    lay_out(case, tmp_path)
    run_exact(f"{case.flags} --vw_exact -d first -f model.oam", directory=tmp_path)
    run_exact("convert model.oam model.vw", directory=tmp_path)
    run_exact("-i model.oam -d second -p actual", directory=tmp_path)
    run_vw(vw, f"-i model.vw -d second -p expected {_again(case)}", directory=tmp_path)
    assert same_text(tmp_path, "expected", "actual")


@by_id(NATIVE)
def test_native_model_is_loaded_by_vw(case: ModelCase, vw: VwRunner, tmp_path: Path) -> None:
    lay_out(case, tmp_path)
    run_exact(f"{case.flags} -d first -f model.oam", directory=tmp_path)
    run_exact("convert model.oam model.vw", directory=tmp_path)
    run_exact("-t -i model.oam -d second -p actual", directory=tmp_path)
    run_vw(vw, "-t -i model.vw -d second -p expected", directory=tmp_path)
    one, other = (_numbers(tmp_path / name) for name in ("actual", "expected"))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=2e-6)


def _numbers(path: Path) -> list[float]:
    return list(map(float, _NUMBER.findall("\n" + path.read_text())))


@by_id(FROM_VW[::4])
def test_model_read_and_written_again_is_the_same_file(case: ModelCase, vw: VwRunner, tmp_path: Path) -> None:
    """A model that is read and written again has the same bytes."""
    lay_out(case, tmp_path)
    run_vw(vw, f"{case.flags} -d first -f model.vw --id mine", directory=tmp_path)
    data = (tmp_path / "model.vw").read_bytes()
    shapes: list[VwShape] = []

    def shape(head: VwHead) -> VwShape:
        shapes.append(shape_of(head, configuration_of(head, REGISTRY.parse(case.again), name="")))
        return shapes[-1]

    assert vw_file_bytes(read_vw_file(data, name="", shape=shape), shape=shapes[0]) == data


def test_vw_saves_a_loaded_model_unchanged(vw: VwRunner, tmp_path: Path) -> None:
    """VW saves the same bytes again after our write, except for the counters of the run."""
    case = ModelCase("bandit", "--cb_explore_adf -q UA --squarecb --cb_type mtr")
    lay_out(case, tmp_path)
    run_vw(vw, f"{case.flags} -d first -f model.vw", directory=tmp_path)
    write_vw_model(read_vw_model(tmp_path / "model.vw"), tmp_path / "again.vw")
    (tmp_path / "nothing").write_text("")
    for name in ("model", "again"):
        run_vw(vw, f"-i {name}.vw -d nothing -f {name}.2", directory=tmp_path)
    assert (tmp_path / "model.2").read_bytes() == (tmp_path / "again.2").read_bytes()


_SAVED_OTHERWISE = (
    "--passes",
    "--holdout",
    "--examples",
    "--quiet",
    "-P ",
    "--progress",
    "-t",
    "json",
    "--automl",
)
"""Flags of the catalogue that concern the run and not the model, or of whose models VW forgets a part."""
_NOT_SAVED = (
    *("loss_function", "quantile_tau", "expectile_q", "logistic_min", "logistic_max", "l1", "l2"),
    *("min_prediction", "max_prediction", "initial_t", "initial_weight", "constant"),
    *("permutations", "leave_duplicate_interactions", "decay_learning_rate"),
)
"""Options that VW does not save."""


def _of_catalogue() -> list[ModelCase]:
    found = []
    for case in CASES:
        odd = case.stream.startswith(("odd", "json")) or case.id in STALE
        if odd or any(f" {flag}" in f" {case.flags} " for flag in _SAVED_OTHERWISE):
            continue
        configuration = REGISTRY.parse(case.flags)
        again = []
        for name in _NOT_SAVED:
            value = configuration.get(name)
            if name in configuration.supplied:
                again += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        found.append(ModelCase(case.stream, case.flags, " ".join(again)))
    return found


@pytest.mark.slow
@by_id(_of_catalogue())
def test_models_of_the_catalogue_come_and_go(case: ModelCase, vw: VwRunner, tmp_path: Path) -> None:
    test_model_of_vw_is_loaded(case, vw, tmp_path)
    test_saved_model_is_loaded_by_vw(case, vw, tmp_path)
    test_vw_continues_learning_from_a_saved_model(case, vw, tmp_path)
