"""Start and stop a service: for the examples 10, 12 and 13."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx


@contextmanager
def running(*words: str) -> Iterator[str]:
    """Run the command `onlineauto` with these words on a free port; yield its address once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "onlineauto", *words, "--port", str(port), "--quiet"]
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command) as service:
        try:
            while service.poll() is None:
                try:
                    httpx.get(f"{url}/readyz")
                    break
                except httpx.TransportError:
                    time.sleep(0.1)
            yield url
        finally:
            service.terminate()
