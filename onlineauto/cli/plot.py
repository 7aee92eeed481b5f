"""The verb ``plot``: pictures of a search from its journal, of runs from their tables, and of studies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onlineauto.cli.verb import Verb, VerbOptions
from onlineauto.errors import InputError, OptionError
from onlineauto.options import Registry, option
from onlineauto.pictures import check_picture, crossings, race, rewards
from onlineauto.pictures.runs import course_of, has_table
from onlineauto.pictures.story import story_of
from onlineauto.workspace.model_file import check_target

if TYPE_CHECKING:
    from onlineauto.options import Configuration
    from onlineauto.pictures import Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotOptions(VerbOptions):
    """Options of the verb ``plot``."""

    file: tuple[str, ...] = option(
        (),
        "A journal, which --journal writes; or files of what runs printed on standard error; or the URL of a "
        "store with a study. The flag may be left out.",
        metavar="FILE",
        positional=True,
    )
    output: str = option(
        "", "Draw into this file: SVG, PNG or PDF, by its extension.", short="o", metavar="FILE"
    )
    crossings: bool = option(False, "Draw which namespaces the last champion of a journal crosses.")
    loss: bool = option(False, "Draw the loss of runs, and not the reward, as for regression.")
    name: str = option("", "Name of the study; may be left out if the store has one.", metavar="NAME")
    heading: str = option("", "Title of the picture.", metavar="TEXT")
    dark: bool = option(False, "Draw on a dark background.")


def run(configuration: Configuration) -> int:
    """Draw a picture and return 0."""
    options = configuration[PlotOptions]
    if not options.file or not options.output:
        raise OptionError("plot takes a journal and -o: onlineauto plot journal.jsonl -o story.svg")
    check_picture(options.output)
    check_target(options.output)
    _draw(options).save(options.output)
    print(f"the picture is in {options.output}")
    return 0


def _draw(options: PlotOptions) -> Picture:
    first, *others = options.file
    if "://" in first:
        return _draw_study(options)
    if has_table(first):
        courses = [course_of(path) for path in options.file]
        return rewards(courses, losses=options.loss, title=options.heading, dark=options.dark)
    if _is_metrics(first):
        raise InputError(
            f"{first} has metrics, which describe only the end of a run: give its journal, or the output "
            "of runs"
        )
    if others:
        raise OptionError(
            "plot takes one journal; to compare runs, give what they printed on standard error: 2> run.txt"
        )
    if not options.crossings:
        return race(first, title=options.heading, dark=options.dark)
    story = story_of(first)
    title = {"title": options.heading} if options.heading else {}
    return crossings(story.champion_interactions(), namespaces=story.namespaces, dark=options.dark, **title)


def _draw_study(options: PlotOptions) -> Picture:
    """Draw the study in a store."""
    from onlineauto.cli.study_progress import only_name
    from onlineauto.tune.drawing import draw_study
    from onlineauto.tune.study import Study

    if len(options.file) > 1:
        raise OptionError("plot takes one study: the URL of its store, and --name")
    url = options.file[0]
    study = Study.load(options.name or only_name(url), storage=url)
    return draw_study(study, title=options.heading, dark=options.dark)


def _is_metrics(path: str) -> bool:
    """Return whether a file was written by ``--extra_metrics``."""
    with Path(path).open("rb") as file:
        return file.read(32).startswith(b'{"total_log_calls"')


VERB: Final = Verb(
    Registry((PlotOptions,)),
    run,
    "Usage: onlineauto plot [options] JOURNAL -o PICTURE\n"
    "       onlineauto plot [options] RUN ... -o PICTURE\n"
    "       onlineauto plot [options] URL [--name NAME] -o PICTURE",
    "Draw the search of a run from its journal: which configs were live when, which became the champion, and "
    "the champion's reward as the search knew it. Or draw the "
    "average reward of several runs of onlineauto or Vowpal Wabbit from the tables that they printed. Or "
    "draw a study: the resources of its trials, the best so far, their configs, and which parameters matter.",
    """\
Examples:
  onlineauto log.txt --cb_explore_adf --automl --journal j.jsonl
  onlineauto plot j.jsonl -o story.svg
  onlineauto plot j.jsonl --crossings -o crossed.png --dark
  onlineauto log.txt --cb_explore_adf -P 1.2 2> ours.txt
  vw -d log.txt --cb_explore_adf -P 1.2 2> vw.txt
  onlineauto plot ours.txt vw.txt -o runs.svg
  onlineauto plot sqlite:///study.db -o study.svg""",
)
