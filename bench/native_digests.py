"""Digests of everything that native mode predicts and decides on the committed streams.

``python -m bench.native_digests > before.txt`` at one commit and ``> after.txt`` at another, then
``diff before.txt after.txt``: no line may differ where a change promises the same predictions bit for bit.
A line is the SHA-256 of the predictions file and of the journal of one run of the command line.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import sys
import tempfile
from pathlib import Path

from onlineauto.cli.main import main

DATASETS = Path(__file__).resolve().parents[1] / "datasets"

BANDIT = [
    "-q :: --epsilon 0.1",
    "--automl 4 --epsilon 0.1",
    "--automl 8 --epsilon 0.05 --cb_sample",
    "--automl 4 --squarecb",
    "--automl 3 --cb_type dr --epsilon 0.1",
]
BANDIT_ON_ONE = [
    "-q :: --bag 4",
    "-q :: --cover 3 --cb_type dr",
    "-q :: --cover 3 --synthcover",
    "-q :: --regcb",
    "-q :: --regcbopt",
    "-q :: --squarecb --elim",
    "-q :: --rnd 3",
    "-q :: --softmax --lambda 3",
    "-q :: --first 500",
    "-q :: --epsilon_decay",
    "--cubic ::: --sgd -l 0.05",
    "-q :: --passes 2 --holdout_period 7",
    "--automl 4 --bag 2",
    "--automl 4 --cover 2",
    "--automl 3 --rnd 2",
    "--automl 4 --l1 1e-6 --l2 1e-7",
    "--automl 4 --ftrl",
    "--automl 4 --champion_test reward",
    "--automl 4 --champion_test vw --default_lease 500",
    "--automl 16 --oracle_type one_diff",
]
LINE = [
    "-q ::",
    "--automl 4",
    "--automl 8 --predict_with champion",
    "--automl 4 --loss_function quantile",
    "--automl 4 --ftrl",
    "--coin -q ::",
]


def digest(stream: Path, options: str) -> str:
    """Run the command line over a stream; return the digests of its predictions and its journal."""
    with tempfile.TemporaryDirectory() as folder:
        predictions, journal = Path(folder, "p"), Path(folder, "j")
        argv = ["-d", str(stream), "-p", str(predictions), "--quiet", *options.split()]
        if "--automl" in options:
            argv += ["--journal", str(journal)]
        with contextlib.redirect_stderr(io.StringIO()) as said:
            code = main(argv)
        if code:
            return f"refused: {said.getvalue().strip().splitlines()[-1]}"
        files = [path for path in (predictions, journal) if path.exists()]
        return " ".join(hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in files)


def runs() -> list[tuple[Path, str]]:
    """Every stream with each of the options it is run with."""
    bandits = sorted(DATASETS.glob("cb-*.txt.gz"))
    found = [(path, f"--cb_explore_adf {each}") for path in bandits for each in BANDIT]
    on_one = [path for path in bandits if "penbased-e" in path.name]
    found += [(path, f"--cb_explore_adf {each}") for path in on_one for each in BANDIT_ON_ONE]
    return found + [(path, each) for path in sorted(DATASETS.glob("reg-*.txt.gz")) for each in LINE]


if __name__ == "__main__":
    for stream, options in runs():
        print(f"{stream.name:26} {options:60} {digest(stream, options)}")
        sys.stdout.flush()
