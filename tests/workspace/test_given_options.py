"""A workspace takes its options as keywords, as a text, or already parsed."""

from __future__ import annotations

from typing import Any

import pytest

from onlineauto import OptionError, Workspace
from onlineauto.workspace.options import REGISTRY

pytestmark = pytest.mark.lane("quick")

TEXT = "--cb_explore_adf -q ua --epsilon 0.1"


def test_a_text_is_the_same_as_keywords() -> None:
    from_keywords = Workspace(cb_explore_adf=True, quadratic=["ua"], epsilon=0.1)
    assert repr(Workspace(TEXT)) == repr(from_keywords) == repr(Workspace(REGISTRY.parse(TEXT)))


def test_quiet_is_taken_since_a_workspace_never_prints() -> None:
    event = "shared |u tom\n0:-1:0.5 |a politics\n|a sports\n"
    quiet, other = Workspace(TEXT + " --quiet"), Workspace(TEXT)
    assert quiet.learn(event).tolist() == other.learn(event).tolist()


def test_flags_of_output_are_ignored_with_one_warning() -> None:
    flags = "--audit -P 100 --invert_hash x --save_resume --cache -k"
    with pytest.warns(UserWarning, match=r"^ignored in Python, .*--audit \(.*--save_resume") as caught:
        workspace = Workspace(f"{TEXT} {flags}")
    assert len(caught) == 1
    assert repr(workspace) == repr(Workspace(TEXT))


@pytest.mark.parametrize("kind", ["cb_explore_adf", "ccb_explore_adf"])
def test_an_explorer_includes_the_bandit_that_it_explores_with(kind: str) -> None:
    configuration = REGISTRY.parse(f"--cb_adf --{kind}")
    assert Workspace(configuration=configuration).kind == kind
    assert configuration.warnings == (f"--cb_adf has no effect beside --{kind}",)


@pytest.mark.parametrize(
    ("given", "keywords", "why"),
    [
        (TEXT, {"epsilon": 0.2}, "not into both"),
        (REGISTRY.parse(TEXT), {"epsilon": 0.2}, "not into both"),
        (["--cb_explore_adf"], {}, r"Workspace\(shlex.join\(words\)\)"),
        (None, {"arg_list": ["--cb_explore_adf"]}, r"Workspace\(shlex.join\(words\)\)"),
        ({"epsilon": 0.2}, {}, r"^\{'epsilon': 0.2\} has no options; give keywords, or a text"),
        ("--epsilon 2", {}, "epsilon"),
        ("--no_such", {}, "unknown option --no_such"),
        ("-f model.oam", {}, "final_regressor is for the command line; save takes the file"),
    ],
    ids=["text", "parsed", "words", "arg_list", "mapping", "range", "unknown", "command line"],
)
def test_others_are_refused(given: Any, keywords: dict[str, Any], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        Workspace(given, **keywords)
