"""The types of the options are those of the registry, and the file that has them is current."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onlineauto.cli.generators import option_types
from onlineauto.workspace.option_types import Options
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    import pytest

FILE = Path(__file__).resolve().parents[2] / "onlineauto" / "workspace" / "option_types.py"


def test_the_file_is_current() -> None:
    assert FILE.read_text(encoding="utf-8") == option_types.option_types()
    assert option_types.main([str(FILE), "--check"]) == 0


def test_every_option_has_a_type_and_every_type_an_option() -> None:
    known = {option.field for option in REGISTRY.options if option.field in Options.__annotations__}
    aliases = {alias for option in REGISTRY.options for alias in option.aliases}
    assert set(Options.__annotations__) == known | aliases
    assert {"cb_explore_adf", "automl", "lambda_", "lease"} <= set(Options.__annotations__)
    assert not Options.__required_keys__


def test_a_file_that_is_not_current_is_reported_and_written_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "types.py"
    assert option_types.main([str(path), "--check"]) == 1
    assert capsys.readouterr().err.startswith(
        f"{path} is not current: run python -m onlineauto.cli.generators.option_types"
    )
    assert not path.exists()
    assert option_types.main([str(path)]) == 0
    assert path.read_text(encoding="utf-8") == option_types.option_types()
    assert option_types.main([str(path), "--check"]) == 0
