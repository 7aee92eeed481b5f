"""The command ``onlineauto``: select the verb, parse the options, and turn errors into exit codes.

Exit codes: 0 success, 1 input cannot be read or used, 2 the command line is wrong, 130 interrupted, 141 the
reader of standard output has closed it, 143 terminated.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onlineauto.cli.verb import IMPORT, VERBS, overview, verb_of
from onlineauto.errors import OnlineautoError, OptionError
from onlineauto.work.imports import import_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.cli.verb import Verb

_INTERRUPTED: Final = 130
_TERMINATED: Final = 143
_READER_GONE: Final = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    log = logging.getLogger("onlineauto")
    level = log.level
    try:
        code = _run(_without_imports(arguments))
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
    name = argv.pop(0) if named else "learn"
    if name not in VERBS:
        if not _is_input(name):
            raise _unknown_verb(name)
        argv.insert(0, name)  # a file of events, before which the verb may also be omitted
        name, named = "learn", False
    if name == "help":
        return _run([argv[0], "--help"]) if argv and argv[0] in VERBS[:-1] else _print_help(None)
    verb = verb_of(name)
    try:
        configuration = verb.registry.parse(argv)
    except OptionError as error:  # the hint for an unknown option is the help of this verb
        raise OptionError(str(error).replace("`onlineauto --help`", f"`onlineauto {name} --help`")) from None
    if configuration.get("help"):
        return _print_help(verb if named else None)
    return verb.run(configuration)


def _without_imports(argv: list[str]) -> list[str]:
    """Import the modules that ``--import`` names, and return the other words of a command line."""
    words, rest = iter(argv), []
    for word in words:
        flag, sign, source = word.partition("=")
        if flag != IMPORT:
            rest.append(word)
            if word == "--":
                break
            continue
        source = source if sign else next(words, "")
        if not source or source.startswith("-"):
            raise OptionError(f"{IMPORT} takes a module, or a file that ends in .py")
        if "" not in sys.path:
            sys.path.insert(0, "")
        import_parts(source)
    return [*rest, *words]


def _print_help(verb: Verb | None) -> int:
    """Print the help of a verb, or the overview; return 0."""
    width = shutil.get_terminal_size().columns
    print(overview(width) if verb is None else verb.help_text(width))
    return 0


def _is_input(word: str) -> bool:
    """Return whether a word is a file of events, or a file, folder or address of Parquet."""
    if Path(word).is_file() or (Path(word).exists() and not Path(word).is_dir()):
        return True
    from onlineauto.formats.datasets.files import is_dataset

    return is_dataset(word)


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
