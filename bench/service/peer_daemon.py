"""Vowpal Wabbit's daemon: a line in, a line out, over TCP, with VW's workspace.

VW brings no ``vw`` program. This speaks the protocol of ``vw --daemon --cb_explore_adf``: an event is
lines up to an empty one, and its answer is the line of the pmf; an event with a label is learnt. It has no
HTTP, no ids, no log and no join: the caller draws the action and sends the whole event again with its label.
"""

from __future__ import annotations

import asyncio
import sys
from typing import ClassVar

import uvloop
from vowpalwabbit import pyvw


class Daemon(asyncio.Protocol):
    """One connection; all of them share a model."""

    model: ClassVar[pyvw.Workspace]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.data = transport, b""

    def data_received(self, data: bytes) -> None:
        *events, self.data = (self.data + data).split(b"\n\n")
        for event in events:
            lines = event.decode().split("\n")
            if any(line.startswith("0:") for line in lines):
                self.model.learn(lines)
                self.transport.write(b"\n")  # type: ignore[attr-defined]
            else:
                pmf = self.model.predict(lines)
                answer = ",".join(f"{action}:{chance:g}" for action, chance in enumerate(pmf))
                self.transport.write(answer.encode() + b"\n")  # type: ignore[attr-defined]


async def main() -> None:
    """Serve at the port that is the first argument, until the process ends."""
    Daemon.model = pyvw.Workspace("--cb_explore_adf --automl 4 --epsilon 0.1 --quiet")
    server = await asyncio.get_running_loop().create_server(Daemon, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
