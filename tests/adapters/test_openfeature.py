"""The OpenFeature provider against a running service, through OpenFeature's own SDK."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("openfeature")

from collections.abc import Iterator

from openfeature import api
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import Reason
from openfeature.track import TrackingEventDetails

from onlineauto.errors import InputError
from onlineauto.openfeature import Flag, OnlineautoProvider
from onlineauto.service.client import AsyncClient, Client, Retry, ServiceDecision
from tests.service.serving import Service

if TYPE_CHECKING:
    from openfeature.client import OpenFeatureClient

pytestmark = pytest.mark.lane("ci")

FLAGS = {
    "layout": Flag({"grid": "a grid", "list": "a list"}),
    "dark": Flag({"off": False, "on": True}),
    "size": Flag({"small": 1, "large": 2}),
    "style": Flag({"plain": {"bold": False}, "loud": {"bold": True}}),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("openfeature") / "loop", "--publish_every", "0") as running:
        yield running


@pytest.fixture
def provider(service: Service) -> Iterator[OnlineautoProvider]:
    with Client(service.url) as client:
        yield OnlineautoProvider(client, FLAGS)


@pytest.fixture
def flags(provider: OnlineautoProvider) -> Iterator[OpenFeatureClient]:
    api.set_provider(provider)
    yield api.get_client()
    api.clear_providers()


def test_evaluation_is_a_logged_decision(flags: OpenFeatureClient) -> None:
    context = EvaluationContext("user-1", {"country": "DE", "device": {"phone": True}})
    details = flags.get_string_details("layout", "none", context)
    assert details.value == FLAGS["layout"].variants[details.variant or ""]
    assert details.reason is Reason.SPLIT
    assert 0 < float(details.flag_metadata["probability"]) <= 1
    assert flags.get_boolean_details("dark", False, context).variant in ("on", "off")
    assert flags.get_integer_value("size", 0, context) in (1, 2)
    assert flags.get_object_value("style", {}, context) in FLAGS["style"].variants.values()


def test_repeated_evaluations_of_one_event_agree(flags: OpenFeatureClient) -> None:
    context = EvaluationContext("user-2", {"eventId": "visit-9"})
    first = flags.get_string_details("layout", "none", context)
    assert first.flag_metadata["eventId"] == "visit-9/layout"
    for _ in range(5):
        assert flags.get_string_details("layout", "none", context).variant == first.variant


def test_tracked_event_rewards_the_latest_decisions_of_the_user(
    flags: OpenFeatureClient, service: Service, provider: OnlineautoProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = EvaluationContext("user-3")
    ids = [flags.get_string_details(key, "", context).flag_metadata.get("eventId") for key in ("layout",)]
    recorded = []
    reward = provider.client.reward
    monkeypatch.setattr(
        provider.client,
        "reward",
        lambda decision, value: recorded.append((decision.event_id, value, reward(decision, value))),
    )
    flags.track("reward", context, TrackingEventDetails(0.5))
    assert recorded == [(ids[0], 0.5, True)]
    flags.track("reward", EvaluationContext("somebody else"))
    assert len(recorded) == 1


@pytest.mark.parametrize("suffix", ["", "/layout"])
def test_tracked_event_with_the_id_of_the_evaluation_rewards_its_decision(
    suffix: str, provider: OnlineautoProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = EvaluationContext("user-4", {"eventId": "visit-4"})
    details = provider.resolve_string_details("layout", "none", context)
    rewarded: list[object] = []
    monkeypatch.setattr(provider.client, "reward", lambda decision, value: rewarded.append((decision, value)))
    provider.track("reward", None, TrackingEventDetails(0.5, {"eventId": f"visit-4{suffix}"}))
    assert rewarded == [(details.flag_metadata["eventId"], 0.5)]


def test_metric_that_no_guardrail_names_is_logged_and_not_raised(
    flags: OpenFeatureClient, caplog: pytest.LogCaptureFixture
) -> None:
    context = EvaluationContext("user-5")
    flags.get_string_value("layout", "none", context)
    flags.track("scrolled", context, TrackingEventDetails(0.3))
    assert "scrolled is not recorded" in caplog.text


def test_scalars_join_an_attribute_that_is_called_user(
    provider: OnlineautoProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[object] = []
    rank = provider.client.rank

    def recorded(features: object, *words: Any, **more: Any) -> Any:
        sent.append(features)
        return rank(features, *words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(provider.client, "rank", recorded)
    provider.resolve_string_details("layout", "", EvaluationContext("u", {"plan": "pro", "user": {"age": 3}}))
    assert sent == [{"user": {"plan": "pro", "age": 3}}]


def test_async_evaluation_is_a_decision_too(provider: OnlineautoProvider) -> None:
    details = asyncio.run(provider.resolve_boolean_details_async("dark", False, EvaluationContext("user-6")))
    assert details.variant in ("on", "off")


def test_only_the_latest_users_are_remembered(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client(service.url) as client:
        provider = OnlineautoProvider(client, FLAGS, remembered=1)
        for user in ("first", "second"):
            provider.resolve_string_details("layout", "", EvaluationContext(user))
        sent: list[tuple[object, ...]] = []
        monkeypatch.setattr(client, "reward", lambda *words: sent.append(words))
        provider.track("reward", EvaluationContext("first"))
        assert sent == []
        provider.track("reward", EvaluationContext("second"))
        assert len(sent) == 1


@pytest.mark.parametrize(
    ("key", "default", "code"),
    [("other", "none", ErrorCode.FLAG_NOT_FOUND), ("dark", "none", ErrorCode.TYPE_MISMATCH)],
)
def test_error_gives_the_default(flags: OpenFeatureClient, key: str, default: str, code: ErrorCode) -> None:
    details = flags.get_string_details(key, default)
    assert (details.value, details.error_code) == (default, code)


def test_service_that_is_away_gives_the_default() -> None:
    with Client("http://127.0.0.1:9", retry=Retry(attempts=1)) as client:
        details = OnlineautoProvider(client, FLAGS).resolve_string_details("layout", "none")
    assert (details.value, details.error_code) == ("none", ErrorCode.PROVIDER_NOT_READY)


class Double:
    """Client that records what it is asked; at first no decision is answered, and each reward is."""

    def __init__(self) -> None:
        self.ranked, self.rewarded = 0, list[object]()
        self.answers, self.records = False, True
        self.asked: dict[str, Any] = {}

    def rank(self, *_words: object, **more: object) -> ServiceDecision:
        self.ranked, self.asked = self.ranked + 1, more
        return ServiceDecision("e", "list", 1, 1.0, {}, "", fallback=not self.answers)

    def reward(self, decision: object, value: float) -> bool:
        self.rewarded.append((decision, value))
        return self.records


def provider_of(client: Any, flags: Any = None, **options: Any) -> OnlineautoProvider:
    return OnlineautoProvider(client, {"layout": FLAGS["layout"]} if flags is None else flags, **options)


def test_tracked_event_without_a_known_decision_is_counted_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    provider = provider_of(Double(), reward_event="click")
    for _ in range(2):
        provider.track("click", EvaluationContext("another process"))
    assert provider.unmatched == 2
    (warning,) = caplog.messages
    assert "click is not recorded" in warning
    assert "'another process'" in warning
    assert "eventId" in warning


@pytest.mark.parametrize("attributes", [{}, {"eventId": "visit"}])
def test_default_is_not_rewarded_in_place_of_the_variant_before(attributes: Any) -> None:
    double = Double()
    provider = provider_of(double, pause=0.0)
    context = EvaluationContext("user", attributes)
    double.answers = True
    assert provider.resolve_string_details("layout", "a grid", context).value == "a list"
    double.answers = False
    assert provider.resolve_string_details("layout", "a grid", context).value == "a grid"
    provider.track("reward", context)
    assert (double.rewarded, provider.unmatched) == ([], 1)


def test_event_id_rewards_the_flags_evaluated_with_it_here_and_otherwise_all() -> None:
    double = Double()
    double.answers = True
    provider = provider_of(double, {"layout": FLAGS["layout"], "page": FLAGS["layout"]})
    provider.resolve_string_details("page", "", EvaluationContext("user", {"eventId": "here"}))
    for event_id in ("here", "elsewhere"):
        provider.track("reward", EvaluationContext("user", {"eventId": event_id}))
    assert double.rewarded == [("here/page", 1.0), ("elsewhere/layout", 1.0), ("elsewhere/page", 1.0)]


def test_reward_that_is_not_answered_is_lost_and_the_service_is_not_asked_for_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    double = Double()
    double.records = False
    provider = provider_of(double, FLAGS)
    for _ in range(2):
        provider.track("reward", EvaluationContext("user", {"eventId": "visit"}))
    assert (len(double.rewarded), provider.lost) == (1, 2 * len(FLAGS))
    assert caplog.messages == ["the tracked event reward is lost: the service does not answer"]
    provider.resolve_string_details("layout", "none")
    assert double.ranked == 0


@pytest.mark.parametrize("event_id", ["", None])
def test_event_id_that_is_empty_is_none_and_a_key_is_read_as_a_text(event_id: Any) -> None:
    double = Double()
    double.answers = True
    provider = provider_of(double)
    context = EvaluationContext(7, {"eventId": event_id})  # type: ignore[arg-type]
    provider.resolve_string_details("layout", "none", context)
    assert double.asked == {"event_id": None, "unit": "7"}
    provider.track("reward", context)
    assert len(double.rewarded) == 1


def test_evaluation_that_fails_is_logged_once(
    provider: OnlineautoProvider, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        provider.resolve_string_details("layout", "", EvaluationContext("user", {"x": object()}))  # type: ignore[dict-item]
    (warning,) = caplog.messages
    assert "the flag layout has its default" in warning


def test_event_id_is_that_of_the_details_and_otherwise_that_of_the_context() -> None:
    double = Double()
    provider = provider_of(double)
    context = EvaluationContext("user", {"eventId": "one"})
    provider.track("reward", context)
    provider.track("reward", context, TrackingEventDetails(0.5, {"eventId": "two"}))
    provider.track("reward", EvaluationContext("user", {"eventId": "layout"}))  # which is also a flag
    assert double.rewarded == [("one/layout", 1.0), ("two/layout", 0.5), ("layout/layout", 1.0)]


@pytest.mark.parametrize(("value", "message"), [("much", "'much'"), (10**400, "too large")])
def test_value_that_is_no_number_is_logged_once(
    caplog: pytest.LogCaptureFixture, value: Any, message: str
) -> None:
    double = Double()
    provider = provider_of(double)
    details = TrackingEventDetails(value, {"eventId": "one"})
    for _ in range(2):
        provider.track("reward", None, details)
    assert double.rewarded == []
    (warning,) = caplog.messages
    assert message in warning


def test_service_that_is_away_is_not_asked_again_for_a_while() -> None:
    waits, asks = Double(), Double()
    for double, pause in ((waits, 60.0), (asks, 0.0)):
        provider = provider_of(double, pause=pause)
        for _ in range(3):
            details = provider.resolve_string_details("layout", "none")
            assert (details.value, details.error_code) == ("none", ErrorCode.PROVIDER_NOT_READY)
    assert (waits.ranked, asks.ranked) == (1, 3)


def test_whole_numbers_are_read_as_floats(provider: OnlineautoProvider) -> None:
    value = provider.resolve_float_details("size", 0.0).value
    assert value in (1.0, 2.0)
    assert isinstance(value, float)


@pytest.mark.parametrize(
    ("variants", "features", "message"),
    [
        ({}, {}, "the baseline first"),
        (["grid", "list"], {}, "by its name"),
        ({"grid": "a", "list": 1}, {}, "of one type"),
        ({"off": False, "on": 1}, {}, "of one type"),
        ({"grid": None}, {}, "of one type"),
        ({1: "a", 2: "b"}, {}, "texts as their names"),
        ({"grid": "a", "list": "b"}, {"gird": {"x": 1}}, "'gird': the variants are grid, list"),
        ({"grid": "a"}, {"grid": "dense"}, "'dense': give a mapping"),
        ({"grid": "a"}, ["grid"], "give those of each variant"),
    ],
)
def test_flag_that_cannot_work_is_an_error(variants: Any, features: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Flag(variants, features)


def test_provider_without_a_client_or_flags_is_an_error() -> None:
    for client in (None, "http://127.0.0.1:8001", AsyncClient("http://127.0.0.1:9")):
        with pytest.raises(InputError, match=r"give onlineauto.service.client.Client"):
            provider_of(client)
    for given in ([FLAGS["layout"]], {"layout": {"grid": "a"}}):
        with pytest.raises(InputError, match="give a Flag for each key"):
            provider_of(Double(), given)
