"""A service: users whose likes change ask it over HTTP, and it learns from their clicks.

``python examples/14_service.py 20000`` lets more users come; the page is at the address that it prints.
"""

import random
import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from onlineauto.service.client import Client

TOPICS = ("politics", "sports", "music", "travel", "art", "science")
USERS = ("tom", "anna", "kim", "lee")


NOISE = [f"n{number}" for number in range(4)]  # namespaces that mean nothing


def visitor(draw: random.Random, *, later: bool) -> tuple[dict[str, dict[str, int]], str]:
    """Return the context of a user who comes, and the topic that they like; later they like others."""
    user = draw.choice(USERS)
    context = {"user": {user: 1}, **{name: {f"v{draw.randrange(20)}": 1} for name in NOISE}}
    return context, TOPICS[(USERS.index(user) + (2 if later else 0)) % len(TOPICS)]


def clicks(url: str, visits: int) -> float:
    """Let users come, whose likes change half-way; return the share of clicks."""
    draw, clicked = random.Random(1), 0.0
    with Client(url, timeout=10) as client:
        for visit in range(visits):
            context, likes = visitor(draw, later=visit > visits // 2)
            choice = client.rank(context, {topic: {"topic": {topic: 1}} for topic in TOPICS})
            click = float(draw.random() < (0.7 if choice.action == likes else 0.1))
            client.reward(choice, click)
            clicked += click
    return clicked / visits


def served(*flags: str, visits: int) -> float:
    """Run a service for as long as users come; return the share of clicks."""
    with TemporaryDirectory() as folder, socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
        found.close()
        words = [str(Path(folder) / "loop"), "--port", str(port), "--quiet", *flags]
        words += ["--learn_at", "reward"]  # every visit is rewarded, with 0 or 1
        service = subprocess.Popen([sys.executable, "-m", "onlineauto", "serve", *words])
        url = f"http://127.0.0.1:{port}"
        try:
            while True:
                try:
                    httpx.get(f"{url}/readyz")
                    break
                except httpx.TransportError:
                    time.sleep(0.1)
            print(f"{url}/ with {' '.join(flags)}")
            return clicks(url, visits)
        finally:
            service.terminate()
            service.wait()


if __name__ == "__main__":
    visits = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    for flags in ("--automl 4", "-q ::"):
        share = served("--cb_explore_adf", "--epsilon", "0.1", *flags.split(), visits=visits)
        print(f"clicks with {flags}: {share:.3f} of {visits}")
