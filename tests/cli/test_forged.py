"""A model file is rejected if it has options that are not a model's, or names outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from onlineauto.options import Option
from onlineauto.workspace.options import REGISTRY
from tests.cli.conftest import Command
from tests.forging import model_bytes, model_parts, vw_model_bytes

EVENTS = "shared |u tom\n0:-1:0.5 |a x\n|a y\n\nshared |u tim\n|a x\n1:0:0.5 |a y\n\n" * 20
FLAGS = "--cb_explore_adf --quiet -b 10"
REFUSED = [option for option in REGISTRY.options if not option.keep]
WAYS = [
    "-i forged.model -d log.txt -f out.model",
    "-t -i forged.model -d log.txt",
    "-d log.txt -f forged.model --resume",
    "inspect forged.model",
    "merge forged.model forged.model -f out.model",
    "convert forged.model out.vw",
    "evaluate log.txt --policy forged.model",
]


def word(option: Option) -> str:
    """Return the option as a model's command line would have it, with a value that is valid."""
    if option.switch:
        return option.flag
    values = {"progress": "10", "format": "json"}
    return f"{option.flag} {values.get(option.name) or ('3' if option.kind is int else 'stolen')}"


@pytest.fixture
def directory(run: Command, tmp_path: Path) -> Path:
    (tmp_path / "log.txt").write_text(EVENTS)
    run(f"-d log.txt -f forged.model -p p.txt --save_every 10 {FLAGS}")
    return tmp_path


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def forge(path: Path, **changes: Any) -> None:
    """Replace parts of the model or run in a model file, and update the checksum."""
    tree, arrays = model_parts(path.read_bytes())
    for name, change in changes.items():
        part = tree["model"] if name in tree["model"] else tree["run"]
        part[name] = change(part[name]) if callable(change) else change
    path.write_bytes(model_bytes(tree, arrays))


def check_refused(words: str, directory: Path, run: Command, message: str, *, code: int = 1) -> None:
    """Run a command that has to be refused in one line, and to leave everything as it was."""
    before = content(directory)
    (line,) = run(words, code=code).err.splitlines()
    assert re.match(f"onlineauto: error: {message}", line), line
    assert content(directory) == before


@pytest.mark.parametrize("option", REFUSED, ids=lambda option: option.name)
def test_options_that_models_do_not_keep_are_rejected(run: Command, directory: Path, option: Option) -> None:
    forge(directory / "forged.model", options=lambda options: f"{options} {word(option)}")
    for words in WAYS:
        check_refused(words, directory, run, "forged.model is not a valid model: .*--")


@pytest.mark.parametrize(
    "options",
    ["--cb_explore_adf '", "--what", "--cb_explore_adf -b x", "-b 10\n-p stolen", "-b " + "9" * 5000, 7],
)
def test_malformed_options_of_a_model_are_rejected_in_one_line(
    run: Command, directory: Path, options: object
) -> None:
    forge(directory / "forged.model", options=options)
    check_refused("-i forged.model -d log.txt", directory, run, "forged.model is ")


@pytest.mark.parametrize("option", ["predictions", "final_regressor", "journal", "data", "replay"])
def test_options_that_models_do_not_keep_are_rejected_in_vw_models(
    run: Command, directory: Path, option: str
) -> None:
    run("-d log.txt -f exact.model --vw_exact --cb_explore_adf --quiet -b 10")
    run("convert exact.model forged.vw --quiet")
    data = (directory / "forged.vw").read_bytes()
    assert vw_model_bytes(data, str) == data
    forged = vw_model_bytes(data, lambda options: f"{options} {word(REGISTRY[option])}")
    (directory / "forged.vw").write_bytes(forged)
    message = "forged.vw was made with options that onlineauto does not reproduce: .*--"
    check_refused("convert forged.vw out.model", directory, run, message)


@pytest.mark.parametrize(
    ("outputs", "code", "message"),
    [
        (
            {"predictions": ["victim.txt", 0]},
            2,
            "--predictions p.txt: the resumed run has written to victim.txt",
        ),
        ({"predictions": ["", 3]}, 1, "forged.model does not fit its own options: run.outputs.predictions"),
        ({"predictions": ["p.txt", -1]}, 1, "forged.model does not fit"),
        ({"predictions": ["p.txt", 1.5]}, 1, "forged.model does not fit"),
        ({"predictions": ["p.txt", 2**63]}, 1, "forged.model does not fit"),
        ({"predictions": ["p.txt", 10**9]}, 1, "p.txt has .* bytes, but the resumed run had written"),
        ({"predictions": [b"p.txt", 3]}, 1, "forged.model does not fit"),
        ({"predictions": ["p.txt"]}, 1, "forged.model does not fit"),
        ({"predictions": "p.txt"}, 1, "forged.model does not fit"),
        ([["predictions", "p.txt"]], 1, "forged.model does not fit"),
    ],
)
def test_a_resumed_run_truncates_only_its_own_outputs(
    run: Command, directory: Path, outputs: object, code: int, message: str
) -> None:
    (directory / "victim.txt").write_text("precious")
    forge(directory / "forged.model", outputs=outputs)
    words = "-d log.txt -f forged.model -p p.txt --save_every 10 --resume --quiet"
    check_refused(words, directory, run, message, code=code)


def test_outputs_without_an_option_are_not_changed(run: Command, directory: Path) -> None:
    (directory / "victim.txt").write_text("precious")
    outputs = {name: ["victim.txt", 0] for name in ("predictions", "journal", "extra_metrics", "what")}
    forge(directory / "forged.model", outputs=outputs)
    before = content(directory)
    run("-d log.txt -f forged.model --resume --quiet")
    del before["forged.model"]
    assert content(directory).items() >= before.items()


@pytest.mark.parametrize(
    "changes",
    [
        {"position": 7},
        {"position": {"passes": -1, "events": 0, "held_out": None}},
        {"position": {"passes": 0, "events": 2.5, "held_out": None}},
        {"position": {"passes": 0, "events": 0, "held_out": {"_count": 1}}},
        {"position": {"passes": 0, "events": 0}},
        {"progress": []},
        {"progress": {"example_number": "many"}},
        {"metrics": {}},
        {"names": [[1]]},
        {"names": {"1": "a"}},
    ],
)
def test_a_malformed_run_is_rejected(run: Command, directory: Path, changes: dict[str, Any]) -> None:
    tree, arrays = model_parts((directory / "forged.model").read_bytes())
    tree["run"] |= changes
    (directory / "forged.model").write_bytes(model_bytes(tree, arrays))
    message = "forged.model does not fit its own options: "
    check_refused("-d log.txt -f forged.model -p p.txt --resume --quiet", directory, run, message)


def rotate(**other: Any) -> dict[str, Any]:
    """Return a line of a journal that makes a config live."""
    line = {"decision": "rotate", "events": 1, "slot": 1, "index": 1, "kind": "inclusion", "elements": []}
    return line | {"bounds": None} | other


def judged(decision: str, **other: Any) -> dict[str, Any]:
    """Return a line of a journal for a decision by bounds."""
    bounds = dict.fromkeys(("updates", "lower", "champion_lower"), 0)
    bounds |= dict.fromkeys(("upper", "champion_upper"), 1)
    line = {"decision": decision, "events": 1, "index": 0, "lease": 1, "place_of": None, "kind": "inclusion"}
    return line | {"elements": [], "bounds": bounds} | other


@pytest.mark.parametrize(
    "line",
    [
        {"decision": "widen", "events": 1, "names": [""]},
        rotate(slot=9),
        rotate(slot=2),
        rotate(settings={"cb_type": "dr"}),
        rotate(settings={"learning_rate": "x"}),
        rotate(settings={"learning_rate": -1.0}),
        rotate(elements=[["", "b"]]),
        rotate(elements=[["hex:zz", "b"]]),
        {"decision": "reopen", "events": 1, "what": "reset_model", "indices": []},
        judged("swap", slot=0),
        judged("swap", slot=3),
        judged("remove", slot=0),
        judged("extend", slot=5),
        [[[]]],
    ],
)
def test_a_journal_with_impossible_decisions_is_rejected(run: Command, directory: Path, line: Any) -> None:
    flags = f"{FLAGS} --automl 3"
    run(f"-d log.txt --journal whole.journal {flags}")
    head = (directory / "whole.journal").read_text().splitlines()[0]
    (directory / "j").write_text(f"{head}\n{json.dumps(line)}\n")
    (found,) = run(f"-d log.txt --replay j {flags}", code=1).err.splitlines()
    assert re.search(
        "the journal to be replayed belongs to another stream|j:2: not a line of a journal", found
    )


def test_a_deeply_nested_line_of_a_journal_is_rejected(run: Command, directory: Path) -> None:
    (directory / "j").write_text("[" * 100_000 + "\n")
    check_refused(f"-d log.txt --replay j {FLAGS} --automl 3", directory, run, "j:1: not a line of")


def test_options_in_a_journal_are_rejected(run: Command, directory: Path) -> None:
    command = "--cb_explore_adf --automl 3 -b 10 --predictions stolen"
    (directory / "j").write_text(f'{{"decision":"search","command":"{command}"}}\n')
    message = "j is the journal of a run with other options: --predictions applies only to the command line"
    check_refused(f"-d log.txt --replay j {FLAGS} --automl 3", directory, run, message)
