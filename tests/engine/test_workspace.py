"""The engine equals a reference that learns event by event from dictionaries, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onlineauto import read
from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.errors import InputError, OptionError
from onlineauto.features.block import UNLABELLED
from onlineauto.workspace.workspace import Workspace
from tests.forging import model_bytes, model_parts
from tests.learners.model_view import lanes_of, shared_of
from tests.naive import bandit, learner
from tests.naive.bandit import Bandit, make_twin
from tests.naive.blocks import Event, Line, cut, make_block
from tests.property.snapshot import named, saved_of
from tests.property.strategies import bandit_events, numbered_events, simple_events

Options = dict[str, Any]
F = np.float32

RULES: list[Options] = [
    {},
    {"sgd": True},
    {"adaptive": True, "l1": 0.001},
    {"normalized": True, "power_t": 0.25},
    {"invariant": True, "l2": 0.001},
    {"adaptive": True, "normalized": True, "initial_t": 2.0},
]
PRODUCTS: list[Options] = [
    {},
    {"quadratic": ["ab", "::"], "noconstant": True},
    {"cubic": ["aab"], "interactions": ["abca"], "ignore_linear": ["a"]},
    {"quadratic": ["aa"], "cubic": ["acb"], "keep": ["a", "b", "c"]},
    {"quadratic": ["aa", "ba"], "permutations": True, "ignore": ["c"]},
]
SIMPLE: list[Options] = [
    *({**rule, **product} for rule, product in zip(RULES, [*PRODUCTS, {}], strict=True)),
    {"loss_function": "logistic", "link": "logistic"},
    {"loss_function": "logistic", "link": "glf1", "binary": True},
    {"loss_function": "hinge", "binary": True},
    {"loss_function": "quantile", "quantile_tau": 0.75},
    {"loss_function": "expectile", "expectile_q": 0.25, "sgd": True, "quadratic": ["::"]},
    {"loss_function": "poisson", "link": "poisson"},
    {"min_prediction": -0.5, "max_prediction": 0.5},
    {"testonly": True, "initial_weight": 0.125, "quadratic": ["ab"]},
]
ADF: list[Options] = [
    {"cb_type": cb_type, **rule, **product}
    for cb_type, rule, product in zip(
        ["mtr", "ips", "dr", "dm", "dr", "mtr"], RULES, [*PRODUCTS[1:], PRODUCTS[0], PRODUCTS[1]], strict=True
    )
] + [
    {"cb_type": "mtr", "clip_p": 0.125, "rank_all": True},
    {"cb_type": "dr", "link": "glf1", "testonly": True},
]
EXPLORE: list[Options] = [
    {"cb_type": "mtr", "epsilon": 0.25, "quadratic": ["::"]},
    {"cb_type": "dr", "first_only": True, "clip_p": 0.25},
    {"cb_type": "ips", "sgd": True, "learning_rate": 0.01},
    {"cb_type": "dm", "epsilon": 0.0, "noconstant": True},
]


def bits(values: Sequence[np.float32] | np.ndarray[Any, np.dtype[np.float32]]) -> list[int]:
    """Bits of every number; all that are none count as one."""
    flat = np.array(values, np.float32).ravel()
    return np.where(np.isnan(flat), -1, flat.view(np.int32).astype(np.int64)).tolist()  # type: ignore[no-any-return]


def check_rows(outcomes: Outcomes, rows: Sequence[bandit.Row | learner.Row]) -> None:
    assert bits(outcomes.loss) == bits([row.loss for row in rows])
    assert outcomes.n_features.tolist() == [row.n_features for row in rows]


def check_lines(outcomes: Outcomes, rows: Sequence[learner.Row]) -> None:
    assert bits(outcomes.raw) == bits([row.raw for row in rows])
    assert bits(outcomes.prediction) == bits([row.prediction for row in rows])
    assert outcomes.labelled.tolist() == [row.labelled for row in rows]
    assert outcomes.shown_features.tolist() == [row.n_features for row in rows]


def check_bandits(outcomes: Outcomes, rows: Sequence[bandit.Row]) -> None:
    assert outcomes.action.tolist() == [action for row in rows for action in row.order]
    assert bits(outcomes.score) == bits([score for row in rows for score in row.score])
    assert np.diff(outcomes.action_start).tolist() == [len(row.order) for row in rows]
    assert outcomes.shown_features.tolist() == [row.shown_features for row in rows]
    assert outcomes.labelled.tolist() == [row.known is not None for row in rows]
    nothing = (-1, UNLABELLED, F(0))
    known = zip(outcomes.known_action, outcomes.known_cost, outcomes.known_probability, strict=True)
    assert list(known) == [row.known or nothing for row in rows]


def check(options: Options, events: Sequence[Event], holdout: Sequence[bool]) -> None:
    """Learn `events` with both, and compare every outcome, every weight and every scalar of the model."""
    workspace, twin = Workspace(**options, bit_precision=9), make_twin({**options, "bit_precision": 9})
    held = np.array(holdout[: len(events)], bool)
    outcomes = workspace.learn_block(make_block(events), holdout=held)
    with np.errstate(all="ignore"):
        if isinstance(twin, Bandit):
            found = [twin.event(event, holdout=bool(out)) for event, out in zip(events, held, strict=True)]
            check_rows(outcomes, found)
            check_bandits(outcomes, found)
            assert workspace.learner.model.sums[0].tolist() == twin.sums
        else:
            rows = [twin.event(event, holdout=bool(out)) for event, out in zip(events, held, strict=True)]
            check_rows(outcomes, rows)
            check_lines(outcomes, rows)
        assert bits(workspace.weights) == bits(twin.learner.dense(len(workspace.weights)))
    mine = twin.learner
    shared, lanes = shared_of(workspace), lanes_of(workspace)
    np.testing.assert_array_equal(shared, [mine.t, *reversed(mine.set_aside), mine.low, mine.high])
    np.testing.assert_array_equal([lanes.gravity[0], lanes.contraction[0]], [mine.gravity, mine.contraction])
    np.testing.assert_array_equal(lanes.norm, mine.norm)
    np.testing.assert_array_equal(lanes.weight, mine.weight)


HOLDOUT = st.one_of(st.just([False] * 6), st.lists(st.booleans(), min_size=6, max_size=6))


@pytest.mark.parametrize("options", SIMPLE, ids=named)
@settings(max_examples=20)
@given(data=st.data(), holdout=HOLDOUT)
def test_simple(options: Options, data: st.DataObject, holdout: list[bool]) -> None:
    signs = options.get("loss_function") in ("logistic", "hinge")
    counts = options.get("loss_function") == "poisson"
    labels = st.sampled_from([-1.0, 1.0] if signs else [0.0, 1.0, 3.0] if counts else [0.0, 1.0, -2.5])
    check({**options, "vw_exact": True}, data.draw(simple_events(labels=labels)), holdout)


@pytest.mark.parametrize("options", ADF, ids=named)
@settings(max_examples=20)
@given(events=bandit_events(), holdout=HOLDOUT)
def test_cb_adf(options: Options, events: list[Event], holdout: list[bool]) -> None:
    check({**options, "vw_exact": True, "cb_adf": True}, events, holdout)


@pytest.mark.parametrize("options", EXPLORE, ids=named)
@settings(max_examples=20)
@given(events=bandit_events(), holdout=HOLDOUT)
def test_cb_explore_adf(options: Options, events: list[Event], holdout: list[bool]) -> None:
    check({**options, "vw_exact": True, "cb_explore_adf": True}, events, holdout)


@pytest.mark.parametrize("n_actions", [1, 3, 4])
@pytest.mark.parametrize("options", [{}, *EXPLORE[1:], *ADF[2:4]], ids=named)
@settings(max_examples=10)
@given(data=st.data(), holdout=HOLDOUT)
def test_numbered(options: Options, n_actions: int, data: st.DataObject, holdout: list[bool]) -> None:
    explores = "epsilon" in options or "first_only" in options or "learning_rate" in options
    kind = {"cb_explore" if explores else "cb": n_actions}
    check({**options, **kind, "vw_exact": True}, data.draw(numbered_events(n_actions=n_actions)), holdout)


@pytest.mark.parametrize("options", [{}, {"cb_type": "dr"}, {"cb_type": "ips"}], ids=named)
def test_logged_without_probability_in_exact_mode(options: Options) -> None:
    """VW learns from such a line, with an infinite weight under mtr."""
    space = ((b"a", ((3, 1.0),)),)
    event = (Line(spans=space, costs=((0, 1.0, 0.0),)), Line(spans=((b"a", ((4, 2.0),)),)))
    check({**options, "cb_adf": True, "vw_exact": True}, [event, event], [False, False])


@settings(max_examples=20)
@given(events=simple_events(), holdout=HOLDOUT)
def test_native_regression_equals_the_reference(events: list[Event], holdout: list[bool]) -> None:
    assume(all(abs(x) > 1e-12 for event in events for line in event for _, f in line.spans for _, x in f))
    check({"quadratic": ["ab", "::"], "cubic": ["aab"]}, events, holdout)


@settings(max_examples=20)
@given(events=bandit_events(), holdout=HOLDOUT)
def test_native_bandit_equals_the_reference(events: list[Event], holdout: list[bool]) -> None:
    assume(all(abs(x) > 1e-12 for event in events for line in event for _, f in line.spans for _, x in f))
    check({"cb_explore_adf": True, "cb_type": "dr", "quadratic": ["::"]}, events, holdout)


# -- shapes, limits and single calls ------------------------------------------------------------------

ONE = (Line(spans=((b"a", ((1, 1.0),)),), label=1.0),)


def test_weights_of_two_lanes_share_the_table() -> None:
    assert Workspace(cb_adf=True, cb_type="dr", bit_precision=9).weights.shape == (256, 4, 2)
    assert Workspace(cb_adf=True, bit_precision=9).weights.shape == (512, 4, 1)
    assert Workspace(cb_adf=True, cb_type="dr", bit_precision=1).weights.shape == (1, 4, 2)


@pytest.mark.parametrize("exact", [True, False])
def test_constant_starts_with_its_weight(exact: bool) -> None:
    workspace = Workspace(constant=0.25, bit_precision=9, vw_exact=exact)
    assert workspace.weights[11650396 % 512, 0, 0] == 0.25
    assert np.count_nonzero(workspace.weights) == 1
    assert workspace.predict_block(make_block([ONE])).raw.tolist() == [0.25]


def test_learning_rate_decays_after_each_pass() -> None:
    workspace = Workspace(decay_learning_rate=0.5, learning_rate=0.25)
    workspace.end_pass()
    workspace.end_pass()
    assert workspace.learner.rule.learning_rate == 0.0625
    assert workspace.learner.current_pass == 2


def test_learning_rate_of_zero_moves_no_weight() -> None:
    workspace = Workspace(learning_rate=0, bit_precision=9)
    workspace.learn_block(make_block([ONE, ONE]))
    assert not workspace.weights[:, 0].any()


def test_several_costs_are_rejected_and_nothing_is_learnt() -> None:
    good = (Line(spans=ONE[0].spans, costs=((0, 1.0, 0.5),)), Line(spans=ONE[0].spans))
    bad = (good[0], good[0])
    workspace = Workspace(cb_adf=True, bit_precision=9)
    with pytest.raises(InputError, match="only one line can have a cost"):
        workspace.learn_block(make_block([good, bad]))
    two = (Line(spans=ONE[0].spans, costs=((0, 1.0, 0.5), (1, 0.0, 0.5))),)
    with pytest.raises(InputError, match="only one cost"):
        workspace.learn_block(make_block([good, two]))
    assert not workspace.weights.any()


def test_event_with_only_a_shared_line_has_no_actions() -> None:
    outcomes = Workspace(cb_explore_adf=True).learn_block(
        make_block([(Line(spans=ONE[0].spans, shared=True),)])
    )
    assert outcomes.action_start.tolist() == [0, 0]
    assert outcomes.loss.tolist() == [0.0]
    assert outcomes.labelled.tolist() == [False]


def test_event_with_more_actions_than_all_before_is_learnt() -> None:
    def event(n: int) -> Event:
        return tuple(Line(spans=((b"a", ((number, 1.0),)),)) for number in range(n))

    outcomes = [
        Workspace(cb_explore_adf=True).learn_block(block) for block in cut([event(2), event(50)], [1])
    ]
    assert [len(each.action) for each in outcomes] == [2, 50]
    np.testing.assert_allclose(outcomes[1].score, 1 / 50, rtol=1e-6)


def test_event_with_more_features_than_all_before_is_learnt() -> None:
    features = tuple((number, 1.0) for number in range(200))
    block = make_block([(Line(spans=((b"a", features),), label=1.0),)])
    workspace = Workspace(quadratic=["aa"], bit_precision=16)
    assert workspace.learn_block(block).n_features.tolist() == [200 + 1 + 200 * 201 // 2]


def test_no_events() -> None:
    assert len(Workspace(cb_explore_adf=True).learn_block(make_block([]))) == 0
    assert len(Workspace().learn_block(make_block([]))) == 0


def test_options_are_given_once() -> None:
    configuration = Workspace(quadratic="ab").configuration
    with pytest.raises(OptionError, match="not into both"):
        Workspace(configuration=configuration, quadratic="ab")
    with pytest.raises(OptionError):
        Workspace(quadratic="abc")


def test_predictions_by_action_and_by_line() -> None:
    assert Workspace().learn("1 |a x").tolist() == [0.0]
    bandit_ = Workspace(cb_explore_adf=True, epsilon=0.5)
    bandit_.learn("0:1:0.5 |a x\n|a y\n")
    assert bandit_.predict("|a x\n|a y\n").tolist() == [0.25, 0.75]
    costs = Workspace(cb=2)
    costs.learn("1:1:0.5 |a x")
    dear, cheap = costs.predict("|a x")
    assert dear > cheap


def test_by_action_needs_exactly_one_event() -> None:
    workspace = Workspace(cb_explore_adf=True)
    two = "|a x\n|a y\n\n|a x\n|a y\n|a z\n\n"
    [(block, outcomes)] = workspace.stream(two.encode())
    with pytest.raises(InputError, match="there are 2: "):
        outcomes.by_action()
    with pytest.raises(InputError, match="there are 0"):
        workspace.predict_block(make_block([])).by_action()
    assert workspace.predict_block(block.head(1)).by_action().shape == (2,)


@pytest.mark.parametrize("text", ["", "1 |a x\n1 |a y\n"])
def test_learn_takes_exactly_one_event(text: str) -> None:
    with pytest.raises(InputError, match="the text is not one event"):
        Workspace().learn(text)


# -- sources and options ----------------------------------------------------------------------------


def test_fit_takes_events_one_by_one_and_blocks() -> None:
    lines = ["1 |a x", "0 |a y", "1 |a x z"]
    whole = Workspace().fit("\n".join(lines).encode())
    for source in (lines, iter(lines), [line.encode() for line in lines], read("\n".join(lines).encode())):
        assert bits(Workspace().fit(source).weights) == bits(whole.weights)


def test_fit_takes_events_of_several_lines() -> None:
    event = "shared |u a\n0:-1:0.5 |b c\n|b d"
    whole = Workspace(cb_adf=True).fit(f"{event}\n\n{event}\n".encode())
    assert bits(Workspace(cb_adf=True).fit([event, event]).weights) == bits(whole.weights)


def test_fit_rejects_other_types() -> None:
    with pytest.raises(TypeError, match="not int"):
        Workspace().fit([1])  # type: ignore[list-item]


def test_problems_of_the_input_cause_a_warning_and_are_kept() -> None:
    model = Workspace()
    for times in (1, 2):
        with pytest.warns(UserWarning, match=r"^1 problem in .*\n.*<bytes>:1:1: label 'one' is not a number"):
            model.fit(b"one |a x\n1 |a x\n")
        assert model.diagnostics.total == times
    model.fit(b"1 |a x\n")


def test_a_source_without_any_event_is_an_error() -> None:
    log = b'{"_label_cost":-1,"c":{"U":{"tom":1},"_multi":[{"A":{"x":1}},{"A":{"y":1}}]},"EventId":"1"}\n'
    with pytest.raises(InputError, match=r"^no event could be read; .*dsjson=True.*\n.*1 problem"):
        Workspace(cb_explore_adf=True).fit(log * 9)
    assert Workspace().fit([]).position.events == 0


@pytest.mark.parametrize("name", ["data", "predictions", "help"])
def test_options_of_the_command_line_are_rejected(name: str) -> None:
    with pytest.raises(OptionError, match=f"^{name} is for the command line"):
        Workspace(configuration=None, **cast("Any", {name: name == "help" or "file"}))


@pytest.mark.parametrize("holdout", [[True], [False] * 3, [[False, False]]])
def test_holdout_of_another_shape_is_rejected(holdout: list[object]) -> None:
    workspace = Workspace()
    with pytest.raises(InputError, match="holdout"):
        workspace.learn_block(make_block([ONE, ONE]), holdout=np.array(holdout))
    assert not workspace.weights.any()


def test_holdout_accepts_any_truth_values() -> None:
    held, plain = Workspace(), Workspace()
    held.learn_block(make_block([ONE, ONE]), holdout=np.array([1, 0, 0, 0])[::2])
    plain.learn_block(make_block([ONE, ONE]), holdout=np.array([True, False]))
    assert held.weights.tobytes() == plain.weights.tobytes()


def test_model_with_statistics_that_are_not_finite_is_rejected() -> None:
    tree, arrays = model_parts(saved_of(Workspace(bit_precision=9).fit(["1 |a x"])))
    start = tree["model"]["learner"]["model"]["statistics"]["at"]
    arrays[start : start + 4] = np.float32(np.nan).tobytes()
    with pytest.raises(InputError, match="statistics"):
        Workspace.load(model_bytes(tree, arrays))
