"""The ensemble and its members equal their reference implementations after each event."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pytest

from onlineauto import Event, Workspace, read
from onlineauto.engine.records.ensemble import Known
from onlineauto.estimators.paired_kernels import BETTER, WORSE
from tests.engine.ensemble_streams import (
    bent,
    clicked,
    confounded,
    embedded,
    in_turns,
    named,
    numbered,
    odd,
    others,
    renewed,
    repeated,
    worded,
)
from tests.naive.ensemble import Choice, Ensemble, Logged, trust
from tests.naive.hashing import hash_name
from tests.naive.members import KEEPS, MOST_ACTIONS, MOST_FEATURES, MOST_NUMBERS, OFTEN, Features, Named
from tests.naive.native_search.streams import choices, lines, slots

pytestmark = pytest.mark.lane("sampled")


NUMBERED = re.compile(rb"([A-Za-z0-9]+)[_=](\d+)")


@dataclass(frozen=True)
class Case:
    """A stream, the options of the search, and what has to happen for the case to be worth its time."""

    name: str
    stream: Callable[[], bytes]
    options: dict[str, Any]
    happens: frozenset[str] = field(default_factory=frozenset)

    def __str__(self) -> str:
        return self.name


def case(name: str, stream: Callable[[], bytes], *happens: str, **options: Any) -> Case:
    given = {"cb_explore_adf": True, "automl": 3, "default_lease": 60, **options}
    return Case(name, stream, given, frozenset(happens))


CASES = [
    case("words", lambda: choices(500)),
    case("clicks", lambda: clicked(700), "slow"),
    case("numbers and words", lambda: choices(500, rough=True), "joint"),
    case("numbers", lambda: odd(800, numbers=2), "ensemble", "bins"),
    case("actions in another order", lambda: odd(1000, numbers=1, shuffled=True), "ensemble"),
    case("many actions", lambda: in_turns(odd(280, actions=36, numbers=1, shuffled=True)), "joint", "bins"),
    case(
        "many actions and a number that drifts",
        lambda: in_turns(odd(260, actions=33, numbers=1, drift=6.0)),
        *("joint", "divided"),
    ),
    case(
        "many actions and events",
        lambda: in_turns(odd(660, actions=34, numbers=1, words=9)),
        "joint",
        "sparing",
    ),
    case("many actions of words", lambda: in_turns(odd(200, actions=35)), "joint"),
    case("as many actions as may be", lambda: in_turns(odd(200, actions=25, numbers=1)), "bins"),
    case("many ids", lambda: odd(560, numbers=1, ids=900), "no room for features"),
    case("ids that replace others", lambda: renewed(900), "no room for features", "renewed"),
    case("many numbers", lambda: odd(200, numbers=66), "no room for numbers", "no pairs"),
    case("as many numbers as may be", lambda: odd(140, numbers=64), "no room for bins"),
    case("numbers enough for pairs", lambda: odd(300, numbers=16), "no triples", "bins"),
    case("more words than are crossed", lambda: worded(150, words=70), "nothing crossed"),
    case("repeated words", lambda: repeated(300, times=12)),
    case("many actions of repeated words", lambda: in_turns(repeated(120, times=3, actions=34)), "joint"),
    case("a number that drifts", lambda: odd(1200, numbers=1, drift=9.0), "groups divided"),
    case("numbers in names", lambda: named(600), "names", "bins"),
    case("numbers in the names of many actions", lambda: in_turns(named(200, actions=34)), "joint", "names"),
    case("more numbers in names than may be", lambda: named(150, stems=80), "names"),
    case("a layer", lambda: odd(1500, numbers=1, shuffled=True), "layer"),
    case("a layer, and then other actions", lambda: odd(1100) + others(60, actions=3), "layer"),
    case("a layer, and then many actions", lambda: odd(1100) + in_turns(others(80, actions=35)), "joint"),
    case(
        "a layer that is given up, and features",
        lambda: odd(1400, numbers=1, actions=3),
        *("layer", "rest"),
        member_budget=3.0,
    ),
    case("vectors", lambda: embedded(420), "vectors"),
    case("vectors of many actions", lambda: in_turns(embedded(120, actions=34)), "joint"),
    case("numbered actions", lambda: numbered(600, 5), cb_explore_adf=False, cb_explore=5),
    case("many numbered actions", lambda: numbered(300, 40), cb_explore_adf=False, cb_explore=40),
    case("a budget", lambda: odd(500, numbers=2), "rest", member_budget=2.0),
    case("a small budget", lambda: odd(700, numbers=2), "rest", member_budget=0.02),
    case(
        "many actions and a budget",
        lambda: in_turns(odd(150, actions=36)),
        "rest",
        "joint",
        member_budget=1.0,
    ),
    case("losses decide", lambda: odd(500, numbers=1), "leads", "ensemble", champion_test="loss"),
    case("a policy that may know more", lambda: confounded(400), "doubted"),
    case("rewards decide", lambda: odd(900, numbers=1), "ensemble", champion_test="reward"),
    case(
        "lines",
        lambda: lines(900, wild=True),
        "exchange",
        cb_explore_adf=False,
        predict_with="ensemble",
    ),
    case(
        "long lines",
        lambda: bent(1300),
        *("ensemble", "rarely"),
        cb_explore_adf=False,
        predict_with="ensemble",
    ),
    case("bent lines", lambda: bent(700), "ensemble", cb_explore_adf=False, predict_with="ensemble"),
]


def features(line: Any) -> Features:
    return [(hash_, float(x)) for found in line.features.values() for hash_, x in found]


def choice_of(event: Event, options: dict[str, Any]) -> Choice:
    """Return the event in the form of the reference implementation."""
    if options.get("cb_explore_adf"):
        logged = None
        for number, line in enumerate(event.actions):
            if logged is None and line.costs:
                _, cost, probability = line.costs[0]
                assert cost is not None
                logged = Logged(number, float(cost), float(probability), float(event.actions[0].weight))
        context = features(event.shared) if event.shared is not None else []
        return Choice(context, [features(line) for line in event.actions], logged)
    (line,) = event.lines
    if options.get("cb_explore"):
        ((action, cost, probability),) = line.costs
        assert cost is not None
        logged = Logged(action - 1, float(cost), float(probability), 1.0)
        return Choice(features(line), [()] * options["cb_explore"], logged)
    label = None if line.label is None else Logged(0, float(line.label), 1.0, float(line.weight))
    return Choice(features(line), [()], label)


def events_of(text: bytes, options: dict[str, Any]) -> Iterator[tuple[str, Choice]]:
    """Each event, as a text and as the ensemble sees it."""
    reading = {name: options[name] for name in ("cb_explore_adf", "cb_explore") if options.get(name)}
    gap = "\n\n" if options.get("cb_explore_adf") else "\n"
    texts = [each + gap for each in text.decode().split(gap) if each.strip()]
    found = list(read(text, **reading).events())
    assert len(texts) == len(found)
    for each, event in zip(texts, found, strict=True):
        yield each, choice_of(event, options)


def names_in(text: bytes) -> Named:
    """Stem and number of the words of a text whose names have these."""
    found: Named = {}
    for span in text.replace(b"\n", b" |").split(b"|"):
        namespace, *words = span.split() or [b""]
        for word in words:
            form = NUMBERED.fullmatch(word)
            if form and len(word) <= 5:
                stem = namespace, form[1]
                found[hash_name(word, hash_name(namespace, 0))] = stem, float(form[2])
    return found


def close(one: Any, other: Any, reach: float = 1.0) -> None:
    """Compare numbers to what float32 resolves of `reach`: members add up terms of that size."""
    one, other = np.asarray(one, float), np.asarray(other, float)
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=5e-6 * max(reach, 1.0))


@pytest.mark.ci
@pytest.mark.parametrize("case", CASES, ids=str)
def test_ensemble_equals_the_reference_implementation(case: Case) -> None:
    options, text = case.options, case.stream()
    single = not (options["cb_explore_adf"] or options.get("cb_explore"))
    many = options.get("cb_explore", 0) > MOST_ACTIONS
    twin = Ensemble(
        options["automl"],
        single=single,
        numbered=not options["cb_explore_adf"],
        members=not many,
        asks=options.get("champion_test", "both"),
        named=names_in(text),
    )
    workspace, journal = Workspace(**options), []
    workspace.observe(lambda entry: journal.append(msgspec.to_builtins(entry)))
    happened, reach = set(), 1.0
    for number, (event, choice) in enumerate(events_of(text, options)):
        journal.clear()
        mix = workspace.searching.live_configs.arrays.mix.copy()
        predicted = workspace.learn(event)
        before = [line for line in journal if line["events"] == number]
        after = journal[len(before) :]
        follow(twin, before)
        remix(mix, before)
        buffers = workspace._runner._memory._buffers
        assert buffers is not None
        score = buffers.score[: len(choice.actions)]
        live = score[:, : twin.n_live]
        own = twin.scores(choice, live)
        used = [True] if twin.members is None else [*(not rests for rests in twin.members.rests), True]
        scored = slice(None) if twin.scores_all or choice.logged is None else [choice.logged.action]
        happened |= {"leads"} if twin.predicts and not twin.serves else set()
        happened |= set() if twin.scores_all else {"sparing"}
        if choice.logged is not None and not single:
            first, last = [each[0] for each in live], [each[-1] for each in own]
            happened |= {"doubted"} if trust(choice.logged, first, last) < 1 else set()
        happened |= {"slow"} if twin.squares.keeps > 1 - 0.2 * (1 - KEEPS) else set()
        if twin.predicts or choice.logged is not None:
            close(score[scored, -len(own[0]) :][:, used], np.asarray(own)[scored][:, used], reach)
        if twin.predicts:
            ours = score[:, -1]
            if single:
                labels = [*twin.labels, *([choice.logged.cost] if choice.logged else [])]
                close(predicted[0], np.clip(ours[0], min(labels), max(labels)))
            elif (buffers.members.known[: len(ours)] >= 0).all():  # new actions have a place of their own
                assert ours[np.argmax(predicted)] <= ours.min() + 1e-3
        reach = max(reach, abs(choice.logged.cost)) if choice.logged else reach
        if twin.members is not None and len(twin.members.vectors.basis):
            reach = max(reach, 50.0)  # the directions are in float32, too
        proved = twin.learn(choice, live, own, list(mix) if single else None)
        decided = [line for line in after if line["decision"] == "predict_with"]
        if not any(line["decision"] in ("swap", "remove") for line in after):
            assert [f"{line['who']} by {line['by']}" for line in decided] == ([proved] if proved else [])
        ensemble = workspace.searching.live_configs.arrays.ensemble
        if not after:
            close(ensemble.weights, twin.squares.weights)
            close(ensemble.test.pair[[BETTER, WORSE]], [twin.by_reward.better, twin.by_reward.worse])
            close(ensemble.test.loss[[BETTER, WORSE]], [twin.by_loss.better, twin.by_loss.worse])
            fair = sum(twin.fair), sum(each**2 for each in twin.fair)
            compared = 1 if single else 2
            np.testing.assert_allclose(ensemble.test.fair[:compared], fair[:compared], rtol=1e-3, atol=1e-3)
        follow(twin, after)
        happened |= {line.get("who", "") for line in decided}
        happened |= {"exchange"} if any(line["decision"] == "swap" for line in after) else set()
    assert (len(ensemble.members.rests) > 0) == (not many)
    if twin.members is not None:
        happened |= happenings(twin)
        assert ensemble.members.inputs.tally[Known.FEATURES] == twin.members.n_inputs
        assert ensemble.members.inputs.tally[Known.NUMBERS] == len(twin.members.numbers)
    assert case.happens <= happened


def follow(twin: Ensemble, journal: list[dict[str, Any]]) -> None:
    """Apply the decisions to the reference implementation."""
    for line in journal:
        if line["decision"] == "rotate":
            twin.join(line["slot"])
        elif line["decision"] == "swap":
            twin.exchange(line["slot"])
        elif line["decision"] == "predict_with":
            twin.serve(line["who"])
        elif line["decision"] == "rest_members":
            twin.rest(line["members"])


def remix(mix: np.ndarray, journal: list[dict[str, Any]]) -> None:
    """Apply the decisions to the weights of the mixture."""
    for line in journal:
        if line["decision"] == "rotate" and line["slot"] > 0:
            mix[line["slot"]] = 0.0
            n = max(np.flatnonzero(mix).max(), line["slot"]) + 1
            mix *= (1.0 - 1.0 / n) / mix.sum()
            mix[line["slot"]] = 1.0 / n


def happenings(twin: Ensemble) -> set[str]:
    members = twin.members
    assert members is not None
    found = {
        "joint": members.joint is not None,
        "rest": any(members.rests) and not all(members.rests),
        "all rest": all(members.rests),
        "layer": any(known.layer.weights.any() for known in members.actions.values()),
        "rarely": any(known.seen > OFTEN for known in members.actions.values()),
        "no room for features": members.n_inputs == MOST_FEATURES,
        "renewed": members.renewals > 0,
        "no room for numbers": len(members.numbers) == MOST_NUMBERS,
        "names": any(each.named for each in members.numbers.values()),
        "bins": any(each.bins for each in members.numbers.values()),
        "divided": any(len(each.bins) > 12 for each in members.numbers.values()),
        "groups divided": any(max(each.groups, default=0) > 7 for each in members.numbers.values()),
        "no room for bins": any(each.bins and not any(each.bins) for each in members.numbers.values()),
        "no triples": members.crosses.works[2] is False,
        "no pairs": members.crosses.works[1] is False,
        "vectors": len(members.vectors.basis) > 0,
        "nothing crossed": members.crosses.works[0] is False,
    }
    return {name for name, is_so in found.items() if is_so}


def test_the_champion_of_single_lines_predicts_again() -> None:
    workspace, decided = Workspace(automl=3, predict_with="ensemble"), []
    workspace.observe(lambda entry: decided.append(getattr(entry, "who", None)))
    workspace.fit(bent(1000))
    ensemble = workspace.searching.live_configs.arrays.ensemble
    assert ensemble.serves
    for event in bent(600).decode().splitlines(keepends=True):
        ensemble.weights[:] = 3.0
        workspace.learn(event)
        ensemble = workspace.searching.live_configs.arrays.ensemble
        if not ensemble.serves:
            break
    assert [who for who in decided if who] == ["ensemble", "champion"]


def test_slots_have_an_ensemble_without_members() -> None:
    workspace = Workspace(ccb_explore_adf=True, automl=3, default_lease=60).fit(slots(300))
    ensemble = workspace.searching.live_configs.arrays.ensemble
    assert ensemble.on
    assert not (len(ensemble.members.rests) > 0)
    assert np.isfinite(ensemble.weights).all()
    assert ensemble.test.updates[0] > 0
