"""Files of settings may begin with a byte order mark, as some editors write it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onlineauto.cluster.job_file import JobFile
from onlineauto.formats.datasets.columns import read_columns
from onlineauto.service.http.tokens import Tokens
from onlineauto.service.topics.partitions import read_client_settings
from onlineauto.tune import Space

READERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "space": (lambda path: Space.from_toml(path).described(), "x = {type = 'float', low = 0, high = 1}\n"),
    "columns": (read_columns, "rows = 'labels'\r\nlabel = 'y'\r\n"),
    "client": (read_client_settings, "security.protocol=SASL_SSL\r\n"),
    "jobs": (lambda path: JobFile(str(path))._jobs, "[[jobs]]\nstream = 'a'\n"),
    "tokens": (lambda path: bool(Tokens(str(path))), "a" * 64 + " read\n"),
}


@pytest.mark.parametrize("name", READERS)
def test_a_byte_order_mark_is_skipped(name: str, tmp_path: Path) -> None:
    read, text = READERS[name]
    plain, marked = tmp_path / "plain.toml", tmp_path / "marked.toml"
    plain.write_bytes(text.encode())
    marked.write_bytes(text.encode("utf-8-sig"))
    assert read(marked) == read(plain)


def test_a_space_in_another_encoding_is_refused(tmp_path: Path) -> None:
    from onlineauto.errors import OptionError

    path = tmp_path / "space.toml"
    path.write_text("x = 1", "utf-16")
    with pytest.raises(OptionError, match=r"space\.toml: 'utf-8' codec"):
        Space.from_toml(path)
