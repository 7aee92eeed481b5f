"""Microsoft's own clients for Personalizer drive the service, each call that they have."""

from __future__ import annotations

import datetime
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.serving import Service

pytestmark = pytest.mark.lane("ci")

ACTIONS = [{"id": name, "features": [{"topic": {name: 1}}]} for name in ("art", "news", "sport")]
CONTEXT = [{"user": {"age": 30}}, {"hour": 9}]
DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("personalizer") / "loop"
    with Service(folder, "--reward_wait", "PT10M", "--publish_every", "0") as made:
        yield made


@pytest.fixture
def client(service: Service) -> Any:
    """Return the client of the version 2022-09-01-preview that ranks and rewards."""
    personalizer = pytest.importorskip("azure.ai.personalizer")
    from azure.core.credentials import AzureKeyCredential

    return personalizer.PersonalizerClient(service.url, AzureKeyCredential("any"), retry_total=0)


@pytest.fixture
def admin(service: Service) -> Any:
    """Return the client of the same version that administers."""
    personalizer = pytest.importorskip("azure.ai.personalizer")
    from azure.core.credentials import AzureKeyCredential

    return personalizer.PersonalizerAdministrationClient(
        service.url, AzureKeyCredential("any"), retry_total=0
    )


def refused(call: Any, *words: Any, **more: Any) -> str:
    """Return the message of a call that is not here."""
    from azure.core.exceptions import HttpResponseError

    with pytest.raises(HttpResponseError) as caught:
        list(call(*words, **more))  # a list is asked for page by page
    assert caught.value.status_code == 501
    assert caught.value.error.code == "NotImplemented"
    return str(caught.value.error.message)


def test_the_client_of_version_1_0(service: Service) -> None:
    personalizer = pytest.importorskip("azure.cognitiveservices.personalizer")
    from azure.cognitiveservices.personalizer.models import RankableAction, RankRequest
    from msrest.authentication import CognitiveServicesCredentials

    client = personalizer.PersonalizerClient(service.url, CognitiveServicesCredentials("any"))
    actions = [RankableAction(id=each["id"], features=each["features"]) for each in ACTIONS]
    asked = RankRequest(
        actions=actions,
        context_features=CONTEXT,
        event_id="old 1/a",
        excluded_actions=["art"],
        defer_activation=True,
    )
    answer = client.rank(asked)
    assert (answer.event_id, answer.reward_action_id) == ("old 1/a", answer.ranking[0].id)
    chances = {each.id: each.probability for each in answer.ranking}
    assert chances.keys() == {"art", "news", "sport"}
    assert (chances["art"], sum(chances.values())) == (0.0, pytest.approx(1.0))
    assert client.rank(asked).reward_action_id == answer.reward_action_id
    client.events.reward(event_id="old 1/a", value=1.0)
    client.events.activate(event_id="old 1/a")
    from azure.cognitiveservices.personalizer.models import ErrorResponseException

    with pytest.raises(ErrorResponseException) as caught:
        client.rank(RankRequest(actions=[]))
    assert caught.value.error.error.code == "BadRequest"
    assert "no actions" in caught.value.error.error.message


def test_rank_reward_activate(client: Any) -> None:
    asked = {"actions": ACTIONS, "contextFeatures": CONTEXT, "eventId": "new 1", "deferActivation": True}
    answer = client.rank(asked)
    assert answer["rewardActionId"] in {"art", "news", "sport"}
    client.reward("new 1", {"value": 0.5})
    client.activate("new 1")


def test_rank_and_reward_of_slots(client: Any) -> None:
    slots = [{"id": "top", "baselineAction": "art"}, {"id": "side", "baselineAction": "news"}]
    answer = client.rank_multi_slot({"actions": ACTIONS, "contextFeatures": CONTEXT, "slots": slots})
    assert [each["id"] for each in answer["slots"]] == ["top", "side"]
    assert len({each["rewardActionId"] for each in answer["slots"]}) == 2
    rewards = {"reward": [{"slotId": "top", "value": 1}, {"slotId": "side", "value": 0}]}
    client.reward_multi_slot(answer["eventId"], rewards)
    client.activate_multi_slot(answer["eventId"])


def test_configuration(admin: Any) -> None:
    before = admin.get_service_configuration()
    assert before["rewardWaitTime"] == "PT600S"
    assert (before["rewardAggregation"], before["learningMode"]) == ("earliest", "Online")
    assert (before["explorationPercentage"], before["logRetentionDays"]) == (0.2, -1)
    changed = {**before, "rewardWaitTime": "PT20M", "defaultReward": 0.25, "rewardAggregation": "sum"}
    changed |= {"learningMode": "Apprentice"}
    after = admin.update_service_configuration(changed)
    assert after == {**changed, "rewardWaitTime": "PT1200S"} == admin.get_service_configuration()
    message = refused(admin.update_service_configuration, {**before, "explorationPercentage": 0.3})
    assert "exploration percentage (--epsilon) is 0.2, not 0.3" in message
    assert admin.get_service_configuration() == after
    assert admin.update_service_configuration(before) == before


def test_policy(admin: Any) -> None:
    policy = admin.get_policy()
    assert policy["name"] == "default"
    assert "--cb_explore_adf" in policy["arguments"]
    assert admin.update_policy(policy) == policy == admin.reset_policy()
    other = {"name": "other", "arguments": "--cb_explore_adf --epsilon 0.2 --dsjson --cb_type ips -l 0.5"}
    assert "POST /v1/evaluate compares them" in refused(admin.update_policy, other)


def test_model_export_import_and_reset(admin: Any) -> None:
    exported = b"".join(admin.export_model())
    properties = admin.get_model_properties()
    assert properties["creationTime"] <= properties["lastModifiedTime"]
    admin.reset_model()
    admin.import_model(io.BytesIO(exported))
    from azure.core.exceptions import HttpResponseError

    with pytest.raises(HttpResponseError) as caught:
        admin.import_model(io.BytesIO(b"no model"))
    assert caught.value.status_code == 400


def test_logs(admin: Any) -> None:
    times = admin.get_log_properties()["dateRange"]
    assert times["from"] <= times["to"]
    assert "--keep_log DAYS" in refused(admin.delete_logs)


def test_missing_calls_name_the_alternative(admin: Any) -> None:
    now = datetime.datetime.now(datetime.UTC)
    job = {"name": "one", "startTime": (now - DAY).isoformat(), "endTime": now.isoformat(), "policies": []}
    assert "POST /v1/evaluate" in refused(admin.create_evaluation, "id", job)
    assert "POST /v1/evaluate" in refused(admin.list_evaluations)
    assert "POST /v1/evaluate" in refused(admin.get_evaluation, "id", start_time=now - DAY, end_time=now)
    assert "POST /v1/evaluate" in refused(admin.delete_evaluation, "id")
    applied = {"evaluationId": "id", "policyName": "one"}
    assert "--automl" in refused(admin.apply_from_evaluation, applied)
    for call in (
        admin.list_feature_importances,
        admin.get_feature_importance,
        admin.delete_feature_importance,
    ):
        words = () if call == admin.list_feature_importances else ("id",)
        assert "what the champion crosses" in refused(call, *words)
    assert "what the champion crosses" in refused(admin.create_feature_importance, "id", job)
