"""The verb ``completion``: a script for a shell that completes commands, options and their choices."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from onlineauto.cli.verb import SEPARATE, VERBS, Verb, VerbOptions, verb_of
from onlineauto.errors import OptionError
from onlineauto.options import Registry, option
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onlineauto.options import Configuration, Option

_MOST: Final = 70
"""Maximum number of characters of an option's meaning in a shell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionOptions(VerbOptions):
    """Options of the verb ``completion``."""

    shell: str | None = option(
        None,
        "The shell. The flag may be left out.",
        choices=("bash", "zsh", "fish"),
        metavar="SHELL",
        positional=True,
    )


def run(configuration: Configuration) -> int:
    """Print the script for a shell, and return 0."""
    shell = configuration[CompletionOptions].shell
    if shell is None:
        raise OptionError("completion takes a shell: onlineauto completion bash, zsh or fish")
    print("\n".join(_SCRIPTS[shell]()))
    return 0


def _registries() -> dict[str, Registry]:
    """Return the options of the verbs that have options of their own; the others have those of `REGISTRY`."""
    return {name: verb_of(name).registry for name in SEPARATE}


def _names(declared: Option) -> list[str]:
    return [f"-{declared.short}", declared.flag] if declared.short else [declared.flag]


def _flags(options: Sequence[Option]) -> str:
    """Return all names of options, separated by blanks."""
    return " ".join(name for declared in options for name in _names(declared))


def _choices() -> Iterator[tuple[str, str]]:
    """Yield options with a fixed set of values, and these values."""
    everything = {
        declared.flag: declared
        for registry in (REGISTRY, *_registries().values())
        for declared in registry.options
    }
    for flag, declared in everything.items():
        if declared.choices:
            yield flag, " ".join(declared.words)


def _bash() -> Iterator[str]:
    yield from (
        "_onlineauto() {",
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" flags',
        '    case "$before" in',
    )
    for flag, words in _choices():
        yield f'        {flag}) COMPREPLY=($(compgen -W "{words}" -- "$word")); return ;;'
    yield from ("    esac", '    case "${COMP_WORDS[1]}" in')
    for verb, registry in _registries().items():
        yield f'        {verb}) flags="{_flags(registry.options)}" ;;'
    words = " ".join(VERBS)
    yield from (
        f'        *) flags="{_flags(REGISTRY.options)}" ;;',
        "    esac",
        '    COMPREPLY=($(compgen -f -- "$word"))',
        '    [[ $word == -* ]] && COMPREPLY=($(compgen -W "$flags" -- "$word"))',
        f'    [[ $COMP_CWORD -eq 1 && $word != -* ]] && COMPREPLY+=($(compgen -W "{words}" -- "$word"))',
        "}",
        "complete -o filenames -F _onlineauto onlineauto",
    )


def _zsh() -> Iterator[str]:
    yield from ("#compdef onlineauto", "_onlineauto() {", '    case "$words[2]" in')
    for verb, registry in _registries().items():
        yield from (f"        {verb}) _arguments \\", *_arguments(registry.options), "            ;;")
    yield from ("        *) _arguments \\", *_arguments(REGISTRY.options, verbs=True), "            ;;")
    yield from ("    esac", "}", "compdef _onlineauto onlineauto")


def _arguments(options: Sequence[Option], *, verbs: bool = False) -> Iterator[str]:
    """Yield the lines of zsh's ``_arguments``."""
    for declared in options:
        meaning = (
            _short(declared).replace("[", "(").replace("]", ")").replace(":", "\\:").replace("'", "'\\''")
        )
        value = ""
        if not declared.switch:
            action = f"({' '.join(declared.words)})" if declared.choices else "_files"
            value = f":{declared.metavar.replace(':', ' ')}:{action}"
        several = "*" if declared.repeatable else ""
        yield from (f"            '{several}{name}[{meaning}]{value}' \\" for name in _names(declared)[::-1])
    if verbs:
        yield f"            '1:command:({' '.join(VERBS)})' \\"
    yield "            '*:file:_files'"


def _fish() -> Iterator[str]:
    yield f"complete -c onlineauto -n __fish_use_subcommand -a '{' '.join(VERBS)}'"
    paths = " ".join(SEPARATE)
    for condition, options in (
        (f"not __fish_seen_subcommand_from {paths}", REGISTRY.options),
        *(
            (f"__fish_seen_subcommand_from {verb}", registry.options)
            for verb, registry in _registries().items()
        ),
    ):
        for declared in options:
            meaning = _short(declared).replace("\\", "\\\\").replace("'", "\\'")
            short = f" -s {declared.short}" if declared.short else ""
            value = "" if declared.switch else " -r"
            value += f" -f -a '{' '.join(declared.words)}'" if declared.choices else ""
            yield f"complete -c onlineauto -n '{condition}' -l {declared.name}{short}{value} -d '{meaning}'"


def _short(declared: Option) -> str:
    """Return the meaning of an option, truncated if it is long."""
    return textwrap.shorten(declared.help, _MOST, placeholder=" ...")


_SCRIPTS: Final = {"bash": _bash, "zsh": _zsh, "fish": _fish}


VERB: Final = Verb(
    Registry((CompletionOptions,)),
    run,
    "Usage: onlineauto completion SHELL",
    "Print a script that lets a shell complete commands and options.",
    """\
Examples:
  bash: eval "$(onlineauto completion bash)" in ~/.bashrc
  zsh:  onlineauto completion zsh > a folder of $fpath/_onlineauto
  fish: onlineauto completion fish > ~/.config/fish/completions/onlineauto.fish""",
)
