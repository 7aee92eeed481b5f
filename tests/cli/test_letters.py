"""Letters of options beyond ASCII: characters in native mode, bytes in exact mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from onlineauto import AutoMLRegressor, OptionError, Workspace
from onlineauto.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.lane("quick")

TEXT = "1 |имя a |возраст b\n-1 |имя d |возраст c\n"

# The number of features of both lines: two names and the constant each, and products.
PLAIN, ONE_GONE, BOTH_GONE = 6, 4, 2


def report(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run the command and return what it reports."""
    assert main(words) == 0
    return capsys.readouterr().err


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
def test_flags_take_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, features: int
) -> None:
    path = tmp_path / "x.txt"
    path.write_text(TEXT)
    assert f"total feature number = {features}\n" in report(capsys, "-d", str(path), *options.split())


def test_report_names_the_letters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.txt"
    path.write_text(TEXT)
    assert "ignoring namespaces beginning with: ж и\n" in report(capsys, "-d", str(path), "--ignore", "иж")
    exact = report(capsys, "-d", str(path), "--ignore", "ж", "--vw_exact")
    assert r"ignoring namespaces beginning with: \xb6 \xd0" in exact


@pytest.mark.parametrize("options", [{"quadratic": "ижв"}, {"cubic": "ив"}, {"interactions": "и"}])
def test_number_of_letters_counts_characters(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=r"has [123] characters"):
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
