"""The verb ``check``: say what is wrong with a log of decisions."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from onlineauto.api.decisions.joining import Joined
from onlineauto.cli.evaluate import policy_from
from onlineauto.cli.terminal import progress_line
from onlineauto.cli.verb import Verb, VerbOptions
from onlineauto.engine.stream.source import read_blocks
from onlineauto.errors import OptionError
from onlineauto.evaluation.evaluation import LOGGED, Evaluation
from onlineauto.evaluation.log_check import LogCheck, lines_of
from onlineauto.formats.options import InputOptions, check_format, format_of
from onlineauto.options import Configuration, Registry, option, options_of
from onlineauto.workspace.model_file import check_target, replace_file
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from typing import BinaryIO


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions(VerbOptions):
    """Options of the verb ``check``."""

    title: ClassVar[str] = "Check"

    policy: tuple[str, ...] = option(
        (),
        "Say how many events of the log support a policy: a model file, or flags in quotes.",
        metavar="POLICY",
    )
    report: str | None = option(None, "Write the findings as JSON.", metavar="FILE")
    quiet: bool = option(False, "Do not display progress.", vw=True)


def run(configuration: Configuration) -> int:
    """Check a log, print the findings, and return 1 if there is an error among them."""
    options, inputs = configuration[CheckOptions], configuration[InputOptions]
    if options.report is not None:
        check_target(options.report)
    paths = inputs.data
    if not paths or "-" in paths:
        raise OptionError("check reads a log twice: name its file")
    reading = {option.name for option in options_of(InputOptions)} & configuration.supplied - {"data"}
    rules: dict[str, Any] = {
        "missing_probability": "uniform",
        **{name: configuration.get(name) for name in reading},
    }
    events = Workspace(cb_adf=True, **rules).configuration
    check = LogCheck()
    is_log = format_of(configuration).log
    sources = [_events_of(path, check) if is_log and Path(path).is_file() else Path(path) for path in paths]
    begin = time.monotonic()
    with progress_line(quiet=options.quiet) as draw:
        for block in read_blocks(sources, events, check.diagnostics):
            check.add(block)
            if draw is not None:
                rate = check.n_events / (time.monotonic() - begin)
                draw(partial("{} events, {:.0f} a second".format, check.n_events, rate))
    if options.policy:
        evaluation = Evaluation({spec: policy_from(spec, configuration) for spec in options.policy})
        for value in evaluation.run([_events_of(path) if is_log else Path(path) for path in paths]):
            if value.policy != LOGGED:
                check.add_support(value.policy, value.events, value.effective_sample_size)
    report = check.report()
    for line in lines_of(report):
        print(line)
    if options.report is not None:
        replace_file(options.report, [msgspec.json.format(msgspec.json.encode(report)), b"\n"])
    return int(report.has_errors)


def _events_of(path: str, check: LogCheck | None = None) -> Path | BinaryIO:
    """Return the decisions of a log, joined with later rewards; check its lines if asked to."""
    if check is not None:
        check.add_decisions(Path(path))
    joined = Joined(path)
    return joined.file() if joined.unmatched else Path(path)


VERB: Final = Verb(
    Registry((CheckOptions, InputOptions), checks=(check_format,)),
    run,
    "Usage: onlineauto check [options] LOG ...",
    "Say what is wrong with a log of decisions before it is learnt or evaluated: malformed lines, actions "
    "that an event has twice, probabilities that do not fit how often actions were chosen, actions that were "
    "never tried, features that give the cost away, copies, times that go back. The exit code is 1 if there "
    "are errors.",
    """\
Examples:
  onlineauto check log.txt.gz
  onlineauto check log.json --dsjson --policy '--cb_explore_adf -q ::' --report findings.json""",
)
