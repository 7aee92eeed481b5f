"""Serve over HTTP: visitors ask for a kind of jewellery, and the service learns from their clicks.

Half-way the visitors begin to like other kinds. ``python examples/10_service.py 20000`` lets more visitors
come; the address that is printed has a page with all that happens.

Next: 11 checks and evaluates the log of another program.
"""

import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from onlineauto.service.client import Client
from serving import running

KINDS = ("watches", "rings", "chains", "earrings", "brooches", "bracelets")
VISITORS = ("tom", "anna", "kim", "lee")
NOISE = [f"n{number}" for number in range(4)]  # namespaces that mean nothing


def visitor(draw: random.Random, *, later: bool) -> tuple[dict[str, dict[str, int]], str]:
    """Return the context of a visitor, and the kind that they like; later they like another one."""
    name = draw.choice(VISITORS)
    context = {"visitor": {name: 1}, **{space: {f"v{draw.randrange(20)}": 1} for space in NOISE}}
    return context, KINDS[(VISITORS.index(name) + (2 if later else 0)) % len(KINDS)]


def clicks(url: str, visits: int) -> list[float]:
    """Let visitors come; return their clicks."""
    draw, clicked = random.Random(1), []
    with Client(url, timeout=10) as client:
        for visit in range(visits):
            context, likes = visitor(draw, later=visit > visits // 2)
            choice = client.rank(context, {kind: {"kind": {kind: 1}} for kind in KINDS})
            clicked.append(float(draw.random() < (0.7 if choice.action == likes else 0.1)))
            client.reward(choice, clicked[-1])
    return clicked


if __name__ == "__main__":
    visits = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    options = ["--cb_explore_adf", "--automl", "4", "--epsilon", "0.1"]
    options += ["--learn_at", "reward"]  # every visit is rewarded, with 0 or 1
    with (
        TemporaryDirectory() as folder,
        running("serve", str(Path(folder) / "loop"), *options) as url,
    ):
        print(f"the page is at {url}/")
        quarters = [np.mean(part) for part in np.array_split(clicks(url, visits), 4)]
    print("clicks in each quarter of the visits:", *[f"{share:.2f}" for share in quarters])
