"""``Verb``: a command with its options, its help and its function; ``verb_of`` finds one by its name.

A verb with options of its own is the constant ``VERB`` of a module. The *common* verbs take the options of
`REGISTRY`, and are declared here, so that their help imports nothing else.
"""

from __future__ import annotations

import logging
import textwrap
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from onlineauto.cli.terminal import warn_of_effects, without_garbage_collection
from onlineauto.engine.options.registry import ModelOptions, OutputOptions
from onlineauto.errors import OptionError
from onlineauto.formats.options import FORMATS
from onlineauto.options import option, options_of, title_of
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from onlineauto.options import Configuration, Option, Registry

_COLUMN: Final = 30
SEPARATE: Final = (
    *(
        "check",
        "evaluate",
        "warmup",
        "doctor",
        "demo",
        "plot",
        "tune",
        "worker",
        "studies",
        "cluster",
        "topic",
    ),
    *("serve", "route", "loop", "import-personalizer", "simulate", "completion"),
)
"""Verbs with options of their own."""
IMPORT: Final = "--import"
"""The flag of every command that imports a module; it is read before all others, which may depend on it."""
_IMPORT_MEANING: Final = (
    "Import a module, or a file that ends in .py, which registers schedulers, oracles or other parts. "
    "Repeatable."
)
_TASKS: Final = (
    (
        "Try it",
        ("onlineauto demo", "learn a small log, explained step by step"),
        ("onlineauto doctor", "check that this installation works"),
    ),
    (
        "Learn",
        ("onlineauto FILE -q :: -f MODEL", "regression, all pairs of namespaces crossed"),
        ("onlineauto LOG --cb_explore_adf --automl -f MODEL", "a contextual bandit that tunes itself"),
        ("onlineauto LOG --cb_explore_adf --dsjson", "from the log of a decision service"),
        ("onlineauto 'logs/*.parquet' --cb_explore_adf", "from Parquet"),
        ("onlineauto topic BROKER/TOPIC --dsjson -f MODEL", "from a topic of Kafka, exactly once"),
        ("onlineauto FILE -c -k --passes 5", "several passes, the later ones from a cache"),
    ),
    ("Predict", ("onlineauto FILE -i MODEL -t -p OUT", "with a model that was learnt before")),
    (
        "Understand",
        ("onlineauto inspect MODEL", "what a model has learnt"),
        ("onlineauto plot JOURNAL -o story.svg", "the search as a picture, from --journal"),
        ("onlineauto plot RUN.txt RUN.txt -o runs.svg", "runs side by side, from what they printed"),
        ("onlineauto check LOG", "what is wrong with a log"),
        ("onlineauto evaluate LOG --policy MODEL", "what a policy would have cost"),
    ),
    (
        "Tune",
        ("onlineauto tune -d FILE --search NAMES", "the best flags on a stream"),
        ("onlineauto tune --trainable M:F --space TOML", "the best config of any function"),
        ("onlineauto worker --study URL", "run jobs of a study, with other workers"),
        ("onlineauto studies URL [--serve]", "how far the studies of a store are, or a live page of them"),
    ),
    (
        "Share a cluster",
        ("onlineauto cluster run jobs.toml", "studies and streams that share a machine, or a cluster"),
        ("onlineauto cluster serve FOLDER", "the same for jobs that are submitted while it runs"),
        ("onlineauto simulate LOG", "which policy would have been faster"),
    ),
    (
        "Serve",
        ("onlineauto serve FOLDER --cb_explore_adf --automl 4", "decide over HTTP, and learn from rewards"),
        ("onlineauto route FOLDER --endpoints TOML", "pick a language model for each prompt"),
        ("onlineauto loop FOLDER", "look into the folder of a service"),
        ("onlineauto import-personalizer EXPORT FOLDER", "begin one with what Azure Personalizer exports"),
    ),
    (
        "Convert and merge",
        ("onlineauto columns 'logs/*.parquet'", "what the columns of Parquet are, as a file to edit"),
        ("onlineauto convert FILE ... TO", "text to blocks, or back"),
        ("onlineauto convert MODEL TO", "a model of Vowpal Wabbit to onlineauto's, or back"),
        ("onlineauto merge MODEL ... -f TO", "several models to one"),
    ),
    (
        "Set up",
        ("onlineauto warmup", "compile all kernels now"),
        ("onlineauto completion SHELL", "let bash, zsh or fish complete options"),
    ),
)
_TASK_COLUMN: Final = max(len(command) for _, *lines in _TASKS for command, _ in lines) + 4
_USUAL: Final = (
    *("data", "final_regressor", "initial_regressor", "testonly", "predictions", "cb_explore_adf"),
    *("quadratic", "automl", "journal", *FORMATS, "passes", "quiet", "version"),
)
"""Options in the overview."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbOptions:
    """The option of all verbs with options of their own."""

    title: ClassVar[str] = "Options"
    vw: ClassVar[bool] = False

    help: bool = option(False, "Print this help and stop.", short="h", vw=True)


class Verb(NamedTuple):
    """A command: its options, what it does with them, and the text around the options in its help."""

    registry: Registry
    run: Callable[[Configuration], int]  # Returns the exit code.
    usage: str
    introduction: str
    examples: str = ""
    options: tuple[str, ...] = ()  # Names of the options in the help; empty means all.

    def help_text(self, width: int) -> str:
        """Return the help: the options by group, or those that `options` names."""
        width = min(max(width, 60), 110)
        parts = [self.usage, textwrap.fill(self.introduction, width)]
        groups = [(title_of(group), options_of(group)) for group in self.registry.groups]
        if self.options:
            groups = [("Options", tuple(self.registry[name] for name in self.options))]
        for title, options in groups:
            lines = (line for option in options for line in _option_lines(self.registry, option, width))
            parts.append("\n".join([f"{title}:", *lines]))
        parts.append("\n".join(["Every command:", *_lines(f"+     {IMPORT} MODULE", _IMPORT_MEANING, width)]))
        return "\n\n".join([*parts, *filter(None, [self.examples])])


def verb_of(name: str) -> Verb:
    """Return a verb by its name."""
    if name in _COMMON:
        return _COMMON[name]
    verb: Verb = import_module(f"onlineauto.cli.{name.replace('-', '_')}").VERB
    return verb


def _run_common(name: str, configuration: Configuration) -> int:
    """Run the function of a common verb."""
    output = configuration[OutputOptions]
    if output.version:
        from importlib import metadata

        print(f"onlineauto {metadata.version('onlineauto')}")
        return 0
    if output.quiet:
        logging.getLogger("onlineauto").setLevel(logging.ERROR)
    elif name not in ("learn", "convert"):  # these warn later, once they have the options of their model
        warn_of_effects(configuration, configuration)
    if name != "merge" and configuration[ModelOptions].base is not None:
        raise OptionError("--base is for merge: onlineauto merge A B --base BASE -f OUT")
    with without_garbage_collection():
        run = import_module(f"onlineauto.cli.{name}").run
    return int(run(configuration))


def _common(name: str, usage: str, introduction: str, examples: str, options: tuple[str, ...] = ()) -> Verb:
    return Verb(REGISTRY, partial(_run_common, name), usage, introduction, examples, options)


READING: Final = (*FORMATS, "chain_hash", "compressed")
"""Options for reading events, which a model does not store."""
_COMMON: Final = {
    "learn": _common(
        "learn",
        "Usage: onlineauto [learn] [options] [FILE ...]",
        "Learn from a stream of events and report the loss of what was predicted before each was learnt. The "
        "options have the names and meanings that Vowpal Wabbit 9.11.9 gives them; a + marks those that are "
        "onlineauto's own. Defaults are in brackets.",
        """\
Examples:
  onlineauto -d events.txt                               regression
  onlineauto -d events.txt --cb_explore_adf -q ::        contextual bandit with all pairs of namespaces
  onlineauto -d events.txt.gz --cb_explore_adf -p out    the same, predictions to a file
  zcat events.txt.gz | onlineauto --cb_explore_adf       from standard input""",
    ),
    "columns": _common(
        "columns",
        "Usage: onlineauto columns [options] FILE ...",
        "Print the meaning of the columns of Parquet: features, decisions, rewards, as inferred from names, "
        "types and the first rows. Saved in a file, the text can be edited and read with --columns. With "
        "--cb_explore_adf, rows are decisions.",
        """\
Examples:
  onlineauto columns 'logs/*.parquet' > columns.toml
  onlineauto 'logs/*.parquet' --columns columns.toml --cb_explore_adf --automl

A file of columns:
  rows = "events"        # or "labels", "actions", "lists"
  action = "arm"
  choices = ["art", "sport"]
  reward = "click"
  probability = "p"

  [context]              # namespace = columns
  user = ["user_id", "age"]""",
        options=("columns", "cb_explore_adf"),
    ),
    "convert": _common(
        "convert",
        "Usage: onlineauto convert [options] FILE ... TO",
        "Convert files of events to one file of blocks, which is read four to six times faster, or blocks "
        "back to text; or a model of Vowpal Wabbit to one of onlineauto, or back. The first bytes of "
        "FILE decide. Events are converted for one kind of learning: give the same flags as for learning.",
        """\
Examples:
  onlineauto convert events.txt.gz events.blocks --cb_explore_adf
  onlineauto convert vw.model our.model""",
        options=(
            *("cb_explore_adf", "cb_adf", "ccb_explore_adf", "cb_explore", "cb", *READING, "hash"),
            *("hash_seed", "missing_probability", "strict_parse", "quiet"),
        ),
    ),
    "inspect": _common(
        "inspect",
        "Usage: onlineauto inspect [options] MODEL [FILE ...]",
        "Show what a model is: its options, history, namespaces, live configs and largest weights. Weights "
        "have names if files of events follow, or if the model was learnt with --invert_hash.",
        """\
Examples:
  onlineauto inspect my.model
  onlineauto inspect my.model events.txt --largest 50 --format markdown""",
        options=("format", "largest", *READING),
    ),
    "merge": _common(
        "merge",
        "Usage: onlineauto merge [options] MODEL MODEL ... -f TO",
        "Combine models that were trained separately with the same options into one.",
        """\
Examples:
  onlineauto merge monday.model tuesday.model -f both.model
  onlineauto merge a.model b.model --base start.model -f both.model""",
        options=("final_regressor", "base", "quiet"),
    ),
}
VERBS: Final = (*_COMMON, *SEPARATE, "help")
"""Names of all commands."""


def overview(width: int) -> str:
    """Return the help that groups commands by task, with the most frequent options."""
    width = min(max(width, 60), 110)
    parts = [
        "Usage: onlineauto [learn] [options] [FILE ...]\n       onlineauto COMMAND [options] ...",
        textwrap.fill(
            "Learn from a stream of events in one pass, tuning interactions and learning rates on the way. "
            "The options have the names and meanings that Vowpal Wabbit 9.11.9 gives them; a + marks those "
            "that are onlineauto's own.",
            width,
        ),
    ]
    parts += ["\n".join([f"{title}:", *_task_lines(lines, width)]) for title, *lines in _TASKS]
    common_lines = [line for name in _USUAL for line in _option_lines(REGISTRY, REGISTRY[name], width)]
    parts.append("\n".join(["Most used options:", *common_lines]))
    parts.append(
        f"All {len(REGISTRY.options)} options: onlineauto learn --help. "
        "Of one command: onlineauto COMMAND --help."
    )
    return "\n\n".join(parts)


def _task_lines(lines: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield commands with their descriptions, in two columns."""
    for command, meaning in lines:
        texts = textwrap.wrap(meaning, width - _TASK_COLUMN)
        yield f"  {command:{_TASK_COLUMN - 2}}{texts.pop(0)}"
        for text in texts:
            yield " " * _TASK_COLUMN + text


def default_text(option: Option) -> str:
    """Return an option's default in the form of the command line, or "" if it has no such form."""
    if option.switch or option.repeatable or option.default is None:
        return ""
    return str(option.default)


def _option_lines(registry: Registry, option: Option, width: int) -> Iterator[str]:
    """Yield the lines about one option: its names and its meaning."""
    names = _names(option)
    meaning, default = registry.meaning(option), default_text(option)
    yield from _lines(names, f"{meaning} [{default}]" if default else meaning, width)


def _lines(names: str, meaning: str, width: int) -> Iterator[str]:
    texts = textwrap.wrap(meaning, width - _COLUMN)
    if len(names) > _COLUMN - 2:
        yield names
    else:
        yield f"{names:{_COLUMN}}{texts.pop(0)}"
    for text in texts:
        yield " " * _COLUMN + text


def _names(option: Option) -> str:
    mark = " " if option.vw else "+"
    short = f"-{option.short}, " if option.short else "    "
    return f"{mark} {short}{option.flag} {option.metavar}".rstrip()
