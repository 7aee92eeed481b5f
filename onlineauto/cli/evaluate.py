"""The verb ``evaluate``: estimate the cost of policies on a log that another policy wrote."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Final

import msgspec
import numpy as np

from onlineauto.api.decisions.joining import Joined, lines_in
from onlineauto.api.feed import count_of
from onlineauto.cli.hints import no_events_error
from onlineauto.cli.terminal import progress_line, table_lines, warn
from onlineauto.cli.verb import Verb, VerbOptions
from onlineauto.engine.options.registry import ModelOptions, OutputOptions
from onlineauto.engine.stream.source import with_datasets
from onlineauto.errors import InputError, OptionError
from onlineauto.evaluation.evaluation import MISSING, Evaluation
from onlineauto.formats.lines.diagnostics import Diagnostic, Diagnostics
from onlineauto.formats.options import InputOptions, check_format, format_of
from onlineauto.interop.vw.model import load_any_model
from onlineauto.options import Configuration, Registry, option, options_of
from onlineauto.pictures import check_picture
from onlineauto.pictures.values import values as draw_values
from onlineauto.service.learning.evaluate import paced_policies
from onlineauto.service.learning.paced_policy import LoggedCosts, PacedPolicy, split_budget
from onlineauto.workspace.model_file import check_target, replace_file
from onlineauto.workspace.options import REGISTRY as POLICIES
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from onlineauto.evaluation.evaluation import Bounded, PolicyValue
    from onlineauto.formats.datasets.dataset_source import DatasetSource


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions(VerbOptions):
    """Options of the verb ``evaluate``."""

    title: ClassVar[str] = "Evaluation"

    policy: tuple[str, ...] = option(
        (),
        "A policy to evaluate: a model file, which does not learn; or flags in quotes, of a model that "
        "learns from the log (with -i FILE -t it does not).",
        metavar="POLICY",
    )
    estimates: str | None = option(
        None,
        "Flags of what predicts costs for the doubly robust estimates. Not supplied: --cb_adf --automl 4.",
        metavar="FLAGS",
    )
    alpha: float = option(0.05, "Probability that an interval is ever wrong.", above=0, below=1, metavar="P")
    cost_range: str | None = option(
        None, "Lowest and highest cost, as LOW,HIGH. Not supplied: learnt.", metavar="LOW,HIGH", listed=True
    )
    min_prob: float | None = option(
        None,
        "Least probability that the logging policy gives to any action. Not supplied: learnt.",
        above=0,
        maximum=1,
        metavar="P",
    )
    rewards: str | None = option(
        None,
        "Rewards that came later: lines with EventId and RewardValue, joined with a log of --dsjson. Not "
        "supplied: those in the log itself.",
        metavar="FILE",
        needs=("dsjson",),
    )
    default_reward: float | None = option(
        None,
        "Reward of the decisions of --dsjson that have none. Not supplied: they are left out.",
        metavar="R",
        needs=("dsjson",),
    )
    picture: str | None = option(
        None, "Draw the estimates and their course: an SVG, PNG or PDF file.", metavar="FILE"
    )
    dark: bool = option(False, "Draw the picture on a dark background.", needs=("picture",))
    report: str | None = option(None, "Write the estimates as JSON.", metavar="FILE")
    quiet: bool = option(False, "Do not report problems of the input.", vw=True)


_POINTS = 200
"""Number of points per block in the picture."""


def run(configuration: Configuration) -> int:
    """Evaluate policies, print a table, write the report and the picture if requested, and return 0."""
    options, inputs = configuration[EvaluateOptions], configuration[InputOptions]
    if options.picture is not None:
        check_picture(options.picture)
    for path in (options.picture, options.report):
        if path is not None:
            check_target(path)
    if len(set(options.policy)) < len(options.policy):
        raise OptionError(f"--policy {max(options.policy, key=options.policy.count)} is given twice")
    costs = LoggedCosts()
    evaluation = Evaluation(
        {spec: policy_from(spec, configuration, costs) for spec in options.policy},
        alpha=options.alpha,
        cost_range=_range(options.cost_range),
        min_prob=options.min_prob,
        estimates=None if options.estimates is None else policy_from(options.estimates, configuration),
    )
    evaluation.diagnostics = Diagnostics(listener=None if options.quiet else _print_diagnostic)
    sources = [_source(path, options, log=format_of(configuration).log) for path in inputs.data or ("-",)]
    items: Any = [source.file() if isinstance(source, Joined) else source for source in sources]
    if any(isinstance(policy, PacedPolicy) for policy in evaluation.policies.values()):
        if format_of(configuration).log:
            items = costs.read(chain.from_iterable(map(_lines_of, sources)))
        else:
            items = _with_costs(items, configuration)
    course, begin = _Course(), time.monotonic()
    with progress_line(quiet=options.quiet) as draw:
        for values, intervals in evaluation.stream(items, trace=options.picture is not None):
            course.take(values, intervals)
            if draw is not None:
                rate = course.events / (time.monotonic() - begin)
                draw(partial("{} events, {:.0f} a second".format, course.events, rate))
    values = evaluation.values()
    if not values[0].events:
        raise InputError(_no_result_reason(evaluation, configuration))
    for line in table(values, alpha=options.alpha):
        print(line)
    for name, policy in paced_policies(evaluation):
        pacing = policy.pacing
        costs_text = (
            f"costs {pacing.mean_cost:.4g} in the mean" if pacing.costed else "has no cost in the log"
        )
        print(
            f"{_shorten(name)}: a decision {costs_text}; budget {policy.budget:g}, price {pacing.price:.4g}"
        )
    if not options.quiet:
        if n := sum(source.unrewarded for source in sources if isinstance(source, Joined)):
            warn(f"{count_of(n, 'decision')} without a reward left out; --default_reward gives them one")
        for warning in evaluation.warnings():
            warn(warning)
        for spec in (spec for spec in options.policy if Path(spec).is_file()):
            print(
                f"onlineauto: note: {spec} is used as it is; if it learnt from this log, its cost looks "
                "lower than it is",
                file=sys.stderr,
            )
    if options.report is not None:
        replace_file(options.report, [msgspec.json.format(msgspec.json.encode(values)), b"\n"])
    if options.picture is not None:
        estimates = {value.policy: value.dr for value in values}
        draw_values(estimates, course.points, alpha=options.alpha, dark=options.dark).save(options.picture)
    return 0


def _source(path: str, options: EvaluateOptions, *, log: bool) -> BinaryIO | Path | Joined:
    """Return a source; for the log of a service, its lines joined with the later rewards."""
    joins = options.rewards is not None or options.default_reward is not None
    if joins and not log:
        raise OptionError("--rewards and --default_reward join the log of a decision service: add --dsjson")
    if path == "-":
        if joins:
            raise OptionError("--rewards and --default_reward need a log in a file: it is read twice")
        return sys.stdin.buffer
    if not log or not Path(path).is_file():
        return Path(path)
    joined = Joined(path, options.rewards, default_reward=options.default_reward)
    return joined if joined.unmatched or joins else Path(path)


def _with_costs(paths: Any, configuration: Configuration) -> DatasetSource:
    """Return a dataset that has a column of costs of actions, or raise an error."""
    from onlineauto.formats.datasets.dataset_source import DatasetSource

    dataset = with_datasets(paths, configuration)
    if isinstance(dataset, DatasetSource) and dataset.columns(decides=True).action_costs is not None:
        return dataset
    raise OptionError(
        "a policy with --budget needs the cost of each action: add --dsjson for the log of a service, or "
        "name the column of costs in a file for --columns, as action_costs"
    )


def _no_result_reason(evaluation: Evaluation, configuration: Configuration) -> str:
    """Return the reason why nothing could be evaluated."""
    problems = evaluation.diagnostics
    if problems.total:
        return no_events_error(problems, configuration, kind="cb_adf", unlabelled=False)
    return "the log has no event with a logged action and its cost, so nothing can be evaluated"


def _lines_of(source: BinaryIO | Path | Joined) -> Iterable[bytes]:
    return lines_in(source) if isinstance(source, Path) else source


def policy_from(spec: str, configuration: Configuration, costs: LoggedCosts | None = None) -> Workspace:
    """Return a policy from a model file or from flags; it reads events as the log requires.

    With `costs`, it may have a budget.
    """
    try:
        argv, budget = split_budget(shlex.split(spec))
    except ValueError as error:
        raise OptionError(f"--policy {spec}: {error}") from None
    if Path(spec).is_file():
        argv = [spec]
    if len(argv) == 1 and Path(argv[0]).is_file():
        argv = ["-i", argv[0], "-t"]
    flags = POLICIES.parse(argv)
    if flags[InputOptions].data:
        raise OptionError(f"{spec}: there is no file {flags[InputOptions].data[0]}, and no flag of that name")
    reading = {option.name for option in options_of(InputOptions)} & configuration.supplied - {"data"}
    options = {name: flags.get(name) for name in flags.supplied}
    options |= {name: configuration.get(name) for name in reading}
    flags = POLICIES.from_keywords(**options)
    shared_options = {option.name for group in (OutputOptions, ModelOptions) for option in options_of(group)}
    shared_options = (shared_options | {"passes", "replay"}) - {"initial_regressor", "quiet"}
    for name in sorted(shared_options & flags.supplied):
        raise OptionError(f"--policy {spec}: --{name} has no effect on a policy that is evaluated")
    if budget is not None:
        if costs is None or flags[ModelOptions].initial_regressor:
            raise OptionError(f"{spec}: --budget is for a policy of --policy that learns from the log")
        return PacedPolicy(flags, budget, costs)
    if flags[ModelOptions].initial_regressor:
        return load_any_model(flags[ModelOptions].initial_regressor[0], flags)[0]
    return Workspace(configuration=flags)


def _range(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise OptionError(f"--cost_range cannot be {text}; it takes two numbers, such as -1,0") from None
    return low, high


class _Course:
    """The course of the estimates, block by block."""

    def __init__(self) -> None:
        self.events = 0
        self.points: dict[str, list[tuple[int, float, float]]] = {}

    def take(self, values: Sequence[PolicyValue], intervals: dict[str, NDArray[np.float64]]) -> None:
        """Store some of the intervals of a block."""
        for name, bounds in intervals.items():
            indices = np.unique(np.linspace(0, len(bounds) - 1, min(len(bounds), _POINTS)).astype(int))
            points = self.points.setdefault(name, [])
            points += [
                (self.events + int(row) + 1, float(bounds[row, 2, 0]), float(bounds[row, 2, 1]))
                for row in indices
            ]
        self.events = values[0].events


def _print_diagnostic(diagnostic: Diagnostic) -> None:
    if diagnostic.code not in MISSING:  # one error reports how many events have these problems
        print(diagnostic, file=sys.stderr)


_WIDE = 40
_TITLES = ("policy", "doubly robust", "self-normalised", "inverse propensity", "sample size", "VW's loss")


def table(values: Sequence[PolicyValue], *, alpha: float) -> Iterator[str]:
    """Yield the lines of the table: estimates with intervals, and doubly robust ones also as bars."""
    yield (
        f"average cost over {values[0].events} events, with [{100 * (1 - alpha):g}% confidence sequence]: it "
        "holds after every event at once"
    )
    rows = [
        (
            _shorten(value.policy),
            _estimate_text(value.dr),
            _estimate_text(value.snips),
            _estimate_text(value.ips),
            f"{value.effective_sample_size:.0f}",
            f"{value.average_loss:.6f}",
        )
        for value in values
    ]
    yield from table_lines([_TITLES, *rows])
    yield ""
    yield from _bars(values)


def _bars(values: Sequence[PolicyValue]) -> Iterator[str]:
    """Yield the doubly robust estimates and their intervals as bars on one scale."""
    bounded = [value for value in values if np.isfinite(value.dr.low)]
    if not bounded:
        return
    low, high = min(value.dr.low for value in bounded), max(value.dr.high for value in bounded)
    width = max(len(_shorten(value.policy)) for value in bounded)

    def column(cost: float) -> int:
        return round((min(max(cost, low), high) - low) / (high - low or 1.0) * (_WIDE - 1))

    for value in bounded:
        bar = [" "] * _WIDE
        first, last = column(value.dr.low), column(value.dr.high)
        bar[first : last + 1] = "-" * (last + 1 - first)
        bar[first], bar[last] = "[", "]"
        bar[column(value.dr.value)] = "o"
        yield f"{_shorten(value.policy).ljust(width)}  {''.join(bar).rstrip()}"
    yield f"{''.ljust(width)}  {f'{low:.3f}'.ljust(_WIDE - 6)}{high:.3f}"


def _shorten(policy: str) -> str:
    """Return the name of a policy, truncated if it is long."""
    return policy if len(policy) <= _WIDE else policy[: _WIDE - 3] + "..."


def _estimate_text(estimate: Bounded) -> str:
    return f"{estimate.value:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]"


VERB: Final = Verb(
    Registry((EvaluateOptions, InputOptions), checks=(check_format,)),
    run,
    "Usage: onlineauto evaluate [options] LOG ...",
    "Estimate the cost of policies on the log of another policy, which has the probabilities of the chosen "
    "actions: three estimates, each with an interval that holds at all times at once.",
    """\
Examples:
  onlineauto evaluate log.txt --policy my.model --policy '--cb_explore_adf -q :: --epsilon 0.1'
  onlineauto evaluate log.json --dsjson --policy new.model --policy old.model --picture values.svg""",
)
