"""What members cost beside what they are priced: the factors of `onlineauto.engine.ensemble.prices`.

    python -m bench.speed.prices [--rounds 3] [--write]

Each member learns the same logs as the champion alone, without rest, and the CPU time that it adds is
divided by its price at the end, in the time of one champion. A factor is the median over the logs.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from bench import kit
from bench.quality.logs import head, load, write
from onlineauto.engine.ensemble import prices
from onlineauto.workspace.workspace import Workspace

LOGS = ("planted-u", "letter-n-u", "diamonds-n-u", "surveys-n-u")
EVENTS = 8_000
MEMBERS = {"features": "", "waves": "", "crosses": "", "layer": "features", "baseline": "", "ridge": ""}
MEMBERS |= {"trees": "", "means": ""}
"""The members, and the member that each is computed from."""
