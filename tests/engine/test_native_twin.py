"""The native search equals its reference implementation: decisions, predictions and their evidence.

All numbers are compared exactly. Decisions are lines of the journal, with the bounds that are in them; every
hundred events the evidence of each challenger and the gains of all screened interactions are compared too.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import msgspec
import pytest

from onlineauto import Workspace, read
from onlineauto.formats.lines.diagnostics import ProblemCode
from tests.naive.native_search import NativeSearch, Options, events_of
from tests.naive.native_search.journal import Line
from tests.naive.native_search.streams import choices, lines, slots, vector_choices, wide_choices, wide_lines

pytestmark = pytest.mark.lane("sampled")

EVERY = 100
READING = ("cb_explore_adf", "ccb_explore_adf")
"""Options that say what an event looks like."""


@dataclass(frozen=True)
class Case:
    """A stream, the options of the search, and what has to happen for the case to be worth its time."""

    name: str
    stream: Callable[[], bytes]
    options: dict[str, Any]
    happens: frozenset[str] = field(default_factory=frozenset)

    def __str__(self) -> str:
        return self.name


def bandit(name: str, stream: Callable[[], bytes], *happens: str, **options: Any) -> Case:
    given = {
        "cb_explore_adf": True,
        "automl": 4,
        "default_lease": 200,
        "predict_with": "champion",
        "epsilon": 0.05,
    }
    return Case(name, stream, {**given, **options}, frozenset(happens))


def single(name: str, stream: Callable[[], bytes], *happens: str, **options: Any) -> Case:
    given = {"automl": 4, "default_lease": 200, "predict_with": "mix"}
    return Case(name, stream, {**given, **options}, frozenset(happens))


SMALL = [
    bandit(
        "another pair begins to pay",
        lambda: choices(1900, pays=("ab", "cd")),
        *("swap by loss", "remove", "extend"),
    ),
    bandit(
        "a namespace comes late",
        lambda: choices(1200, pays=("?",), late=800),
        *("late namespaces", "swap by loss"),
    ),
    bandit("a namespace comes soon", lambda: choices(300, late=12), *("begins again", "remove"), automl=3),
    bandit(
        "rewards grow and probabilities shrink",
        lambda: choices(900, rough=True),
        *("swap by loss", "extend"),
        default_lease=100,
    ),
    bandit(
        "features share cells, and each line has the context",
        lambda: choices(500, rough=True, repeated=True),
        "extend",
        bit_precision=7,
        default_lease=100,
    ),
    bandit(
        "the champion predicts worse",
        lambda: choices(6000, pays=("-", "-", "-", "ab"), n_actions=2),
        *("reopen", "swap by loss", "comes back"),
        automl=3,
        default_lease=64,
        on_drift="reset_model",
    ),
    bandit(
        "the champion predicts better",
        lambda: choices(4900, pays=("-", "-", "-", "?", "?", "-", "-"), n_actions=2),
        "comes back",
        automl=2,
    ),
    bandit(
        "some events are too wide",
        lambda: choices(900, rough=True),
        *("swap by loss", "wide"),
        default_lease=100,
        max_crossed=60,
    ),
    bandit(
        "most events are too wide, and each line has the context",
        lambda: choices(300, rough=True, repeated=True),
        "wide",
        default_lease=60,
        max_crossed=9,
    ),
    single("some lines are too wide", lambda: lines(600, wild=True), "wide", default_lease=60, max_crossed=3),
    bandit(
        "rewards and probabilities are known",
        lambda: choices(1400, rough=True),
        "swap by reward",
        champion_test="reward",
        cost_range="-5,0",
        min_prob=0.1,
    ),
    bandit(
        "no probability is known",
        lambda: choices(700),
        "swap by reward",
        champion_test="reward",
        min_prob=0.0,
    ),
    bandit(
        "rewards lean against what losses say",
        lambda: choices(1000, pays=("?", *[".ab"] * 5), seed=19),
        automl=2,
        default_lease=50_000,
        search="interactions",
    ),
    bandit(
        "little has to be proved",
        lambda: choices(250, rough=True, seed=10),
        "remove",
        automl=3,
        search="interactions",
        automl_significance_level=0.99,
        champion_test="reward",
        default_lease=60,
    ),
    bandit(
        "events have slots",
        lambda: slots(600),
        "swap by loss",
        cb_explore_adf=False,
        ccb_explore_adf=True,
        default_lease=100,
    ),
    bandit(
        "context and actions have long vectors",
        lambda: vector_choices(240),
        "late namespaces",
        default_lease=40,
    ),
    bandit("crossings are many", lambda: wide_choices(160), "extend", default_lease=40),
    single("lines", lambda: lines(1500, wild=True), "swap by loss", "remove"),
    single(
        "labels are noisy at first",
        lambda: lines(1800, noise=(40.0, *[4.0] * 23), seed=3),
        "swap by loss",
        search="interactions",
    ),
    single(
        "labels become noisy",
        lambda: lines(4800, noise=(0.3, 0.3, 0.3, 5.0)),
        *("remove", "reopen", "tried again"),
        automl=2,
        default_lease=64,
        search="learning_rate",
    ),
    single(
        "more configs wait than are remembered",
        lambda: lines(2000),
        "comes back",
        automl=2,
        automl_significance_level=1e-9,
        default_lease=16,
    ),
    single(
        "namespaces are searched",
        lambda: lines(1200, wild=True),
        *("late namespaces", "swap by loss", "comes back"),
        automl=3,
        default_lease=100,
        search="namespaces,interactions",
        predict_with="champion",
        feature_cost=0.01,
    ),
    single(
        "yes or no",
        lambda: lines(1200, yes_or_no=True),
        "swap by loss",
        loss_function="logistic",
        link="logistic",
    ),
]

SMALL += [
    bandit(
        "a waiting config overtakes when rewards fall",
        lambda: choices(2000, pays=("ab", "-"), n_actions=2),
        *("overtakes", "swap by reward"),
        automl=3,
        default_lease=64,
        on_drift="ignore",
        champion_test="reward",
        waiting_overtakes=True,
    ),
    single(
        "a waiting config overtakes when labels become noisy, and all configs are kept",
        lambda: lines(2400, noise=(0.1, 5.0)),
        *("overtakes", "swap by loss", "keeps"),
        automl=3,
        default_lease=64,
        on_drift="ignore",
        keep_configs=True,
        waiting_overtakes=True,
    ),
    bandit(
        "configs are kept at a change of champion",
        lambda: choices(2400, pays=("ab", "cd")),
        *("swap by loss", "keeps"),
        keep_configs=True,
        default_lease=64,
    ),
]

LARGE = [
    bandit("what pays changes twice", lambda: choices(6000, pays=("ab", "cd", "bc")), "swap by loss"),
    bandit("nothing pays", lambda: choices(4000, pays=("?",)), "extend"),
    bandit("a lease is long", lambda: choices(6000), "swap by loss", default_lease=2000, automl=8),
    bandit("there is nobody but the champion", lambda: choices(1000, late=500), "widen", automl=1),
    bandit("there is one challenger", lambda: choices(3000, late=1500), "late namespaces", automl=2),
    bandit("rewards grow for long", lambda: choices(5000, rough=True), "swap by loss"),
    bandit("probabilities stay unknown", lambda: choices(3000), "comes back", min_prob=0.0),
    bandit("rewards alone decide", lambda: choices(5000), "extend", champion_test="reward"),
    bandit("losses alone decide", lambda: choices(3000), "swap by loss", champion_test="loss"),
    bandit(
        "namespaces of bandits are searched",
        lambda: choices(3000, rough=True),
        search="namespaces,interactions,learning_rate",
        priority_challengers=0,
        noconstant=True,
        first_only=True,
    ),
    *(
        bandit(
            f"the champion predicts worse: {on_drift}",
            lambda: choices(5600, pays=("-", "-", "-", "ab"), n_actions=2),
            "remove" if on_drift == "ignore" else "reopen",
            automl=3,
            on_drift=on_drift,
        )
        for on_drift in ("ignore", "reopen", "reset_challengers", "reset_model")
    ),
    bandit("many slots", lambda: slots(3000), "swap by loss", cb_explore_adf=False, ccb_explore_adf=True),
    single("many lines", lambda: lines(6000, wild=True), "swap by loss", "remove", default_lease=500),
    single("many rates", lambda: lines(6000), "extend", search="learning_rate", priority_challengers=1),
    single("many namespaces", lambda: wide_lines(400), "extend", default_lease=60),
    single(
        "often yes or no",
        lambda: lines(6000, yes_or_no=True),
        "swap by loss",
        loss_function="logistic",
        link="logistic",
    ),
]


def happenings(journal: list[Line]) -> set[str]:
    """Return the decisions of a search, in words."""
    found = set()
    places: dict[int, str] = {}
    seen: set[str] = set()
    before: set[str] = set()
    removed: set[str] = set()
    for line in journal:
        kind, place = line["decision"], line.get("slot", 0)
        found.add(f"swap by {line['by']}" if kind == "swap" else kind)
        if kind == "swap":
            places[0], places[place] = places[place], places[0]
            before |= seen - {*places.values()}
            seen, removed = set(), set()
        elif kind == "remove":
            removed.add(places[place])
        elif kind == "rotate":
            config = places[place] = f"{line['elements']} {line['settings']}"
            found |= {"comes back"} if config in seen else set()
            found |= {"tried again"} if config in removed else set()
            found |= {"late namespaces"} if line["why"].startswith("namespaces seen late") else set()
            found |= {"overtakes"} if line["why"].startswith("overtakes") else set()
            found |= {"keeps"} if config in before else set()
            found |= {"begins again"} if place == 0 and line["events"] > 0 else set()
            seen.add(config)
    return found


def predicted(outcomes: Any, event: int) -> dict[int, Any]:
    """Probability of every action, by its number; of a single line, the prediction of number 0."""
    if not len(outcomes.action):
        return {0: outcomes.prediction[event]}
    start, end = outcomes.action_start[event : event + 2]
    return dict(zip(outcomes.action[start:end].tolist(), outcomes.score[start:end], strict=True))


def check(case: Case) -> None:
    text, options = case.stream(), Options.of(**case.options)
    reading = {name: value for name, value in case.options.items() if name in READING}
    events = events_of(read(text, **reading).events(), options)
    workspace, twin = Workspace(**case.options), NativeSearch(options)
    journal: list[Line] = []
    expected: list[Line] = []
    workspace.observe(lambda entry: journal.append(msgspec.to_builtins(entry)))
    for _, outcomes in workspace.stream(text, every=EVERY):
        for event in range(len(outcomes)):
            step = twin.learn(next(events))
            expected += step.lines
            assert predicted(outcomes, event) == step.prediction, f"event {twin.n_events}"
        for line, (actual, reference) in enumerate(zip_longest(journal, expected)):
            assert actual == reference, f"line {line}"
        known = workspace.estimates
        promises = [each.promise(twin.champion) for each in twin.live]
        assert [known.promise(place) for place in range(1, len(known))] == promises[1:]
        assert known.gains() == twin.screening.gains
    assert next(events, None) is None
    wide = {"wide"} if workspace.diagnostics.counts[ProblemCode.TOO_WIDE] else set()
    assert case.happens <= happenings(journal) | wide


@pytest.mark.ci
@pytest.mark.parametrize("case", SMALL, ids=str)
def test_search_equals_its_reference(case: Case) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", LARGE, ids=str)
def test_longer_search_equals_its_reference(case: Case) -> None:
    check(case)


def test_reference_imports_nothing_of_the_package() -> None:
    program = (
        "import sys, tests.naive.native_search\n"
        "print([name for name in sys.modules if name.startswith('onlineauto')])"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"
