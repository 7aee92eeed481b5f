"""The verb ``studies``: list the studies of a store and their progress, as text or as a live page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from onlineauto.cli.verb import Verb, VerbOptions
from onlineauto.errors import OptionError, install_hint
from onlineauto.options import Registry, option

if TYPE_CHECKING:
    from onlineauto.options import Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class StudiesOptions(VerbOptions):
    """Options of the verb ``studies``."""

    url: tuple[str, ...] = option(
        (),
        "The store: sqlite:///FILE or postgresql://USER@HOST/DATABASE. The flag may be left out.",
        metavar="URL",
        positional=True,
    )
    serve: bool = option(
        False, "Show the studies in a browser, live, until Ctrl-C. The store is read and never written."
    )
    host: str = option(
        "127.0.0.1",
        "Address to listen to with --serve. An address that other machines can reach needs --tokens.",
    )
    port: int = option(8010, "Port to listen to with --serve.", minimum=0, maximum=65535, metavar="N")
    tokens: str | None = option(
        None,
        "File of tokens, written by onlineauto loop FOLDER --new_token read. Without it, no token is needed.",
        metavar="FILE",
    )


def run(configuration: Configuration) -> int:
    """Print one line for each study, or serve a page until a signal arrives; return 0."""
    options = configuration[StudiesOptions]
    if len(options.url) != 1:
        raise OptionError("studies takes one store: onlineauto studies sqlite:///study.db")
    url = options.url[0]
    try:
        if options.serve:
            _serve(url, options)
        else:
            _print(url)
    except ModuleNotFoundError as error:
        extra = "tune" if (error.name or "").startswith("sqlalchemy") else "service"
        raise OptionError(f"{error.name} is not installed: {install_hint(extra)}") from None
    return 0


def _print(url: str) -> None:
    from onlineauto.cli.study_progress import best_text, counts_by_state
    from onlineauto.tune.store import DamagedLogError
    from onlineauto.tune.store.sql_store import names_of_studies
    from onlineauto.tune.study import Study

    for name in names_of_studies(url):
        try:
            study = Study.load(name, storage=url)
        except (OptionError, DamagedLogError) as error:
            print(f"{name}: {error}")
            continue
        best = best_text(study)
        if best and len(study.objectives) > 1:
            best = [f"{len(study.best_trials)} are dominated by no other"]
        print(f"{name}: {'; '.join([', '.join(counts_by_state(study)) or 'no trials', *best])}")


def _serve(url: str, options: StudiesOptions) -> None:
    from onlineauto.cli.study_page import serve_studies
    from onlineauto.tune.store.open_store import without_password

    def announce(address: str) -> None:
        print(f"{address} shows the studies of {without_password(url)}; Ctrl-C ends it", flush=True)

    serve_studies(url, host=options.host, port=options.port, tokens=options.tokens, announce=announce)


VERB: Final = Verb(
    Registry((StudiesOptions,)),
    run,
    "Usage: onlineauto studies URL\n       onlineauto studies URL --serve [--port N]",
    "List the studies of a store: their trials by state, and the best. With --serve, a page shows them while "
    "they run: the best so far, rungs, configs, which parameters matter, failures, workers and their leases, "
    "the front of several objectives, and constraints.",
    """\
Examples:
  onlineauto studies sqlite:///study.db
  onlineauto studies sqlite:///study.db --serve
  onlineauto studies postgresql://me@host/studies --serve --host 0.0.0.0 --tokens access/tokens""",
)
