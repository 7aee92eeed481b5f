"""Measure the reward of the search on bandit logs beside ``-q ::``, the best fixed config and peers.

    python -m bench.quality [--ours FLAGS ...] [--seeds 5] [--sets NAME ...] [--peers PYTHON]
                                  [--cache FILE] [--data DIR] [--json FILE]

The true reward of every action is known. The reward of the first action of each ranking is averaged over all
events, the second half, and two intervals of early events. A score of 0 is ``-q ::``, 1 is the best of some
fixed configs (`bench.quality.runs`). Beside them are ``-q :: -l .05`` and the best mean action, a learner
without context. Seed 0 is the committed log; other seeds log its events again.

``--ours "--automl 8" "--automl 8 --cb_type dr"`` compares variants of onlineauto. Sets go by name or by group
(``tuned``, ``numbers``, ``development``, ``held-out``, ``fresh``, ``kept-back``, ``tables``,
``little-signal``, ``many-actions``, ``vectors``, ``long``, ``ordered``). The peers are VW's search; LightGBM
refitted every 2,000 events, one model and one model for each action; and river's random forest over the first
events of each log. ``--peers`` names the interpreter of an environment that has them (``pip install lightgbm
river``); what is not there is left out.

``--cache FILE`` keeps each result under the content of the log, the flags and the version, and so runs only
what has changed: for ours any source file of onlineauto, for fixed configs its release.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import onlineauto
from bench import kit
from bench.quality.logs import GROUPS, SETS, BanditLog, head, load, names_in, relogged, write
from bench.quality.peers import Peers, Results, code_version
from bench.quality.report import (
    BASE,
    BEST,
    LINEAR,
    MEAN,
    SLOW,
    WINDOWS,
    Measured,
    comparisons,
    means,
    rewards_in,
    rows,
    verdicts,
)
from bench.quality.runs import (
    Run,
    configured,
    fixed_configs,
    from_flags,
    run_best_mean_action,
    run_ours,
)
from datasets.convert import FOLDER
from onlineauto.options import Configuration

_WARM_UP = 4000
_LEAST = 0.005
"""Where ``-q ::`` is hardly worse than the best fixed config, or better, the scale has this length."""


class Bench:
    """Runs contenders over logs."""

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
        slow = self._of(log, digest, configured(quadratic="::", learning_rate=0.05), release)
        mean = self._results.of(digest, MEAN, measure=lambda: _result(log, run_best_mean_action(log)))
        found = {BASE: base, LINEAR: fixed["ctxZ"], BEST: best, SLOW: slow, MEAN: mean}
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
    """Run a peer on the first events of a log."""
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


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    return kit.parser(
        __doc__,
        ours=["--automl 8"],
        seeds=5,
        sets=kit.Option(["tuned"], choices=[*GROUPS, *SETS]),
        kinds=kit.Option("ue", "how it was logged", choices=["u", "e", "ue"]),
        data=kit.Option(FOLDER, "where cb-NAME-u.txt.gz and .npz are"),
        events=kit.Option(int, "of each log; all by default"),
        peers=kit.Option(sys.executable, "has lightgbm and river"),
        peer_seeds=kit.Option(1, "of the peers; 0 is none"),
        wheel=kit.Option("--automl 4", "of VW"),
        forest=kit.Option(5000, "of river; 0 is none"),
        cache=kit.Option(Path, "file of results"),
        json=Path,
    ).parse_args(argv)


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
                kit.printed(rows(each for each in measured if each.log == name))
    return measured


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; write JSON if asked to; fail if what is asked does not hold."""
    options = _options(argv)
    print(f"rewards and scores: {', '.join(WINDOWS)}; of a score the median, the lowest and the highest")
    measured = _measure_all(options)
    averages = means(measured)
    kit.printed(averages)
    said = {
        flags: comparisons(measured, flags, [other for other in options.ours if other != flags])
        for flags in options.ours
    }
    for flags in options.ours:
        print(f"\n{flags}")
        for sentence in said[flags]:
            print(f"    {sentence}")
    verdict = verdicts(averages, options.ours[0])
    document = {
        "ours": options.ours,
        "runs": measured,
        "rows": rows(measured),
        "means": averages,
        "comparisons": said,
        "verdicts": verdict,
    }
    kit.write_json(options.json, document)
    return kit.print_verdicts(verdict)


if __name__ == "__main__":
    sys.exit(main())
