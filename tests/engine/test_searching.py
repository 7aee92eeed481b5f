"""The search on streams: replay of journals, blocks of any size, and evidence of its tests."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onlineauto import Workspace
from onlineauto.automl.config import Config, ConfigKind
from onlineauto.automl.decisions import PredictWith, Remove, Rotate, Swap, Widen
from onlineauto.engine.ensemble.ensemble import make_ensemble, new_variance, promote
from onlineauto.engine.search.journal import Bounds, End, Entry, Journal, decision_of, entry_of, read_journal
from onlineauto.engine.search.search_engine import Searching
from onlineauto.errors import InputError, OptionError
from onlineauto.estimators.paired import ChampionTest
from onlineauto.estimators.paired_kernels import BETTER, WORSE, T
from onlineauto.workspace.options import REGISTRY

QUICK: dict[str, Any] = {
    "automl": 4,
    "default_lease": 20,
    "automl_significance_level": 0.9,
    "fixed_significance_level": True,
}
PEOPLE, PAGES = ("tom", "anna"), ("politics", "sports", "music")
LIKES = {("tom", "politics"), ("anna", "music")}


def stream(n: int, *, seed: int = 0, late: int | None = None) -> list[str]:
    """Uniformly logged events in which a person likes one page; one more namespace from event `late` on."""
    draw = np.random.default_rng(seed)
    events = []
    for i in range(n):
        person, shown = PEOPLE[draw.integers(2)], int(draw.integers(3))
        extra = f" |Late x{draw.integers(3)}" if late is not None and i >= late else ""
        lines = [f"shared |User {person} |Time t{draw.integers(4)}{extra}"]
        for number, page in enumerate(PAGES):
            cost = -1 if (person, page) in LIKES else 0
            label = f"0:{cost}:{1 / 3:.4f} " if number == shown else ""
            lines.append(f"{label}|Action {page}")
        events.append("\n".join(lines) + "\n\n")
    return events


def state(workspace: Workspace) -> list[bytes]:
    """Everything that learning and searching have changed, but for counts of checks."""
    model, live = workspace.learner.model, workspace.searching.live_configs.arrays
    learnt = (model.table, model.shared, model.lanes, model.sums, model.settings)
    known = (
        live.tests.evidence,
        live.schedule.updates,
        live.statistics.last,
        live.statistics.policies,
        live.tests.spread,
        live.mix,
    )
    return [array.tobytes() for array in (*learnt, *known)]


def recorded(path: Path, text: bytes, **options: Any) -> Workspace:
    """Return a workspace that has learnt a stream, and has left its journal in a file."""
    workspace = Workspace(**options)
    with path.open("wb") as file:
        journal = Journal(file, command=workspace.configuration.command(kept=True))
        workspace.observe(journal.append)
        workspace.fit(text)
        journal.end(events=workspace.searching.n_events)
    return workspace


def journal_of(workspace: Workspace) -> list[Entry]:
    entries: list[Entry] = []
    workspace.observe(entries.append)
    return entries


IN_VW = ("one_diff", "one_diff_inclusion", "rand", "qbase_cubic", "champdupe")
MODES = [*((name, exact) for name in IN_VW for exact in (True, False)), ("stepwise", False)]


@pytest.mark.parametrize("cb_type", ["mtr", "ips", "dr"])
@pytest.mark.parametrize(("oracle", "exact"), MODES)
def test_a_replayed_journal_makes_the_same_model(
    oracle: str, cb_type: str, exact: bool, tmp_path: Path
) -> None:
    options = {**QUICK, "cb_explore_adf": True, "cb_type": cb_type, "oracle_type": oracle, "vw_exact": exact}
    text = "".join(stream(300, late=100)).encode()
    path = tmp_path / "journal.jsonl"
    first = recorded(path, text, **options)
    again = Workspace(**options, replay=str(path))
    repeated = journal_of(again)
    again.fit(text)
    assert state(again) == state(first)
    assert again.searching.n_switches == first.searching.n_switches
    decisions = [decision_of(entry) for entry in repeated]
    assert [type(each) for each in decisions[:1]] == [Widen]
    assert any(isinstance(each, Rotate) for each in decisions)


def test_search_of_namespaces_is_replayed(tmp_path: Path) -> None:
    options: dict[str, Any] = {**QUICK, "cb_explore_adf": True, "search": "interactions,namespaces"}
    text, path = "".join(stream(100, late=40)).encode(), tmp_path / "journal.jsonl"
    first = recorded(path, text, **options)
    assert any(len(each) == 1 for each in first.search.champion.elements)
    assert state(Workspace(**options, replay=str(path)).fit(text)) == state(first)


def test_replayed_streams_contain_changes_of_champion() -> None:
    options = {**QUICK, "oracle_type": "one_diff_inclusion", "estimator": "robust"}
    workspace = Workspace(cb_explore_adf=True, **options)
    entries = journal_of(workspace)
    workspace.fit("".join(stream(600)).encode())
    swaps = [entry for entry in entries if isinstance(decision_of(entry), Swap)]
    assert len(swaps) == workspace.searching.n_switches >= 1
    for swap in swaps:
        assert swap.bounds.lower > swap.bounds.champion_upper  # type: ignore[union-attr]
    assert (b"Action", b"User") in workspace.searching.interactions(0)


def test_change_of_champion_resets_the_test_of_the_ensemble() -> None:
    workspace = Workspace(cb_explore_adf=True, **QUICK, oracle_type="one_diff_inclusion")
    entries = journal_of(workspace)
    workspace.fit("".join(stream(1500)).encode())
    changes = [each for entry in entries if isinstance(each := decision_of(entry), Swap | PredictWith)]
    assert {type(change) for change in changes} == {Swap, PredictWith}
    assert workspace.searching.live_configs.state()["ensemble"]["tests"] == 1 + len(changes)


@pytest.mark.parametrize(("former", "challenger"), [(0.2, 0.6), (0.5, 0.3)])
def test_a_new_champion_has_at_least_the_weight_of_the_former_one(former: float, challenger: float) -> None:
    ensemble = make_ensemble(
        4, on=True, simple=False, members=(), cells=0, configuration=REGISTRY.from_keywords()
    )
    ensemble.weights[:] = [*(weights := [former, 0.1, challenger, 0.05]), 0.7, *weights]
    ensemble.spread[:] = np.diag([1.0, 1.1, 1.2, 1.3, 0.9, 1.0, 1.1, 1.2, 1.3])
    promote(ensemble, 2, 4)
    one, levels = ensemble.weights[:4], ensemble.weights[5:]
    more, less = max(former, challenger), min(former, challenger)
    np.testing.assert_allclose([one, levels], [[more + 0.1 + 0.05, less, 0.0, 0.0]] * 2)
    spread, new = np.diag(ensemble.spread), new_variance(ensemble)
    np.testing.assert_allclose([spread[:4], spread[5:]], [[1.2, 1.0, new, new]] * 2)
    assert (ensemble.weights[4], spread[4]) == (0.7, 0.9)


@pytest.mark.ci
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "native"])
@settings(max_examples=15, deadline=None)
@given(
    cuts=st.lists(st.integers(1, 199), max_size=5),
    oracle=st.sampled_from(["one_diff_inclusion", "rand", "stepwise"]),
    noconstant=st.booleans(),
)
def test_model_does_not_depend_on_blocks(exact: bool, oracle: str, noconstant: bool, cuts: list[int]) -> None:
    assume(not (exact and oracle == "stepwise"))
    options = {**QUICK, "cb_explore_adf": True, "oracle_type": oracle, "vw_exact": exact}
    options["noconstant"] = noconstant
    events = stream(200, late=60)
    whole = Workspace(**options).fit("".join(events).encode())
    parts = Workspace(**options)
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), 200], strict=True):
        if begin < end:
            parts.fit("".join(events[begin:end]).encode())
    assert state(parts) == state(whole)


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "native"])
def test_predictions_between_events_change_nothing(exact: bool) -> None:
    events = stream(120)
    plain = Workspace(cb_explore_adf=True, vw_exact=exact, **QUICK)
    asked = Workspace(cb_explore_adf=True, vw_exact=exact, **QUICK)
    for event in events:
        plain.learn(event)
        asked.predict(event)
        asked.learn(event)
    assert state(asked) == state(plain)
    assert asked.search == plain.search


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "native"])
def test_one_live_config_is_all_quadratics(exact: bool) -> None:
    text = "".join(stream(200, late=70)).encode()
    single = Workspace(cb_explore_adf=True, quadratic="::", vw_exact=exact).fit(text)
    searched = Workspace(cb_explore_adf=True, automl=1, oracle_type="one_diff", vw_exact=exact).fit(text)
    assert searched.weights.tobytes() == single.weights.tobytes()


@pytest.mark.parametrize("cb_type", ["mtr", "ips", "dr", "dm"])
def test_model_does_not_depend_on_the_order_of_live_configs(cb_type: str) -> None:
    text = "".join(stream(200)).encode()
    options = {**QUICK, "cb_explore_adf": True, "cb_type": cb_type, "min_prediction": -1, "max_prediction": 0}
    forward = Workspace(**options).fit(text)
    backward = Workspace(**options, debug_reversed_learn=True).fit(text)
    assert forward.weights.tobytes() == backward.weights.tobytes()


INVARIANT = {"invariant": True, "learning_rate": 0.1}
ALONE: list[tuple[bool, str, dict[str, Any]]] = [
    *((False, cb_type, rule) for cb_type in ("mtr", "dr") for rule in ({}, {"sgd": True}, INVARIANT)),
    *(
        (False, cb_type, rule)
        for cb_type in ("mtr", "dr")
        for rule in ({"l1": 1e-3, "l2": 1e-3}, {"power_t": 0.3})
    ),
    *((True, "mtr", rule) for rule in ({}, {"sgd": True})),
]
"""Exact or not, cost type, rule; VW copies the wrong lanes of dr, and shares a sum with --invariant and with
penalties."""


@pytest.mark.parametrize("oracle", ["one_diff", "one_diff_inclusion", "qbase_cubic"])
@pytest.mark.parametrize(("exact", "cb_type", "rule"), ALONE)
def test_live_config_learns_like_a_model_without_search(
    exact: bool, cb_type: str, rule: dict[str, Any], oracle: str
) -> None:
    text = "".join(stream(150)).encode()
    common = {
        "cb_explore_adf": True,
        "cb_type": cb_type,
        "vw_exact": exact,
        "bit_precision": 12,
        "min_prediction": -2,
        "max_prediction": 2,
        "automl_significance_level": 1e-9,  # nothing is decided
        **rule,
    }
    together = Workspace(automl=4, oracle_type=oracle, **common).fit(text)
    for slot in range(4):
        letters = [
            b"".join(name[:1] for name in names).decode() for names in together.searching.interactions(slot)
        ]
        bits = 10 if exact else 12  # VW's slots share the table
        alone = Workspace(**{**common, "bit_precision": bits}, interactions=letters).fit(text)
        assert together.weights[..., slot::4].tobytes() == alone.weights.tobytes()


def test_native_mode_proposes_late_namespaces_at_once() -> None:
    text = "".join(stream(100, late=50)).encode()
    found = {}
    for exact in (True, False):
        workspace = Workspace(cb_explore_adf=True, vw_exact=exact, **QUICK).fit(text)
        elements = [candidate.config.elements for candidate in workspace.search.candidates]
        late = b"L" if exact else b"Late"
        if not exact:
            assert workspace.searching.interactions(0) == ((b"Action", b"Time"), (b"Action", b"User"))
        found[exact] = any(late in interaction for names in elements for interaction in names)
        assert exact != (workspace.searching.interactions(0)[0][0] == b"Action")
    assert found == {True: False, False: True}


def test_counts_of_absent_namespaces_are_not_counted_for_others() -> None:
    first = "shared |User a\n0:-1:0.5 |Act p\n|Act q\n\n"
    second = "shared |Other b\n0:-1:0.5 |Act p\n|Act q |Zed x:0\n\n"
    third = "shared |New b\n0:-1:0.5 |Act p\n|Act q\n\nshared |New b\n0:-1:0.5 |Act p\n|Act q |Zed x\n\n"
    whole = Workspace(cb_explore_adf=True, automl=2, noconstant=True)
    parts = Workspace(cb_explore_adf=True, automl=2, noconstant=True)
    told, expected = journal_of(parts), journal_of(whole)
    whole.fit((first + second + third).encode())
    for text in (first, second, third):
        parts.fit(text.encode())
    assert told == expected


@pytest.mark.ci
def test_triples_are_counted_where_the_oracle_chooses_among_them(caplog: pytest.LogCaptureFixture) -> None:
    names = " ".join(f"|n{i} x" for i in range(120))
    workspace = Workspace(cb_explore_adf=True, automl=2, oracle_type="qbase_cubic")
    workspace.fit(f"{names}\n{names}\n\n".encode())
    assert "interactions" in caplog.text
    assert len(workspace.search.candidates) < 200_001


def test_unlabelled_events_register_namespaces_and_spend_no_lease() -> None:
    workspace = Workspace(cb_explore_adf=True, **QUICK)
    workspace.fit(b"shared |User tom\n|Action a\n|Action b\n\n" * 5)
    assert workspace.search.namespaces == (b"Action", b"User")
    assert workspace.estimates.count(b"User") == 10
    assert workspace.searching.n_learnt == 0
    assert len(workspace.search.slots) == 1


def test_bounds_of_costs_outside_the_range_are_cut_off_and_counted() -> None:
    text = "".join(stream(60)).replace(":-1:", ":-7:").encode()
    cut = Workspace(cb_explore_adf=True, estimator="robust", **QUICK).fit(text)
    assert 0 <= cut.estimates.lower(1) <= cut.estimates.upper(1) <= 1
    assert cut.searching.live_configs.arrays.statistics.last[1, 0, 1] <= 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"automl": 2, "oracle_type": "one_diff"}, "needs a bandit"),
        ({"automl": 2, "vw_exact": True}, "needs a bandit"),
        ({"automl": 2, "cb_adf": True, "quadratic": ["ab"]}, "exclude each other"),
        ({"automl": 2, "cb_adf": True, "vw_exact": True, "interaction_type": "both"}, "has no such value"),
        ({"automl": 0, "cb_adf": True}, "from 1 to 128"),
        ({"automl": 2, "cb_adf": True, "oracle_type": "delphi"}, "one of one_diff"),
    ],
)
def test_invalid_search_options_are_rejected(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Workspace(**options)


def test_aliases_are_the_options_they_stand_for() -> None:
    one = Workspace(cb_adf=True, automl=3, lease=7, priority_type="lease_exclusion")
    other = Workspace(cb_adf=True, automl=3, default_lease=7, priority_type="favor_popular_namespaces")
    assert one.configuration == other.configuration


def test_file_that_is_no_journal_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the journal"):
        Workspace(cb_adf=True, automl=2, replay=str(tmp_path / "missing"))
    (tmp_path / "odd").write_text('{"decision": "rotate"}\n')
    with pytest.raises(InputError, match="odd:1: not a line of a journal"):
        Workspace(cb_adf=True, automl=2, replay=str(tmp_path / "odd"))


def test_journal_of_other_options_or_another_stream_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    recorded(path, "".join(stream(100)).encode(), cb_explore_adf=True, **QUICK)
    with pytest.raises(InputError, match="with other options"):
        Workspace(cb_explore_adf=True, **{**QUICK, "automl": 3}, replay=path)
    with pytest.raises(InputError, match="after 40 events"):
        Workspace(cb_explore_adf=True, **QUICK, replay=path).fit("".join(stream(100, late=40)).encode())
    with pytest.raises(InputError, match="belongs to another stream"):
        Workspace(cb_explore_adf=True, **QUICK, replay=path).fit("".join(stream(100, seed=1)).encode())
    Workspace(cb_explore_adf=True, **QUICK, epsilon=0.05, replay=path)  # the default, said


def replayed(path: Path, *, events: int) -> Workspace:
    return Workspace(cb_explore_adf=True, **QUICK, replay=path).fit("".join(stream(events)).encode())


def test_journal_of_another_length_than_the_stream_causes_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    recorded(path, "".join(stream(100)).encode(), cb_explore_adf=True, **QUICK)
    assert replayed(path, events=100).searching.replay_warning is None
    for events, words in ((10, "stream ended before"), (150, "ended after 100 events")):
        assert words in (replayed(path, events=events).searching.replay_warning or "")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert "is incomplete" in (replayed(path, events=100).searching.replay_warning or "")
    with pytest.raises(OptionError, match="a replay has no search"):
        _ = replayed(path, events=100).search


@pytest.mark.parametrize(
    "line",
    [
        '{"decision":"rotate","events":0,"slot":-1,"index":1,"kind":"exclusion","elements":[],"bounds":null}',
        '{"decision":"widen","events":0,"names":["hex:zz"]}',
        '{"decision":"rotate","events":0,"slot":1,"index":1,"kind":"inclusion","elements":[[]],"bounds":null}',
        '{"decision":"search","command":""}',
        "nothing",
    ],
)
def test_damaged_journal_is_rejected_with_its_line(line: str) -> None:
    text = '{"decision":"search","command":""}\n' + line + "\n"
    with pytest.raises(InputError, match="odd:2: "):
        list(read_journal(io.BytesIO(text.encode()), name="odd"))


def test_a_journal_without_its_first_line_is_refused() -> None:
    for text in (b"", b'{"decision":"widen","events":0,"names":["a"]}\n'):
        with pytest.raises(InputError, match="first line"):
            list(read_journal(io.BytesIO(text)))


def test_journal_contains_the_bounds_of_removed_configs() -> None:
    workspace = Workspace(cb_explore_adf=True, oracle_type="one_diff", **QUICK)
    entries = journal_of(workspace)
    workspace.fit("".join(stream(200)).encode())
    rotations = [entry for entry in entries if isinstance(decision_of(entry), Rotate)]
    left = [entry.bounds for entry in rotations if entry.bounds is not None]  # type: ignore[union-attr]
    assert len(rotations) - len(left) >= 3
    assert {bounds.updates for bounds in left} >= {20}


def test_truncated_journal_is_read_up_to_its_last_whole_line() -> None:
    sink = io.BytesIO()
    workspace = Workspace(cb_explore_adf=True, **QUICK)
    workspace.observe(Journal(sink, command="").append)
    workspace.fit("".join(stream(60)).encode())
    text = sink.getvalue()
    complete = list(read_journal(io.BytesIO(text)))
    assert list(read_journal(io.BytesIO(text[:-3]))) == complete[:-1]


@pytest.mark.parametrize("name", [b"hex:41", b"\xc3\xa9", b"\xff\xfe", b" ", b'"\n\x01'])
def test_journal_preserves_any_name(name: bytes) -> None:
    sink = io.BytesIO()
    workspace = Workspace(cb_explore_adf=True, automl=2)
    decision = Rotate(1, 3, Config.of([(name, name)], ConfigKind.INCLUSION))
    journal = Journal(sink, command="")
    journal.append(entry_of(decision, events=4, statistics=workspace.estimates))
    (entry,) = read_journal(io.BytesIO(sink.getvalue()))
    assert not isinstance(entry, End)
    assert entry.events == 4
    assert decision_of(entry) == decision


def predicted_costs(events: list[str], options: dict[str, Any]) -> list[np.ndarray]:
    """Return the predicted cost of each action of each event before the event is learnt."""
    workspace = Workspace(cb_adf=True, **options)
    return [workspace.learn(event) for event in events]


def test_evidence_of_the_search_equals_that_of_the_public_test() -> None:
    """The public test gets the actions of two models that learn separately."""
    events = stream(300)
    quiet: dict[str, Any] = {
        "automl_significance_level": 1e-99,
        "lease": 10**6,
        "oracle_type": "one_diff_inclusion",
        "cost_range": "-1,0",
    }
    together = Workspace(cb_adf=True, automl=8, min_prob=0.3, **quiet).fit(events)
    chosen = [(b"Action", b"User") in together.searching.interactions(slot) for slot in range(7)]
    models = []
    for slot in (0, chosen.index(True)):
        letters = [
            b"".join(name[:1] for name in names).decode() for names in together.searching.interactions(slot)
        ]
        models.append(predicted_costs(events, {"interactions": letters}))
    test = ChampionTest(floor=float(np.float32(0.3)))
    for event, costs, own in zip(events, *models, strict=True):
        champion, challenger = int(np.argmin(costs)), int(np.argmin(own))
        lines = event.splitlines()[1:]
        logged = next(i for i, line in enumerate(lines) if line.startswith("0:"))
        _, cost, shown = lines[logged].split(" ")[0].split(":")
        weight = np.float32(1) / np.float32(shown)
        known = -float(costs[challenger]), -float(costs[champion])
        p = 1 / float(weight)
        test.update(challenger, champion, logged=logged, p=p, reward=-float(cost), predicted=known)
    pair = together.searching.live_configs.arrays.tests.pairs[chosen.index(True)]
    assert pair[T] > 20
    assert test.evidence == pytest.approx((pair[BETTER], pair[WORSE]), rel=1e-5)


@pytest.mark.ci
def test_paired_test_promotes_earlier_than_bounds() -> None:
    events = stream(3000)
    options: dict[str, Any] = {"cb_explore_adf": True, "automl": 8, "oracle_type": "one_diff_inclusion"}
    first = {}
    for estimator in ("paired", "robust"):
        workspace = Workspace(**options, estimator=estimator)
        entries = journal_of(workspace)
        workspace.fit(events)
        swaps = (entry.events for entry in entries if isinstance(decision_of(entry), Swap))
        first[estimator] = next(swaps, len(events))
    assert first["paired"] * 2 < first["robust"]


def removed_on(entry: Any) -> Bounds | None:
    """Return the evidence in a line of the journal that removes a config."""
    return entry.bounds if isinstance(decision_of(entry), Remove) else None


def test_worse_challenger_is_removed_before_its_lease_ends() -> None:
    events = stream(3000)
    workspace = Workspace(cb_explore_adf=True, automl=3, lease=500, oracle_type="one_diff_inclusion")
    entries = journal_of(workspace)
    workspace.fit(events)
    updates = [bounds.updates for entry in entries if (bounds := removed_on(entry)) is not None]
    assert updates
    assert all(number % 500 for number in updates), "not where leases end"


def test_every_test_has_a_part_of_the_level() -> None:
    """Each time the test of losses begins again, its part is halved."""
    workspace = Workspace(cb_explore_adf=True, automl=3, lease=50)
    workspace.fit(stream(1000))
    live_configs = workspace.searching.live_configs
    begun = live_configs._n_tests
    assert begun > 4
    parts = 0.05 / (np.arange(1, begun + 1) * np.arange(2, begun + 2))
    for level in live_configs.arrays.tests.levels[1 : live_configs.arrays.n]:
        halvings = np.log2(parts / level)
        assert np.isclose(halvings, np.round(halvings), atol=1e-6)[halvings > -0.5].any()


def test_exact_mode_rejects_the_paired_test() -> None:
    with pytest.raises(OptionError, match="estimator"):
        Workspace(cb_explore_adf=True, automl=2, vw_exact=True, estimator="paired")


def test_screened_interactions_change_places_in_the_same_arrays() -> None:
    """The loop's context need not be packed again for another order, or for another champion."""
    workspace = Workspace(cb_explore_adf=True, automl=4).fit(stream(300))
    screening = workspace.searching.screening
    gains, of_champion, screen = dict(screening.gains()), screening.of_champion, screening.screen
    pool = sorted(gains, reverse=True)
    assert pool != list(gains)
    screening.choose(pool, pool[:1])
    assert screening.screen is screen
    assert list(screening.gains()) == pool
    expected, _ = workspace.layout.compile(pool)
    assert screen.interactions.start.tolist() == expected.start.tolist()
    assert screen.interactions.factor.tolist() == expected.factor.tolist()
    assert screen.inside.tolist() == [True] + [False] * (len(pool) - 1)
    turned = of_champion ^ {pool[0]}
    assert screen.gains.tolist() == [0.0 if names in turned else 0.95 * gains[names] for names in pool]
    screening.choose(pool[1:], pool[1:2])
    assert screening.screen is not screen


def test_a_look_for_drift_is_no_answer_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[int] = []
    answer = Searching.answer

    def counted(self: Searching, *arguments: Any, **named: Any) -> None:
        answers.append(self.n_events)
        answer(self, *arguments, **named)

    monkeypatch.setattr(Searching, "answer", counted)
    looking = Workspace(cb_explore_adf=True, automl=1, default_lease=10**6).fit(
        "".join(stream(3000)).encode()
    )
    assert looking.searching.state()["drift"]["observations"] == 3000 // 256 * 8
    assert len(answers) < 3000 // 256
