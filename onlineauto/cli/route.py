"""The verb ``route``: a proxy in front of language models that picks one for each prompt."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from onlineauto.cli.serve import serve_folder
from onlineauto.cli.verb import Verb
from onlineauto.engine.options.registry import OutputOptions
from onlineauto.errors import OptionError, install_hint
from onlineauto.formats.options import InputOptions
from onlineauto.options import Registry, option, options_of
from onlineauto.service.options import ServeOptions
from onlineauto.workspace.options import REGISTRY as LEARNING

if TYPE_CHECKING:
    from onlineauto.options import Configuration

_MODEL: Final = "--cb_explore_adf --automl 4 --squarecb"
_WAIT: Final = "P1D"


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteOptions:
    """Options of a router, apart from those of its service and its model."""

    title: ClassVar[str] = "Routing"
    vw: ClassVar[bool] = False

    endpoints: str | None = option(
        None, "File of models, as TOML: their addresses, keys and prices, and the judge.", metavar="FILE"
    )


def run(configuration: Configuration) -> int:
    """Route until a signal arrives, and return 0."""
    folders, path = configuration[InputOptions].data, configuration[RouteOptions].endpoints
    options = configuration[ServeOptions]
    if len(folders) != 1 or path is None:
        raise OptionError(
            "route takes one folder and a file: onlineauto route ./router --endpoints models.toml"
        )
    if options.follow is not None:
        raise OptionError("--follow is for serve: a router decides and learns in one process")
    try:
        from onlineauto.service.loop.loops import split_options
        from onlineauto.service.routing.endpoints import read_route_file
        from onlineauto.service.routing.handlers import RouteHandlers
    except ModuleNotFoundError as error:
        raise OptionError(f"{error.name} is not installed: {install_hint('service')}") from None
    content, keys = read_route_file(path, os.environ)
    model = split_options(configuration, RouteOptions)
    if not model.supplied:
        model = LEARNING.parse(_MODEL)
    elif not model.get("cb_explore_adf"):
        supplied = {name: model.get(name) for name in model.supplied}
        model = LEARNING.from_keywords(**supplied, cb_explore_adf=True)
    if not Path(folders[0], "identity.json").exists():  # later the log has the settings
        learn_at, reward_wait = options.learn_at or "reward", options.reward_wait or _WAIT
        failure = float(content.failure_reward)
        reward_range = options.reward_range or f"{min(0.0, failure)},{max(1.0, failure)}"
        options = replace(options, learn_at=learn_at, reward_wait=reward_wait, reward_range=reward_range)
    handlers = partial(RouteHandlers, content=content, keys=keys)
    quiet = configuration[OutputOptions].quiet
    serve_folder(folders[0], model, options, quiet=quiet, make_handlers=handlers)
    return 0


VERB: Final = Verb(
    Registry((RouteOptions, ServeOptions, *LEARNING.groups)),
    run,
    "Usage: onlineauto route [options] FOLDER --endpoints models.toml",
    "Answer requests in OpenAI's format with the language model that promises the most for each prompt, and "
    "learn from feedback that comes later, from the application or from a judge. FOLDER is that of a "
    "service. Its options, and all options of learning, are options of a router as well: onlineauto serve "
    f"--help. Without options of learning: {_MODEL}. A new folder has --learn_at reward, --reward_wait "
    f"{_WAIT} and --reward_range 0,1.",
    """\
Examples:
  onlineauto route ./router --endpoints models.toml --port 8001

A file of models:
  [models.large]
  url = "https://api.example.com/v1"
  key = "LARGE_KEY"        # the variable of the environment that has the key
  output_price = 10.0      # dollars per million tokens""",
    options=(
        *(declared.name for declared in options_of(RouteOptions)),
        *("host", "port", "reward_wait", "budget", "mode", "control", "tokens", "keep_log", "reward_range"),
        "quiet",
    ),
)
