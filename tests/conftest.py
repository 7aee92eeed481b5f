"""Lanes of tests, and how hypothesis draws.

``pytest`` alone runs what needs neither Vowpal Wabbit's wheel nor minutes. The other lanes are markers:

=========== ============================================== =====================================
marker      what                                           when
=========== ============================================== =====================================
``parity``  beside the wheel, or exact mode beside native  ``parity and smoke`` on every push
``bounds``  with kernels that check every index            on every push
``library`` the library of kernels beside the compiler     on every push
``slow``    the same laws, for minutes                     every night
``fuzz``    millions of malformed lines and forged files   every night
``bench``   speed, memory or quality beside a peer         by hand
=========== ============================================== =====================================

``ONLINEAUTO_TESTS=nightly`` lets hypothesis draw other examples in every run, and more of them.
"""

from __future__ import annotations

import os
import signal
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

PARITY = ("parity", "automl_simulator")
"""Folders whose tests ask the wheel, or hold exact mode beside native mode."""
SMOKE = 10
"""One in so many cases of the parity catalogue is run on every push, always the same ones."""

settings.register_profile(
    "push",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", settings.get_profile("push"), derandomize=False, max_examples=300)
settings.load_profile(os.environ.get("ONLINEAUTO_TESTS", "push"))
if settings().derandomize:
    # Hypothesis also draws constants of all modules of ours that are imported by then. So the examples of a
    # test would depend on which tests ran before it in its worker.
    with suppress(ImportError):  # earlier versions do not
        from hypothesis.internal.conjecture import providers

        vars(providers)["_get_local_constants"] = lambda: providers._local_constants


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """Ctrl-C as in a terminal, also where the tests run in the background of a script, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what belongs to the parity catalogue, and the part of it that every push runs."""
    tests = Path(__file__).resolve().parent
    for item in items:
        if item.path.is_relative_to(tests) and item.path.relative_to(tests).parts[0] in PARITY:
            item.add_marker("parity")
            if item.get_closest_marker("slow"):
                continue
            if "[" not in item.name or is_smoke(item.name):
                item.add_marker("smoke")


def is_smoke(name: str) -> bool:
    """Return whether the case of this name is one that every push runs."""
    return zlib.crc32(name.encode("utf-8", "replace")) % SMOKE == 0
