"""The verb ``tune``: search for the best config of a function, or continue an interrupted search."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from onlineauto.cli.running import return_jobs_on_exit
from onlineauto.cli.study_progress import show_progress
from onlineauto.cli.subjects import TunedFunction, TunedStream
from onlineauto.cli.tune_options import REGISTRY, TuneOptions
from onlineauto.cli.verb import Verb
from onlineauto.engine.options.registry import OutputOptions
from onlineauto.formats.options import InputOptions
from onlineauto.tune.store.urls import without_password
from onlineauto.tune.workers.callbacks import Callback

if TYPE_CHECKING:
    from onlineauto.options import Configuration
    from onlineauto.tune.study import Study

_INTERRUPTED: Final = 130
_WITHOUT_VALUE: Final = 1


def run(configuration: Configuration) -> int:
    """Run a study and print its best config; return 0, 1 if no trial has a value, or 130 if interrupted."""
    options, output = configuration[TuneOptions], configuration[OutputOptions]
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


VERB: Final = Verb(
    REGISTRY,
    run,
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
