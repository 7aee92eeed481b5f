"""A headless browser, if one is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def page_text(url: str, folder: Path, *, seconds: float = 5.0) -> str:
    """Return a page as it is once its scripts have run for so long, by the clock of the page."""
    return _run(folder, f"--virtual-time-budget={int(1000 * seconds)}", "--dump-dom", url)


def draw(page: str, path: Path, folder: Path, *, size: tuple[int, int] = (1160, 1180)) -> None:
    """Draw what a page showed, without its scripts, into a PNG file."""
    still = folder / "page.html"
    still.write_text(re.sub(r"<script>.*</script>", "", page, flags=re.DOTALL), "utf-8")
    width, height = size
    _run(
        folder, f"--window-size={width},{height}", "--hide-scrollbars", f"--screenshot={path}", still.as_uri()
    )


def _run(folder: Path, *words: str) -> str:
    assert PROGRAM is not None
    command = [
        PROGRAM,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}",
    ]
    return subprocess.run([*command, *words], capture_output=True, text=True, timeout=300, check=True).stdout
