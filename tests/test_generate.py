"""The generated files are current, complete, and rewritten when they are not current."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from onlineauto.engine.ensemble.registry import MEMBERS
from onlineauto.explorers.quirks import ExploringQuirks
from onlineauto.options.vw_names import NAMES
from onlineauto.workspace.option_types import LearnerOptions, Options
from onlineauto.workspace.options import REGISTRY
from tools.generate import GENERATED, ROOT, between, main, member_table, option_tables
from tools.tables import explorer_quirks, vw_flags

MARKED = "# Title\n<!-- {0}:begin -->\nold\n<!-- {0}:end -->\nrest\n"


def test_generated_files_are_current() -> None:
    assert main(["--check"]) == 0


def test_a_stale_file_is_reported_and_rewritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in GENERATED:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    page = tmp_path / "docs/reference/options.md"
    page.write_text("é" + page.read_text(encoding="utf-8").replace("`--epsilon FLOAT`", ""), encoding="utf-8")
    stale = page.read_text(encoding="utf-8")
    assert main(["--check"], tmp_path) == 1
    assert capsys.readouterr().err == "docs/reference/options.md: not current; run python -m tools.generate\n"
    assert page.read_text(encoding="utf-8") == stale
    assert main([], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0
    assert "`--epsilon FLOAT`" in page.read_text(encoding="utf-8")


def test_the_table_has_a_row_for_every_option() -> None:
    text = option_tables(MARKED.format("options"))
    rows = [line for line in text.splitlines() if line.startswith(("| `--", "| `-"))]
    assert len(rows) == len(REGISTRY.options)
    for row in rows:
        assert len(re.split(r"(?<!\\)\|", row)) == 5, row
    assert "| `-b`, `--bit_precision N` | `18` | The weights are a table" in "\n".join(rows)
    assert r"`--experimental_full_name_interactions NAME\|NAME...`" in "\n".join(rows)


def test_the_table_has_every_member() -> None:
    text = member_table(MARKED.format("members"))
    assert all(f"| `{name}`: " in text for name in MEMBERS)


def test_the_page_of_flags_has_every_flag_of_vw_once() -> None:
    rows = [re.sub(r"^\| (`.*?`) .*", r"\1", line) for line in vw_flags()]
    flags = re.findall(r"`--([\w-]+)`", "\n".join(rows))
    assert sorted(flags) == sorted(NAMES)


def test_every_quirk_of_explorers_has_a_row_with_its_flags() -> None:
    rows = [line.split(" | ") for line in explorer_quirks()][2:]
    assert len(rows) == len(ExploringQuirks._fields)
    for flags, text in rows:
        assert re.fullmatch(r"\| `--\w+( --\w+)?`(, `--\w+`)*", flags)
        assert "VW" in text
        assert "ative mode" in text


def test_no_page_needs_sphinx_for_its_content() -> None:
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.name != "command-line.md"]
    empty = re.compile(r"^```\{[\w-]+\}\n```", re.MULTILINE)
    assert not [page for page in pages if empty.search(page.read_text("utf-8"))]


def test_every_option_has_a_type_and_every_type_an_option() -> None:
    known = {option.field for option in REGISTRY.options if option.field in Options.__annotations__}
    aliases = {alias for option in REGISTRY.options for alias in option.aliases}
    keywords = {option.keyword for option in REGISTRY.options if option.keyword}
    assert set(Options.__annotations__) == known | aliases | keywords
    assert {"seed", "live_configs", "hash_bits", "loss"} == keywords
    assert {"cb_explore_adf", "automl", "lambda_", "lease"} <= set(Options.__annotations__)
    assert not Options.__required_keys__


def test_automl_takes_no_options_of_the_command_line() -> None:
    names = set(Options.__annotations__) - set(LearnerOptions.__annotations__)
    assert {"data", "help", "version", "predictions", "automl", "seed"} <= names
    assert {"epsilon", "quiet", "json", "members", "passes", "loss"} <= set(LearnerOptions.__annotations__)
    aliases = {"loss_function", "lease", "driver_output_off"}
    assert aliases <= names, "models in Python have one spelling of each option"


def test_a_table_replaces_the_text_between_its_comments() -> None:
    new = between(MARKED.format("x"), "new", name="x")
    assert new == "# Title\n<!-- x:begin -->\n\nnew\n\n<!-- x:end -->\nrest\n"
    assert between(new, "new", name="x") == new


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<!-- x:begin -->",
        "<!-- x:end --> <!-- x:begin -->",
        "<!-- x:begin --><!-- x:begin --> <!-- x:end -->",
    ],
)
def test_text_without_the_comments_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="each once"):
        between(text, "new", name="x")
