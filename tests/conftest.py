"""Lanes of tests, and how Hypothesis draws.

``pytest`` runs the default lane: everything that none of these markers names.

=========== ================================================= =====================================
marker      tests                                             when
=========== ================================================= =====================================
``quick``   a choice of the default lane, under a minute      after every edit
``ci``      pages, examples, processes that are killed        on every push
``parity``  beside Vowpal Wabbit, or exact mode beside native ``parity and smoke`` on every push
``bounds``  with kernels that check every index               on every push
``library`` the library of kernels beside the compiler        on every push
``slow``    the same laws, for minutes                        every night
``fuzz``    millions of malformed lines and forged files      every night
``bench``   speed, memory or quality beside a peer            by hand
=========== ================================================= =====================================

``ONLINEAUTO_TESTS=nightly`` lets Hypothesis draw other examples in every run, and more of them.
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

TESTS = Path(__file__).resolve().parent
OTHER_LANES = {"ci", "parity", "bounds", "library", "slow", "chaos", "fuzz", "bench", "ray", "postgres"}
"""Markers of tests that are not quick, whatever file they are in."""
PARITY = ("parity", "automl_simulator")
"""Folders whose tests ask the wheel, or hold exact mode beside native mode."""
SMOKE = 10
"""One in so many cases of the parity catalogue is run on every push, always the same ones."""

QUICK = (
    "api/test_bandit.py",
    "api/test_decision_log.py",
    "api/test_event_ids.py",
    "api/test_fit.py",
    "api/test_pending.py",
    "api/test_report.py",
    "automl/test_conformance.py",
    "automl/test_defects.py",
    "automl/test_member_budget.py",
    "automl/test_random_draw.py",
    "automl/test_stepwise.py",
    "automl/test_vw_numbers.py",
    "cli/test_letters.py",
    "cli/test_odd_events.py",
    "cluster/test_history.py",
    "cluster/test_policies.py",
    "cluster/test_speeds.py",
    "datasets/test_logs.py",
    "engine/test_losses.py",
    "engine/test_members.py",
    "engine/test_one_event.py",
    "engine/test_room.py",
    "engine/test_several_sources.py",
    "features/test_interactions.py",
    "features/test_layout.py",
    "formats/test_diagnostics.py",
    "formats/test_mark_kernels.py",
    "formats/test_number_kernels.py",
    "formats/test_source.py",
    "formats/test_text.py",
    "house/test_house.py",
    "interop/test_dicts.py",
    "interop/test_dsjson.py",
    "interop/test_names.py",
    "interop/test_vw_champion.py",
    "interop/test_vw_fields.py",
    "jit/test_fingerprint.py",
    "jit/test_four.py",
    "jit/test_packing.py",
    "jit/test_words.py",
    "learners/test_cost_kernels.py",
    "learners/test_table.py",
    "options/test_checks.py",
    "options/test_command_line.py",
    "options/test_option.py",
    "options/test_refused_corners.py",
    "options/test_registry.py",
    "options/test_value.py",
    "service/test_client.py",
    "service/test_join.py",
    "service/test_log.py",
    "tune/test_brackets.py",
    "tune/test_plain.py",
    "tune/test_rungs.py",
    "tune/test_searchers.py",
    "tune/test_spaces.py",
    "tune/test_study.py",
    "tune/test_syne_tune_sequences.py",
    "workspace/test_given_options.py",
    "workspace/test_one_event.py",
    "workspace/test_rules.py",
    "workspace/test_run.py",
)
"""Files and folders of the quick lane: tests without compiling or processes, and one smoke of each area."""
CI = (
    "adapters/test_river.py",
    "cli/test_cluster_command.py",
    "cli/test_models.py",
    "cli/test_pipes.py",
    "cli/test_warmup.py",
    "cluster/test_fitting.py",
    "cluster/test_learned.py",
    "engine/test_merging.py",
    "estimators/test_paired.py",
    "fuzz",
    "jit/test_ahead.py",
    "jit/test_cache.py",
    "jit/test_compiling.py",
    "mutation",
    "pictures",
    "property/test_models.py",
    "property/test_threads.py",
    "service/test_deployment.py",
    "service/test_follower.py",
    "service/test_full_disk.py",
    "service/test_kill.py",
    "service/test_personalizer.py",
    "service/test_skipped.py",
    "test_documents.py",
    "test_examples.py",
    "tune/live",
    "tune/store/test_optuna.py",
    "tune/store/test_processes.py",
    "tune/test_claims.py",
    "tune/test_commands.py",
    "tune/test_dehb.py",
    "tune/test_optuna_samplers.py",
    "tune/workers/test_killed.py",
    "tune/workers/test_workers.py",
)
"""Files and folders that take long and seldom find a fault that the default lane misses; some tests elsewhere
have the marker, too."""
SAMPLED = (
    "adapters",
    "api/test_log_law.py",
    "engine/test_ensemble_twin.py",
    "engine/test_least_squares_kernels.py",
    "engine/test_members.py",
    "engine/test_native_twin.py",
    "features",
    "formats",
    "learners",
    "property",
    "tune/test_extending.py",
    "tune/test_schedulers.py",
)
"""Files of many cases: the default lane runs always the same third of them, and ``ci`` the rest."""

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
        self._no_parity = markers == "ci" or "not parity" in markers

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Say True of a file to pass over, and None of one to leave to pytest."""
        if collection_path.is_dir():
            return None
        unused = self._only_quick and not _is_below(collection_path, QUICK)
        return unused or (self._no_parity and _is_below(collection_path, PARITY)) or None


def pytest_configure(config: pytest.Config) -> None:
    """Register what has to see the doctests beside this folder, too."""
    config.pluginmanager.register(_Lane(config.getoption("markexpr")))


def _is_below(path: Path, places: tuple[str, ...]) -> bool:
    return any(path.is_relative_to(TESTS / place) for place in places)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the lanes that are lists of files: quick, ci, the parity catalogue and its part for every push."""
    for item in items:
        lanes = {marker.name for marker in item.iter_markers()} & OTHER_LANES
        quick = _is_below(item.path, QUICK) and not lanes
        if quick:
            item.add_marker("quick")
        sampled = _is_below(item.path, SAMPLED) and "[" in item.name and not one_in(3, item.name)
        if lanes <= {"postgres"} and not quick and (sampled or _is_below(item.path, CI)):
            item.add_marker("ci")
        if _is_below(item.path, PARITY):
            item.add_marker("parity")
            if item.get_closest_marker("slow"):
                continue
            if "[" not in item.name or is_smoke(item.name):
                item.add_marker("smoke")


def is_smoke(name: str) -> bool:
    """Return whether the case of this name is one that every push runs."""
    return one_in(SMOKE, name)


def one_in(n: int, name: str) -> bool:
    """Return whether the case of this name is one of `n`, by its name alone."""
    return zlib.crc32(name.encode("utf-8", "replace")) % n == 0
