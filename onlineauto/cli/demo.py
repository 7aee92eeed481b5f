"""The verb ``demo``: learn a small simulated log, and explain each step in plain sentences."""

from __future__ import annotations

import random
import shutil
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.automl.config import words_text
from onlineauto.cli.terminal import show_compiling
from onlineauto.cli.verb import Verb, VerbOptions
from onlineauto.engine.search.journal import Journal
from onlineauto.errors import OptionError
from onlineauto.options import Registry, option
from onlineauto.pictures import check_picture, race
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.options import Configuration

_VISITS: Final = 20_000
_READERS: Final = ("student", "parent", "commuter", "retired", "gamer")
_HOURS: Final = ("morning", "noon", "evening", "night")
_DEVICES: Final = ("phone", "tablet", "desktop")
_ARTICLES: Final = ("politics", "sport", "cooking", "games", "travel", "science")
_FAVOURITES: Final = dict(zip(_READERS, ("science", "cooking", "sport", "travel", "games"), strict=True))
_SEASONABLE: Final = {"morning": "politics", "noon": "sport", "evening": "cooking", "night": "games"}
_LAST: Final = 5000
"""Number of visits at the end over which the clicks are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions(VerbOptions):
    """Options of the verb ``demo``."""

    into: str = option("onlineauto-demo", "Folder of the log, the model and the picture.", metavar="FOLDER")
    seed: int = option(1, "Seed of the made-up log.", metavar="N")


def run(configuration: Configuration) -> int:
    """Simulate a log, learn it without and with the search, print and draw the result; return 0."""
    options = configuration[DemoOptions]
    folder = Path(options.into)
    log, journal, model, picture = (
        folder / name for name in ("log.txt", "journal.jsonl", "demo.model", "story.svg")
    )
    if folder.exists() and any(folder.iterdir()) and not log.exists():
        raise OptionError(f"{folder} exists and is not the folder of a demo; --into names another one")
    folder.mkdir(parents=True, exist_ok=True)
    truth = _make_log(log, random.Random(options.seed))
    _print_paragraph(
        f"1. The log. {_VISITS:,} simulated visits to a news site. At each visit one of {len(_ARTICLES)} "
        "articles was displayed, drawn at random, and the log says whether it was clicked. Clicks depend on "
        "the visitor and on the time of day, but not on the device. The learner does not know this."
    )
    print(f"\n     {log}, its first event:\n")
    with log.open() as file:
        print(textwrap.indent("".join(next(file) for _ in range(4)), "       ") + "       ...")
    with show_compiling():
        plain = _learn(Workspace(cb_explore_adf=True, epsilon=0.05), log, truth)
        _print_paragraph(
            "2. Without interactions. A learner that knows article, visitor and time, but crosses nothing, "
            "can only find out which article is liked most by all."
        )
        searching = Workspace(cb_explore_adf=True, epsilon=0.05, live_configs=4)
        clicks = _search(searching, log, truth, journal)
        searching.save(model)
    _print_paragraph(
        "3. With --automl. Four configs learn from the same visits: a champion, and three challengers, which "
        "cross other namespaces or learn at another rate. The first champion crosses the article with "
        "everything else. When a test, which may be read after every visit, proves a challenger better, the "
        "challenger becomes the champion. An ensemble of all configs and of other learners chooses the "
        "article, once a test of the same kind proves it better than the champion."
    )
    print()
    for change in searching.searching.changes:
        gained, lost = set(change.after) - set(change.before), set(change.before) - set(change.after)
        parts = [f"crosses {words_text(sorted(gained), most=4)} too"] if gained else []
        parts += [f"no longer crosses {words_text(sorted(lost), most=4)}"] if lost else []
        parts = parts or ["learns at another rate"]
        print(textwrap.fill(
            f"after {change.events:,} visits: a champion that {' and '.join(parts)}",
            _width(), initial_indent="     ", subsequent_indent="       ",
        ))  # fmt: skip
    best, lot = float(truth.max(axis=1)[-_LAST:].mean()), float(truth[-_LAST:].mean())
    print(
        textwrap.indent(f"in the end it crosses {words_text(searching.searching.interactions(0))}", "     ")
    )
    _print_paragraph(f"4. What it is worth: clicks per 100 visits, over the last {_LAST:,}.")
    print()
    for name, value in (
        ("drawn by lot, as in the log", lot),
        ("without interactions", plain),
        ("with --automl", clicks),
        ("the best that can be, if all were known", best),
    ):
        print(f"     {name:42}{100 * value:5.1f}  {'#' * round(60 * value)}")
    _draw(journal, picture)
    _print_paragraph("6. The same by hand, and a look at the model:")
    print(
        f"\n     onlineauto {log} --cb_explore_adf --automl --journal {journal} -f {model}\n"
        f"     onlineauto inspect {model} {log}"
    )
    return 0


def _make_log(path: Path, draw: random.Random) -> NDArray[np.float64]:
    """Write the log; return the probability of a click of each article at each visit."""
    n = len(_ARTICLES)
    truth = np.empty((_VISITS, n))
    with path.open("w") as file:
        for visit in range(_VISITS):
            reader, when, device = draw.choice(_READERS), draw.choice(_HOURS), draw.choice(_DEVICES)
            truth[visit] = [
                0.05 + 0.4 * (each == _FAVOURITES[reader]) + 0.2 * (each == _SEASONABLE[when])
                for each in _ARTICLES
            ]
            displayed = draw.randrange(n)
            clicked = draw.random() < truth[visit, displayed]
            lines = [f"shared |user {reader} |time {when} |device {device}"]
            lines += [
                f"{f'0:{-int(clicked)}:{1 / n:.4f} ' if at == displayed else ''}|article {each}"
                for at, each in enumerate(_ARTICLES)
            ]
            file.write("\n".join(lines) + "\n\n")
    return truth


def _learn(workspace: Workspace, log: Path, truth: NDArray[np.float64]) -> float:
    """Learn the log; return the expected clicks of the last visits, each chosen before it was learnt."""
    expected: list[float] = []
    for block, outcomes in workspace.stream(log):
        visits = np.repeat(np.arange(len(block)), np.diff(outcomes.action_start)) + len(expected)
        clicks = np.zeros(len(block))
        np.add.at(clicks, visits - len(expected), truth[visits, outcomes.action] * outcomes.score)
        expected += clicks.tolist()
    return float(np.mean(expected[-_LAST:]))


def _search(workspace: Workspace, log: Path, truth: NDArray[np.float64], path: Path) -> float:
    """Learn the log with a search, and write its journal."""
    with path.open("wb") as file:
        journal = Journal(file, command=workspace.configuration.command(kept=True))
        with workspace.observe(journal.append):
            clicks = _learn(workspace, log, truth)
        journal.end(events=workspace.searching.n_events)
    return clicks


def _draw(journal: Path, picture: Path) -> None:
    try:
        check_picture(picture)
    except OptionError as error:
        _print_paragraph(f"5. The picture: {error}. Then: onlineauto plot {journal} -o {picture}")
        return
    race(journal).save(picture)
    _print_paragraph(
        f"5. The picture. The search as a race of its live configs is in {picture}: open it in a browser."
    )


def _print_paragraph(text: str) -> None:
    """Print a paragraph."""
    print("\n" + textwrap.fill(text, _width(), subsequent_indent="   ", break_on_hyphens=False), flush=True)


def _width() -> int:
    return min(max(shutil.get_terminal_size().columns, 60), 100)


VERB: Final = Verb(
    Registry((DemoOptions,)),
    run,
    "Usage: onlineauto demo [options]",
    "Learn a small simulated log, explained step by step.",
)
