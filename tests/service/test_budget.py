"""Budgets of a service: declared and reported costs, the logged price, restarts, and bad input."""

from __future__ import annotations

import copy
import functools
import itertools
import logging
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest

from onlineauto.cli.main import main
from onlineauto.engine.stream.source import read_blocks
from onlineauto.errors import OptionError
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.service.client import Client
from onlineauto.service.join.join import Join, replay
from onlineauto.service.join.settings import JoinSettings
from onlineauto.service.learning.evaluate import evaluate_policies, join_log_lines
from onlineauto.service.learning.paced_policy import LoggedCosts, PacedPolicy
from onlineauto.service.log.segment_log import SegmentLog, read_record, sealed
from onlineauto.service.loop.front import Front, ignore_completion
from onlineauto.service.loop.loop import Every, Loop
from onlineauto.service.loop.rank_server import RankServer
from onlineauto.service.options import ServeOptions
from onlineauto.service.ranking import RankRequest, is_drawn
from onlineauto.service.refused import RefusedError
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.workspace import Workspace
from tests.service.in_process import InProcessClient
from tests.service.serving import Service
from tests.service.test_rank_server import Beside

COSTS = {"small": 0.1, "medium": 0.5, "large": 3.0}
REWARDS = {"small": 0.5, "medium": 0.7, "large": 0.8}
SETTINGS = {"learn_at": "reward", "reward_wait": 60.0}
OPTIONS = "--cb_explore_adf --automl 4 --bit_precision 12"


def request_of(number: int, costs: dict[str, float] | None = None) -> RankRequest:
    actions = []
    for name in COSTS:
        action = {"m": msgspec.Raw(b'{"%b":1}' % name.encode())}
        if costs is not None:
            action["cost"] = msgspec.Raw(str(costs[name]).encode())
        actions.append([action])
    context = {"u": msgspec.Raw(b'{"x":%d}' % (number % 5))}
    return RankRequest(f"e{number}", [context], list(COSTS), actions)


def decide(
    loop: Loop, begin: int, end: int, *, declared: bool = True, reported: dict[str, float] | None = None
) -> list[str]:
    """Let a loop decide, and reward its decisions; return the chosen actions."""
    chosen = []
    for number in range(begin, end):
        answer = loop.rank(request_of(number, COSTS if declared else None), ignore_completion)
        action = answer.ids[0]
        noise = 0.1 * float(np.random.default_rng(number).normal())
        if reported is not None:
            loop.cost(f"e{number}", reported[action], ignore_completion)
        loop.reward(f"e{number}", REWARDS[action] + noise, ignore_completion)
        chosen.append(action)
        if number % 20 == 0:
            learn(loop)
    learn(loop)
    return chosen


def learn(loop: Loop) -> None:
    settle(loop)
    while loop.learn():
        pass


def settle(loop: Front) -> None:
    """Wait until the log has all records."""
    written = threading.Event()
    loop._write(b"", lambda _: written.set())
    assert written.wait(30)


@pytest.fixture
def budgeted(open_loop: Callable[..., Loop]) -> Callable[..., Loop]:
    def make(options: str = OPTIONS, **settings: Any) -> Loop:
        return open_loop(options, settings=SETTINGS | settings, every=Every(publish=0.0))

    return make


def paid(chosen: list[str]) -> float:
    return float(np.mean([COSTS[name] for name in chosen]))


@pytest.mark.ci
def test_declared_costs_hold_the_budget(budgeted: Callable[..., Loop]) -> None:
    loop = budgeted(budget=0.6)
    chosen = decide(loop, 0, 1500)
    assert paid(chosen) == pytest.approx(0.6, rel=0.03)
    assert loop.join.pacing.mean_cost == pytest.approx(paid(chosen))
    assert loop.join.pacing.price > 0.0
    assert chosen.count("medium") > 1000


@pytest.mark.ci
def test_reported_costs_hold_the_budget(budgeted: Callable[..., Loop]) -> None:
    loop = budgeted(budget=0.6)
    chosen = decide(loop, 0, 1500, declared=False, reported=COSTS)
    assert paid(chosen) == pytest.approx(0.6, rel=0.03)
    assert loop.join.pacing.mean_cost == pytest.approx(paid(chosen))
    assert loop.join.pacing.reported == 1500
    assert {name: mean.mean for name, mean in loop.join.pacing.by_action.items()} == pytest.approx(COSTS)


def records_of(loop: Loop) -> list[tuple[bytes, Any]]:
    return [(line, read_record(line)) for _, line in loop.log.lines(loop.log.begin)]


def test_the_logged_price_gives_the_logged_probabilities(budgeted: Callable[..., Loop]) -> None:
    loop = budgeted(budget=0.3)
    decide(loop, 0, 90)
    predictor, price = loop.published.predictor, loop.join.pacing.price
    answer = loop.rank(request_of(1000, COSTS), ignore_completion)
    settle(loop)
    line, record = records_of(loop)[-1]
    assert (record.price, record.costs) == (price, list(COSTS.values()))
    assert price > 0.0
    event = b'{"c":%b}\n' % bytes(record.context)
    priced = predictor.predict_priced(event, [price * cost for cost in record.costs]).tolist()
    total = sum(priced)
    by_action = dict(zip(answer.actions, answer.probabilities, strict=True))
    assert [by_action[number] for number in range(3)] == [chance / total for chance in priced]
    assert is_drawn(line, app="default")
    assert priced != predictor.predict(event).tolist()


def test_a_budget_above_all_costs_changes_no_choice(tmp_path: Path, open_loop: Callable[..., Loop]) -> None:
    answers = []
    for name, budget in (("with", {"budget": 3.0}), ("without", {})):
        loop = open_loop(
            OPTIONS, folder=tmp_path / name, settings=SETTINGS | budget, every=Every(publish=0.0)
        )
        decide(loop, 0, 150)
        ranks = [record for _, record in records_of(loop) if record.kind == "rank"]
        answers.append([(record.ranked, record.probabilities) for record in ranks])
        assert {record.price for record in ranks} == ({0.0} if budget else {None})
    assert answers[0] == answers[1]


def test_the_state_is_a_function_of_the_log(budgeted: Callable[..., Loop]) -> None:
    loop = budgeted(budget=0.3)
    decide(loop, 0, 60)
    loop.change({"budget": 0.4}, ignore_completion)
    decide(loop, 60, 120, declared=False, reported=COSTS)
    state = loop.join.state()["pacing"]
    assert loop.learner.join.state()["pacing"] == state
    assert state["debt"] != 0.0
    again = Join(JoinSettings())
    for _ in replay(again, loop.log, loop.log.begin):
        pass
    assert again.state()["pacing"] == state
    killed = SegmentLog(loop.folder / "log", read_only=True)  # without the snapshot of a closed loop
    assert killed.end == loop.log.end
    loop = budgeted()
    assert loop.join.settings.budget == 0.4
    assert loop.join.state()["pacing"] == state
    assert Join.of(loop.join.state()).state()["pacing"] == state


def test_a_budget_below_the_cheapest_action_takes_it_and_warns_once(
    budgeted: Callable[..., Loop], caplog: pytest.LogCaptureFixture
) -> None:
    loop = budgeted(budget=0.05)
    with caplog.at_level(logging.WARNING, "onlineauto.service"):
        chosen = decide(loop, 0, 40)
    assert set(chosen) == {"small"}
    warnings = [record for record in caplog.records if getattr(record, "event", "") == "over_budget"]
    assert [record.getMessage() for record in warnings] == [
        "the budget of 0.05 is below the cheapest action, 'small', which costs 0.1"
    ]
    assert loop.join.pacing.over_budget == 40
    request = request_of(100, COSTS)._replace(excluded=frozenset({"small"}))
    assert loop.rank(request, ignore_completion).ids[0] == "medium"


@pytest.mark.parametrize("cost", ["-0.1", "1e999", "1e30"])
def test_a_cost_that_is_no_cost_is_rejected_with_a_budget(budgeted: Callable[..., Loop], cost: str) -> None:
    loop = budgeted(budget=0.5)
    request = request_of(1)
    request.actions[1][0]["cost"] = msgspec.Raw(cost.encode())
    with pytest.raises(
        RefusedError, match=r"cost of action .medium. is .*: give a number from 0 to below 1e30"
    ) as raised:
        loop.rank(request, ignore_completion)
    assert raised.value.status == 422


@pytest.mark.parametrize(
    ("cost", "budget"), [('"low"', 0.5), ("true", 0.5), ('"low"', None), ("false", None), ("-0.1", None)]
)
def test_a_cost_that_is_no_cost_is_a_feature(
    budgeted: Callable[..., Loop], cost: str, budget: float | None
) -> None:
    loop = budgeted(budget=budget)
    request = request_of(1)
    request.actions[1][0]["cost"] = msgspec.Raw(cost.encode())
    loop.rank(request, ignore_completion)
    settle(loop)
    assert f'"cost":{cost}'.encode() in records_of(loop)[-1][0]


def test_two_costs_of_an_action_are_rejected(budgeted: Callable[..., Loop]) -> None:
    loop = budgeted(budget=0.5)
    actions = [[*objects, {"cost": msgspec.Raw(b"3")}] for objects in request_of(1, COSTS).actions]
    request = request_of(1)._replace(actions=actions)
    with pytest.raises(RefusedError, match=r"cost of action .small. is in 2 of its objects") as raised:
        loop.rank(request, ignore_completion)
    assert raised.value.status == 422


def test_absurd_costs_are_counted_and_logged(
    budgeted: Callable[..., Loop], caplog: pytest.LogCaptureFixture
) -> None:
    loop = budgeted(budget=0.5)
    decide(loop, 0, 20)
    with caplog.at_level(logging.WARNING, "onlineauto.service"):
        for number in range(20, 29):
            loop.rank(request_of(number, COSTS | {"large": 1e6}), ignore_completion)
        decide(loop, 29, 31)
    messages = [record.getMessage() for record in caplog.records if "far beyond" in record.message]
    assert messages[0] == "costs far beyond all others: 4; the means that set the price took less of them"
    assert len(messages) == 2  # of 4 and of 8
    assert loop.join.pacing.clipped == 9


@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf"), 1e31])
def test_a_reported_cost_that_is_no_cost_is_rejected(budgeted: Callable[..., Loop], cost: float) -> None:
    loop = budgeted(budget=0.5)
    with pytest.raises(RefusedError, match=r"the cost is .*: give a number from 0 to below 1e30") as raised:
        loop.cost("e1", cost, ignore_completion)
    assert raised.value.status == 422


@pytest.mark.parametrize("flags", ["--bag 3", "--cover 3", "--rnd 2", "--regcb", "--squarecb --elim"])
def test_explorers_of_several_scores_are_rejected_by_name(budgeted: Callable[..., Loop], flags: str) -> None:
    with pytest.raises(OptionError, match=r"needs|reads more than one score"):
        budgeted(f"--cb_explore_adf {flags}", budget=0.5)


@pytest.mark.parametrize("budget", [0.0, -1.0, float("nan"), float("inf")])
def test_a_budget_that_is_no_number_above_zero_is_rejected(
    budgeted: Callable[..., Loop], budget: float
) -> None:
    with pytest.raises(OptionError, match=r"budget is .*: give a mean cost of a decision"):
        budgeted(budget=budget)


def test_a_reported_cost_replaces_the_declared_one_once(budgeted: Callable[..., Loop]) -> None:
    loop = budgeted(budget=0.5)
    action = loop.rank(request_of(1, COSTS), ignore_completion).ids[0]
    settle(loop)
    assert loop.join.pacing.spent == COSTS[action]
    for cost in (0.7, 0.9):
        loop.cost("e1", cost, ignore_completion)
    assert loop.join.pacing.spent == pytest.approx(0.7)
    assert loop.join.pacing.debt == pytest.approx(0.7 / 0.5 - 1.0)
    assert (loop.join.pacing.reported, loop.join.counts.duplicate) == (1, 1)
    assert loop.join.pacing.by_action[action].mean == 0.7
    loop.cost("unknown", 0.7, ignore_completion)
    assert loop.join.pacing.unmatched == 1


def test_the_price_moves_only_by_decisions_of_the_model(budgeted: Callable[..., Loop]) -> None:
    loop = budgeted(budget=0.5, mode="apprentice")
    request = request_of(1, {"small": 3.0, "medium": 0.5, "large": 0.1})
    assert loop.rank(request, ignore_completion).ids[0] == "small"
    assert (loop.join.pacing.mean_cost, loop.join.pacing.debt) == (3.0, 0.0)
    settle(loop)
    assert [record.price for _, record in records_of(loop) if record.kind == "rank"] == [None]


def test_budgets_over_http(serve: Callable[..., InProcessClient]) -> None:
    client = serve(budget=0.5)
    actions: dict[str, Any] = {name: {"m": {name: 1}, "cost": cost} for name, cost in COSTS.items()}
    body = {"event_id": "e1", "actions": actions}
    action = client.post("/v1/rank", json=body).json()["action"]
    assert client.get("/v1/status").json()["mean_cost"] == COSTS[action]
    assert client.post("/v1/reward", json={"event_id": "e1", "cost": 0.4}).status_code == 204
    assert client.post("/v1/reward", json={"event_id": "e1", "reward": 1.0, "cost": 9.0}).status_code == 204
    status = client.learnt(1)
    assert (status["mean_cost"], status["recent_cost"], status["costed"]) == (0.4, 0.4, 1)
    assert (status["rewarded"], status["duplicate"], status["action_costs"]) == (1, 1, {action: 0.4})
    assert status["settings"]["budget"] == 0.5
    metrics = client.get("/metrics").text
    assert "onlineauto_mean_cost 0.4" in metrics
    assert "onlineauto_costed_total 1.0" in metrics
    refused = client.post("/v1/reward", json={"event_id": "e1", "cost": -1})
    assert refused.status_code == 422
    assert "the cost is -1.0: give a number from 0 to below 1e30" in refused.text
    assert "reward, or cost, or both" in client.post("/v1/reward", json={"event_id": "e1"}).text
    body["event_id"], actions["small"]["cost"] = "e2", -1
    refused = client.post("/v1/rank", json=body)
    assert (refused.status_code, "cost of action 'small' is -1" in refused.text) == (422, True)
    assert client.patch("/v1/settings", json={"budget": None}).json()["budget"] is None
    actions["small"]["cost"] = 0.2
    assert client.post("/v1/rank", json=body).status_code == 200


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a service whose decisions had costs and no budget."""
    folder = tmp_path_factory.mktemp("logged") / "loop"
    options = "--cb_explore_adf --epsilon 0.6 --bit_precision 12"
    loop = Loop(folder, REGISTRY.parse(options), settings=SETTINGS, every=Every(publish=0.0))
    decide(loop, 0, 400)
    loop.close()
    return folder


FLAGS = "--cb_explore_adf --squarecb --bit_precision 12"


def test_evaluation_asks_other_budgets(logged: Path) -> None:
    log = SegmentLog(logged / "log", read_only=True)
    policies = [FLAGS, f"{FLAGS} --budget 3", f"{FLAGS} --budget 1.0", f"--budget=0.5 {FLAGS}"]
    estimates = evaluate_policies(log, policies, REGISTRY.parse("--cb_explore_adf"))
    free, wide, middle, narrow = (estimates[name] for name in policies)
    for name in ("snips", "doubly_robust"):
        expected = msgspec.structs.asdict(getattr(free, name)) | {"policy": policies[1]}
        assert msgspec.structs.asdict(getattr(wide, name)) == expected
    assert (free.mean_cost, wide.price) == (None, 0.0)
    assert wide.mean_cost is not None
    assert middle.mean_cost is not None
    assert narrow.mean_cost is not None
    assert narrow.mean_cost < middle.mean_cost < wide.mean_cost
    assert middle.mean_cost == pytest.approx(1.0, rel=0.1)
    assert narrow.mean_cost == pytest.approx(0.5, rel=0.1)
    assert narrow.price is not None
    assert narrow.price > 0.0


def test_a_paced_policy_has_the_probabilities_of_a_service_with_its_price(logged: Path) -> None:
    log, costs = SegmentLog(logged / "log", read_only=True), LoggedCosts()
    configuration = REGISTRY.parse(f"{FLAGS} --dsjson")
    policy = PacedPolicy(configuration, 0.4, costs)
    priced = 0
    for block in read_blocks(costs.read(join_log_lines(log)), policy.configuration, Diagnostics()):
        for event in range(len(block)):
            one, predictor, price = block.tail(event).head(1), active(policy).predictor(), policy.pacing.price
            line = int(one.line_number[one.event_start[0]])
            known = costs.of(line)
            assert known == list(COSTS.values())
            expected = predictor.predict_priced(
                policy_events(log)[line - 1], [price * cost for cost in known]
            )
            outcomes = policy.learn_block(one)
            assert outcomes.by_action().tolist() == expected.tolist()
            priced += price > 0.0
    assert priced > 100


def active(policy: PacedPolicy) -> Workspace:
    """Return the workspace of a policy with its exploration, whose state is the policy's."""
    workspace = copy.deepcopy(policy)
    task = workspace.learner.task
    workspace.learner.task = task._replace(exploration=task.exploration._replace(active=True))
    return workspace


@functools.cache
def policy_events(log: SegmentLog) -> list[bytes]:
    return list(join_log_lines(log))


def test_the_outcomes_of_a_block_are_those_of_its_events(logged: Path) -> None:
    log = SegmentLog(logged / "log", read_only=True)
    made = []
    for size in (1, 400):
        costs = LoggedCosts()
        policy = PacedPolicy(REGISTRY.parse(f"{FLAGS} --dsjson"), 0.5, costs)
        found = []
        for block in read_blocks(costs.read(join_log_lines(log)), policy.configuration, Diagnostics()):
            parts = [block.tail(event).head(size) for event in range(0, len(block), size)]
            for outcomes in map(policy.learn_block, parts):
                begins = outcomes.action_start.tolist()
                found += [outcomes.score[begin:end].tolist() for begin, end in itertools.pairwise(begins)]
        made.append(found)
    assert made[0] == made[1]


def test_the_command_evaluates_budgets(
    logged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exported = tmp_path / "log.dsjson"
    assert main(["loop", str(logged), "--export", str(exported)]) == 0
    policy = f"{FLAGS} --budget 0.5"
    assert main(["evaluate", str(exported), "--dsjson", "--quiet", "--policy", policy]) == 0
    found = re.search(
        r": a decision costs (\S+) in the mean; budget 0.5, price (\S+)", capsys.readouterr().out
    )
    assert found is not None
    assert float(found[1]) == pytest.approx(0.5, rel=0.1)
    assert main(["evaluate", str(exported), "--dsjson", "--policy", f"{FLAGS} --budget 0"]) == 2
    assert "--budget takes a mean cost of a decision" in capsys.readouterr().err
    assert main(["evaluate", str(exported), "--policy", policy]) == 2
    assert "add --dsjson" in capsys.readouterr().err


@pytest.mark.ci
def test_a_killed_service_continues_with_the_price_of_its_log(tmp_path: Path) -> None:
    actions = {name: {"m": {name: 1}, "cost": cost} for name, cost in COSTS.items()}
    found: list[dict[str, Any]] = []
    for begin, budget in ((0, ("--budget", "0.3")), (60, ()), (120, ())):
        service = Service(tmp_path / "loop", *budget, "--snapshot_every", "0.05").start().wait()
        with httpx.Client(base_url=service.url, timeout=30) as client:
            found.append(client.get("/v1/status").json())
            for number in range(begin, begin + 60):
                body = {"event_id": f"e{number}", "actions": actions}
                action = client.post("/v1/rank", json=body).json()["action"]
                reward = {"event_id": f"e{number}", "reward": REWARDS[action], "cost": 1.1 * COSTS[action]}
                assert client.post("/v1/reward", json=reward).status_code == 204
            found.append(client.get("/v1/status").json())
        service.kill()
        again = Join(JoinSettings())
        log = SegmentLog(tmp_path / "loop" / "log", read_only=True)
        for _ in replay(again, log, log.begin):
            pass
        assert (again.pacing.price, again.pacing.mean_cost, again.pacing.costed) == tuple(
            found[-1][name] for name in ("price", "mean_cost", "costed")
        )
    for before, after in zip(found[1::2], found[2::2], strict=False):
        for name in ("price", "mean_cost", "recent_cost", "costed", "action_costs"):
            assert before[name] == after[name]
    assert found[-1]["costed"] == 180
    assert found[-1]["price"] > 0.0


def test_decisions_of_rank_servers_are_spending_and_do_not_move_the_price() -> None:
    stamp, join = "2026-01-01T00:00:00Z", Join(JoinSettings(budget=0.5))
    rank = {"Type": "rank", "EventId": "e1", "Timestamp": stamp, "a": [3, 1, 2], "Costs": [0.1, 0.5, 3.0]}
    cost = {
        "Type": "cost",
        "EventId": "e1",
        "Timestamp": stamp,
        "Cost": 2.0,
        "Action": "large",
        "Assumed": 3.0,
    }
    position = 0
    records: list[dict[str, Any]] = [rank, cost]
    for behind, record in enumerate(records, 1):
        source = {"Source": "rank1", "Behind": behind, "Taken": stamp}
        line = sealed(msgspec.json.encode({**record, "Price": 0.7, **source}))
        join.take(read_record(line), position, len(line))
        position += len(line)
    assert (join.pacing.spent, join.pacing.costed, join.pacing.mean_of("large", 0.5)) == (2.0, 1, 2.0)
    assert (join.pacing.price, join.pacing.debt, join.pacing.decisions) == (0.0, 0.0, 0)


def test_a_rank_server_holds_the_budget_of_its_learner(tmp_path: Path, budgeted: Callable[..., Loop]) -> None:
    loop = budgeted(budget=0.3)
    decide(loop, 0, 60)
    spent, price = loop.join.pacing.spent, loop.join.pacing.price
    follower = RankServer(tmp_path / "rank", Beside(loop))
    for number in range(1000, 1060):
        action = follower.rank(request_of(number, COSTS), ignore_completion).ids[0]
        follower.cost(f"e{number}", COSTS[action] + 0.1, ignore_completion)
    own = follower.join.pacing
    assert own.decisions == 60
    assert own.price > 0.0
    settle(follower)
    while follower.follow() and follower.behind:
        pass
    assert loop.join.pacing.spent == pytest.approx(spent + own.spent)
    assert (loop.join.pacing.price, loop.join.pacing.reported) == (price, 60)
    follower.close()
    again = RankServer(tmp_path / "rank", Beside(loop))
    assert again.join.pacing == own
    again.close()


def test_costs_of_personalizer_and_of_slots_are_declared_beside_features(
    serve: Callable[..., InProcessClient],
) -> None:
    client = serve(budget=0.5)
    actions = [{"id": name, "features": [{"m": {name: 1}}, {"cost": cost}]} for name, cost in COSTS.items()]
    body: dict[str, Any] = {"eventId": "e1", "actions": actions}
    chosen = client.post("/personalizer/v1.0/rank", json=body).json()["rewardActionId"]
    assert client.get("/v1/status").json()["mean_cost"] == COSTS[chosen]
    named = {name: {"m": {name: 1}, "cost": cost} for name, cost in COSTS.items()}
    body = {"event_id": "e2", "actions": named, "slots": [{"id": "top"}, {"id": "side"}]}
    slots = client.post("/v1/rank/slots", json=body).json()["slots"]
    reward = {"event_id": "e2", "slot": "top", "cost": 0.7}
    assert client.post("/v1/reward", json=reward).status_code == 204
    spent = COSTS[chosen] + 0.7 + COSTS[slots[1]["action"]]
    assert client.get("/v1/status").json()["mean_cost"] == pytest.approx(spent / 3)


def test_the_client_reports_costs(serve: Callable[..., InProcessClient]) -> None:
    served = serve(budget=0.5)
    with Client(str(served.base_url)) as client:
        decision = client.rank({}, {name: {"m": {name: 1}, "cost": cost} for name, cost in COSTS.items()})
        assert client.reward(decision, cost=0.7)
        assert client.reward(decision, 1.0)
    status = served.learnt(1)
    assert (status["mean_cost"], status["rewarded"]) == (pytest.approx(0.7), 1)


def test_the_option_gives_the_budget() -> None:
    assert ServeOptions(budget=0.5).settings() == {"budget": 0.5}
