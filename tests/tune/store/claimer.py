"""A process that claims jobs and ends them until there are none: ``python -m tests.tune.store.claimer``."""

from __future__ import annotations

import argparse
import sys
import time

from onlineauto.tune.store.protocol import LeaseLost
from onlineauto.tune.store.sql_store import SqlStore
from tests.tune.store.jobs import Counting, reported, told


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("owner")
    parser.add_argument("--most", type=int)
    parser.add_argument("--lease", type=float)
    parser.add_argument("--together", action="store_true", help="say ready, and begin after a line of input")
    options = parser.parse_args()
    store = SqlStore(options.url, "rates")
    if options.together:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
    mine = Counting(store, options.owner, most=options.most, lease=options.lease)
    while True:
        claim = mine.claim()
        if claim is None:
            if sum(record["kind"] == "told" for record in mine.records) == options.most:
                return
            time.sleep(0.05)  # somebody's lease has to end
            continue
        try:
            store.commit(claim, reported(claim))
            store.commit(claim, told(claim))
        except LeaseLost:
            continue


if __name__ == "__main__":
    main()
