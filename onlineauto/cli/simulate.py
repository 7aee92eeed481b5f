"""The verb ``simulate``: compare policies by simulations based on the log of a cluster."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from onlineauto.cli.terminal import progress_line, table_lines, warn
from onlineauto.cli.verb import Verb, VerbOptions
from onlineauto.errors import OptionError
from onlineauto.options import Registry, option
from onlineauto.workspace.model_file import check_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from onlineauto.cli.terminal import Draw
    from onlineauto.cluster.policies import ClusterPolicy
    from onlineauto.cluster.simulator import Compared, Traces, Workload
    from onlineauto.options import Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions(VerbOptions):
    """Options of the verb ``simulate``."""

    file: tuple[str, ...] = option(
        (),
        "History of a cluster: lines of JSON, which Cluster.history().save writes. Without one, the cluster "
        "and its jobs are made up. The flag may be left out.",
        metavar="FILE",
        positional=True,
    )
    policies: str = option(
        "",
        "Policies to compare, separated by commas: marginal-gain, fair, fifo, srtf, tetris, learned. All by "
        "default; learned by default if jobs are made up, or there is a --learned. See also --workload.",
        metavar="NAMES",
        listed=True,
    )
    by: str = option(
        "",
        "The policy that others are compared with; the one that wrote the log by default, or fair.",
        metavar="NAME",
    )
    learned: str = option(
        "", "A learned policy, which Learned.save wrote. [that of the package]", metavar="FILE"
    )
    traces: int = option(32, "Simulated clusters.", minimum=2, metavar="N")
    rate: float = option(0.5, "Made-up jobs that arrive in a slot, on average.", minimum=0.01, metavar="R")
    jobs: int = option(40, "Made-up jobs of a cluster.", minimum=1, metavar="N")
    seed: int = option(0, "Of the first simulated cluster.", minimum=0, metavar="N")
    record: str = option(
        "",
        "Write the history of the first made-up cluster into this file, under the policy of --by.",
        metavar="FILE",
    )
    workload: str = option(
        "",
        "Replay a public trace of jobs on GPUs: a CSV of Sia or Alibaba, or a .trace of Gavel. Further "
        "--policies: goodput, sia, gavel, gavel-throughput.",
        metavar="FILE",
    )
    speeds: str = option(
        "",
        "What belongs to the workload: Sia's folder traces, Gavel's simulation_throughputs.json, or the "
        "list of nodes of Alibaba.",
        metavar="PATH",
    )
    gpus: str = option(
        "",
        "The nodes of the cluster, such as rtx=3x8,a100=2x8 for three nodes of eight GPUs and two of eight. "
        "[those of the authors]",
        metavar="KIND=NxM",
        listed=True,
    )
    quiet: bool = option(False, "Display no progress; in a pipe there is never any.")


_ESTIMATED_FROM: Final = 0.02
"""The part of the work from which on the remaining time is estimated."""
_TRACE_OPTIONS: Final = frozenset({"workload", "speeds", "gpus", "policies", "quiet"})
"""Options of the replay of a public trace."""
_GENERATED_OPTIONS: Final = frozenset({"rate", "jobs", "record"})
"""Options of made-up clusters, which have no effect with a log."""


def run(configuration: Configuration) -> int:
    """Print the table and return 0."""
    options = configuration[SimulateOptions]
    with progress_line(quiet=options.quiet) as draw:
        if options.workload or options.speeds or options.gpus:
            lines = _replay_trace(options, configuration.supplied, draw)
        elif len(options.file) > 1:
            raise OptionError("simulate takes one log: onlineauto simulate log.jsonl")
        else:
            if options.file:
                _reject(configuration.supplied & _GENERATED_OPTIONS, "made-up clusters", "the log")
            comparison = _compare_on_log if options.file else _compare_on_generated_jobs
            rows, baseline, note = comparison(options, draw)
            lines = [note, *_table(rows, baseline)]
    print(*lines, sep="\n")
    return 0


def _reject(flags: frozenset[str], owner: str, other: str) -> None:
    """Reject supplied options that have no effect."""
    if flags:
        flag = min(flags)
        raise OptionError(f"--{flag} is for {owner}: leave out --{flag}, or {other}")


def _progress(draw: Draw | None, names: Sequence[str]) -> Callable[[str, float], None] | None:
    """Return a function that displays the policy that runs, and an estimate of the remaining time."""
    if draw is None:
        return None
    begin = time.monotonic()

    def text(name: str, part: float) -> str:
        number = list(names).index(name)
        done, seconds = (number + part) / len(names), time.monotonic() - begin
        left = f", about {seconds * (1 - done) / done:.0f} s left" if done > _ESTIMATED_FROM else ""
        return f"onlineauto: {name}, policy {number + 1} of {len(names)}: {part:.0%} done{left}"

    return lambda name, part: draw(lambda: text(name, part))


def _compare_on_log(options: SimulateOptions, draw: Draw | None) -> tuple[list[Compared], str, str]:
    """Compare policies on simulated jobs that resemble those of a log."""
    from onlineauto.cluster.history import History
    from onlineauto.cluster.simulator import simulate

    simulated = simulate(History.load(options.file[0]))
    for kind, many in simulated.left_out.items():
        jobs_of = f"{many} job{'s' * (many != 1)} of kind {kind}"
        warn(f"left out {jobs_of}, as none of this kind made any progress in the log")
    policies = _compared_policies(options, simulated.workload, learned=bool(options.learned))
    baseline = _baseline_name(options, policies, simulated.policy)
    seeds = range(options.seed, options.seed + options.traces)
    jobs = int((simulated.replay.work > 0).sum())
    kinds = len(simulated.workload.kinds)
    note = f"{options.traces} traces like {options.file[0]}: {jobs} jobs of {kinds} kind{'s' * (kinds != 1)}"
    error = simulated.error()
    if not math.isnan(error):
        more = "more" if error > 0 else "less"
        note += f"; its own jobs, simulated, take {abs(error):.1%} {more} time than they did"
    return _compare(policies, simulated.traces(seeds), baseline, draw), baseline, note


def _compare_on_generated_jobs(
    options: SimulateOptions, draw: Draw | None
) -> tuple[list[Compared], str, str]:
    """Compare policies on made-up jobs."""
    from onlineauto.cluster.simulator import Workload, draw_traces, record

    workload = Workload(rate=options.rate)
    policies = _compared_policies(options, workload, learned=True)
    baseline = _baseline_name(options, policies, "fair")
    seeds = range(options.seed, options.seed + options.traces)
    traces = draw_traces(workload, seeds, jobs=options.jobs)
    if options.record:
        check_target(options.record)
        record(policies[baseline], traces).save(options.record)
    note = f"{options.traces} made-up traces of {options.jobs} jobs, {options.rate:g} a slot"
    return _compare(policies, traces, baseline, draw), baseline, note


def _replay_trace(options: SimulateOptions, supplied: frozenset[str], draw: Draw | None) -> list[str]:
    """Print what is replayed; return the lines of the table: one for each policy, fastest first."""
    from onlineauto.cluster.gpus import GPU_POLICIES, GpuCluster, read_trace, replay, totals

    given = supplied & {"workload", "speeds", "gpus"}
    if options.file:
        raise OptionError(f"a public trace has no log: leave out {options.file[0]}, or --{min(given)}")
    if not (options.workload and options.speeds):
        raise OptionError(f"--{min(given)} is for a public trace: it needs --workload FILE and --speeds PATH")
    _reject(supplied - _TRACE_OPTIONS, "simulated clusters", "--workload")
    jobs, cluster = read_trace(options.workload, options.speeds)
    cluster = GpuCluster.parse(options.gpus) if options.gpus else cluster
    named = dict.fromkeys(options.policies.replace(",", " ").split())
    names = [*named] or ["goodput", "gavel", "marginal-gain", "fair"]
    for name in names:
        if name not in GPU_POLICIES:
            raise OptionError(f"there is no policy {name!r}; valid are {', '.join(GPU_POLICIES)}")
    gpus = " + ".join(f"{many} {kind}" for kind, many in cluster.capacity.items())
    print(f"{len(jobs)} job{'' if len(jobs) == 1 else 's'} of {options.workload} on {gpus}", flush=True)
    watch, results = _progress(draw, names), {}
    for name in names:
        watch_one = None if watch is None else partial(watch, name)
        results[name] = totals([replay(GPU_POLICIES[name](), jobs, cluster, watch=watch_one)])
    rows = sorted(results.items(), key=lambda each: (math.isnan(each[1].mean), each[1].mean))
    cells = [
        (
            name,
            f"{row.mean:.3f}",
            *(f"{x:.2f}" for x in (row.late, row.makespan, row.gpu_hours, row.restarts)),
        )
        for name, row in rows
    ]
    lines = ["", *table_lines([("policy", "mean hours", "p99", "makespan", "GPU hours", "restarts"), *cells])]
    if any(math.isnan(row.mean) for _, row in rows):
        lines.append("nan: some jobs did not end within 200,000 rounds")
    return lines


def _compare(
    policies: dict[str, ClusterPolicy], traces: Traces, baseline: str, draw: Draw | None
) -> list[Compared]:
    from onlineauto.cluster.simulator import compare

    watch = _progress(draw, [*policies])
    return sorted(compare(policies, traces, by=baseline, watch=watch), key=lambda row: row.ratio)


def _compared_policies(
    options: SimulateOptions, workload: Workload, *, learned: bool
) -> dict[str, ClusterPolicy]:
    """Return the policies to compare, by name, including the one of --by."""
    from onlineauto.cluster.learned import Learned
    from onlineauto.cluster.policies import POLICIES
    from onlineauto.cluster.simulator import policies_for

    names = options.policies.replace(",", " ").split()
    requested = (*names, *([options.by] if options.by else []))
    if not {*requested} <= {*POLICIES, "learned"}:
        POLICIES.import_all()
    known = policies_for(workload)
    valid = [*known, "learned"]
    for name in requested:
        if name not in valid:
            raise OptionError(f"there is no policy {name!r}; valid are {', '.join(valid)}")
    if "learned" in (*names, options.by) or (learned and not names):
        policy = Learned.load(options.learned) if options.learned else Learned.load()
        known["learned"] = policy.copy(workload.speeds())
    elif options.learned:
        raise OptionError("--learned is for the policy learned: add it to --policies, or leave out --learned")
    names_to_compare = {*names, options.by or "fair"} if names else {*known}
    return {name: policy for name, policy in known.items() if name in names_to_compare}


def _baseline_name(options: SimulateOptions, policies: dict[str, ClusterPolicy], decided: str) -> str:
    return options.by or (decided if decided in policies else "fair")


def _table(rows: Sequence[Compared], baseline: str) -> Iterator[str]:
    """Yield the lines of the table."""
    cells = [("policy", f"time / {baseline}", "95 % interval", "mean", "p95", "finished")]
    for row in rows:
        interval = f"{row.low:.3f} to {row.high:.3f}" if row.name != baseline else ""
        numbers = f"{row.mean:.2f}", f"{row.late:.1f}", f"{row.finished:.1%}"
        cells.append((row.name, f"{row.ratio:.3f}", interval, *numbers))
    yield ""
    yield from table_lines(cells)
    yield ""
    yield _verdict(rows, baseline)


def _verdict(rows: Sequence[Compared], baseline: str) -> str:
    """Return the result of the table as a sentence."""
    best = min((row for row in rows if row.name != baseline), key=lambda row: row.ratio, default=None)
    if best is None:
        return f"there is nothing to compare {baseline} with"
    if best.high < 1 and best.finished == 1:
        return f"{best.name} would have been faster: jobs take {1 - best.ratio:.0%} less time on average"
    return f"no policy is proved faster than {baseline}"


VERB: Final = Verb(
    Registry((SimulateOptions,)),
    run,
    "Usage: onlineauto simulate [options] LOG\n       onlineauto simulate [options]\n"
    "       onlineauto simulate --workload FILE --speeds PATH [options]",
    "Would it have been faster? Fit a simulator to the log of a cluster, run jobs like those of the log "
    "under other policies, and compare mean completion times, trace by trace, with 95 % intervals. Without a "
    "log, do so with made-up jobs. With --workload, replay a public trace of training jobs on GPUs.",
    """\
Examples:
  onlineauto simulate log.jsonl
  onlineauto simulate log.jsonl --policies marginal-gain,fair
  onlineauto simulate --rate 0.3
  onlineauto simulate --workload workloads/philly/workload-1.csv --speeds traces""",
)
