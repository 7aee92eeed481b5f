"""The verb ``studies``: list the studies of a store and their progress."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(argv: Sequence[str]) -> int:
    """Print one line for each study and return 0.

    Raises
    ------
    OptionError
        If the URL is wrong.
    StoreError
        If the store cannot be reached or read.
    """
    parser = argparse.ArgumentParser(
        "onlineauto studies", description="List the studies of a store: their trials by state, and the best."
    )
    parser.add_argument("url", metavar="URL", help="sqlite:///FILE or postgresql://USER@HOST/DATABASE")
    options = parser.parse_args(argv)
    from onlineauto.tune.store.sql_store import names_of_studies
    from onlineauto.tune.study import Study

    for name in names_of_studies(options.url):
        study = Study.load(name, storage=options.url)
        states = Counter(str(trial.state) for trial in study.trials)
        counts = ", ".join(f"{count} {state.lower()}" for state, count in sorted(states.items()))
        best = study.best
        if best is not None and len(study.objectives) > 1:
            print(f"{name}: {counts}; {len(study.best_trials)} are dominated by no other")
            continue
        end = "" if best is None else f"; best {best.value:.6g} of trial {best.number} at {best.resource}"
        print(f"{name}: {counts or 'no trials'}{end}")
    return 0
