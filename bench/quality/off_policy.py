"""Values of policies from logs, where the true ones are known: how near they are, and whether intervals hold.

    python -m bench.quality.off_policy [--data DIR] [--seeds N] [--json FILE]

Policies are trained on the first half of a log and evaluated on the second half, which is logged again by
every seed. True is, after every event, the average of the rewards that the policy expects in the contexts so
far. An interval misses on a seed if it is off after any event; the level is 5 %. "known": range of costs and
least probability are given; "learnt": neither is. "VW" is the average loss that Vowpal Wabbit shows for the
policy, progressively and without an interval.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import kit
from bench.quality.logs import BanditLog, drawn, head, load, part, relogged
from datasets.convert import FOLDER
from onlineauto import Workspace
from onlineauto.estimators.evaluation_kernels import (
    DR,
    ESTIMATES,
    IPS,
    OBSERVED,
    SNIPS,
    Logged,
    evaluate_events,
    make_evidence,
)
from onlineauto.evaluation.evaluation import Evaluation

LOGS = (
    *(f"{name}-u" for name in ("penbased", "surveys", "flights", "diamonds")),
    *(f"{name}-e" for name in ("penbased", "surveys", "flights", "diamonds")),
)
"""The logs."""

Options = dict[str, Any]

POLICIES: dict[str, Options] = {
    "plain": {"epsilon": 0.1},
    "q::": {"quadratic": ["::"], "epsilon": 0.1},
    "q:: softmax": {"quadratic": ["::"], "softmax": True, "lambda_": 5.0},
}
"""The policies that are evaluated, by the options with which they are trained."""

_ALPHA = 0.05
_EVENTS = 6_000
_WAYS = {"ips": IPS, "snips": SNIPS, "dr": DR}


@dataclass(frozen=True, slots=True)
class Row:
    """A policy on the logs of all seeds."""

    log: str
    policy: str
    knows: str
    true: float
    # mean distance of the last estimate from the true value, by way; ``vw`` is VW's average loss
    errors: dict[str, float]
    widths: dict[str, float]  # mean width of the last interval
    misses: dict[str, float]  # share of the seeds on which the interval was ever off


def _by_action(workspace: Workspace, text: bytes, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Scores of every action of every event, as the workspace has them now."""
    parts = [outcomes for _, outcomes in workspace.stream(text)]
    order = np.concatenate([part.action for part in parts]).reshape(shape).astype(np.int64)
    ranked = np.concatenate([part.score for part in parts]).reshape(shape).astype(float)
    scores = np.empty(shape)
    np.put_along_axis(scores, order, ranked, axis=1)
    return scores


def _trained(options: Options, log: BanditLog, first: int) -> NDArray[np.float64]:
    """Scores for the events behind the first half, of what has learnt that half."""
    learner = Workspace(**options).fit(_text(log.events[:first]))
    frozen = Workspace(**options | {"testonly": True})
    frozen.restore(learner.state())
    return _by_action(frozen, _text(log.events[first:]), log.rewards[first:].shape)


def _text(events: tuple[bytes, ...]) -> bytes:
    return b"".join(event + b"\n\n" for event in events)


def rows(log: BanditLog, *, seeds: int) -> list[Row]:
    """Evaluate all policies on a log, with a number of seeds."""
    first = len(log.events) // 2
    costs = _trained({"cb_adf": True, "quadratic": ["::"]}, log, first).clip(-1, 0)
    pmfs = {
        name: _trained({"cb_explore_adf": True, **options}, log, first) for name, options in POLICIES.items()
    }
    second = part(log, slice(first, None))
    return [
        _row(second, name, knows, pmf, costs, seeds)
        for name, pmf in pmfs.items()
        for knows in ("known", "learnt")
    ]


def _row(
    log: BanditLog, policy: str, knows: str, pmf: NDArray[np.float64], costs: NDArray[np.float64], seeds: int
) -> Row:
    n, n_actions = log.rewards.shape
    events, expected = np.arange(n), (pmf * log.rewards).sum(axis=1)
    true = expected.cumsum() / (events + 1)
    errors: dict[str, list[float]] = {name: [] for name in (*_WAYS, "vw")}
    widths: dict[str, list[float]] = {name: [] for name in _WAYS}
    misses: dict[str, list[bool]] = {name: [] for name in _WAYS}
    floor = float(log.probabilities.min())
    for seed in range(1, seeds + 1):
        new = drawn(log, 1000 + seed)
        reward = log.rewards[events, new.actions]
        weight = pmf[events, new.actions] / new.probabilities
        logged = Logged(
            weight=weight,
            reward=reward,
            probability=new.probabilities.astype(float),
            action=events * n_actions + new.actions,
            start=np.column_stack([events, events + 1]) * n_actions,
            predicted=-costs.ravel(),
            pmf=pmf.ravel(),
        )
        given = (0.0, 1.0) if knows == "known" else (np.inf, -np.inf)
        least = floor if knows == "known" else None
        evidence = make_evidence(*given, floor=least)
        bounds = np.empty((n, 3, 2))
        evaluate_events(evidence, logged, _ALPHA, bounds)
        seen = n - int(evidence.totals[OBSERVED])
        now = true if not seen else np.full(n, np.nan)
        if seen:
            now[seen:] = expected[seen:].cumsum() / (np.arange(seen, n) - seen + 1)
        estimates = {
            "ips": (weight * reward).mean(),
            "snips": (weight * reward).sum() / weight.sum(),
            "dr": evidence.totals[ESTIMATES] / n,
            "vw": (weight * reward).mean(),
        }
        for way, number in _WAYS.items():
            low, high = bounds[:, number].T
            misses[way].append(bool(((now < low) | (now > high)).any()))
            widths[way].append(high[-1] - low[-1])
        for way, estimate in estimates.items():
            errors[way].append(abs(estimate - true[-1]))
    return Row(
        log=log.name,
        policy=policy,
        knows=knows,
        true=float(true[-1]),
        errors={way: float(np.mean(each)) for way, each in errors.items()},
        widths={way: float(np.mean(each)) for way, each in widths.items()},
        misses={way: float(np.mean(each)) for way, each in misses.items()},
    )


def learning_misses(log: BanditLog, *, seeds: int) -> dict[str, float]:
    """Share of the seeds on which the intervals of a policy that learns were ever off."""
    missed: dict[str, list[bool]] = {name: [] for name in _WAYS}
    for seed in range(1, seeds + 1):
        new = relogged(log, seed)
        text = _text(new.events)
        options: Options = {"cb_explore_adf": True, "quadratic": ["::"], "bit_precision": 14}
        pmf = _by_action(Workspace(**options), text, log.rewards.shape)
        expected = -(pmf * log.rewards).sum(axis=1)
        now = expected.cumsum() / (np.arange(len(expected)) + 1)
        estimates = Workspace(cb_adf=True, bit_precision=14, quadratic=["::"])
        evaluation = Evaluation(
            {"learning": Workspace(**options)},
            alpha=_ALPHA,
            cost_range=(-1.0, 0.0),
            min_prob=float(log.probabilities.min()),
            estimates=estimates,
        )
        bounds = np.concatenate([each["learning"] for _, each in evaluation.stream(text)])
        for way, number in _WAYS.items():
            low, high = bounds[:, number].T
            missed[way].append(bool(((now < low) | (now > high)).any()))
    return {way: float(np.mean(each)) for way, each in missed.items()}


def verdicts(table: list[Row], learning: dict[str, float], seeds: int) -> dict[str, bool]:
    """Return each target, and whether it is met: misses within the level, with an allowance for chance."""
    most = _ALPHA + 2.0 * math.sqrt(_ALPHA * (1.0 - _ALPHA) / seeds)
    known = [row for row in table if row.knows == "known"]
    worst = max((miss for row in known for miss in row.misses.values()), default=0.0)
    learnt = max((miss for row in table for miss in row.misses.values()), default=0.0)
    return {
        f"what is known: at most {most:.3f} of the seeds missed ({worst:.3f})": worst <= most,
        f"what is learnt too ({learnt:.3f})": learnt <= most,
        f"a policy that learns too ({max(learning.values()):.3f})": max(learning.values()) <= most,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; write JSON if asked to; fail if what is asked does not hold."""
    options = kit.parser(
        __doc__,
        data=kit.Option(FOLDER, "where cb-NAME-u.txt.gz and .npz are"),
        logs=kit.Option(list(LOGS), choices=LOGS),
        events=kit.Option(_EVENTS, "of each log, half of them to train on"),
        seeds=200,
        json=Path,
    ).parse_args(argv)
    logs = (head(load(name, options.data), options.events) for name in options.logs)
    table = kit.printed(row for log in logs for row in rows(log, seeds=options.seeds))
    log = head(load(options.logs[0], options.data), min(options.events, 2_000))
    learning = learning_misses(log, seeds=options.seeds)
    print(f"a policy that learns, {log.name}: missed {learning}")
    verdict = verdicts(table, learning, options.seeds)
    document = {"rows": table, "learning": learning, "verdicts": verdict}
    kit.write_json(options.json, document)
    return kit.print_verdicts(verdict)


if __name__ == "__main__":
    sys.exit(main())
