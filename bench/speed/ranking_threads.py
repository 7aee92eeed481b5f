"""Measure decisions per second of threads with one model while another thread learns, beside the peers.

    python -m bench.speed.ranking_threads [--seconds 1]

The events are those of `bench.speed.one_event`. For each number of threads, all peers take turns of
``--seconds`` seconds; decisions and learnt events a second are printed. Python runs one thread at a time, so
the figures say what waiting costs, and whether anything breaks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from bench import kit
from bench.speed.one_event import Event, candidates_of, draw_events
from onlineauto import AutoML

_THREADS = (1, 2, 4, 8)


class Peer(NamedTuple):
    """The functions by which a model decides on an event and learns it."""

    rank: Callable[[Event], object]
    learn: Callable[[Event], object]


def _ours() -> Peer:
    bandit = AutoML(max_pending=10_000)

    def learn(event: Event) -> None:
        bandit.learn(event.context, event.actions, action=3, probability=0.125, reward=1.0)

    return Peer(lambda event: bandit.rank(event.context, event.actions), learn)


def _vw() -> Peer:
    vowpalwabbit = import_module("vowpalwabbit")
    bandit: Any = vowpalwabbit.Workspace("--cb_explore_adf --automl 4 --quiet")
    return Peer(lambda event: bandit.predict(event.asked), lambda event: bandit.learn(event.known))


def _gittins() -> Peer:
    gittins: Any = import_module("gittins")
    bandit = gittins.create(bits=18, horizon=60.0)
    lock = threading.Lock()

    def rank(event: Event) -> Any:
        with lock:
            return gittins.decide(bandit, event.context, candidates_of(event), time.time(), "bench")

    def learn(event: Event) -> None:
        made = rank(event)
        with lock:
            gittins.learn(bandit, made.decision_id, 1.0, time.time())

    return Peer(rank, learn)


def counted(peer: Peer, events: Sequence[Event], *, threads: int, seconds: float) -> tuple[float, float]:
    """Return decisions and learnt events a second of a number of ranking threads and one that learns."""
    done = [0] * (threads + 1)
    ends = time.perf_counter() + seconds
    failures: list[BaseException] = []

    def go(number: int) -> None:
        act = peer.learn if number == threads else peer.rank
        try:
            while time.perf_counter() < ends:
                for event in events[:50]:
                    act(event)
                done[number] += 50
        except BaseException as error:
            failures.append(error)
            raise

    started = [threading.Thread(target=go, args=(number,)) for number in range(threads + 1)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if failures:
        raise failures[0]
    return sum(done[:-1]) / seconds, done[-1] / seconds


def main(words: Sequence[str] | None = None) -> int:
    """Print decisions and learnt events a second by the number of threads."""
    options = kit.parser(__doc__, seconds=1.0).parse_args(words)
    events = draw_events(200)
    peers = {"onlineauto": _ours()}
    if find_spec("vowpalwabbit"):
        peers["vw"] = _vw()
    if find_spec("gittins"):
        peers["gittins"] = _gittins()
    for peer in peers.values():
        for event in events:
            peer.learn(event)
            peer.rank(event)
    for threads in _THREADS:
        for name, peer in peers.items():
            ranked, learnt = counted(peer, events, threads=threads, seconds=options.seconds)
            print(
                f"{threads} ranking, 1 learning  {name:11} {ranked:9,.0f} decisions/s {learnt:9,.0f} learnt/s"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
