"""The verb ``serve``: a contextual-bandit service over HTTP."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onlineauto.cli.verb import Verb
from onlineauto.engine.options.registry import ModelOptions, OutputOptions
from onlineauto.errors import OptionError, install_hint
from onlineauto.formats.options import InputOptions
from onlineauto.options import Registry, options_of
from onlineauto.service.options import ServeOptions
from onlineauto.workspace.options import REGISTRY as LEARNING

if TYPE_CHECKING:
    from onlineauto.options import Configuration
    from onlineauto.service.learning.rounds import Learners


def run(configuration: Configuration) -> int:
    """Serve until a signal arrives, and return 0."""
    options, output = configuration[ServeOptions], configuration[OutputOptions]
    folders = configuration[InputOptions].data
    if len(folders) != 1:
        raise OptionError("serve takes one folder: onlineauto serve ./loop --cb_explore_adf --automl 4")
    names = {option.name for option in options_of(ServeOptions)} | {"data", "quiet"}
    beside = {declared.name for group in (OutputOptions, ModelOptions) for declared in options_of(group)}
    for name in sorted((beside - {"quiet"}) & configuration.supplied):
        raise OptionError(f"--{name} has no effect on a service, whose model and journal are in its folder")
    if "cost_range" in configuration.supplied:
        raise OptionError("a service takes rewards, not costs: give their range as --reward_range LOW,HIGH")
    copied = (("log_topic", options.log_topic), ("ship", options.ship), ("standby", options.standby))
    for name, value in copied:
        if value is not None and options.follow is not None:
            raise OptionError(f"--{name} is for the learner, whose log has the records of its rank servers")
    settings = options.settings()
    if settings and options.follow is not None:
        raise OptionError(f"{', '.join(settings)}: a rank server has the settings of its learner")
    if options.learners > 1 and options.follow is not None:
        raise OptionError("--learners is for the learner; a rank server with --follow does not learn")
    supplied = {name: configuration.get(name) for name in configuration.supplied - names}
    try:
        from onlineauto.service.http.server import serve
    except ModuleNotFoundError as error:
        raise OptionError(f"{error.name} is not installed: {install_hint('service')}") from None
    _log_as_json(quiet=output.quiet)
    model = LEARNING.from_keywords(**supplied)
    serve(folders[0], model, options, learners=_learners(folders[0], model, options.learners))
    return 0


def _learners(folder: str, model: Configuration, n: int) -> Learners | None:
    """Return the threads that learn together; with one, those parts of the log that were planned before."""
    if n == 1 and not Path(folder, "rounds").exists():
        return None
    from onlineauto.cluster.partitions.rounds import BlockRounds
    from onlineauto.cluster.partitions.run import check_partitioned

    check_partitioned(model, "--learners")
    return BlockRounds(n, plans=n > 1)


def _log_as_json(*, quiet: bool) -> None:
    from onlineauto.service.loop.telemetry import JsonLines

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    log = logging.getLogger("onlineauto")
    log.addHandler(handler)
    log.setLevel(logging.WARNING if quiet else logging.INFO)


VERB: Final = Verb(
    Registry((ServeOptions, *LEARNING.groups)),
    run,
    "Usage: onlineauto serve [options] FOLDER --cb_explore_adf ...",
    "Decide over HTTP, log each decision before it is answered, join the rewards that come later, and learn. "
    "FOLDER contains the log, the model and its history; a killed service continues from there. All "
    "options of learning are options of the model as well: onlineauto learn --help.",
    """\
Examples:
  onlineauto serve ./loop --cb_explore_adf --automl 4 --port 8001
  onlineauto serve ./loop --cb_explore_adf --automl 4 --mode apprentice --reward_wait PT30M
  onlineauto serve ./rank --follow http://127.0.0.1:8001 --port 8002""",
    options=(
        *(declared.name for declared in options_of(ServeOptions)),
        "cb_explore_adf",
        "automl",
        "epsilon",
        "quiet",
    ),
)
