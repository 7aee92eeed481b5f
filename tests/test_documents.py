"""Every block of the README and of the documentation runs, and prints what the page says.

A page is one program. ``python`` blocks share their names, and what one prints is the ``output`` block behind
it; ``console`` blocks are a shell's, with what it prints. Three dots stand for anything. ``sh`` blocks do not
run, but for the first one of the README. All of a page works in an empty folder that has ``datasets`` in it.
"""

from __future__ import annotations

import doctest
import importlib
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bench import cold_start
from onlineauto.jit.compiling import COMPILE_TIME, FIRST_RUN

pytestmark = pytest.mark.lane("ci")

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^( *)(```+)(\w+)\n(.*?)^\1\2$", re.DOTALL | re.MULTILINE)
FLAGS = doctest.ELLIPSIS
OLD_STORY = re.compile(
    r"(config|one) that predicts|best one predicts|champion (among them )?(decides|chooses)"
    r"|\bthe stack (predicts|is)\b",
    re.IGNORECASE,
)
"""Sentences by which a champion alone predicts, or by which the ensemble has its older name."""
COMPILES = re.compile(r"(\d+) CPU seconds")


class Block(NamedTuple):
    """A fenced block of a page."""

    kind: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page that name a language."""
    text = page.read_text("utf-8")
    return [
        Block(
            found[3],
            re.sub(rf"^{found[1]}", "", found[4], flags=re.MULTILINE),
            text.count("\n", 0, found.start()) + 1,
        )
        for found in BLOCK.finditer(text)
    ]


def check(page: Path, line: int, expected: str, got: str) -> None:
    """Compare what was printed with what the page says."""
    got = re.sub(r"^compiling kernels.*\n", "", got, flags=re.MULTILINE)
    if not doctest.OutputChecker().check_output(expected, got, FLAGS):
        pytest.fail(f"{page.name}, line {line}, says\n{expected}\nbut this is printed:\n{got}", pytrace=False)


def shell(command: str) -> str:
    """Return all that a command prints."""
    command = re.sub(
        r"^(\s*)onlineauto\b|(?<=\| )onlineauto\b", rf"\1{sys.executable} -m onlineauto", command
    )
    environment = os.environ | {"COLUMNS": "110", "PYTHONPATH": str(ROOT)}
    words = ["bash", "-c", f"exec 2>&1; {command}"]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder to work in, with the data sets."""
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_page(page: Path, folder: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    found = blocks(page)
    for block, after in zip(found, [*found[1:], Block("", "", 0)], strict=True):
        if block.kind == "python":
            printed = StringIO()
            code = compile("\n" * block.line + block.text, str(page), "exec")
            with redirect_stdout(printed):
                exec(code, names)  # noqa: S102 - our own pages
            if after.kind == "output":
                check(page, block.line, after.text, printed.getvalue())
            else:
                assert not printed.getvalue(), f"{page.name}, line {block.line}: what it prints is not shown"
        elif block.kind == "console":
            for command, expected in re.findall(
                r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE
            ):
                check(page, block.line, expected, shell(command))


def test_the_first_block_of_the_readme(folder: Path) -> None:
    first, table = blocks(README)[:2]
    assert (first.kind, table.kind) == ("sh", "output")
    *set_up, learn = first.text.splitlines()
    assert set_up == ["python3 -m venv .venv", ".venv/bin/pip install --quiet ."]
    assert learn.startswith(".venv/bin/onlineauto -d datasets/")
    check(README, first.line, table.text, shell(learn.removeprefix(".venv/bin/")))
    assert len(Path("predictions.txt").read_text().splitlines()) > 10_000


def test_the_readme_is_short() -> None:
    text = README.read_text("utf-8")
    assert len(text.splitlines()) <= 150
    assert len(text.encode()) <= 10_000


def test_links_lead_to_files() -> None:
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text):
            assert (page.parent / link).exists(), f"{page.relative_to(ROOT)} links to {link}"


def test_pages_and_docstrings_call_the_predictor_the_ensemble() -> None:
    modules = [path for path in (ROOT / "onlineauto").rglob("*.py") if not path.name.endswith("_kernels.py")]
    for path in [*PAGES, *modules, *(ROOT / "examples").glob("*.py")]:
        stale = OLD_STORY.findall(" ".join(path.read_text("utf-8").split()))
        assert not stale, f"{path.relative_to(ROOT)}: {stale}"


def test_pictures_are_drawn(tmp_path: Path) -> None:
    pictures = ROOT / "docs" / "pictures"
    subprocess.run([sys.executable, str(pictures / "draw.py"), str(tmp_path)], check=True)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in pictures.glob("*.svg")}


def test_pages_name_the_same_first_run_and_compile_time() -> None:
    found = {
        page.relative_to(ROOT).as_posix(): set(map(int, COMPILES.findall(page.read_text(encoding="utf-8"))))
        for page in PAGES
    }
    named = {page: times for page, times in found.items() if times}
    assert set(named) == {
        "README.md",
        "docs/develop/building.md",
        "docs/getting-started/install.md",
        "docs/guides/deployment.md",
    }
    assert all(times <= {FIRST_RUN, COMPILE_TIME} for times in named.values())
    assert FIRST_RUN in named["README.md"]
    assert named["docs/guides/deployment.md"] == {FIRST_RUN, COMPILE_TIME}
    words = " ".join(cold_start.QUICK_START)
    assert f"onlineauto {words}\n" in README.read_text(encoding="utf-8"), "the bench runs another command"


@pytest.mark.parametrize("package", ["onlineauto.cluster", "onlineauto.tune"])
def test_every_public_name_is_in_the_api_reference(package: str) -> None:
    reference = "".join(
        page.read_text("utf-8") for page in (ROOT / "docs" / "reference" / "api").glob("*.md")
    )
    names = {name for name in importlib.import_module(package).__all__ if not name.startswith("__")}
    listed = {name for name in names if re.search(rf"\.{name}\b", reference)}
    assert names - listed == set()
