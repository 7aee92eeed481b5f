"""The command ``onlineauto``: find the verb, read the options, and turn errors into exit codes.

Exit codes: 0 success, 1 input cannot be read or used, 2 the command line is wrong, 130 interrupted, 141 the
reader of our output has gone, 143 terminated.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onlineauto.cli.importing import importing
from onlineauto.engine.options.registry import ModelOptions, OutputOptions
from onlineauto.errors import OnlineautoError, OptionError
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_INTERRUPTED: Final = 130
_TERMINATED: Final = 143
_VERBS: Final = ("learn", "convert", "evaluate", "inspect", "merge", "help", "warmup")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after the program's name; by default those of the process. Without a verb, or if the first
        word begins with ``-``, the verb is ``learn``.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    log = logging.getLogger("onlineauto")
    level = log.level
    try:
        code = _run(words)
        sys.stdout.flush()
    except OptionError as error:
        return _fail(f"{error}", code=2)
    except BrokenPipeError:
        return _reader_gone()
    except (OnlineautoError, OSError) as error:
        return _fail(f"{error}", code=1)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    finally:
        log.setLevel(level)
    if code in (_INTERRUPTED, _TERMINATED):
        _leave_compiler(code)
    return code


def _leave_compiler(code: int) -> None:
    """End the process at once if a kernel is being compiled: Python would wait for LLVM to let go."""
    from onlineauto.jit import is_compiling

    if is_compiling():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(words: list[str]) -> int:
    verb = words.pop(0) if words and not words[0].startswith("-") else "learn"
    if verb not in _VERBS:
        if not Path(verb).exists() or Path(verb).is_dir():
            raise _unknown_verb(verb)
        words.insert(0, verb)  # a file of events; the verb may be left out before it as well
    if verb == "evaluate":
        from onlineauto.cli.evaluation.evaluate import run as run_evaluate

        return run_evaluate(words)
    if verb == "warmup":
        from onlineauto.cli.warmup import run as run_warmup

        return run_warmup(words)
    configuration = REGISTRY.parse(words)
    output = configuration[OutputOptions]
    if output.help or verb == "help":
        return _print_help()
    if output.version:
        return _print_version()
    if output.quiet:
        logging.getLogger("onlineauto").setLevel(logging.ERROR)
    else:
        for warning in configuration.warnings:
            print(f"onlineauto: warning: {warning}", file=sys.stderr)
    if verb == "convert":
        from onlineauto.cli.convert import run as run_convert

        return run_convert(configuration)
    if verb == "inspect":
        from onlineauto.cli.inspect import run as run_inspect

        return run_inspect(configuration)
    if verb == "merge":
        from onlineauto.cli.merge import run as run_merge

        return run_merge(configuration)
    if configuration[ModelOptions].base is not None:
        raise OptionError("--base is for merge: onlineauto merge A B --base BASE -f OUT")
    with importing():
        from onlineauto.cli.learn import run

    return run(configuration)


def _print_help() -> int:
    import shutil

    from onlineauto.cli.help import help_text

    print(help_text(REGISTRY, width=shutil.get_terminal_size().columns))
    return 0


def _print_version() -> int:
    from importlib import metadata

    print(f"onlineauto {metadata.version('onlineauto')}")
    return 0


def _unknown_verb(verb: str) -> OptionError:
    import difflib

    near = difflib.get_close_matches(verb, _VERBS, n=1)
    if near:
        return OptionError(f"unknown command {verb!r}; did you mean {near[0]}?")
    return OptionError(f"unknown command {verb!r}; to learn from a file of that name: onlineauto -d {verb}")


def _fail(message: str, *, code: int) -> int:
    print(f"onlineauto: error: {message}", file=sys.stderr)
    return code


def _reader_gone() -> int:
    """Redirect standard output to nowhere, so that the interpreter's last flush does not fail; return 141."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141
