"""Calibrate the prices of members: measure their processor time in units of the champion's.

    python -m bench.speed.prices [--kinds NAME ...] [--rounds 5] [--check] [--json FILE]

A workspace with all members learns the first half of a stream. Copies of it then learn the second half: one
with all members, and for each member's score one in which that score rests. The score's cost is the
difference. The champion is a workspace with all pairs of namespaces and without a search. All copies take
turns in blocks of 256 events, in random order; the least time of each block over the rounds counts, without
the time to read text.

A price is ``factor * (constant + work)``, where `work` is the number that the member's formula counts.
Factor and constant of each score have the least squared error of the logarithm over all kinds of streams;
costs below 0.05 of the champion's count as 0.05. They are written to
``onlineauto/engine/ensemble/calibration.py``. ``--check`` prints the table, and writes nothing.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import onlineauto
from bench import kit
from bench.speed_kinds.streams import KINDS, Kind, Part
from onlineauto import Workspace
from onlineauto.engine.ensemble import calibration
from onlineauto.engine.ensemble.ensemble import able_scores, rest, work_of
from onlineauto.engine.ensemble.member import price_of_config
from onlineauto.engine.ensemble.registry import MEMBERS
from onlineauto.engine.ensemble.states import states_of
from onlineauto.features.block import Block

_ROOT, _WORD = Path(__file__).parents[2], Part(names=1, of=4)
FILE = _ROOT / "onlineauto" / "engine" / "ensemble" / "calibration.py"
"""What the package reads."""

_STREAMS: dict[str, tuple[Kind | None, int]] = {
    **{name: (KINDS[name], 8192) for name in ("tiny", "numbers", "news", "ids")},
    **{
        name: (KINDS[name], events)
        for name, events in (("namespaces", 4096), ("wide", 1024), ("actions", 1024))
    },
    **{
        f"vector of {n}": (
            Kind(what="", events=1, actions=4, context=(_WORD, Part(numbers=n)), action=(_WORD,)),
            4096,
        )
        for n in (64, 384)
    },
    **{f"cb-{name}-u": (None, 8192) for name in ("letter", "diamonds-n", "surveys")},
    **{f"reg-{name}": (None, 8192) for name in ("flights", "bikeshare", "diamonds")},
}
"""What is measured: kinds of streams, and committed logs, with the number of events."""

_BLOCK, _LEAST = 256, 0.05
_CONSTANTS = np.array([0.0, *2.0 ** np.arange(2, 12, 0.5)])


@dataclass(frozen=True)
class Measured:
    """The cost of a score on a kind of stream, beside the champion's, and the work that both count."""

    kind: str
    score: str
    microseconds: float
    champion_microseconds: float
    work: float
    champion_work: float

    @property
    def cost(self) -> float:
        """The cost as a multiple of the champion's."""
        return max(self.microseconds / self.champion_microseconds, _LEAST)


class Calibration(NamedTuple):
    """What the package reads: the champion's constant, and factor and constant of each score."""

    champion: float
    prices: Mapping[str, tuple[float, float]]

    def price(self, row: Measured) -> float:
        """Return the price of a score as a multiple of the champion's."""
        factor, constant = self.prices.get(row.score, (1.0, 0.0))
        return factor * (constant + row.work) / (self.champion + row.champion_work)

    def errors(self, rows: Sequence[Measured]) -> list[float]:
        """Return the factor by which each price is off."""
        return [float(np.exp(abs(np.log(max(self.price(row), _LEAST) / row.cost)))) for row in rows]


CURRENT = Calibration(calibration.CHAMPION, calibration.PRICES)


def _blocks(name: str, events: int, folder: Path) -> Iterator[Block]:
    """Yield the first events of a stream in blocks."""
    what, path = _STREAMS[name][0], _ROOT / "datasets" / f"{name}.txt.gz"
    if what is not None:
        path = folder / "stream.txt"
        replace(what, events=events).write(path)
        if name.startswith("vector"):  # the numbers of a vector have no names
            path.write_text(re.sub(r"n\d+:", ":", path.read_text()))
    for whole in onlineauto.read(path, cb_adf=not name.startswith("reg")):
        block = whole.head(min(events, len(whole)))
        events -= len(block)
        for at in range(0, len(block), _BLOCK):
            rest_of_it = block.tail(at)
            yield rest_of_it.head(min(_BLOCK, len(rest_of_it)))


def _fork(workspace: Workspace, *resting: str) -> Workspace:
    """Return a copy in which some scores rest, and the search decides nothing about members."""
    copy = workspace.fork()
    copy.searching._rules = replace(copy.searching._rules, member_budget=0.0)
    rest(copy.searching.live_configs.arrays.ensemble, resting)
    return copy


def _counted(workspace: Workspace) -> tuple[float, dict[str, float]]:
    """Return the weights that the champion touches, and the work of each score that works."""
    estimates, live_configs = workspace.estimates, workspace.searching.live_configs
    ensemble, sizes = live_configs.arrays.ensemble, estimates.sizes(live_configs.namespaces)
    work = work_of(ensemble, features=1.0 + sum(sizes.values()), n_actions=estimates.n_actions())
    members = states_of(ensemble).members
    counted = dict(pair for each in members for pair in zip(each.names, each.prices(work), strict=True))
    champion = price_of_config(sizes, live_configs.interactions(0), work.n_actions) - calibration.CHAMPION
    return champion, {name: float(counted[name]) for name, can in able_scores(ensemble).items() if can}


def measure(kind: str, *, rounds: int, events: int = 0) -> Iterator[Measured]:
    """Yield the cost of each score that works on a kind of stream."""
    options: dict[str, Any] = {} if kind.startswith("reg") else {"cb_explore_adf": True}
    with tempfile.TemporaryDirectory() as folder:
        blocks = list(_blocks(kind, events or _STREAMS[kind][1], Path(folder)))
    names = ",".join(name for name, entry in MEMBERS.items() if entry.costs)
    champion = Workspace(**options, quadratic=["::"])
    ensemble = Workspace(**options, automl=1, members=names, member_budget=1e9)
    first, second = blocks[: len(blocks) // 2], blocks[len(blocks) // 2 :]
    for block in first:
        champion.learn_block(block)
        ensemble.learn_block(block)
    champion_work, work = _counted(ensemble)
    taken, draw = np.zeros((rounds + 1, 2 + len(work), len(second))), np.random.default_rng(1)
    for times in taken:  # the first round compiles
        copies = [champion.fork(), _fork(ensemble), *(_fork(ensemble, score) for score in work)]
        for at, block in enumerate(second):
            for side in draw.permutation(len(copies)):
                begin = time.process_time()
                copies[side].learn_block(block)
                times[side, at] = time.process_time() - begin
    one, whole, *without = taken[1:].min(axis=0).sum(axis=1) / sum(map(len, second)) * 1e6
    for score, others in zip(work, without, strict=True):
        yield Measured(kind, score, float(whole - others), float(one), work[score], champion_work)


def _fitted(cost: NDArray[np.float64], work: NDArray[np.float64]) -> tuple[float, float]:
    """Return the factor and the constant of the least squared error of the logarithm of a cost."""
    errors = np.log(cost) - np.log(_CONSTANTS[:, None] + work)
    best = int(np.argmin(errors.var(axis=1)))
    return float(f"{np.exp(errors[best].mean()):.2g}"), round(float(_CONSTANTS[best]))


def calibrate(rows: Sequence[Measured]) -> Calibration:
    """Return the prices that fit the measured costs."""
    kinds = {row.kind: row for row in rows}.values()
    champions = np.array([(row.champion_microseconds, row.champion_work) for row in kinds])
    _, champion = _fitted(*champions.T)
    prices = dict(CURRENT.prices)
    for score in dict.fromkeys(row.score for row in rows):
        measured = [
            (row.cost * (champion + row.champion_work), row.work) for row in rows if row.score == score
        ]
        prices[score] = _fitted(*np.array(measured).T)
    return Calibration(champion, prices)


def text_of(fitted: Calibration) -> str:
    """Return the module that the package reads."""
    lines = "".join(f'    "{score}": {price},\n' for score, price in fitted.prices.items())
    text = re.sub(r"(?m)^CHAMPION = .*", f"CHAMPION = {fitted.champion}", FILE.read_text("utf-8"))
    return re.sub(r"(?ms)^(PRICES: .*?= \{).*?\}$", lambda found: f"{found[1]}\n{lines}}}", text)


def table(rows: Sequence[Measured], fitted: Calibration) -> Iterator[dict[str, Any]]:
    """Yield the median and the worst error of each score, with current and with fitted prices."""
    for score, price in fitted.prices.items():
        mine = [row for row in rows if row.score == score]
        if mine:
            errors = {"before": CURRENT.errors(mine), "after": fitted.errors(mine)}
            yield {"score": score, "factor": price[0], "constant": price[1], "kinds": len(mine)} | {
                f"{what} {when}": f"{how(found):.3g}"
                for when, found in errors.items()
                for what, how in (("median", median), ("worst", max))
            }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, write the calibration and JSON if asked to."""
    options = kit.parser(
        __doc__,
        kinds=kit.Option(list(_STREAMS), choices=_STREAMS),
        rounds=5,
        events=kit.Option(0, "number of events of each stream; 0 is the usual one"),
        check=False,
        json=Path,
    ).parse_args(arguments)
    rows = [
        row
        for kind in options.kinds
        for row in kit.printed(measure(kind, rounds=options.rounds, events=options.events))
    ]
    fitted = calibrate(rows)
    kit.printed(table(rows, fitted))
    if not options.check:
        FILE.write_text(text_of(fitted), "utf-8")
    kit.write_json(options.json, [{**asdict(row), "price": fitted.price(row)} for row in rows])


if __name__ == "__main__":
    main()
