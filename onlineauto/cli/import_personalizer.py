"""The verb ``import-personalizer``: begin a service with the log and the settings of Azure Personalizer."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from onlineauto.cli.verb import Verb, VerbOptions
from onlineauto.errors import OptionError, install_hint
from onlineauto.options import Registry, option
from onlineauto.workspace.options import REGISTRY as LEARNING

if TYPE_CHECKING:
    from onlineauto.options import Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions(VerbOptions):
    """Options of the verb ``import-personalizer``."""

    folders: tuple[str, ...] = option(
        (),
        "The folder of the export, and the folder of the service to begin.",
        metavar="FOLDER",
        positional=True,
    )
    options: str | None = option(
        None,
        "Options of the model, quoted, such as '--cb_explore_adf --automl 4'. Not supplied: those of the "
        "exported policy, with --automl 4.",
        metavar="OPTIONS",
    )


def run(configuration: Configuration) -> int:
    """Import an export, print what was learnt, and return 0."""
    options = configuration[ImportOptions]
    if len(options.folders) != 2:
        raise OptionError("import-personalizer takes two folders: import-personalizer ./export ./loop")
    try:
        from onlineauto.service.http.personalizer import words_of
        from onlineauto.service.http.personalizer_export import options_in, read_export, start_from
    except ModuleNotFoundError as error:
        raise OptionError(f"{error.name} is not installed: {install_hint('service')}") from None
    source, folder = options.folders
    export = read_export(source)
    words, dropped, searched = options_in(export)
    if options.options is not None:
        words, dropped, searched = words_of(options.options), [], []
    imported = start_from(export, folder, LEARNING.parse(words))
    print(f"learnt: {imported.learnt:,} decisions of {len(export.logs):,} files")
    if imported.skipped:
        print(f"skipped: {imported.skipped:,} lines that have no decision with a reward and a probability")
    print(f"configuration: {'taken over' if export.configuration is not None else 'none found'}")
    print(f"policy: {'taken over' if export.policy is not None else 'none found'}")
    if dropped:
        print(f"left out, because onlineauto has no such options: {' '.join(dropped)}")
    if searched:
        print(f"left out, because the search of --automl chooses them: {' '.join(searched)}")
    print(f"serve it: onlineauto serve {shlex.quote(folder)} {imported.options}")
    return 0


VERB: Final = Verb(
    Registry((ImportOptions,)),
    run,
    "Usage: onlineauto import-personalizer [options] EXPORT FOLDER",
    "Begin the folder of a service with what Azure Personalizer has exported: learn the log (dsjson, with or "
    "without .gz), and take over reward wait, default reward, aggregation and learning mode from a saved "
    "configuration, and the options of the model from a saved policy. Prints the command that serves it.",
    """\
Examples:
  onlineauto import-personalizer ./export ./loop
  onlineauto import-personalizer ./export ./loop --options '--cb_explore_adf --automl 4 --epsilon 0.1'""",
)
