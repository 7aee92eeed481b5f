"""``RouteStatus``: what the language models behind a router have done."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class EndpointStatus(msgspec.Struct, kw_only=True):
    """The counts of a model; those with a description are metrics, ``onlineauto_route_FIELD_total``."""

    name: str
    chosen: Annotated[int, Meta(description="Decisions for a model.")] = 0
    requests: Annotated[int, Meta(description="Requests to a model, also of fallbacks and of the judge.")] = 0
    failed: Annotated[int, Meta(description="Requests that a model did not answer, or not as it should.")] = 0
    seconds: Annotated[float, Meta(description="Seconds until the answers of a model were complete.")] = 0.0
    input_tokens: Annotated[int, Meta(description="Tokens of prompts.")] = 0
    output_tokens: Annotated[int, Meta(description="Tokens of answers.")] = 0
    dollars: Annotated[float, Meta(description="Cost of answers.")] = 0.0
    unpriced: Annotated[int, Meta(description="Answers without a number of tokens.")] = 0
    failures: dict[
        str, int
    ] = {}  # The failed requests by kind: timeout, connection, status, nonsense, rejected.
    last_error: str = ""
    down: bool = False  # It has failed several times in a row, and is not picked for a while.


class RouteStatus(msgspec.Struct, kw_only=True):
    """The counts of a router."""

    models: list[EndpointStatus]
    fallbacks: Annotated[int, Meta(description="Answers of another model than the chosen one.")] = 0
    judged: Annotated[int, Meta(description="Answers that were graded.")] = 0
    not_judged: Annotated[int, Meta(description="Answers of the sample that could not be graded.")] = 0
    trouble: str = ""  # Why no model has answered the latest prompt.
