"""The verb ``tune``: search for the best config of a function, or continue an interrupted search."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Final

from onlineauto.cli.help import Page, help_text
from onlineauto.cli.tuning.progress import show_progress
from onlineauto.cli.tuning.running import return_jobs_on_exit
from onlineauto.cli.tuning.subjects import TunedFunction, TunedStream
from onlineauto.cli.tuning.tune_options import OWN, REGISTRY, TuneOptions
from onlineauto.engine.options.registry import OutputOptions
from onlineauto.formats.options import InputOptions
from onlineauto.options import Registry
from onlineauto.tune.store.urls import without_password
from onlineauto.tune.workers.callbacks import Callback

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.tune.study import Study

_INTERRUPTED: Final = 130
_WITHOUT_VALUE: Final = 1


_PAGE: Final = Page(
    "Usage: onlineauto tune -d FILE --search NAMES [options] [options of learn]\n"
    "       onlineauto tune --trainable MODULE:NAME --space FILE [options]",
    "Search for the best flags on a stream, or for the best config of a function or class: short trials for "
    "many configs, long ones for the best. A study in a store is shared with workers on other machines, "
    "which run the same command; after an interruption, the same command continues. --quiet displays no "
    "progress; in a pipe there is never any.",
    """\
Examples:
  onlineauto tune -d train.txt --search learning_rate,power_t,interactions --max_examples 100000
  onlineauto tune -d log.txt --cb_explore_adf --search interactions --study sqlite:///study.db --workers 2
  onlineauto tune --trainable train:loss --space space.toml --max_resource 27
  onlineauto tune --study sqlite:///study.db""",
)


def run(argv: Sequence[str]) -> int:
    """Run a study and print its best config; return 0, 1 if no trial has a value, or 130 if interrupted."""
    configuration = REGISTRY.parse(argv)
    options, output = configuration[TuneOptions], configuration[OutputOptions]
    if output.help:
        print(help_text(Registry(OWN), width=shutil.get_terminal_size().columns, page=_PAGE))
        return 0
    recorder = _StudyRecorder()
    task = TunedStream(configuration) if configuration[InputOptions].data else TunedFunction(configuration)
    code = 0
    try:
        with return_jobs_on_exit(), show_progress(quiet=output.quiet) as callbacks:
            task.run([recorder, *callbacks])
    except KeyboardInterrupt:
        url = without_password(options.study)
        hint = f"; the same command continues the study in {url}" if url else ""
        print(f"onlineauto: interrupted{hint}", file=sys.stderr)
        code = _INTERRUPTED
    if recorder.study is not None:
        recorder.study.refresh()
        print("\n".join(task.result_lines(recorder.study)))
        if code == 0 and recorder.study.best is None:
            code = _WITHOUT_VALUE
    return code


class _StudyRecorder(Callback):
    """Stores the running study."""

    study: Study | None = None

    def on_begin(self, study: Study) -> None:
        self.study = study
