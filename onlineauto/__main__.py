"""``python -m onlineauto`` runs the command ``onlineauto``."""

from __future__ import annotations

import sys

from onlineauto.cli import without_garbage_collection

__all__ = ["main"]


def main() -> int:
    """Import the command line, and run it."""
    with without_garbage_collection():
        from onlineauto.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
