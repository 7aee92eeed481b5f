"""The version, the links of `llms.txt`, and the workflows that call CI are consistent."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import tomllib
from enum import Enum
from pathlib import Path
from typing import Any

from tools.public_api import public_names

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXAMPLE = re.compile(r">>> |\b(?:Returned|Raised) by |\bPassed to |\bhas an example\b")
"""An example, or a sentence that says where one is, or where objects of a class come from or go to."""


def test_version_is_the_same_everywhere() -> None:
    version = PROJECT["version"]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f'version: "{version}"' in (ROOT / "conda" / "meta.yaml").read_text("utf-8")


def test_conda_recipe_requires_what_the_project_requires() -> None:
    recipe = (ROOT / "conda" / "meta.yaml").read_text("utf-8")
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    required = pyproject["tool"]["hatch"]["metadata"]["hooks"]["custom"]["dependencies"]
    for requirement in [*required, *PROJECT["optional-dependencies"]["compiler"]]:
        name, bounds = re.match(r"([a-z]+)(.*)", requirement).groups()  # type: ignore[union-attr]
        assert f"- {name} {bounds}\n" in recipe


def test_pages_of_llms_txt_exist() -> None:
    links = re.findall(r"\]\(([^)]+)\.html\)", (ROOT / "docs" / "llms.txt").read_text("utf-8"))
    assert len(links) > 15
    assert [link for link in links if not (ROOT / "docs" / f"{link}.md").is_file()] == []


def test_release_notes_are_short() -> None:
    assert len((ROOT / "docs" / "release-notes-1.0.md").read_text("utf-8").splitlines()) <= 60


def test_workflows_call_scripts_that_exist() -> None:
    workflows = "".join(path.read_text("utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    scripts = set(re.findall(r"run: (\.ci/\w+)", workflows))
    assert scripts == {".ci/run", ".ci/nightly", ".ci/wheel", ".ci/smoke"}
    assert all((ROOT / script).is_file() for script in scripts)


def test_files_of_the_javascript_package_are_in_the_repository() -> None:
    package = json.loads((ROOT / "clients" / "javascript" / "package.json").read_text("utf-8"))
    paths = {
        package["main"],
        package["types"],
        *(path for entry in package["exports"].values() for path in entry.values()),
    }
    tracked = subprocess.run(
        ["git", "ls-files", "clients"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    for path in paths:
        file = ROOT / "clients" / "javascript" / path
        assert file.is_file()
        assert tracked.returncode or file.relative_to(ROOT).as_posix() in tracked.stdout.split()


def test_public_classes_and_functions_have_examples() -> None:
    """The members of an enum are listed instead."""
    documented = public_names()
    texts = {
        name: " ".join((value.__doc__ or "").split())
        for name, (value, _) in documented.items()
        if inspect.isfunction(value) or (inspect.isclass(value) and not issubclass(value, Enum))
    }
    assert len(texts) > 200
    assert [name for name, text in texts.items() if not EXAMPLE.search(text)] == []
    places = {
        other for text in texts.values() for other in re.findall(r"`([\w.]+)`[^`]* has an example", text)
    }
    assert [place for place in places if not _has_example(place, documented)] == []


def _has_example(place: str, documented: dict[str, tuple[Any, str]]) -> bool:
    """Return whether a documented object, or a method of a documented class, has an example."""
    owner, _, member = place.rpartition(".")
    found = [value for name, (value, _) in documented.items() if f".{name}".endswith(f".{place}")]
    if owner:
        owners = (value for name, (value, _) in documented.items() if f".{name}".endswith(f".{owner}"))
        found += (getattr(value, member, None) for value in owners)
    return any(">>> " in (value.__doc__ or "") for value in found)
