"""The verb ``serve``: a contextual-bandit service over HTTP."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onlineauto.cli.verb import Verb
from onlineauto.engine.options.registry import OutputOptions
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
    folders = configuration[InputOptions].data
    if len(folders) != 1:
        raise OptionError("serve takes one folder: onlineauto serve ./loop --cb_explore_adf --automl 4")
    try:
        from onlineauto.service.loop.loops import inherited_options, split_options
    except ModuleNotFoundError as error:
        raise OptionError(f"{error.name} is not installed: {install_hint('service')}") from None
    options, quiet = configuration[ServeOptions], configuration[OutputOptions].quiet
    inherited = inherited_options(configuration)
    serve_folder(folders[0], split_options(configuration), options, quiet=quiet, inherited=inherited)
    return 0


def serve_folder(
    folder: str, model: Configuration, options: ServeOptions, *, quiet: bool, **parts: Any
) -> None:
    """Serve a folder until a signal arrives; `parts` are further arguments of `serve`."""
    copied = (("log_topic", options.log_topic), ("ship", options.ship), ("standby", options.standby))
    for name, value in copied:
        if value is not None and options.follow is not None:
            raise OptionError(f"--{name} is for the learner, whose log has the records of its rank servers")
    settings = options.settings()
    if settings and options.follow is not None:
        raise OptionError(f"{', '.join(settings)}: a rank server has the settings of its learner")
    if options.learners > 1 and options.follow is not None:
        raise OptionError("--learners is for the learner; a rank server with --follow does not learn")
    try:
        from onlineauto.service.http.server import serve
    except ModuleNotFoundError as error:
        raise OptionError(f"{error.name} is not installed: {install_hint('service')}") from None
    _log_as_json(quiet=quiet)
    serve(folder, model, options, learners=_learners(folder, model, options.learners), **parts)


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
