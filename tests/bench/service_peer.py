"""What one would write with FastAPI and Vowpal Wabbit's Python binding: rank, reward, one process, no log.

It runs in an environment of its own, which has fastapi, uvicorn, httptools, uvloop and vowpalwabbit==9.11.9.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import uvicorn
from fastapi import FastAPI, Response
from pydantic import BaseModel
from vowpalwabbit import pyvw

app = FastAPI()
model = pyvw.Workspace("--cb_explore_adf --automl 4 --epsilon 0.1 --quiet")
waiting: dict[str, tuple[list[str], int, float]] = {}


class Rank(BaseModel):
    """A question, as our own wire format has it."""

    context: dict[str, Any]
    actions: dict[str, dict[str, Any]]
    event_id: str


class Reward(BaseModel):
    """A reward."""

    event_id: str
    reward: float


def line(features: dict[str, Any]) -> str:
    return " ".join(
        f"|{name} " + " ".join(f"{feature}:{value}" for feature, value in values.items())
        for name, values in features.items()
    )


@app.post("/v1/rank")
async def rank(question: Rank) -> dict[str, Any]:
    lines = ["shared " + line(question.context), *map(line, question.actions.values())]
    pmf = model.predict(lines)
    action = random.choices(range(len(pmf)), pmf)[0]
    waiting[question.event_id] = (lines, action, pmf[action])
    ids = list(question.actions)
    return {
        "event_id": question.event_id,
        "action": ids[action],
        "index": action,
        "probability": pmf[action],
        "pmf": dict(zip(ids, pmf, strict=True)),
        "model": "",
    }


@app.post("/v1/reward", status_code=204)
async def reward(found: Reward) -> Response:
    lines, action, probability = waiting.pop(found.event_id)
    lines[action + 1] = f"0:{-found.reward}:{probability} {lines[action + 1]}"
    model.learn(lines)
    return Response(status_code=204)


@app.get("/readyz")
async def ready() -> str:
    return "ready"


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
