"""What the search earns on bandit logs, between ``-q ::`` and the best fixed config; peers beside it.

    python -m bench.quality [--ours FLAGS ...] [--seeds 5] [--sets NAME ...] [--peers PYTHON]
                                  [--cache FILE] [--data DIR] [--json FILE]

The true reward of every action is known, so the reward of the first action of each ranking is known without
noise. It is averaged over all events, over the second half, and over two stretches of early events. Scores: 0
is ``-q ::``, 1 the best of some fixed configs (`bench.quality.runs`), each in the same events. Seed 0
is the log as committed; the others log the same events anew by the same policy.

``--ours "--automl 8" "--automl 8 --cb_type dr"`` compares variants of onlineauto. Sets go by name or by group
(``tuned``, ``numbers``, ``development``, ``held-out``, ``fresh``, ``kept-back``, ``tables``). The peers are
VW's search; LightGBM refitted every 2,000 events, one model and one model for each action; and river's
random forest over the first events of each log. ``--peers`` names the interpreter of an environment that has
them (``pip install lightgbm river``); what is not there is left out.

``--cache FILE`` keeps each result under the content of the log, the flags and the version, and so runs only
what has changed: for ours any source file of onlineauto, for fixed configs its release.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import onlineauto
from bench.quality.logs import FOLDER, GROUPS, SETS, BanditLog, head, load, names_in, relogged, write
from bench.quality.peers import Peers
from bench.quality.report import (
    BASE,
    BEST,
    LINEAR,
    WINDOWS,
    Measured,
    comparisons,
    means,
    print_means,
    print_rows,
    rewards_in,
    rows,
    verdicts,
)
from bench.quality.results_cache import Results, code_version
from bench.quality.runs import Run, configured, fixed_configs, from_flags, run_ours
from onlineauto.options import Configuration

_WARM_UP = 4000
_LEAST = 0.005
"""Where ``-q ::`` is hardly worse than the best fixed config, or better, the scale has this length."""


class Bench:
    """What runs contenders over logs."""

    def __init__(
        self, ours: list[str], peers: Peers | None, results: Results, *, directory: Path, forest: int
    ) -> None:
        self._ours, self._peers, self._results = ours, peers, results
        self._path, self._forest = directory / "log.txt", forest
        self._warm: set[str] = set()

    def measure(self, log: BanditLog, seed: int, *, peers: bool) -> list[Measured]:
        """Run the fixed configs, our variants and, if wanted, the peers over a log."""
        digest = sha256(b"\n\n".join(log.events) + log.rewards.tobytes()).hexdigest()[:16]
        release = f"onlineauto {onlineauto.__version__}"
        base = self._of(log, digest, configured(quadratic="::"), release)
        fixed = {
            name: self._of(log, digest, configured(**config), release)
            for name, config in fixed_configs(log).items()
        }
        name = max(fixed, key=lambda each: fixed[each]["rewards"][0])
        ends = [
            max(each["rewards"][w] for each in fixed.values()) if base["rewards"][w] is not None else None
            for w in range(len(WINDOWS))
        ]
        best = {**fixed[name], "rewards": ends}
        found = {BASE: base, LINEAR: fixed["ctxZ"], BEST: best}
        for flags in self._ours:
            found[flags] = self._of(log, digest, from_flags(flags), code_version())
        if peers and self._peers is not None:
            found |= self._of_peers(self._peers, log, digest)
        return [
            Measured(
                log=log.name,
                seed=seed,
                who=who,
                rewards=tuple(each["rewards"]),
                scores=_scores(each["rewards"], base["rewards"], ends),
                seconds=each["seconds"],
                changes=each["changes"] if who in self._ours else None,
                detail=name if who == BEST else "",
            )
            for who, each in found.items()
        ]

    def _of(self, log: BanditLog, digest: str, configuration: Configuration, version: str) -> Any:
        command = configuration.command()

        def measure() -> dict[str, Any]:
            if command not in self._warm:  # what is not compiled yet, is compiled now
                self._warm.add(command)
                write(head(log, _WARM_UP), self._path)
                run_ours(self._path, configuration)
            write(log, self._path)
            return _result(log, run_ours(self._path, configuration))

        return self._results.of(digest, command, version, measure=measure)

    def _of_peers(self, peers: Peers, log: BanditLog, digest: str) -> dict[str, Any]:
        found = {}
        for who, version in peers.versions.items():
            events = min(self._forest, len(log.events)) if who == "ARF" else len(log.events)
            if events and peers.suit(who, log):
                measure = partial(_of_peer, peers, log, who, events)
                found[who] = self._results.of(digest, f"{who}, {events} events", version, measure=measure)
        return found


def _of_peer(peers: Peers, log: BanditLog, who: str, events: int) -> dict[str, Any]:
    """Let a peer learn the first events of a log."""
    return _result(log, peers.run(head(log, events), who))


def _result(log: BanditLog, run: Run) -> dict[str, Any]:
    """Return of a run what is kept."""
    earned = log.rewards[np.arange(len(run.greedy)), run.greedy]
    rewards = rewards_in(earned, len(log.events))
    return {"rewards": rewards, "seconds": run.seconds, "changes": run.changes}


def _scores(
    rewards: list[float | None], base: list[float | None], best: list[float | None]
) -> tuple[float | None, ...]:
    """Put rewards on the scale from `base` to `best`."""
    return tuple(
        None if one is None or low is None or high is None else (one - low) / max(high - low, _LEAST)
        for one, low, high in zip(rewards, base, best, strict=True)
    )


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--ours", nargs="+", default=["--automl 8"], metavar="FLAGS")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="+", choices=[*GROUPS, *SETS], default=["tuned"], metavar="NAME")
    parser.add_argument("--kinds", choices=["u", "e", "ue"], default="ue", help="how it was logged")
    parser.add_argument("--data", type=Path, default=FOLDER, help="where cb-NAME-u.txt.gz and .npz are")
    parser.add_argument("--events", type=int, help="of each log; all by default")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="has lightgbm and river")
    parser.add_argument("--peer-seeds", type=int, default=1, help="of the peers; 0 is none")
    parser.add_argument("--wheel", default="--automl 4", metavar="FLAGS", help="of VW")
    parser.add_argument("--forest", type=int, default=5000, metavar="EVENTS", help="of river; 0 is none")
    parser.add_argument("--cache", type=Path, help="file of results")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(argv)


def _measure_all(options: argparse.Namespace) -> list[Measured]:
    """Go through logs and seeds, and print the rows of each log."""
    sets = [name for each in options.sets for name in GROUPS.get(each, (each,))]
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        peers = Peers(options.peers, place, options.wheel) if options.peer_seeds else None
        for who, why in peers.missing.items() if peers else ():
            print(f"{who} is left out: {why}")
        bench = Bench(options.ours, peers, Results(options.cache), directory=place, forest=options.forest)
        for name in names_in(options.data, sets):
            if name[-1] in options.kinds:
                log = load(name, options.data)
                log = head(log, options.events or len(log.events))
                for seed in range(options.seeds):
                    wanted = seed < options.peer_seeds
                    measured += bench.measure(relogged(log, seed), seed, peers=wanted)
                print_rows(rows(each for each in measured if each.log == name))
    return measured


def main(argv: list[str] | None = None) -> int:
    """Print the table; write JSON if asked to; fail if what is asked does not hold."""
    options = _options(argv)
    measured = _measure_all(options)
    averages = means(measured)
    print_means(averages)
    for flags in options.ours:
        print(f"\n{flags}")
        for sentence in comparisons(measured, flags):
            print(f"    {sentence}")
    verdict = verdicts(averages, options.ours[0])
    for name, holds in verdict.items():
        print(f"{'yes' if holds else 'NO':4}{name}")
    if options.json:
        document = {
            "ours": options.ours,
            "runs": [asdict(each) for each in measured],
            "rows": [asdict(row) for row in rows(measured)],
            "means": [asdict(mean) for mean in averages],
            "comparisons": {flags: comparisons(measured, flags) for flags in options.ours},
            "verdicts": verdict,
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0 if all(verdict.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
