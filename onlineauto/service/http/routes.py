"""The endpoints: method, path, scope and types of the bodies; the OpenAPI document is made from them."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from onlineauto.service.http.personalizer import (
    LogProperties,
    ModelProperties,
    PolicyContract,
    ServiceConfiguration,
)
from onlineauto.service.http.status import Status
from onlineauto.service.http.wire import (
    Answer,
    BatchAnswer,
    Canary,
    Evaluate,
    LoopChanges,
    LoopOptions,
    LoopSummary,
    MetricValue,
    ModelChoice,
    PersonalizerAnswer,
    PersonalizerRank,
    PersonalizerReward,
    PersonalizerSlotsAnswer,
    PersonalizerSlotsRank,
    PersonalizerSlotsReward,
    Problem,
    Rank,
    RankBatch,
    RemovedLoop,
    Reward,
    Settings,
    SlotsAnswer,
    SlotsRank,
)
from onlineauto.service.join.join import JoinSettings
from onlineauto.service.learning.evaluate import Estimate
from onlineauto.service.learning.experiment import ExperimentReport
from onlineauto.service.learning.learner import ModelVersion
from onlineauto.service.log.segment_log import RecordsAnswer
from onlineauto.service.options import RECORDED_BY

if TYPE_CHECKING:
    from collections.abc import Sequence


class Endpoints(NamedTuple):
    """One endpoint."""

    method: str  # The method and path of its requests.
    path: str
    name: str  # The method of `Handlers` that answers.
    scope: str | None  # The scope that a token needs; None needs no token.
    # The types of the JSON bodies of request and answer; None for an empty body or another format.
    body: Any = None
    answer: Any = None
    status: int = 200  # The status of success.
    kind: str = ""  # The media type of the answer, if it is not JSON.
    bodies: int = 1  # The maximum size of the body, as a multiple of that of one rank.


_OWN: Final = "/personalizer/v1.0"
_EVENT: Final = f"{_OWN}/events/{{event_id}}"
_SLOTS: Final = f"{_OWN}/multislot/events/{{event_id}}"
ROUTES: Final = (
    Endpoints("POST", f"{_OWN}/rank", "personalizer_rank", "rank", PersonalizerRank, PersonalizerAnswer, 201),
    Endpoints("POST", f"{_EVENT}/reward", "personalizer_reward", "reward", PersonalizerReward, None, 204),
    Endpoints("POST", f"{_EVENT}/activate", "activate", "reward", None, None, 204),
    Endpoints(
        "POST",
        f"{_OWN}/multislot/rank",
        "personalizer_slots",
        "rank",
        PersonalizerSlotsRank,
        PersonalizerSlotsAnswer,
        201,
    ),
    Endpoints(
        "POST", f"{_SLOTS}/reward", "personalizer_slots_reward", "reward", PersonalizerSlotsReward, None, 204
    ),
    Endpoints("POST", f"{_SLOTS}/activate", "slots_activate", "reward", None, None, 204),
    Endpoints("GET", f"{_OWN}/configurations/service", "configuration", "read", None, ServiceConfiguration),
    Endpoints(
        "PUT",
        f"{_OWN}/configurations/service",
        "configure",
        "admin",
        ServiceConfiguration,
        ServiceConfiguration,
    ),
    Endpoints("GET", f"{_OWN}/configurations/policy", "policy", "read", None, PolicyContract),
    Endpoints("PUT", f"{_OWN}/configurations/policy", "set_policy", "admin", PolicyContract, PolicyContract),
    Endpoints("DELETE", f"{_OWN}/configurations/policy", "policy", "admin", None, PolicyContract),
    Endpoints("GET", f"{_OWN}/model", "export_model", "read", kind="application/octet-stream"),
    Endpoints("PUT", f"{_OWN}/model", "import_model", "admin", bytes, None, 204),
    Endpoints("DELETE", f"{_OWN}/model", "reset_model", "admin", None, None, 204),
    Endpoints("GET", f"{_OWN}/model/properties", "model_properties", "read", None, ModelProperties),
    Endpoints("GET", f"{_OWN}/logs/properties", "log_properties", "read", None, LogProperties),
    Endpoints("POST", "/v1/rank", "rank", "rank", Rank, Answer),
    Endpoints("POST", "/v1/rank:batch", "rank_batch", "rank", RankBatch, BatchAnswer, bodies=16),
    Endpoints("POST", "/v1/rank/slots", "slots", "rank", SlotsRank, SlotsAnswer),
    Endpoints("POST", "/v1/reward", "reward", "reward", Reward, None, 204),
    Endpoints("POST", "/v1/metric", "metric", "reward", MetricValue, None, 204),
    Endpoints("GET", "/v1/experiment", "experiment", "read", None, ExperimentReport),
    Endpoints("POST", "/v1/activate/{event_id}", "activate", "reward", None, None, 204),
    Endpoints("GET", "/v1/status", "status", "read", None, Status),
    Endpoints("GET", "/v1/events", "watch", "read", kind="text/event-stream"),
    Endpoints("PATCH", "/v1/settings", "settings", "admin", Settings, JoinSettings),
    Endpoints("GET", "/v1/model", "model", "read", kind="application/octet-stream"),
    Endpoints("PUT", "/v1/model", "put_model", "admin", bytes, ModelChoice, 201),
    Endpoints("GET", "/v1/models", "models", "read", None, list[ModelVersion]),
    Endpoints("POST", "/v1/models", "keep_model", "admin", None, ModelChoice, 201),
    Endpoints("POST", "/v1/models/use", "use_model", "admin", ModelChoice, ModelChoice),
    Endpoints("POST", "/v1/models/canary", "start_canary", "admin", Canary, Canary),
    Endpoints("POST", "/v1/records/{source}/{position}", "records", "admin", bytes, RecordsAnswer),
    Endpoints("POST", "/v1/evaluate", "evaluate", "admin", Evaluate, dict[str, Estimate]),
    Endpoints("GET", "/v1/explanation", "explanation", "admin", None, dict[str, Any]),
    Endpoints("GET", "/v1/loops", "loops", "read", None, list[LoopSummary]),
    Endpoints("GET", "/v1/loops/{loop}", "loop_summary", "read", None, LoopSummary),
    Endpoints("PUT", "/v1/loops/{loop}", "create_loop", "admin", LoopOptions, LoopSummary, 201),
    Endpoints("PATCH", "/v1/loops/{loop}", "change_loop", "admin", LoopChanges, LoopSummary),
    Endpoints("DELETE", "/v1/loops/{loop}", "remove_loop", "admin", None, RemovedLoop),
    Endpoints("GET", "/metrics", "prometheus", "read", kind="text/plain"),
    Endpoints("GET", "/healthz", "alive", None, kind="text/plain"),
    Endpoints("GET", "/readyz", "ready", None, kind="text/plain"),
    Endpoints("GET", "/openapi.json", "openapi", None, None, dict[str, Any]),
    Endpoints("GET", "/", "page", None, kind="text/html"),
    Endpoints("GET", "/loops", "loops_page", None, kind="text/html"),
)
"""All endpoints."""


_SERVERS: Final = [
    {"url": "/"},
    {
        "url": "/v1/loops/{loop}",
        "description": "One of many loops.",
        "variables": {"loop": {"default": "default"}},
    },
]
_REF: Final = "#/components/schemas/{name}"
_BYTES: Final = "application/octet-stream"
_BINARY: Final = {"type": "string", "format": "binary"}  # as in OpenAPI 3.0, since generators need a schema
_REFUSALS: Final = {
    "400": "Malformed.",
    "401": "No valid token.",
    "403": "The token lacks the scope, or a page of another site sent the request.",
    "404": "Not found.",
    "408": "The body did not arrive in time.",
    "409": "In conflict with another request.",
    "410": "The loop is archived.",
    "413": "Too large.",
    "415": "The body is compressed.",
    "422": "In conflict with an earlier request of the same key, or a value out of range.",
    "429": "Too many; Retry-After has the seconds to wait.",
    "431": "Too many headers, or too large.",
    "501": "Not here; the message says what to use instead.",
    "503": "The log cannot be written now, or there are too many connections.",
    "507": "The disk is full.",
}


def openapi_document(handlers: type, routes: Sequence[Endpoints] = ROUTES) -> dict[str, Any]:
    """Return the document in OpenAPI 3.1; an endpoint's description is the docstring of its handler."""
    types = [each for route in routes for each in (route.body, route.answer) if each not in (None, bytes)]
    schemas, components = msgspec.json.schema_components([*types, Problem], ref_template=_REF)
    schema_of = dict(zip(map(str, [*types, Problem]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if not hasattr(handlers, route.name):
            continue
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(
            route, schema_of, getattr(handlers, route.name).__doc__
        )
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "onlineauto", "version": version("onlineauto")},
        **({"servers": _SERVERS} if hasattr(handlers, "loops") else {}),
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }
    return {name: _for_generators(part) for name, part in document.items()}


def _for_generators(value: Any) -> Any:
    """Return a part of the document in forms from which Go and Java that compile are made.

    A choice between arrays and objects becomes any value with a description, and `{}` for further properties
    becomes `true`.
    """
    if isinstance(value, list):
        return [_for_generators(item) for item in value]
    if not isinstance(value, dict):
        return value
    kinds = [choice.get("type", "") for choice in value.get("anyOf", ())]
    if {"array", "object"} <= {*kinds}:
        value = {name: item for name, item in value.items() if name != "anyOf"}
        value["description"] = " or ".join(kinds)
    return {
        name: True if name == "additionalProperties" and item == {} else _for_generators(item)
        for name, item in value.items()
    }


def _operation_id(route: Endpoints) -> str:
    """Return the handler's name, as that of a method of clients; the path if it is the handler of several."""
    if sum(other.name == route.name for other in ROUTES) == 1:
        return route.name
    return f"{route.method.lower()}_{'_'.join(re.findall(r'[A-Za-z0-9]+', route.path))}"


def _operation(route: Endpoints, schema_of: dict[str, Any], summary: str) -> dict[str, Any]:
    refusal = {"application/json": {"schema": schema_of[str(Problem)]}}
    answers: dict[str, Any] = {
        status: {"description": meaning, "content": refusal} for status, meaning in _REFUSALS.items()
    }
    success: dict[str, Any] = {"description": "Success."}
    if route.scope == "reward":
        success["headers"] = {RECORDED_BY[0]: {"required": True, "schema": {"const": RECORDED_BY[1]}}}
    if route.answer is not None:
        success["content"] = {"application/json": {"schema": schema_of[str(route.answer)]}}
    elif route.kind:
        success["content"] = {route.kind: {"schema": _BINARY if route.kind == _BYTES else {"type": "string"}}}
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "tags": ["personalizer" if route.path.startswith(_OWN) else "onlineauto"],
        "summary": summary,
        "responses": {str(route.status): success, **answers},
    }
    if route.body is not None:
        binary = route.body is bytes
        content = (
            {_BYTES: {"schema": _BINARY}}
            if binary
            else {"application/json": {"schema": schema_of[str(route.body)]}}
        )
        operation["requestBody"] = {"required": True, "content": content}
    parts = re.findall(r"\{(\w+)\}", route.path)
    if parts:
        operation["parameters"] = [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": {"type": "string", "minLength": 1, "maxLength": 128},
            }
            for name in parts
        ]
    if route.scope is not None:
        operation["security"] = [{"bearer": []}, {}]
    return operation
