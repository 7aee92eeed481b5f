"""The command ``onlineauto``: select the verb, parse the options, and turn errors into exit codes.

Exit codes: 0 success, 1 input cannot be read or used, 2 the command line is wrong, 130 interrupted, 141 the
reader of standard output has closed it, 143 terminated.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onlineauto.cli import without_garbage_collection
from onlineauto.engine.options.registry import ModelOptions, OutputOptions
from onlineauto.errors import OnlineautoError, OptionError
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERRUPTED: Final = 130
_TERMINATED: Final = 143
_READER_GONE: Final = 141
_COMMAND_MODULES: Final = {
    "evaluate": "onlineauto.cli.evaluate",
    "warmup": "onlineauto.cli.machine.warmup",
    "doctor": "onlineauto.cli.machine.doctor",
    "demo": "onlineauto.cli.demo",
    "plot": "onlineauto.cli.plot",
    "tune": "onlineauto.cli.tuning.tune",
    "worker": "onlineauto.cli.tuning.worker",
    "studies": "onlineauto.cli.tuning.studies",
    "cluster": "onlineauto.cli.cluster.cluster",
    "topic": "onlineauto.cli.topic",
    "serve": "onlineauto.cli.serve",
    "loop": "onlineauto.cli.loop",
    "import-personalizer": "onlineauto.cli.import_personalizer",
    "simulate": "onlineauto.cli.cluster.simulate",
    "completion": "onlineauto.cli.machine.completion",
}
"""Commands with separate options: the module whose ``run`` takes the remaining arguments."""
_CONFIGURED_MODULES: Final = {
    "learn": "onlineauto.cli.learn",
    "columns": "onlineauto.cli.columns",
    "convert": "onlineauto.cli.convert",
    "inspect": "onlineauto.cli.models.inspect",
    "merge": "onlineauto.cli.models.merge",
}
"""Commands with the common options: the module whose ``run`` takes the configuration."""
VERBS: Final = (*_CONFIGURED_MODULES, *_COMMAND_MODULES, "help")
"""All commands."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    log = logging.getLogger("onlineauto")
    level = log.level
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except OptionError as error:
        return _fail(f"{error}", code=2)
    except BrokenPipeError:
        _discard_output()
        return _READER_GONE
    except OnlineautoError as error:  # also an OutputError, which is an OSError and names its file
        return _fail(f"{error}", code=1)
    except OSError as error:
        return _fail(_description(error), code=1)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    finally:
        log.setLevel(level)
    if code in (_INTERRUPTED, _TERMINATED):
        _leave_compiler(code)
    return code


def _description(error: OSError) -> str:
    """Return the message of an error with its file; closing a file fails again, without its name."""
    if error.errno == errno.EBADF and error.filename is None:
        _discard_output()
        return "standard output is closed"
    while error.errno and error.filename is None and isinstance(error.__context__, OSError):
        error = error.__context__
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}"


def _leave_compiler(code: int) -> None:
    """End the process at once if a kernel is being compiled, since Python would wait for LLVM."""
    from onlineauto.jit import is_compiling

    if is_compiling():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(argv: list[str]) -> int:
    if not argv and sys.stdin is not None and sys.stdin.isatty():
        return _print_help(None)  # without arguments on a terminal, print the overview
    named = bool(argv) and not argv[0].startswith("-")
    verb = argv.pop(0) if named else "learn"
    if verb not in VERBS:
        if not _is_input(verb):
            raise _unknown_verb(verb)
        argv.insert(0, verb)  # a file of events, before which the verb may also be omitted
        verb, named = "learn", False
    if verb == "help":
        return _run([argv[0], "--help"]) if argv and argv[0] in VERBS[:-1] else _print_help(None)
    if verb in _COMMAND_MODULES:
        return int(import_module(_COMMAND_MODULES[verb]).run(argv))
    configuration = REGISTRY.parse(argv)
    output = configuration[OutputOptions]
    if output.help:
        return _print_help(verb if named else None)
    if output.version:
        return _print_version()
    if output.quiet:
        logging.getLogger("onlineauto").setLevel(logging.ERROR)
    elif verb != "learn":  # `learn` warns later, once it has the options of its model
        for warning in configuration.warnings:
            print(f"onlineauto: warning: {warning}", file=sys.stderr)
    if verb != "merge" and configuration[ModelOptions].base is not None:
        raise OptionError("--base is for merge: onlineauto merge A B --base BASE -f OUT")
    with without_garbage_collection():
        module = import_module(_CONFIGURED_MODULES[verb])
    return int(module.run(configuration))


def _is_input(word: str) -> bool:
    """Return whether a word is a file of events, or a file, folder or address of Parquet."""
    if Path(word).is_file() or (Path(word).exists() and not Path(word).is_dir()):
        return True
    from onlineauto.formats.datasets.files import is_dataset

    return is_dataset(word)


def _print_help(verb: str | None) -> int:
    """Print the page of a command, or the overview; return 0."""
    import shutil

    from onlineauto.cli.help import LEARN, help_text
    from onlineauto.cli.pages import PAGES, overview

    width = shutil.get_terminal_size().columns
    if verb is None:
        print(overview(REGISTRY, width=width))
    else:
        print(help_text(REGISTRY, width=width, page=PAGES.get(verb, LEARN)))
    return 0


def _print_version() -> int:
    from importlib import metadata

    print(f"onlineauto {metadata.version('onlineauto')}")
    return 0


def _unknown_verb(verb: str) -> OptionError:
    import difflib

    near = difflib.get_close_matches(verb, VERBS, n=1)
    if near:
        return OptionError(f"unknown command {verb!r}; did you mean {near[0]}?")
    return OptionError(f"there is no command and no file {verb!r}; onlineauto --help lists the commands")


def _fail(message: str, *, code: int) -> int:
    print(f"onlineauto: error: {message}", file=sys.stderr)
    return code


def _discard_output() -> None:
    """Redirect standard output to the null device, so that the last flush does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
