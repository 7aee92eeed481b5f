"""``python -m onlineauto`` is the command ``onlineauto``."""

from __future__ import annotations

import sys

from onlineauto.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
