"""README and the pages of benchmarks have no figure that `bench.publish` did not write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import onlineauto
from bench.publish.figures import DATA, MEAN, Figure, read_run, write
from bench.publish.pages import LOGS, MARKED, PAGES, readme_quality, rendered, weak

NUMBER = r"(?<![\w.])\d[\d,]*(?:\.\d+)?"
FIGURES = (
    r"(?<![\w.])\d*\.\d+",
    NUMBER + r"\s?(?:%|×|µs|ms|MB|KB|GB|percent|times|dollars)(?!\w)",  # noqa: RUF001
    NUMBER + r"\s(?:\w+\s){0,3}(?:seconds|minutes|hours)\b",
    NUMBER + r"\s(?:\w+\s){0,2}(?:a|per) second\b",
)
FIGURE = re.compile("|".join(FIGURES))
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
SECTION = re.compile(r"^## How good, how fast$.*?(?=^## )", re.DOTALL | re.MULTILINE)


def prose(path: Path) -> str:
    """Return the part of a page that may have no figures: without code, links and what is between markers."""
    text = path.read_text("utf-8")
    if path.name == "README.md":
        [text] = SECTION.findall(text)
    text = CODE.sub("", MARKED.sub("", text))
    for version in read_run()["versions"].values():
        text = text.replace(version, "")
    return text


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_figures_are_those_of_the_files(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text == rendered(text), "run `python -m bench.publish --pages`"
    assert FIGURE.findall(prose(path)) == []
    assert len(text.splitlines()) <= (150 if path.name == "README.md" else 120)


def test_a_tie_to_the_printed_decimals_counts_in_readme_like_on_the_page(tmp_path: Path) -> None:
    rewards = {("a", "onlineauto"): 0.9317, ("a", "no context"): 0.9323, ("b", "onlineauto"): 0.5}
    rewards |= {("b", "no context"): 0.6, (MEAN, "onlineauto"): 0.7, (MEAN, "no context"): 0.8}
    figures = [Figure(row, who, reward, reward, reward, "reward") for (row, who), reward in rewards.items()]
    write(tmp_path / "logs.csv", figures)
    assert readme_quality(tmp_path).splitlines()[-1].endswith("| 1 |")
    assert "| a | **0.932** | **0.932** |" in LOGS.text(tmp_path)
    assert "ahead in 1 of 2 rows: b by" in weak(LOGS, "on logs", tmp_path)


def test_every_file_of_figures_is_in_a_page() -> None:
    names = {name for path in PAGES for _, name, _ in MARKED.findall(path.read_text("utf-8"))}
    later = {"logs-later", "logs-peers", "logs-peers-later"}  # in README, and in sentences
    drawn = {"partitions-ratios"}
    assert {path.stem for path in DATA.glob("*.csv")} <= names | later | drawn


def test_figures_are_of_this_minor_version_and_one_state_of_the_package() -> None:
    run = read_run()
    assert not run["quick"], "the figures are those of a rehearsal: run `python -m bench.publish`"
    minor = onlineauto.__version__.rpartition(".")[0]
    assert {each["version"].rpartition(".")[0] for each in run["sections"].values()} == {minor}
    assert len({each["package"] for each in run["sections"].values()}) == 1  # benches may be of later commits
    assert not any(each["commit"].endswith("+") for each in run["sections"].values()), "uncommitted code ran"


@pytest.mark.parametrize(
    "text",
    ["0.71", ".711", "4 %", "2\N{MULTIPLICATION SIGN}", "33 µs", "5,712 pairs a second", "18 CPU seconds"],
)
def test_figures_are_recognised(text: str) -> None:
    assert FIGURE.search(f"takes {text} here")


@pytest.mark.parametrize("text", ["8 actions", "20,000 events", "the first 3 of 5", "x_10"])
def test_sizes_are_no_figures(text: str) -> None:
    assert not FIGURE.search(f"with {text} here")
