"""`--lags K`: the last labels as features of lines."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto import InputError, OptionError, Workspace
from onlineauto.cluster.partitions.run import check_partitioned
from onlineauto.features.block import Block, Namespaces
from onlineauto.features.lags import LaggedLabels, lag_names
from onlineauto.features.options import FeatureOptions
from onlineauto.workspace.merge import merge_workspaces
from tests.naive.blocks import Line, make_block
from tests.naive.hashing import hash_name
from tests.naive.lags import lagged
from tests.naive.lines import unpack

HASHES = {name: hash_name(name.encode(), hash_name(name.encode(), 0)) for name in lag_names(20)}


def texts(n: int) -> list[str]:
    noise, label, lines = np.random.default_rng(5), 0.0, []
    for hour in range(n):
        label = 0.9 * label + float(noise.normal()) + 0.3 * (hour % 4)
        lines.append(f"{label:.3f} |h {hour % 4}" if hour % 7 else f"|h {hour % 4}")
    return lines


def lags_of(block: Block) -> list[dict[str, float]]:
    """Return the lags of the lines of a block, and check that nothing else of it has changed."""
    lines = []
    for [line] in unpack([block]):
        assert line.spans[:1] == [(b"h", [(7, 1.0), (9, 2.0)])]
        line_lags = {}
        for name, [(hash_, value)] in line.spans[1:]:
            assert hash_ == HASHES[name.decode()]
            line_lags[name.decode()] = value
        lines.append(line_lags)
    return lines


@given(
    n=st.integers(1, 20),
    blocks=st.lists(
        st.lists(
            st.tuples(
                st.none() | st.floats(-1e3, 1e3, width=32), st.sampled_from([0.0, 1.0, 2.5]), st.booleans()
            ),
            max_size=9,
        ),
        max_size=4,
    ),
)
def test_lags_are_the_labels_of_the_lines_before(
    n: int, blocks: list[list[tuple[float | None, float, bool]]]
) -> None:
    lags, names, found = LaggedLabels(FeatureOptions(lags=n)), Namespaces(), []
    for lines in blocks:
        spans = ((b"h", ((7, 1.0), (9, 2.0))),)
        events = [(Line(spans=spans, label=label, weight=weight),) for label, weight, _ in lines]
        block, held_out = make_block(events, names), np.array([held for _, _, held in lines], bool)
        found += lags_of(lags.expand(block, held_out, lags.latest))
        predicted = lags_of(lags.frozen().expand(block, None, lags.latest))
        assert predicted == found[-len(lines) :][:1] * len(lines)
        lags.add(block, held_out)
    learnt = [label if weight and not held else None for lines in blocks for label, weight, held in lines]
    assert found == lagged(learnt, n)


def test_lags_bring_the_error_of_a_series_near_to_its_noise() -> None:
    errors = {}
    for lags in (0, 2):
        outcomes = [each for _, each in Workspace(lags=lags).stream(texts(1500))]
        errors[lags] = sum(float(each.loss.sum()) for each in outcomes)
    assert errors[2] < 0.5 * errors[0]


@pytest.mark.parametrize("live_configs", [None, 4])
def test_a_saved_model_continues_as_the_model_itself(live_configs: int | None) -> None:
    lines = texts(400)
    whole, parts = (Workspace(lags=3, live_configs=live_configs) for _ in range(2))
    whole.fit(lines)
    parts.fit(lines[:200])
    file = io.BytesIO()
    parts.save(file)
    file.seek(0)
    loaded = Workspace.load(file)
    for line in lines[200:300]:
        assert loaded.predict(line) == parts.predict(line) == loaded.predictor().predict(line)
        assert loaded.learn(line) == parts.learn(line)
    loaded.fit(lines[300:])
    assert loaded.predict("|h 1") == whole.predict("|h 1")


def test_what_is_only_predicted_leaves_the_lags_as_they_were() -> None:
    lines, model = texts(300), Workspace(lags=3)
    model.fit(lines[:200])
    predictor, before = model.predictor(), model.predict("|h 1")
    for line in lines[200:]:
        model.predict(line)
    assert model.predict("|h 1") == before
    model.fit(lines[200:])
    assert predictor.predict("|h 1") == before != model.predict("|h 1")


def test_labels_of_lines_that_are_only_tested_are_lags() -> None:
    lines = texts(1500)
    model = Workspace(lags=3).fit(lines[:1000])
    one, other = (
        sum(float(each.loss.sum()) for _, each in tested.stream(lines[1000:]))
        for tested in (model.fork(testonly=True), model)
    )
    assert one == pytest.approx(other, rel=0.2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--lags 21", "lags"),
        ("--lags 1 --cb_adf", "--lags and --cb_adf exclude each other"),
        ("--lags 1 --loss_function logistic", "--lags and --loss_function logistic exclude each other"),
        ("--lags 1 --passes 2", "--lags and --passes exclude each other"),
        ("--lags 1 --vw_exact", "--lags is not reproduced by --vw_exact"),
    ],
)
def test_options_that_lags_exclude(options: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Workspace(options)


def test_models_and_names_that_lags_exclude() -> None:
    with pytest.raises(OptionError, match="--lags cannot be combined with --workers"):
        check_partitioned(Workspace("--automl 4 --lags 1").configuration)
    with pytest.raises(OptionError, match="models of --lags cannot be merged"):
        merge_workspaces([Workspace(lags=1), Workspace(lags=1)])
    with pytest.raises(InputError, match="the namespace 'lag 1' is reserved, since lags=1"):
        Workspace(lags=1).learn({"context": {"lag 1": {"x": 1.0}}, "label": 1.0})
