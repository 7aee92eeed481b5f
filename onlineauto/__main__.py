"""``python -m onlineauto`` runs the command ``onlineauto``."""

from __future__ import annotations

import sys

from onlineauto.cli import importing

__all__ = ["main"]


def main() -> int:
    """Import the command line, and run it."""
    with importing():
        from onlineauto.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
