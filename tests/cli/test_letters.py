"""Letters of options beyond ASCII: characters in native mode, bytes in exact mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onlineauto import AutoMLRegressor, OptionError, Workspace
from tests.cli.conftest import Command

pytestmark = pytest.mark.lane("quick")

TEXT = "1 |имя a |возраст b\n-1 |имя d |возраст c\n"

# The number of features of both lines: two names and the constant each, and products.
PLAIN, ONE_GONE, BOTH_GONE = 6, 4, 2


@pytest.mark.parametrize(
    ("options", "features"),
    [
        ("", PLAIN),
        ("--ignore ж", PLAIN),
        ("--ignore и", ONE_GONE),
        ("--ignore ив", BOTH_GONE),
        ("--keep ж", BOTH_GONE),
        ("--keep и", ONE_GONE),
        ("-q ив", PLAIN + 2),
        ("-q иж", PLAIN),
        (r"-q \xd0\xb8\xd0\xb2", PLAIN + 2),
        ("--cubic иив", PLAIN + 2),
        ("--interactions ив", PLAIN + 2),
        ("--interactions ииив", PLAIN + 2),
        ("-q ::", PLAIN + 6),
        (r"--ignore \xd0", BOTH_GONE),
        ("--ignore ж --vw_exact", BOTH_GONE),
    ],
)
def test_flags_take_characters(run: Command, tmp_path: Path, options: str, features: int) -> None:
    (tmp_path / "x.txt").write_text(TEXT)
    run("-d x.txt", options, err=f"total feature number = {features}\n")


def test_report_names_the_letters(run: Command, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(TEXT)
    run("-d x.txt --ignore иж", err="ignoring namespaces beginning with: ж и\n")
    run("-d x.txt --ignore ж --vw_exact", err=r"ignoring namespaces beginning with: \xb6 \xd0")


@pytest.mark.parametrize("options", [{"quadratic": "ижв"}, {"cubic": "ив"}, {"interactions": "и"}])
def test_number_of_letters_counts_characters(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=r"has [123] characters?"):
        Workspace(**options)


def test_number_of_letters_counts_bytes_in_exact_mode() -> None:
    with pytest.raises(OptionError, match="has 4 bytes and needs two"):
        Workspace(quadratic="ив", vw_exact=True)


def test_python_models_take_characters() -> None:
    ignoring, other = AutoMLRegressor(ignore="ж"), AutoMLRegressor(ignore="в")
    for model in (ignoring, other):
        for n in range(200):
            model.learn({"имя": "a", "возраст": float(n % 4)}, 10.0 * (n % 4))
    assert ignoring.predict({"имя": "a", "возраст": 3.0}) == pytest.approx(30, abs=1)
    assert other.predict({"имя": "a", "возраст": 3.0}) == pytest.approx(15, abs=6)
