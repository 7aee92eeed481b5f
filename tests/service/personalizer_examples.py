"""``python -m tests.service.personalizer_examples FOLDER``: replay the examples of Personalizer's documents.

FOLDER has the documents, such as ``specification/cognitiveservices/data-plane/Personalizer`` of a checkout of
Azure/azure-rest-api-specs. A service is started; each example request of each document is sent to it, and
each answer is validated against the schema of its status. An answer of 501 must name what to use instead.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from tests.service.serving import Service

_AGAIN = {"Model_Import": "Model_Get"}
"""Requests whose body is the answer to another one: the example has only a placeholder."""


class Example(NamedTuple):
    """An example: its document and name, its request, and the documented answers by status."""

    document: dict[str, Any]
    name: str
    method: str
    path: str
    query: dict[str, str]
    body: Any
    answers: dict[str, Any]


def examples_in(path: Path) -> Iterator[Example]:
    """Yield the examples of a document."""
    document = json.loads(path.read_text("utf-8-sig"))
    for template, methods in document["paths"].items():
        for method, operation in methods.items():
            named = [_resolved(document, each) for each in operation.get("parameters", ())]
            for reference in operation.get("x-ms-examples", {}).values():
                file = path.parent / reference["$ref"]
                values = json.loads(file.read_text("utf-8-sig"))["parameters"]
                url, query, body = document["basePath"] + template, {}, None
                for each in named:
                    value = values.get(each["name"])
                    if value is None:
                        continue
                    if each["in"] == "path":
                        url = url.replace(f"{{{each['name']}}}", quote(str(value), safe=""))
                    elif each["in"] == "query":
                        query[each["name"]] = str(value)
                    elif each["in"] == "body":
                        body = value
                yield Example(document, file.stem, method.upper(), url, query, body, operation["responses"])


def _resolved(document: dict[str, Any], each: dict[str, Any]) -> dict[str, Any]:
    """Return a parameter, which may be a reference."""
    found: Any = each
    if "$ref" in each:
        found = document
        for part in each["$ref"].removeprefix("#/").split("/"):
            found = found[part]
    return dict(found)


def answer_of(client: httpx.Client, example: Example) -> httpx.Response:
    """Send the request of an example, and return the answer."""
    if example.name in _AGAIN:
        content = client.get(example.path).content
        return client.request(example.method, example.path, params=example.query, content=content)
    more = {} if example.body is None else {"json": example.body}
    return client.request(example.method, example.path, params=example.query, **more)


def problem_of(example: Example, answer: httpx.Response) -> str:
    """Return the error of an answer, or "" if it is valid."""
    import jsonschema

    if answer.status_code == 501:
        return "" if "error" in answer.json() else "501 without a reason"
    documented = example.answers.get(str(answer.status_code))
    if documented is None:
        return f"{answer.status_code} is not documented: {answer.text[:200]}"
    schema = documented.get("schema")
    if schema is None or schema.get("type") == "file":
        return "" if schema is not None or not answer.content else "a body where none is documented"
    whole = {**_open(schema), "definitions": _open(example.document.get("definitions", {}))}
    try:
        jsonschema.validate(answer.json(), whole)
    except jsonschema.ValidationError as error:
        return f"{error.json_path}: {error.message[:200]}"
    return ""


def _open(schema: Any) -> Any:
    """Return a schema of Swagger as one of JSON: enumerations that are marked as open allow other values."""
    if isinstance(schema, dict):
        is_open = schema.get("x-ms-enum", {}).get("modelAsString", False) if "enum" in schema else False
        return {name: _open(each) for name, each in schema.items() if not (is_open and name == "enum")}
    return [_open(each) for each in schema] if isinstance(schema, list) else schema


def main(folder: str) -> int:
    """Replay all examples in a folder, print a line for each document and each problem; return 1 for one."""
    bad = 0
    for path in sorted(Path(folder).rglob("Personalizer.json")):
        with tempfile.TemporaryDirectory() as made, Service(Path(made) / "loop") as service:
            statuses: Counter[int] = Counter()
            with httpx.Client(base_url=service.url, timeout=60.0) as client:
                for example in examples_in(path):
                    answer = answer_of(client, example)
                    statuses[answer.status_code] += 1
                    problem = problem_of(example, answer)
                    if problem or answer.status_code == 501:
                        bad += bool(problem)
                        said = problem or answer.json()["error"]["message"][:160]
                        print(f"  {'BAD ' if problem else ''}{example.method} {example.path}: {said}")
        counts = ", ".join(f"{count} answered {status}" for status, count in sorted(statuses.items()))
        print(f"{path.parent.name}: {statuses.total()} examples, {counts}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
