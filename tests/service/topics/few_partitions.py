"""The command line for a broker that shows only the first partitions of its topics, until it shows more.

Workers learn rounds after fewer events than by default.
"""

from __future__ import annotations

import sys

from onlineauto.cli.main import main
from onlineauto.cluster.partitions.coordinator import RoundSchedule
from onlineauto.service.topics.partitions import Brokers

if __name__ == "__main__":
    RoundSchedule.__new__.__defaults__ = RoundSchedule()._replace(alone=8192)
    most, counted = int(sys.argv[1]), Brokers.n_partitions
    Brokers.n_partitions = lambda *arguments: min(counted(*arguments), most)  # type: ignore[method-assign]
    sys.exit(main(sys.argv[2:]))
