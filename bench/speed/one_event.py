"""Measure the time of one decision: predict and learn an event, one at a time, beside the peers.

    python -m bench.speed.one_event [--rounds 7]

Events have a context of three features and eight actions of three. *AutoML* is `AutoML.rank` and `learn`,
*ours, mappings* and *ours, text* are `Workspace.predict` and `learn`, each with four live configs. *vw,
text* is Vowpal Wabbit's Python binding with ``--automl 4`` over the same texts, *vw, mappings* the same
with the texts made of the mappings within the measured time, as a service would; *gittins* is that package's
linear model, which does not search. Peers that are not installed are left out. All take turns in one process;
the medians of CPU microseconds for an event are printed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any, NamedTuple

from bench import kit
from onlineauto import AutoML, Workspace

_CHOSEN, _COST, _PROBABILITY = 3, -1.0, 0.125


class Event(NamedTuple):
    """An event as a mapping, and as texts without and with its cost."""

    context: dict[str, Any]
    actions: list[dict[str, Any]]
    asked: str
    known: str


def draw_events(n: int) -> list[Event]:
    """Return `n` events."""
    drawn, made = random.Random(1), []
    for _ in range(n):
        context = {
            "user": drawn.choice("abcdefgh"),
            "age": drawn.randrange(20, 60),
            "os": drawn.choice(["ios", "android", "win"]),
        }
        actions = [
            {
                "article": {"topic": drawn.choice(["politics", "sports", "music"]), "size": drawn.random()},
                "source": drawn.choice("xyz"),
            }
            for _ in range(8)
        ]
        made.append(
            Event(context, actions, text_of(context, actions), text_of(context, actions, chosen=_CHOSEN))
        )
    return made


def text_of(context: dict[str, Any], actions: list[dict[str, Any]], chosen: int = -1) -> str:
    """Return an event as VW text, as a service writes it."""
    lines = [f"shared |user user={context['user']} |age age:{context['age']} |os os={context['os']}"]
    for i, action in enumerate(actions):
        label = f"{_CHOSEN}:{_COST:g}:{_PROBABILITY:g} " if i == chosen else ""
        article, source = action["article"], action["source"]
        lines.append(
            f"{label}|article topic={article['topic']} size:{article['size']} |source source={source}"
        )
    return "\n".join(lines) + "\n\n"


def _mappings() -> Callable[[Event], object]:
    bandit = Workspace(cb_explore_adf=True, automl=4)

    def go(event: Event) -> None:
        asked = {"context": event.context, "actions": event.actions}
        bandit.predict(asked)
        bandit.learn(asked | {"chosen": _CHOSEN, "cost": _COST, "probability": _PROBABILITY})

    return go


def _texts() -> Callable[[Event], object]:
    bandit = Workspace(cb_explore_adf=True, automl=4)

    def go(event: Event) -> None:
        bandit.predict(event.asked)
        bandit.learn(event.known)

    return go


def _automl() -> Callable[[Event], object]:
    bandit = AutoML()

    def go(event: Event) -> None:
        bandit.learn(bandit.rank(event.context, event.actions), reward=1.0)

    return go


def candidates_of(event: Event) -> list[tuple[str, dict[str, Any]]]:
    """Return the actions of an event as gittins takes them."""
    return [
        (str(i), action["article"] | {"source": action["source"]}) for i, action in enumerate(event.actions)
    ]


def _gittins() -> Callable[[Event], object]:
    gittins: Any = import_module("gittins")
    bandit = gittins.create(bits=18, horizon=3600.0)

    def go(event: Event) -> None:
        made = gittins.decide(bandit, event.context, candidates_of(event), time.time(), "bench")
        gittins.learn(bandit, made.decision_id, 1.0, time.time())

    return go


def _vw(*, makes_text: bool) -> Callable[[Event], object]:
    import vowpalwabbit

    bandit: Any = vowpalwabbit.Workspace("--cb_explore_adf --automl 4 --quiet")

    def go(event: Event) -> None:
        if makes_text:
            bandit.predict(text_of(event.context, event.actions))
            bandit.learn(text_of(event.context, event.actions, chosen=_CHOSEN))
        else:
            bandit.predict(event.asked)
            bandit.learn(event.known)

    return go


def _contestants() -> dict[str, Callable[[Event], object]]:
    found = {"AutoML": _automl(), "ours, mappings": _mappings(), "ours, text": _texts()}
    if find_spec("vowpalwabbit"):
        found["vw, text"] = _vw(makes_text=False)
        found["vw, mappings"] = _vw(makes_text=True)
    if find_spec("gittins"):
        found["gittins"] = _gittins()
    return found


def measure(*, rounds: int, events: int) -> dict[str, list[float]]:
    """Return the CPU microseconds of an event, predicted and learnt, of each round by contestant."""
    drawn = draw_events(events)
    contestants = _contestants()

    def microseconds(name: str) -> float:
        begin = time.process_time()
        for event in drawn:
            contestants[name](event)
        return (time.process_time() - begin) / events * 1e6

    return kit.samples(contestants, rounds, microseconds)


def main(words: Sequence[str] | None = None) -> int:
    """Print the CPU microseconds of an event, predicted and learnt."""
    options = kit.parser(__doc__, rounds=7, events=500).parse_args(words)
    spent = measure(rounds=options.rounds, events=options.events)
    ours = median(spent["AutoML"])
    for name, times in spent.items():
        middle = median(times)
        spread = f"({min(times):.1f} to {max(times):.1f})"
        print(f"{name:16} {middle:7.1f} µs {spread:18} {middle / ours:5.2f} x AutoML")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
