"""Let the stream choose its interactions, write every decision down, and replay them."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from onlineauto import Workspace, datasets
from onlineauto.engine.report.search_summary import search_summary
from onlineauto.engine.search.journal import Journal

DATA = datasets.path("cb-diamonds-u")
OPTIONS: dict[str, Any] = {
    "cb_explore_adf": True,
    "live_configs": 4,  # the champion and three challengers, all of them members of the ensemble
    "lease": 2000,  # learnt events after which a challenger is replaced, or gets twice as many
}

with TemporaryDirectory() as directory:
    path = Path(directory) / "journal.jsonl"
    bandit = Workspace(**OPTIONS)
    with path.open("wb") as file:
        journal = Journal(file, command=bandit.configuration.command(kept=True))
        bandit.observe(journal.append)
        bandit.fit(DATA)
        journal.end(events=bandit.searching.n_events)
    for line in search_summary(bandit.searching):
        print(line)
    for line in path.read_text().splitlines():
        if '"swap"' in line:
            print(line)

    again = Workspace(**OPTIONS, replay=path).fit(DATA)  # decides nothing, and ends with the same model
    print("replayed:", (again.weights == bandit.weights).all())
