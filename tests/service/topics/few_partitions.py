"""The command line for a broker that shows only the first partitions of its topics, until it shows more."""

from __future__ import annotations

import sys

from onlineauto.cli.main import main
from onlineauto.service.topics.brokers import Brokers

if __name__ == "__main__":
    most, counted = int(sys.argv[1]), Brokers.n_partitions
    Brokers.n_partitions = lambda *arguments: min(counted(*arguments), most)  # type: ignore[method-assign]
    sys.exit(main(sys.argv[2:]))
