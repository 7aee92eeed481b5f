"""Connect to a Ray cluster: that of this process, one at an address, or a new one on this machine."""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from onlineauto.errors import OnlineautoError, OptionError, install_hint

if TYPE_CHECKING:
    from collections.abc import Iterator


def imported_ray() -> Any:
    """Return the module `ray`."""
    try:
        import ray
    except ModuleNotFoundError as error:
        raise OptionError(
            f"there is no module {error.name!r} here: {install_hint('ray')}, on all nodes"
        ) from None
    return ray


@contextmanager
def ray_connection(address: str | None) -> Iterator[None]:
    """Connect to a cluster and disconnect at the end, unless this process was connected before."""
    ray = imported_ray()
    if ray.is_initialized():
        yield
        return
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    except (ConnectionError, TimeoutError, RuntimeError) as error:
        raise OnlineautoError(f"no Ray cluster at {address or 'RAY_ADDRESS, or here'}: {error}") from None
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before)  # ray.init() replaces the handler
    try:
        yield
    finally:
        ray.shutdown()
