"""Clicks of the visitors of ``examples/10_service.py``: by a service, and by the same model asked off-line.

    python -m bench.service.margin --visits 6000 --seeds 5

Half-way the visitors begin to like other kinds. `--automl 4` (the search and its ensemble) and `-q ::` decide
about the same visitors, once as a service, which eight visitors ask at a time, and which learns a little
later; and once off-line, where each decision is learnt before the next one. The margin is the difference of
the shares of clicks; its standard error is that over the seeds.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import random
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Final

import numpy as np

from bench import kit
from onlineauto import Workspace
from onlineauto.service.client import AsyncClient
from tests.service.serving import ROOT, Service

POLICIES: Final = ("--automl 4", "-q ::")
_USERS: Final = 8

sys.path.append(str(ROOT / "examples"))  # where the example finds its helper
EXAMPLE: Final = importlib.import_module("10_service")


def _words(flags: str) -> tuple[str, ...]:
    return ("--cb_explore_adf", "--epsilon", "0.1", *shlex.split(flags))


async def _visits(url: str, visits: int, seed: int) -> float:
    numbers, draw = iter(range(visits)), random.Random(seed)
    clicked = 0.0
    async with AsyncClient(url, timeout=30) as client:

        async def user() -> None:
            nonlocal clicked
            for number in numbers:
                context, likes = EXAMPLE.visitor(draw, later=number > visits // 2)
                actions = {kind: {"kind": {kind: 1}} for kind in EXAMPLE.KINDS}
                choice = await client.rank(context, actions)
                assert not choice.fallback
                click = float(draw.random() < (0.7 if choice.action == likes else 0.1))
                await client.reward(choice, click)
                clicked += click

        await asyncio.gather(*(user() for _ in range(_USERS)))
    return clicked / visits


def by_service(flags: str, *, visits: int, seed: int) -> float:
    """Return the share of clicks that a service earns."""
    with tempfile.TemporaryDirectory() as folder, Service(Path(folder) / "loop", model=_words(flags)) as made:
        return asyncio.run(_visits(made.url, visits, seed))


def off_line(flags: str, *, visits: int, seed: int) -> float:
    """Return the share of clicks that the same model earns if it learns each decision at once."""
    model, draw, clicked = (
        Workspace(f"{shlex.join(_words(flags))} --dsjson --quiet"),
        random.Random(seed),
        0.0,
    )
    kinds = [{"kind": {kind: 1}} for kind in EXAMPLE.KINDS]
    for number in range(visits):
        context, likes = EXAMPLE.visitor(draw, later=number > visits // 2)
        text = json.dumps({"c": {**context, "_multi": kinds}}).encode()
        pmf = model.predict(text)
        chosen = draw.choices(range(len(kinds)), pmf.tolist())[0]
        click = float(draw.random() < (0.7 if EXAMPLE.KINDS[chosen] == likes else 0.1))
        label = {"_label_cost": -click, "_label_probability": float(pmf[chosen]), "_labelIndex": chosen}
        label |= {"_label_Action": chosen + 1}
        model.learn(json.dumps(label).encode()[:-1] + b"," + text[1:])
        clicked += click
    return clicked / visits


def main() -> None:
    options = kit.parser(__doc__, visits=6000, seeds=5).parse_args()
    margins: dict[str, list[float]] = {}
    for seed in range(options.seeds):
        for name, earned in (("service", by_service), ("off-line", off_line)):
            shares = [earned(flags, visits=options.visits, seed=seed) for flags in POLICIES]
            margins.setdefault(name, []).append(shares[0] - shares[1])
            print(
                f"seed {seed}  {name:8}  "
                + "  ".join(f"{flags} {share:.4f}" for flags, share in zip(POLICIES, shares, strict=True)),
                flush=True,
            )
    for name, found in margins.items():
        error = float(np.std(found, ddof=1) / len(found) ** 0.5) if len(found) > 1 else float("nan")
        print(f"{name:8}  margin {np.mean(found):+.4f}, standard error {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
