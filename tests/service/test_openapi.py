from __future__ import annotations

import json
import re
from typing import Any

from onlineauto.service.http.front_handlers import RankServerHandlers
from onlineauto.service.http.handlers import Handlers
from onlineauto.service.http.routes import ROUTES, openapi_document


def references(value: Any) -> set[str]:
    return set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(value)))


def test_the_document_is_whole() -> None:
    document = openapi_document(Handlers)
    schemas = document["components"]["schemas"]
    assert references(document) <= schemas.keys()
    operations = [each for path in document["paths"].values() for each in path.values()]
    assert len(operations) == len(ROUTES)
    assert len({each["operationId"] for each in operations}) == len(operations)
    assert all(each["summary"].endswith(".") for each in operations)
    for path, methods in document["paths"].items():
        for each in methods.values():
            named = {parameter["name"] for parameter in each.get("parameters", ())}
            assert named == set(re.findall(r"\{(\w+)\}", path))
    rank = document["paths"]["/v1/rank"]["post"]
    assert rank["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Rank"
    }
    assert {"200", "400", "413", "429"} <= rank["responses"].keys()


def test_a_rank_server_describes_what_it_has() -> None:
    paths = openapi_document(RankServerHandlers)["paths"]
    assert "/v1/rank" in paths
    assert "/v1/model" not in paths
