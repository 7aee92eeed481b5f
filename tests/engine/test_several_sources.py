"""Several sources are learnt like one; each has separate line numbers."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto import InputError, OptionError, Workspace
from onlineauto.engine.stream.source import Sources, can_be_read_again

pytestmark = pytest.mark.lane("quick")

FIRST = b"shared |s a\n0:-1:0.5 |x one\n|x two\n\nshared |s b\n|x one |y:2 z\n1:1:0.25 |x two\n\n"
SECOND = b"shared |y q |s b\n|z new |x two\n0:0.5:0.5 |x one\n\nshared |s a\n0:-1:0.5 |x one\n|x two\n"
OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "quadratic": "::", "bit_precision": 10}


def scores(source: Sources, **options: Any) -> list[float]:
    workspace = Workspace(**OPTIONS | options)
    return [float(score) for _, outcomes in workspace.stream(source) for score in outcomes.score]


@pytest.mark.parametrize("options", [{}, {"vw_exact": True}, {"passes": 3}, {"examples": 3}])
def test_two_files_are_learnt_like_one(tmp_path: Path, options: dict[str, Any]) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    paths[0].write_bytes(FIRST)
    paths[1].write_bytes(SECOND)
    assert scores(paths, **options) == scores(FIRST + SECOND, **options)


def test_automl_goes_on_over_files(tmp_path: Path) -> None:
    paths = [tmp_path / str(i) for i in range(4)]
    for i, path in enumerate(paths):
        path.write_bytes(20 * (SECOND + b"\n" if i % 2 else FIRST))
    options = {"quadratic": None, "automl": 2, "lease": 10}
    assert scores(paths, **options) == scores(b"".join(path.read_bytes() for path in paths), **options)


def test_files_events_and_blocks_go_together(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(FIRST)
    blocks = list(Workspace(**OPTIONS).read(SECOND))
    mixed: Sources = [path, *blocks, FIRST.split(b"\n\n")[0].decode(), io.BytesIO(SECOND)]
    one = FIRST + SECOND + b"\n" + FIRST.split(b"\n\n")[0] + b"\n\n" + SECOND
    assert scores(mixed) == scores(one)


def test_line_numbers_are_counted_for_each_file(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    paths[0].write_text("1 |a x\none |a y\n")
    paths[1].write_text("two |a x\n1 |a y\n")
    with pytest.warns(UserWarning, match="2 problems in the input"):
        workspace = Workspace().fit(paths)
    assert [str(each).partition(" ")[0] for each in workspace.diagnostics.kept] == [
        f"{paths[0]}:2:1:",
        f"{paths[1]}:1:1:",
    ]


def test_an_invalid_event_is_located_in_its_file(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    paths[0].write_bytes(FIRST)
    paths[1].write_bytes(b"|x one\n\n0:1:0.5 1:1:0.5 |x one\n|x two\n\n")
    options: dict[str, Any] = {
        "cb_adf": True,
        "vw_exact": True,
    }  # which takes two costs of a line for a matter of learning
    message = "cb_adf: badly formatted example, only one cost can be known but found 2, in the event of"
    for source, where in ((paths, f"{paths[1]}: "), (paths[1], "")):
        with pytest.raises(InputError) as caught:
            Workspace(**options).fit(source)
        assert str(caught.value) == f"{where}{message} lines 3 to 4"


def test_lines_are_counted_in_one_file_only(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(FIRST)
    with pytest.raises(OptionError, match="--examples"):
        Workspace(**OPTIONS, vw_exact=True, examples=3).fit([tmp_path / "a", tmp_path / "a"])


def test_files_and_texts_can_be_read_again_and_pipes_cannot(tmp_path: Path) -> None:
    again: list[Sources] = ["file", b"text", tmp_path, [tmp_path, tmp_path], ("1 |a x", "0 |a y")]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    once: list[Sources] = [None, "-", io.BytesIO(), iter([tmp_path]), [tmp_path, io.BytesIO()], pipe, [pipe]]
    once.append(str(pipe))
    assert all(map(can_be_read_again, again))
    assert not any(map(can_be_read_again, once))
    with pytest.raises(InputError, match="--passes needs a file"):
        Workspace(passes=2).fit(io.BytesIO(b"1 |a x\n"))


def test_frames_and_mappings_are_rejected_as_sources() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match=r"cannot be a frame; .*from_frame"):
        Workspace().fit(pandas.DataFrame({"x": [1], "y": [2]}))
    with pytest.raises(TypeError, match=r"cannot be a mapping; .*from_dicts"):
        Workspace().fit({"x": 1})


@given(
    parts=st.lists(st.lists(st.sampled_from(["1 |a x", "0 |b x:2", "1 |b y |a x"]), max_size=5), max_size=4),
    quadratic=st.sampled_from([None, "ab"]),
)
def test_text_in_any_parts_is_learnt_like_one_text(parts: list[list[str]], quadratic: str | None) -> None:
    texts = ["".join(line + "\n" for line in part).encode() for part in parts]
    one, several = (Workspace(quadratic=quadratic, bit_precision=8) for _ in range(2))
    one.fit(b"".join(texts))
    several.fit([io.BytesIO(text) for text in texts])
    np.testing.assert_array_equal(one.weights, several.weights)
