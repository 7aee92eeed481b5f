"""A model of dicts or columns that is put into a service decides there as in Python, also after a restart."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from onlineauto import AutoML, InputError, OptionError, Workspace
from onlineauto.service.http.wire import PersonalizerRank, Rank
from onlineauto.service.loop.front import ignore_completion
from onlineauto.service.loop.loop import Loop
from onlineauto.workspace.options import REGISTRY

USERS = ("tom", "ann", "eve")
ACTIONS = [{"arm": 0}, {"arm": 1}, {"arm": 2}]
BEST = [1, 2, 0]


@pytest.fixture(scope="module")
def bandit() -> AutoML:
    """Return a model whose actions are integers in a frame."""
    random = np.random.default_rng(0)
    user, arm = random.integers(0, 3, 3000), random.integers(0, 3, 3000)
    reward = (np.array(BEST)[user] == arm).astype(float)
    frame = polars.DataFrame(
        {"user": np.array(USERS)[user], "arm": arm, "reward": reward, "p": [1 / 3] * 3000}
    )
    return AutoML(seed=1).fit_table(frame, actions="arm", reward="reward", probability="p")


def opened(folder: Path, now: list[float]) -> Loop:
    options = REGISTRY.parse("--cb_explore_adf --automl 4")
    return Loop(folder, options, settings={"reward_wait": 50.0}, clock=lambda: now[0])


def learn_all(loop: Loop, now: list[float]) -> None:
    """End the wait of all decisions, and learn them."""
    now[0] += 100.0
    loop.tick()
    with loop.together():
        pass
    while loop.learn():
        pass


def pmf_of(loop: Loop, event_id: str, user: str, kind: Any = Rank) -> list[float]:
    """Return the probabilities that a rank over HTTP gives, in the order of the actions."""
    if kind is Rank:
        body: Any = {
            "event_id": event_id,
            "context": {"user": user},
            "actions": {str(a["arm"]): a for a in ACTIONS},
        }
    else:
        listed = [{"id": str(each["arm"]), "features": [each]} for each in ACTIONS]
        body = {"eventId": event_id, "contextFeatures": [{"user": user}], "actions": listed}
    request = json.dumps(body).encode()
    answer = loop.rank(kind_decoder(kind, request), ignore_completion)
    by_action = dict(zip(answer.actions, answer.probabilities, strict=True))
    return [by_action[action] for action in range(len(ACTIONS))]


def kind_decoder(kind: Any, body: bytes) -> Any:
    import msgspec

    return msgspec.json.decode(body, type=kind).rank_request(lambda: "e")


def test_a_model_of_python_decides_in_a_service_as_in_python(tmp_path: Path, bandit: AutoML) -> None:
    file = io.BytesIO()
    bandit.save(file)
    now = [1.7e9]
    loop = opened(tmp_path / "loop", now)
    before = pmf_of(loop, "before", "tom")
    assert np.allclose(before, 1 / 3)
    loop.put_model("put-python", file.getvalue(), ignore_completion)
    loop.reward("before", 1.0, ignore_completion)  # a decision of the model before is learnt by this one
    learn_all(loop, now)
    for round_ in range(2):
        for index, user in enumerate(USERS):
            expected = bandit.predict({"user": user}, ACTIONS)
            for kind in (Rank, PersonalizerRank):
                found = pmf_of(loop, f"{round_} {user} {kind.__name__}", user, kind)
                assert int(np.argmax(found)) == BEST[index]
                assert np.allclose(found, expected, atol=0.02)
                loop.reward(
                    f"{round_} {user} {kind.__name__}", float(found[BEST[index]] > 0.5), ignore_completion
                )
        learn_all(loop, now)
        learnt = loop.learner.learnt
        loop.close()
        loop = opened(tmp_path / "loop", now)
        assert loop.learner.learnt >= learnt
    name, content = loop.model()
    follower = Workspace.load(content, testonly=True, dsjson=True).predictor()
    line = json.dumps({"c": {"user": "tom", "_multi": ACTIONS}}).encode() + b"\n"
    assert int(np.argmax(follower.predict(line))) == BEST[0]
    assert name.endswith("-1")
    loop.close()


def test_a_model_of_json_refuses_dicts_and_a_model_of_dicts_reads_json(bandit: AutoML) -> None:
    rows = [
        {"_label_cost": -1, "_label_probability": 0.5, "_labelIndex": 0, "user": user, "_multi": ACTIONS}
        for user in USERS
    ]
    lines = "\n".join(map(json.dumps, rows)).encode() + b"\n"
    of_json = AutoML().fit(lines)
    with pytest.raises(InputError, match="names of Vowpal Wabbit's JSON"):
        of_json.predict({"user": "tom"}, ACTIONS)
    with pytest.raises(InputError, match="names of Vowpal Wabbit's JSON"):
        of_json.learn({"user": "tom"}, ACTIONS, action=0, probability=0.5, reward=1.0)
    file = io.BytesIO()
    bandit.save(file)
    again = Workspace.load(file.getvalue(), json=True)
    for index, user in enumerate(USERS):
        found = again.predict(json.dumps({"user": user, "_multi": ACTIONS}))
        assert int(np.argmax(found)) == BEST[index]


def test_a_model_of_vw_does_not_get_into_a_service_but_its_warm_start_does(tmp_path: Path) -> None:
    """A service cannot rank with a model of --vw_exact, which changes when it predicts."""
    options, now, exact, native = REGISTRY.parse("--cb_explore_adf"), [1.7e9], io.BytesIO(), io.BytesIO()
    unnamed = io.BytesIO()
    Workspace("--cb_explore_adf --dsjson --vw_exact -q ua").save(exact)
    AutoML(hash_bits=18, names="vw").warm_start(exact.getvalue(), namespaces=["user", "arm"]).save(native)
    loop = Loop(tmp_path, options, clock=lambda: now[0])
    AutoML(hash_bits=18).warm_start(exact.getvalue(), namespaces=["user", "arm"]).save(unnamed)
    with pytest.raises(InputError, match=r"does not record how its names were made: .*--names vw"):
        loop.put_model("put-vw", unnamed.getvalue(), ignore_completion)
    with pytest.raises(OptionError, match=r"cannot rank with a model of --vw_exact.*warm_start"):
        loop.put_model("put-vw", exact.getvalue(), ignore_completion)
    with pytest.raises(OptionError, match=r"cannot rank with a model of --vw_exact.*warm_start"):
        Loop(tmp_path / "4", REGISTRY.parse("--cb_explore_adf --automl 4"), clock=lambda: now[0]).put_model(
            "put-vw", exact.getvalue(), ignore_completion
        )
    loop.learner.models.put("put-vw", exact.getvalue())  # a file that was copied into the folder
    with pytest.raises(OptionError, match="cannot rank"):
        loop.start_canary("put-vw", 0.5, ignore_completion)
    loop.use_model("put-vw", ignore_completion)
    learn_all(loop, now)
    assert loop.learner.skipped == 1
    loop.close()
    loop = Loop(tmp_path, options, clock=lambda: now[0])
    loop.put_model("put-native", native.getvalue(), ignore_completion)
    learn_all(loop, now)
    assert loop.learner.workspace.searching.interactions(0) == ((b"user", b"arm"),)
    loop.close()
