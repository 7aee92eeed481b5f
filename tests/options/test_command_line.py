"""The command line is read by Vowpal Wabbit's rules."""

from __future__ import annotations

import pytest

from onlineauto.errors import OptionError
from onlineauto.workspace.options import REGISTRY

pytestmark = pytest.mark.lane("quick")

VW_ONLY = "is an option of Vowpal Wabbit that onlineauto does not have"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-q", "ab"], {"quadratic": ("ab",)}),
        (["-qab"], {"quadratic": ("ab",)}),
        (["--quadratic", "ab"], {"quadratic": ("ab",)}),
        (["--quadratic=ab"], {"quadratic": ("ab",)}),
        (["--quadratic=ab", "cd"], {"quadratic": ("ab", "cd")}),
        (["-q", "ab", "cd", "--quiet"], {"quadratic": ("ab", "cd"), "quiet": True}),
        (["-q", "ab", "-q", "cd"], {"quadratic": ("ab", "cd")}),
        (["-q", "::"], {"quadratic": ("::",)}),
        (["-q", "-x"], {"quadratic": ("-x",)}),
        (["-q", "a", "-"], None),
        (["--quadratic=-t"], {"quadratic": ("-t",)}),
        (["--ignore", "a", "-1"], {"ignore": ("a", "-1")}),
        (["-b18"], {"bit_precision": 18}),
        (["-b", "18"], {"bit_precision": 18}),
        (["-b", "18", "--bit_precision=18"], {"bit_precision": 18}),
        (["-P", "1.5"], {"progress": "1.5"}),
        (["-C", "-1e-3"], {"constant": -0.001}),
        (["-C-1e-3"], {"constant": -0.001}),
        (["--constant=-.5"], {"constant": -0.5}),
        (["--initial_weight", "+1."], {"initial_weight": 1.0}),
        (["-t"], {"testonly": True}),
        (["-t", "--testonly"], {"testonly": True}),
        (["events.txt", "-t"], {"data": ("events.txt",), "testonly": True}),
        (["-t", "events.txt"], {"data": ("events.txt",), "testonly": True}),
        (["-"], {"data": ("-",)}),
        (["-d", "-"], {"data": ("-",)}),
        (["-d", "a b"], {"data": ("a b",)}),
        (["-d", "--fresh"], {"data": ("--fresh",)}),
        (["--data=--quiet"], {"data": ("--quiet",)}),
        (["--quiet", "--", "--quiet"], {"data": ("--quiet",), "quiet": True}),
        (["a", "-d", "b", "a", "-t", "c"], {"data": ("a", "b", "a", "c"), "testonly": True}),
        (["--"], {}),
        ([], {}),
    ],
)
def test_forms(words: list[str], expected: dict[str, object] | None) -> None:
    if expected is None:
        with pytest.raises(OptionError):
            REGISTRY.parse(words)
        return
    configuration = REGISTRY.parse(words)
    assert {name: configuration.get(name) for name in configuration.supplied} == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-tq", "ab"], "-t is a switch and takes no value, but 'q' is attached to it"),
        (["--testonly=1"], "--testonly is a switch and takes no value, but '1' is attached to it"),
        (["--epsilon="], "--epsilon= has nothing after the ="),
        (["--epsilon"], "--epsilon takes a value, but it is the last word"),
        (["-p", "--quiet"], "-p takes a value, but the option --quiet follows it"),
        (["-q", "-t"], "-q takes a value, but the option -t follows it"),
        (["-b", "18", "-b", "19"], "--bit_precision is given as 18 and as 19"),
        (["-l", "0.1", "-l", "0.2"], "--learning_rate is given as 0.1 and as 0.2"),
        (["--epsilom", "3"], "unknown option --epsilom; did you mean --epsilon?"),
        (["--loss-function", "hinge"], "unknown option --loss-function; did you mean --loss_function?"),
        (["--wqzx=1"], "unknown option --wqzx; `onlineauto --help` lists them all"),
        (["-z"], "unknown option -z; `onlineauto --help` lists them all"),
        (["--ngram", "2"], f"--ngram {VW_ONLY}"),
        (["--math-mode", "2"], f"--math-mode {VW_ONLY}"),
        (
            ["--ccb_explore_adf", "--invert_hash", "names"],
            "--invert_hash cannot be used with --ccb_explore_adf: names of features are not kept for slots",
        ),
        (
            ["-ia", "-ib"],
            (
                "-i takes one model, not a and b: files of data follow -d; `onlineauto merge` makes one "
                "model of several"
            ),
        ),
        (
            ["-fa", "--predict_only_model", "--resume"],
            (
                "--predict_only_model and --resume exclude each other: a model that only predicts cannot "
                "learn on"
            ),
        ),
        (["--csv"], f"--csv {VW_ONLY}: this version reads Vowpal Wabbit's text format and its JSON"),
    ],
)
def test_refusals(words: list[str], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        REGISTRY.parse(words)
    assert str(caught.value) == message


def test_a_string_is_split_as_a_shell_would() -> None:
    assert REGISTRY.parse(r"-d 'a b' -q a\ ") == REGISTRY.parse(["-d", "a b", "-q", "a "])


def test_a_registry_without_a_positional_option_refuses_a_word() -> None:
    from onlineauto.explorers.options import ExplorerOptions
    from onlineauto.options import Registry

    with pytest.raises(
        OptionError, match=r"^unexpected word 'events\.txt': this command takes options only$"
    ):
        Registry([ExplorerOptions]).parse(["--epsilon", "0.1", "events.txt"])
