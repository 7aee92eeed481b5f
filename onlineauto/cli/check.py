"""The verb ``check``: say what is wrong with a log of decisions."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec

from onlineauto.api.log_check import check_log, lines_of
from onlineauto.cli.evaluate import policy_from
from onlineauto.cli.terminal import progress_line
from onlineauto.cli.verb import Verb, VerbOptions
from onlineauto.errors import OptionError
from onlineauto.formats.options import InputOptions, check_format
from onlineauto.options import Configuration, Registry, option, options_of
from onlineauto.workspace.model_file import check_target, replace_file


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
    if not inputs.data or "-" in inputs.data:
        raise OptionError("check reads a log twice: name its file")
    reading = {option.name for option in options_of(InputOptions)} & configuration.supplied - {"data"}
    rules: dict[str, Any] = {name: configuration.get(name) for name in reading}
    policies = {spec: policy_from(spec, configuration) for spec in options.policy}
    begin = time.monotonic()
    with progress_line(quiet=options.quiet) as draw:

        def display(events: int) -> None:
            if draw is not None:
                draw(
                    partial("{} events, {:.0f} a second".format, events, events / (time.monotonic() - begin))
                )

        report = check_log([Path(path) for path in inputs.data], policies=policies, progress=display, **rules)
    for line in lines_of(report):
        print(line)
    if options.report is not None:
        replace_file(options.report, [msgspec.json.format(msgspec.json.encode(report)), b"\n"])
    return int(report.has_errors)


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
