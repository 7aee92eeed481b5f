"""Decisions are logged before they are returned, and joined with rewards that come later."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onlineauto import AutoML, InputError
from tests.api.events import ACTIONS, context, reward, serve

pytestmark = pytest.mark.lane("quick")

_SERVING = """
import sys
from onlineauto import AutoML
from tests.api.events import ACTIONS, context
bandit = AutoML(decision_log=sys.argv[1])
for step in range(10**9):
    print(bandit.rank(context(step), ACTIONS).event_id, flush=True)
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "decisions.dsjson"


def test_a_log_of_decisions_and_rewards_teaches_another_model(log: Path) -> None:
    serving = AutoML(decision_log=log, seed=1)
    serve(serving, 200)
    learnt = AutoML().join(log)
    assert learnt.events == 200
    assert (learnt.workspace.weights == serving.workspace.weights).all()
    assert learnt.average_reward == pytest.approx(serving.average_reward)


def test_a_logged_line_has_the_fields_of_dsjson(log: Path) -> None:
    bandit = AutoML(decision_log=log, epsilon=0.3, seed=1)
    serve(bandit, 20)
    choice = bandit.rank(context(0), ACTIONS, event_id="last")
    line = json.loads(log.read_text().splitlines()[-1])
    assert line["EventId"] == "last"
    assert line["a"][0] == choice.action + 1
    assert sorted(line["a"]) == [1, 2, 3]
    assert line["p"] == pytest.approx([choice.pmf[action - 1] for action in line["a"]])
    assert line["Timestamp"].endswith("Z")
    assert len(line["c"]["_multi"]) == 3


def test_rewards_are_joined_by_id(log: Path, tmp_path: Path) -> None:
    bandit = AutoML(decision_log=log)
    choices = [bandit.rank(context(step), ACTIONS) for step in range(30)]
    rewards = {each.event_id: reward(step, each.action) for step, each in enumerate(choices[:20])}
    assert AutoML().join(log, rewards).events == 20
    assert AutoML().join(log, rewards, default_reward=0).events == 30
    assert AutoML(default_reward=0).join(log, rewards).events == 30
    late = tmp_path / "late.dsjson"
    late.write_text(
        "".join(f'{{"EventId":"{key}","RewardValue":{value}}}\n' for key, value in rewards.items())
    )
    assert AutoML().join(log, late).events == 20
    with pytest.warns(UserWarning, match="1 reward without a decision in "):
        AutoML().join(log, rewards | {"nobody": 1.0})
    with pytest.warns(UserWarning, match=r"29 decisions without a reward left out; .* default_reward"):
        AutoML().join(log, {choices[0].event_id: 1.0})
    with pytest.raises(InputError, match=r"none with a .*; rewards that came later .* AutoML.join"):
        AutoML().fit(log)
    with pytest.raises(InputError, match=r"event '.*': reward nan is not a finite number"):
        AutoML().join(log, {choices[0].event_id: float("nan")})


def test_rewards_alone_are_no_events(tmp_path: Path) -> None:
    log = tmp_path / "rewards.dsjson"
    log.write_text('{"EventId":"a","RewardValue":1.0}\n')
    with pytest.raises(InputError, match="nothing was learnt"):
        AutoML().join(log)


def test_a_reward_that_cannot_be_learnt_is_not_logged(log: Path) -> None:
    serving = AutoML(decision_log=log)
    choice = serving.rank(context(0), ACTIONS)
    for reward_of in (1e300, -1e39, 10**40):
        with pytest.raises(InputError, match="too large for a float32"):
            serving.learn(choice, reward=reward_of)
    serving.learn(choice, reward=1.0)
    assert AutoML().join(log).events == 1


def test_decisions_returned_before_a_kill_are_in_the_log(log: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVING, str(log)], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stdout is not None
    ids = [process.stdout.readline().strip() for _ in range(50)]
    process.send_signal(signal.SIGKILL)
    ids += process.stdout.read().split("\n")[:-1]
    process.wait()
    process.stdout.close()
    lines = log.read_text().splitlines()[: len(ids)]  # the one that was being written may be torn
    assert [json.loads(line)["EventId"] for line in lines] == ids


def test_problems_have_their_line_in_the_log(log: Path) -> None:
    serve(AutoML(decision_log=log), 3)
    with log.open("a") as file:
        file.write("no JSON\n")
    with pytest.warns(UserWarning, match=f"{log}:7:1: line is no JSON object: 'no JSON'"):
        AutoML().join(log)


def test_a_truncated_line_is_completed_before_the_next_one(log: Path) -> None:
    serve(AutoML(decision_log=log), 3)
    with log.open("a") as file:
        file.write('{"EventId":"torn","a":[1')
    serve(AutoML(decision_log=log, sync_log=True), 3)
    with pytest.warns(UserWarning, match="1 problem in the input"):
        assert AutoML().join(log).events == 6


def test_copies_and_loaded_models_log_too(log: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.oam"
    bandit = AutoML(decision_log=log)
    serve(copy.deepcopy(bandit), 5)
    serve(bandit, 5)
    bandit.save(model)
    serve(AutoML.load(model), 5)
    serve(AutoML.load(model, decision_log=log), 5)
    assert AutoML().join(log).events == 15


def test_a_log_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"cannot log decisions to {tmp_path}: "):
        AutoML(decision_log=tmp_path)


def test_a_log_that_does_not_exist_is_named(tmp_path: Path) -> None:
    for log, why in ((tmp_path / "missing", "no such file"), (tmp_path, "a directory")):
        with pytest.raises(InputError, match=f"^{log}: {why}"):
            AutoML().join(log)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")  # noqa: PTH110
def test_a_decision_that_cannot_be_logged_is_not_made() -> None:
    bandit = AutoML(decision_log="/dev/full")
    with pytest.raises(OSError, match="No space left"):
        bandit.rank(context(0), ACTIONS)
    assert bandit.pending == 0


@pytest.mark.parametrize("end", [b"", bytes(20)], ids=["cut off", "zeros"])
@pytest.mark.parametrize("apart", [False, True])
def test_a_truncated_reward_is_a_malformed_line(tmp_path: Path, apart: bool, end: bytes) -> None:
    log, late = tmp_path / "log.dsjson", tmp_path / "late.dsjson"
    bandit = AutoML(decision_log=log)
    for number in range(5):
        bandit.learn(bandit.rank({"user": number}, [{"a": 1}, {"a": 2}]), reward=1.0)
    whole = log.read_bytes()[:-20] + end  # power failed while the last reward was written
    if apart:
        late.write_bytes(b"\n".join(line for line in whole.splitlines() if b'"RewardValue"' in line))
        whole = b"".join(line for line in whole.splitlines(keepends=True) if b'"a":' in line)
    log.write_bytes(whole)
    model = AutoML()
    with pytest.warns(UserWarning, match="^1 problem") as caught:
        model.join(log, late if apart else None)
    [message] = [str(each.message) for each in caught if "problem" in str(each.message)]
    file = "late.dsjson:5:1: line is no JSON object" if apart else "log.dsjson:10:"
    assert file in message
    assert "line skipped" in message
    assert "finite number" not in message
    assert model.events == 4


def test_a_log_keeps_the_columns_whose_numbers_are_names(tmp_path: Path) -> None:
    log, actions = tmp_path / "log.dsjson", [{"arm": 0}, {"arm": 1}]
    columns = {"user": ["tom", "ann"] * 20, "arm": [0, 1] * 20, "r": [1.0] * 40, "p": [0.5] * 40}
    frame = pytest.importorskip("polars").DataFrame(columns)
    serving = AutoML(decision_log=log).fit_table(frame, actions="arm", reward="r", probability="p")
    for number in range(300):
        user = ("tom", "ann")[number % 2]
        choice = serving.rank({"user": user}, actions)
        serving.learn(choice, reward=float(choice.action == number % 2))
    assert '"_multi":[{"arm":{"arm=0":1.0}},{"arm":{"arm=1":1.0}}]' in log.read_text()
    joined = AutoML().join(log)
    assert joined.workspace.identities == {"arm^arm"}
    for number, user in enumerate(("tom", "ann")):
        assert int(np.argmax(joined.predict({"user": user}, actions))) == number
    label = b'"_label_cost":-1,"_label_probability":0.5,"_labelIndex":0'
    with pytest.raises(InputError, match="names of Vowpal Wabbit's JSON"):
        AutoML().fit(b'{%b,"user":"tom","_multi":[{"arm":0},{"arm":1}]}\n' % label).join(log)
