"""``openapi_document``: the endpoints as an OpenAPI document, generated from the types of their bodies."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onlineauto.service.client.messages import RECORDED_BY
from onlineauto.service.http.routes import ROUTES
from onlineauto.service.http.wire import Problem

if TYPE_CHECKING:
    from onlineauto.service.http.routes import Endpoints

_REF: Final = "#/components/schemas/{name}"
_REFUSALS: Final = {
    "400": "Malformed.",
    "401": "No valid token.",
    "403": "The token lacks the scope, or a page of another site sent the request.",
    "404": "Not found.",
    "408": "The body did not arrive in time.",
    "409": "In conflict with another request.",
    "413": "Too large.",
    "415": "The body is compressed.",
    "422": "In conflict with an earlier request of the same key, or a value out of range.",
    "429": "Too many; Retry-After has the seconds to wait.",
    "431": "Too many headers, or too large.",
    "501": "Not here; the message says what to use instead.",
    "503": "The log cannot be written now, or there are too many connections.",
    "507": "The disk is full.",
}


def openapi_document(handlers: type) -> dict[str, Any]:
    """Return the document in OpenAPI 3.1; an endpoint's description is the docstring of its handler."""
    types = [each for route in ROUTES for each in (route.body, route.answer) if each not in (None, bytes)]
    schemas, components = msgspec.json.schema_components([*types, Problem], ref_template=_REF)
    schema_of = dict(zip(map(str, [*types, Problem]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        if not hasattr(handlers, route.name):
            continue
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(
            route, schema_of, getattr(handlers, route.name).__doc__
        )
    return {
        "openapi": "3.1.0",
        "info": {"title": "onlineauto", "version": version("onlineauto")},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Endpoints, schema_of: dict[str, Any], said: str) -> dict[str, Any]:
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
        success["content"] = {route.kind: {}}
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()}_{route.name}_{abs(route.path.count('/'))}",
        "summary": said,
        "responses": {str(route.status): success, **answers},
    }
    if route.body is not None:
        binary = route.body is bytes
        content = (
            {"application/octet-stream": {}}
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
