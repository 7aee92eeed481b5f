"""Audits, models as text, and ``inspect``, from the command line."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from onlineauto import Workspace
from onlineauto.cli.main import main
from tests.parity.streams import STREAMS

if TYPE_CHECKING:
    from pathlib import Path

CONTEXTS = (
    """shared |user tom
0:-1:0.5 |item a
|item b

shared |user ann
|item a
1:-0.25:0.5 |item b

"""
    * 30
)


def run(words: str) -> int:
    return main(words.split())


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.txt").write_text(CONTEXTS)
    (tmp_path / "lines.txt").write_bytes(STREAMS["numbers"](40, 1))


def test_an_audit_says_what_a_prediction_is_made_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-d lines.txt -q ab --audit -p stdout --quiet") == 0
    lines = capsys.readouterr().out.splitlines()
    for predicted, features, again in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        assert predicted == again
        total = sum(
            float(x) * float(w.partition("@")[0])
            for _, _, x, w in (each.rsplit(":", 3) for each in features.split("\t")[1:])
        )
        assert float(predicted) == pytest.approx(total, abs=1e-4) or abs(total) > abs(float(predicted))


def test_the_champion_is_audited(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-d events.txt --cb_explore_adf --automl 3 -a --quiet") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * 2 * 60
    assert "\titem^a*user^tom:" in lines[-7]


def test_names_are_told_of_what_was_met(tmp_path: Path) -> None:
    assert run("-d events.txt --cb_explore_adf -q :: --invert_hash names --readable_model text --quiet") == 0
    named, plain = ((tmp_path / name).read_text().splitlines() for name in ("names", "text"))
    weights = [line for line in named if "^" in line]
    assert {"item^a*user^tom", "item^b", "user^ann"} <= {line.split(":")[0] for line in weights}
    assert [line.split(":", 1)[-1] for line in weights] == [
        line for line in plain[-len(weights) - 1 :] if any(line == each.split(":", 1)[1] for each in weights)
    ]


def test_what_cannot_be_shown_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-d events.txt --cb_explore_adf --bag 2 --audit --vw_exact") == 2
    assert "--audit with --bag is not reproduced by --vw_exact" in capsys.readouterr().err
    assert run("-d events.txt --cb_explore_adf --audit --resume -f m") == 2
    assert "--audit and --resume exclude each other" in capsys.readouterr().err
    full_names = "--experimental_full_name_interactions user|item"
    assert run(f"-d events.txt --cb_explore_adf {full_names} --invert_hash n --quiet") == 0
    assert run("-d events.txt --cb_explore_adf --readable_model no/where --quiet") == 1
    assert run("-d events.txt --cb_explore_adf --readable_model events.txt --quiet") == 2


def inspected(words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run(f"inspect {words} --format json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_model_is_inspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-d events.txt --cb_explore_adf --automl 3 --default_lease 8 -f m --quiet") == 0
    found = inspected("m --largest 3", capsys)
    assert found["file"]["bytes"] == (tmp_path / "m").stat().st_size
    assert found["options"] == "--cb_explore_adf --automl 3 --default_lease 8"
    assert found["champion"]["interactions"] == ["item*user"] or found["champion"]["interactions"]
    assert [each["index"] for each in found["live_configs"]] == list(range(len(found["live_configs"])))
    assert {each["name"]: each["actions"] for each in found["namespaces"]} == {"item": 120, "user": 120}
    assert [each["name"] for each in found["top_weights"]] == [None] * 3
    assert all(name for name in (each["name"] for each in inspected("m events.txt", capsys)["top_weights"]))


def test_names_are_kept_where_they_were_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-d events.txt --cb_explore_adf -q :: --invert_hash names -f m --quiet") == 0
    assert run("-d events.txt --cb_explore_adf -i m --invert_hash more -f again --quiet --examples 1") == 0
    assert run("-i m -d events.txt --invert_hash small -f champion --predict_only_model --quiet") == 0
    for model in ("m", "again", "champion"):
        weights = inspected(f"{model} --largest 100", capsys)["top_weights"]
        assert {"user^ann", "item^b", "Constant"} <= {each["name"] for each in weights}
        assert [abs(each["weight"]) for each in weights] == sorted(
            (abs(each["weight"]) for each in weights), reverse=True
        )
    assert inspected("champion", capsys)["predicts_only"]


def test_a_model_of_vw_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-d lines.txt -q ab --vw_exact -f m --quiet") == 0
    assert run("convert m vw.model") == 0
    capsys.readouterr()
    found = inspected("vw.model lines.txt", capsys)
    assert found["file"]["program"] == "Vowpal Wabbit"
    assert all(each["name"] for each in found["top_weights"])
    assert run("inspect vw.model") == 0
    assert "written by  Vowpal Wabbit\n" in capsys.readouterr().out


@pytest.mark.parametrize("model", ["simple", "bandit"])
def test_tables(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = {"simple": "-d lines.txt -q ab", "bandit": "-d events.txt --cb_explore_adf --automl"}[model]
    assert run(f"{flags} -f m --quiet") == 0
    assert run("inspect m") == 0
    text = capsys.readouterr().out
    assert text.startswith("Model\n")
    assert "Largest weights\n" in text
    assert run("inspect m --format markdown --largest 2") == 0
    text = capsys.readouterr().out
    assert text.count("\n| ") >= 10
    assert "## Largest weights\n\n| name | number | weight |\n| --- | --- | --- |\n" in text


def test_a_terminal_gets_drawn_tables_if_it_can(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("-d lines.txt -q ab -f m --quiet") == 0
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run("inspect m") == 0
    assert "┃" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert run("inspect m") == 0
    assert capsys.readouterr().out.startswith("Model\n")


def test_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect") == 2
    assert "inspect takes a model" in capsys.readouterr().err
    assert run("inspect events.txt") == 1
    assert "is not a model file" in capsys.readouterr().err


def test_exact_models_to_predict_with_go_on_learning_as_vws_do(tmp_path: Path) -> None:
    assert run("-d events.txt --cb_explore_adf --automl 2 -f m --predict_only_model --vw_exact --quiet") == 0
    assert run("-d events.txt -i m -f n -p p --vw_exact --quiet") == 0
    first, second = (Workspace.load(tmp_path / name) for name in "mn")
    assert "automl" not in first.configuration.supplied
    assert not (first.weights[:, 1:] != 0).any()
    assert (second.weights[:, 1:] != 0).any()


def test_how_to_search_can_be_given_anew(capsys: pytest.CaptureFixture[str]) -> None:
    search = "--cb_explore_adf --automl 3 --oracle_type one_diff --priority_challengers 1 --quiet"
    for exact in ("", " --vw_exact"):
        assert run(f"-d events.txt {search} -f m{exact}") == 0
        assert run("-d events.txt -i m --priority_challengers 0 --priority_type none -f n --quiet") == 0
        assert run("-d events.txt -i m --oracle_type champdupe -f n --quiet") == (0 if exact else 2)
    assert "cannot use --oracle_type champdupe" in capsys.readouterr().err


def test_a_run_that_is_gone_on_with_keeps_its_names(tmp_path: Path) -> None:
    whole = "-d events.txt --cb_explore_adf -q :: --invert_hash names -f m --strict_parse --quiet"
    assert run(whole) == 0
    text = (tmp_path / "names").read_bytes()
    (tmp_path / "m").unlink()
    events = CONTEXTS.split("\n\n")
    (tmp_path / "events.txt").write_text("\n\n".join([*events[:20], "0:a:b |item a", *events[20:]]))
    assert run(whole) == 1
    assert (tmp_path / "names").read_bytes() != text
    (tmp_path / "events.txt").write_text(CONTEXTS)
    assert run(f"{whole} --resume") == 0
    assert (tmp_path / "names").read_bytes() == text


def test_an_audit_of_a_wide_interaction_lists_its_most_important_features(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is listed one by one and what is kept as arrays is the same, but for what is left out."""
    words = "-d lines.txt --cubic aab -q ab --audit --quiet"
    assert run(words) == 0
    whole = capsys.readouterr().out.splitlines()
    monkeypatch.setattr("onlineauto.cli.saving._MOST_LISTED", 0)
    assert run(words) == 0
    arrays = capsys.readouterr().out.splitlines()
    for one, other in zip(whole[::2], arrays[::2], strict=True):
        assert float(one) == pytest.approx(float(other), abs=1e-5)
    for one, other in zip(whole[1::2], arrays[1::2], strict=True):
        assert sorted(one.split("\t")) == sorted(other.split("\t"))
    monkeypatch.setattr("onlineauto.workspace.inspection.named_examples._MOST", 2)
    assert run(words) == 0
    cut = capsys.readouterr().out.splitlines()
    assert cut[::2] == arrays[::2]
    assert "more of the widest interactions" in cut[-1]
    assert set(cut[-1].split("\t")[:-1]) <= set(arrays[-1].split("\t"))
