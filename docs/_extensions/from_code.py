"""The directive ``help-of``, for the help of a command.

The page ``develop/contributing`` is CONTRIBUTING.md.
"""

from __future__ import annotations

import os
import re
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from onlineauto.cli.main import main

if TYPE_CHECKING:
    from sphinx.application import Sphinx


class HelpOf(SphinxDirective):
    """The help of a command, as the terminal has it."""

    optional_arguments: ClassVar[int] = 1

    def run(self) -> list[nodes.Node]:
        """Return the help as it is."""
        printed = StringIO()
        os.environ["COLUMNS"] = "88"
        with redirect_stdout(printed), suppress(SystemExit):  # argparse ends like this
            main([*self.arguments, "--help"])
        text = printed.getvalue().rstrip()
        return [nodes.literal_block(text, text, language="text")]


def contributing(app: Sphinx, page: str, source: list[str]) -> None:
    """Let CONTRIBUTING.md, whose links are those of the repository, be a page."""
    if page == "develop/contributing":
        text = (Path(app.srcdir).parent / "CONTRIBUTING.md").read_text("utf-8")
        text = re.sub(r"\[([^\]]+)\]\((?:onlineauto|examples|tests)/[^)]+\)", r"\1", text)
        source[0] = text.replace("](docs/", "](../")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives to Sphinx."""
    app.connect("source-read", contributing)
    app.add_directive("help-of", HelpOf)
    return {"parallel_read_safe": True}
