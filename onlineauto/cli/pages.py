"""The pages of the help: the overview by task, and one page for each command without separate options."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from onlineauto.cli.help import Page, option_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from onlineauto.options import Registry

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
        ("onlineauto simulate LOG", "which policy would have been faster"),
    ),
    (
        "Serve",
        ("onlineauto serve FOLDER --cb_explore_adf --automl 4", "decide over HTTP, and learn from rewards"),
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
_COLUMN: Final = max(len(command) for _, *lines in _TASKS for command, _ in lines) + 4
_USUAL: Final = (
    *("data", "final_regressor", "initial_regressor", "testonly", "predictions", "cb_explore_adf"),
    *("quadratic", "automl", "journal", "json", "dsjson", "passes", "quiet", "version"),
)
"""Options in the overview."""

_READING: Final = ("json", "dsjson", "chain_hash", "compressed")
PAGES: Final = {
    "columns": Page(
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
    "convert": Page(
        "Usage: onlineauto convert [options] FILE ... TO",
        "Convert files of events to one file of blocks, which is read four to six times faster, or blocks "
        "back to text; or a model of Vowpal Wabbit to one of onlineauto, or back. The first bytes of "
        "FILE decide. Events are converted for one kind of learning: give the same flags as for learning.",
        """\
Examples:
  onlineauto convert events.txt.gz events.blocks --cb_explore_adf
  onlineauto convert vw.model our.model""",
        options=(
            *("cb_explore_adf", "cb_adf", "ccb_explore_adf", "cb_explore", "cb", *_READING, "hash"),
            *("hash_seed", "missing_probability", "strict_parse", "quiet"),
        ),
    ),
    "inspect": Page(
        "Usage: onlineauto inspect [options] MODEL [FILE ...]",
        "Show what a model is: its options, history, namespaces, live configs and largest weights. Weights "
        "have names if files of events follow, or if the model was learnt with --invert_hash.",
        """\
Examples:
  onlineauto inspect my.model
  onlineauto inspect my.model events.txt --largest 50 --format markdown""",
        options=("format", "largest", *_READING),
    ),
    "merge": Page(
        "Usage: onlineauto merge [options] MODEL MODEL ... -f TO",
        "Combine models that were trained separately with the same options into one.",
        """\
Examples:
  onlineauto merge monday.model tuesday.model -f both.model
  onlineauto merge a.model b.model --base start.model -f both.model""",
        options=("final_regressor", "base", "quiet"),
    ),
}
"""By command."""


def overview(registry: Registry, *, width: int) -> str:
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
    common_lines = [line for name in _USUAL for line in option_lines(registry, registry[name], width)]
    parts.append("\n".join(["Most used options:", *common_lines]))
    parts.append(
        f"All {len(registry.options)} options: onlineauto learn --help. "
        "Of one command: onlineauto COMMAND --help."
    )
    return "\n\n".join(parts)


def _task_lines(lines: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield commands with their descriptions, in two columns."""
    for command, meaning in lines:
        texts = textwrap.wrap(meaning, width - _COLUMN)
        yield f"  {command:{_COLUMN - 2}}{texts.pop(0)}"
        for text in texts:
            yield " " * _COLUMN + text
