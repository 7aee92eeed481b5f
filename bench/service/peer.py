"""A minimal service with FastAPI and Vowpal Wabbit's Python binding: rank, reward, one process, no log.

It runs in a separate environment, which has fastapi, uvicorn, httptools, uvloop and vowpalwabbit==9.11.9.
With a file as its second argument it has a log: each answer waits until the disk has its line, and requests
that wait at the same time share a flush.
"""

from __future__ import annotations

import asyncio
import json
import os
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


class Log:
    """Lines in a file; requests that wait at the same time share a flush."""

    def __init__(self, path: str) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.lines: list[bytes] = []
        self.waiting: list[asyncio.Future[None]] = []
        self.flushing: asyncio.Task[None] | None = None

    async def write(self, line: dict[str, Any]) -> None:
        self.lines.append(json.dumps(line).encode() + b"\n")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        if self.flushing is None:
            self.flushing = asyncio.create_task(self.flush())
        await future

    async def flush(self) -> None:
        while self.lines:
            lines, self.lines = self.lines, []
            waiting, self.waiting = self.waiting, []
            os.write(self.file, b"".join(lines))
            await asyncio.to_thread(os.fdatasync, self.file)
            for each in waiting:
                each.set_result(None)
        self.flushing = None


log = Log(sys.argv[2]) if len(sys.argv) > 2 else None


@app.post("/v1/rank")
async def rank(question: Rank) -> dict[str, Any]:
    lines = ["shared " + line(question.context), *map(line, question.actions.values())]
    pmf = model.predict(lines)
    action = random.choices(range(len(pmf)), pmf)[0]
    waiting[question.event_id] = (lines, action, pmf[action])
    if log is not None:
        await log.write({**question.model_dump(), "pmf": pmf, "action": action})
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
    if log is not None:
        await log.write(found.model_dump())
    return Response(status_code=204)


@app.get("/readyz")
async def ready() -> str:
    return "ready"


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
