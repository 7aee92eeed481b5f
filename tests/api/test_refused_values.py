"""Values that a method cannot use are named in an OnlineautoError, also where Python has its own error."""

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto import (
    AutoML,
    AutoMLClassifier,
    AutoMLRegressor,
    InputError,
    OnlineautoError,
    OptionError,
    Workspace,
)
from onlineauto.explorers import Bag, Cover
from tests.api.events import saved
from tests.processes import python

MODELS = (AutoML, AutoMLRegressor, AutoMLClassifier, Workspace)
LINES = (AutoMLRegressor, AutoMLClassifier)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("value", [3, None, 3.5, [], True], ids=repr)
def test_values_that_are_not_files_are_rejected(make: Any, value: Any) -> None:
    with pytest.raises(OptionError, match=rf"cannot save to {value!r}: give a path".replace("[]", r"\[\]")):
        make().save(value)
    with pytest.raises(OptionError, match=rf"cannot load {value!r}: give a path".replace("[]", r"\[\]")):
        make.load(value)
    if make is AutoML:
        with pytest.raises(OptionError, match=rf"model from {value!r}: give".replace("[]", r"\[\]")):
            make().warm_start(value)


def test_a_text_file_is_rejected() -> None:
    with pytest.raises(OptionError, match="binary file"):
        AutoML().save(io.StringIO())  # type: ignore[arg-type]


@pytest.mark.parametrize("make", LINES)
@pytest.mark.parametrize("value", [3, None, True], ids=repr)
def test_values_without_features_are_rejected(make: Any, value: Any) -> None:
    for predict in (make().predict, getattr(make(), "predict_proba", make().predict)):
        with pytest.raises(InputError, match=f"^{value!r} has no features"):
            predict(value)
    model = make()
    with pytest.raises(InputError, match=r"^event 1: features are a mapping"):
        model.fit([({"x": 1}, 1), value])
    assert model.events == 1


@pytest.mark.parametrize("make", LINES)
@pytest.mark.parametrize("item", ["abc", ({"x": 1},), ({"x": 1}, 1, 1.0, 1)], ids=repr)
def test_items_that_are_not_events_are_located(make: Any, item: Any) -> None:
    model = make()
    with pytest.raises(InputError, match=r"^event 1: features are a mapping"):
        model.fit([({"x": 1}, 1), item])
    assert model.events == 1


def test_values_that_are_not_sources_are_rejected() -> None:
    with pytest.raises(InputError, match=r"^3 is not a source of events"):
        Workspace().fit(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("explorer", [Bag(math.nan), Cover(math.nan)], ids=repr)  # type: ignore[arg-type]
def test_a_setting_that_is_nan_is_refused_like_by_its_name(explorer: Any) -> None:
    with pytest.raises(OptionError, match=f"--{explorer.name} cannot be nan; it takes a whole number"):
        AutoML(explorer=explorer)


def test_a_seed_of_another_library_and_its_alias_draw_the_same() -> None:
    def draw_index(**seed: Any) -> list[int]:
        model = AutoML(live_configs=None, epsilon=1, **seed)
        return [model.rank({"u": 1}, [{"a": n} for n in range(9)]).action for _ in range(20)]

    assert draw_index(seed=np.int64(3)) == draw_index(seed=3) == draw_index(random_seed=3) != draw_index()


# -- names that are not UTF-8 --------------------------------------------------------------------------


@pytest.mark.parametrize("make", [AutoML, *LINES])
@pytest.mark.parametrize("value", [3, None, "user*page", b"user*page"], ids=repr)
def test_begin_with_is_a_list(make: Any, value: Any) -> None:
    for live_configs in (2, None):
        with pytest.raises(OptionError, match=r"begin_with cannot be .*give a list"):
            make(begin_with=value, live_configs=live_configs)


@pytest.mark.parametrize("make", [AutoML, *LINES])
@pytest.mark.parametrize("value", [b"user*page", "us\ud800er*page", 3], ids=repr)
def test_an_interaction_is_a_text(make: Any, value: Any) -> None:
    for live_configs in (2, None):
        with pytest.raises(OptionError, match="is not an interaction"):
            make(begin_with=[value], live_configs=live_configs)


@pytest.mark.parametrize("make", [AutoML, *LINES])
def test_a_search_begins_with_names_that_are_not_utf8(make: Any) -> None:
    model = make(begin_with=["pre\udce9*town"], live_configs=2)
    if make is not AutoML:
        model.fit([({"pre\udce9": n % 3, "town": "x"}, "pqr"[n % 3] if make is AutoMLClassifier else n)
                   for n in range(20)])  # fmt: skip
    loaded = make.load(saved(model))
    assert loaded.champion.interactions == model.champion.interactions
    if make is AutoMLClassifier:
        for each in (model, loaded):
            each.learn({"pre\udce9": 1, "town": "x"}, "a new class")
        assert loaded.champions == model.champions
    with pytest.raises(OptionError, match=r"no model file can keep the options .*\\udce9"):
        make(begin_with=["pre\udce9*town"], live_configs=None)


def test_options_that_no_model_can_keep_are_refused_before_a_run_and_not_after(tmp_path: Path) -> None:
    data, model = tmp_path / "data.txt", tmp_path / "model.oam"
    data.write_bytes(b"1 |a\xff x |b y\n")
    words = ["-d", str(data), "--experimental_full_name_interactions", "a\udcff|b"]
    run = python("-m", "onlineauto", *words, "-f", str(model), code=2)
    assert "no model file can keep the options" in run.stderr
    assert "Traceback" not in run.stderr + run.stdout
    assert "average" not in run.stderr
    with pytest.raises(OnlineautoError, match="no model file can keep"):
        Workspace(ignore_linear=["a\udcff"]).save(io.BytesIO())
