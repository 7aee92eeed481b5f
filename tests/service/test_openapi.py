"""The OpenAPI document: valid, whole, and such that generators make clients from it."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from typing import Any

import pytest

from onlineauto.service.http.loops import ServiceHandlers
from onlineauto.service.http.routes import ROUTES, openapi_document
from tests.service.in_process import InProcessClient

jsonschema = pytest.importorskip("jsonschema")

NAMED = {"type": "object", "required": ["name", "in", "required", "schema"]}
CONTENT = {"type": "object", "additionalProperties": {"type": "object", "required": ["schema"]}}
RESPONSE = {
    "type": "object",
    "required": ["description"],
    "properties": {"content": CONTENT, "description": {"type": "string", "minLength": 1}},
    "additionalProperties": {"type": "object"},
}
OPERATION = {
    "type": "object",
    "required": ["operationId", "tags", "summary", "responses"],
    "properties": {
        "operationId": {"pattern": "^[a-z][a-z0-9_]*$"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "summary": {"type": "string", "pattern": r"\.$"},
        "parameters": {"type": "array", "items": NAMED, "minItems": 1},
        "requestBody": {"required": ["content"], "properties": {"content": CONTENT}},
        "responses": {
            "minProperties": 1,
            "patternProperties": {"^[1-5][0-9][0-9]$": RESPONSE},
            "additionalProperties": False,
        },
        "security": {"type": "array", "items": {"type": "object"}},
    },
    "additionalProperties": False,
}
DOCUMENT = {
    "type": "object",
    "required": ["openapi", "info", "paths", "components"],
    "properties": {
        "openapi": {"const": "3.1.0"},
        "info": {"required": ["title", "version"]},
        "paths": {
            "patternProperties": {
                "^/": {
                    "propertyNames": {"enum": ["get", "put", "post", "delete", "patch"]},
                    "additionalProperties": OPERATION,
                }
            },
            "additionalProperties": False,
        },
        "components": {
            "required": ["schemas", "securitySchemes"],
            "properties": {"schemas": {"propertyNames": {"pattern": r"^[a-zA-Z0-9._-]+$"}}},
        },
        "servers": {"type": "array", "items": {"type": "object", "required": ["url"]}},
    },
    "additionalProperties": False,
}
"""The part of OpenAPI 3.1 that the document uses."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi_document(ServiceHandlers)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def within(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects of a document."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from within(item)


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(DOCUMENT).validate(document)
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_path_is_served_and_every_endpoint_is_described(document: dict[str, Any]) -> None:
    described = {(method.upper(), path) for path, method, _ in operations(document)}
    assert described == {(route.method, route.path) for route in ROUTES}


def test_every_body_has_a_schema(document: dict[str, Any]) -> None:
    routes = {(route.path, route.method.lower()): route for route in ROUTES}
    for path, method, operation in operations(document):
        route = routes[path, method]
        assert ("requestBody" in operation) == (route.body is not None)
        success = operation["responses"][str(route.status)]
        assert ("content" in success) == (route.status != 204)
        assert all(
            "content" in answer for status, answer in operation["responses"].items() if status >= "400"
        )


def test_names_of_operations_are_those_of_methods(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and not keyword.iskeyword(name) for name in names)
    assert {"rank", "rank_batch", "reward", "personalizer_rank", "status"} <= set(names)


def test_generators_can_name_all_types(document: dict[str, Any]) -> None:
    for value in within(document):
        assert value.get("additionalProperties") != {}, "Go clients that are made from {} do not compile"
        assert not isinstance(value.get("type"), list)
        choices = [choice.get("type") for choice in value.get("anyOf", ())]
        assert not {"array", "object"} <= {*choices}, "Java clients that are made from these do not compile"
        assert re.fullmatch(r"#/components/schemas/\w+|", value.get("$ref", ""))


@pytest.mark.parametrize(
    ("actions", "is_valid"),
    [({"a": {"x": 1}}, True), ([{"x": 1}], True), ({"a": 1}, False), (["a"], False), ("a", False)],
)
def test_actions_are_an_object_or_an_array_of_objects(
    document: dict[str, Any], actions: Any, is_valid: bool
) -> None:
    for name in ("Rank", "SlotsRank"):
        schema = document["components"]["schemas"][name]["properties"]["actions"]
        assert jsonschema.Draft202012Validator(schema).is_valid(actions) == is_valid


def test_answers_are_as_described(client: InProcessClient, document: dict[str, Any]) -> None:
    asked = {"context": {"user": "u1"}, "actions": {"a": {"x": 1}, "b": {"x": 2}}}
    answers: dict[tuple[str, str], Any] = {
        ("post", "/v1/rank"): client.post("/v1/rank", json=asked),
        ("post", "/v1/rank:batch"): client.post("/v1/rank:batch", json={"decisions": [asked]}),
        ("get", "/v1/status"): client.get("/v1/status"),
        ("get", "/v1/models"): client.get("/v1/models"),
        ("get", "/personalizer/v1.0/configurations/policy"): client.get(
            "/personalizer/v1.0/configurations/policy"
        ),
    }
    for (method, path), answer in answers.items():
        assert answer.status_code == 200, answer.text
        content = document["paths"][path][method]["responses"]["200"]["content"]
        schema = {**content["application/json"]["schema"], "components": document["components"]}
        jsonschema.Draft202012Validator(schema).validate(answer.json())
    requested = document["paths"]["/v1/rank"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator({**requested, "components": document["components"]}).validate(asked)
