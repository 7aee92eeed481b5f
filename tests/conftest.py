"""Lanes of tests, and how Hypothesis draws.

``pytest`` runs the default lane: everything that none of these markers names. A file names the lane of its
tests with ``pytestmark = pytest.mark.lane(…)``; a test with another marker is in the lane of that marker.

=========== ================================================= =====================================
marker      tests                                             when
=========== ================================================= =====================================
``quick``   a choice of the default lane, under a minute      after every edit
``ci``      takes long, seldom finds what no other test does  on every push
``parity``  beside Vowpal Wabbit, or exact mode beside native ``parity and smoke`` on every push
``bounds``  with kernels that check every index               on every push
``library`` the library of kernels beside the compiler        on every push
``slow``    the same laws, for minutes                        every night
``fuzz``    millions of malformed lines and forged files      every night
``bench``   speed, memory or quality beside a peer            by hand
=========== ================================================= =====================================

The lane ``sampled`` is for files of many cases: the default lane runs a third of the cases, always the same
ones, and ``ci`` the rest.

``ONLINEAUTO_TESTS=nightly`` lets Hypothesis draw other examples in every run, and more of them.
"""

from __future__ import annotations

import os
import signal
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).resolve().parent
OTHER_LANES = {"ci", "parity", "bounds", "library", "slow", "chaos", "fuzz", "bench", "ray", "postgres"}
"""Markers of tests that are not quick, whatever file they are in."""
FILE_LANES = {"", "quick", "ci", "sampled"}
QUICK_FILE = 'pytest.mark.lane("quick")'
PARITY = ("parity", "automl_simulator")
"""Folders whose tests ask VW, or hold exact mode beside native mode."""
SMOKE = 10
"""One in this number of cases of the parity catalogue runs on every push, always the same ones."""

settings.register_profile(
    "push",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", settings.get_profile("push"), derandomize=False, max_examples=300)
settings.load_profile(os.environ.get("ONLINEAUTO_TESTS", "push"))
if settings().derandomize:
    # Hypothesis also draws constants of all modules of ours that are imported by then. So the examples of a
    # test would depend on which tests ran before it in its worker, and no public setting prevents that.
    with suppress(ImportError):  # earlier versions do not
        from hypothesis.internal.conjecture import providers

        vars(providers)["_get_local_constants"] = lambda: providers._local_constants


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """Ctrl-C as in a terminal, also where the tests run in the background of a script, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class _Lane:
    """Do not even import the files of which the chosen lane has no test: that alone takes half a minute."""

    def __init__(self, markers: str) -> None:
        self._only_quick = markers == "quick"
        self._no_parity = markers.startswith("ci") or "not parity" in markers

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Return True for a file to ignore, and None for one to leave to pytest."""
        if collection_path.is_dir():
            return None
        if self._only_quick:
            quick = collection_path.suffix == ".py" and QUICK_FILE in collection_path.read_text("utf-8")
            return None if quick else True
        return (self._no_parity and _is_parity(collection_path)) or None


def pytest_configure(config: pytest.Config) -> None:
    """Register what has to see the doctests beside this folder, too."""
    config.pluginmanager.register(_Lane(config.getoption("markexpr")))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Refuse a test file that cannot be imported: pytest skips it like an adapter of a missing package."""
    broken = report.skipped and "unable to import module" in str(report.longrepr)
    if broken and report.nodeid.startswith("tests"):
        raise pytest.UsageError(f"{report.nodeid} cannot be imported: {report.longrepr}")


def _is_parity(path: Path) -> bool:
    return any(path.is_relative_to(TESTS / folder) for folder in PARITY)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with the lane of its file, and the parity catalogue with its part for every push."""
    for item in items:
        own = {marker.name for marker in item.iter_markers()} & OTHER_LANES
        lane = item.get_closest_marker("lane")
        name = lane.args[0] if lane else ""
        assert name in FILE_LANES, f"{item.path} names the lane {name}"
        if name == "quick" and not own:
            item.add_marker("quick")
        if own <= {"postgres"} and (
            name == "ci" or (name == "sampled" and "[" in item.name and not one_in(3, item.name))
        ):
            item.add_marker("ci")
        if _is_parity(item.path):
            item.add_marker("parity")
            if not item.get_closest_marker("slow") and ("[" not in item.name or is_smoke(item.name)):
                item.add_marker("smoke")


def is_smoke(name: str) -> bool:
    """Return whether the case of this name is one that every push runs."""
    return one_in(SMOKE, name)


def one_in(n: int, name: str) -> bool:
    """Return whether the case of this name is one of `n`, by its name alone."""
    return zlib.crc32(name.encode("utf-8", "replace")) % n == 0
