"""The verb ``completion``: a script for a shell that completes commands, options and their choices."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING, Final

from onlineauto.cli.cluster.cluster import REGISTRY as CLUSTER
from onlineauto.cli.cluster.simulate import REGISTRY as SIMULATE
from onlineauto.cli.evaluate import REGISTRY as EVALUATE
from onlineauto.cli.import_personalizer import REGISTRY as IMPORT
from onlineauto.cli.loop import REGISTRY as LOOP
from onlineauto.cli.main import VERBS
from onlineauto.cli.plot import REGISTRY as PLOT
from onlineauto.cli.serve import REGISTRY as SERVE
from onlineauto.cli.tuning.studies import REGISTRY as STUDIES
from onlineauto.cli.tuning.tune_options import REGISTRY as TUNE
from onlineauto.cli.tuning.worker import REGISTRY as WORKER
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onlineauto.options import Option

_OWN: Final = {
    "evaluate": EVALUATE,
    "plot": PLOT,
    "simulate": SIMULATE,
    "tune": TUNE,
    "worker": WORKER,
    "studies": STUDIES,
    "cluster": CLUSTER,
    "serve": SERVE,
    "loop": LOOP,
    "import-personalizer": IMPORT,
}
"""Registries of the commands with separate options; the other commands use the common registry."""
_MOST: Final = 70
"""Maximum number of characters of an option's meaning in a shell."""


def run(argv: Sequence[str]) -> int:
    """Print the script for a shell, and return 0."""
    parser = argparse.ArgumentParser(
        "onlineauto completion",
        description="Print a script that lets a shell complete commands and options.",
        epilog='bash: eval "$(onlineauto completion bash)" in ~/.bashrc\n'
        "zsh:  onlineauto completion zsh > a folder of $fpath/_onlineauto\n"
        "fish: onlineauto completion fish > ~/.config/fish/completions/onlineauto.fish",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=tuple(_SCRIPTS))
    print("\n".join(_SCRIPTS[parser.parse_args(argv).shell]()))
    return 0


def _flags(options: Sequence[Option]) -> str:
    """Return all names of options, separated by blanks."""
    names = (name for option in options for name in (f"-{option.short}" if option.short else "", option.flag))
    return " ".join(filter(None, names))


def _choices() -> Iterator[tuple[str, str]]:
    """Yield options with a fixed set of values, and these values."""
    everything = {option.flag: option for each in (REGISTRY, *_OWN.values()) for option in each.options}
    for flag, option in everything.items():
        if option.choices:
            yield flag, " ".join(option.choices)


def _bash() -> Iterator[str]:
    yield from (
        "_onlineauto() {",
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" flags',
        '    case "$before" in',
    )
    for flag, words in _choices():
        yield f'        {flag}) COMPREPLY=($(compgen -W "{words}" -- "$word")); return ;;'
    yield from ("    esac", '    case "${COMP_WORDS[1]}" in')
    for verb, registry in _OWN.items():
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
    for verb, registry in _OWN.items():
        yield from (f"        {verb}) _arguments \\", *_arguments(registry.options), "            ;;")
    yield from ("        *) _arguments \\", *_arguments(REGISTRY.options, verbs=True), "            ;;")
    yield from ("    esac", "}", "compdef _onlineauto onlineauto")


def _arguments(options: Sequence[Option], *, verbs: bool = False) -> Iterator[str]:
    """Yield the lines of zsh's ``_arguments``."""
    for option in options:
        meaning = _short(option).replace("[", "(").replace("]", ")").replace(":", "\\:").replace("'", "'\\''")
        value = ""
        if not option.switch:
            action = f"({' '.join(option.choices)})" if option.choices else "_files"
            value = f":{option.metavar.replace(':', ' ')}:{action}"
        several = "*" if option.repeatable else ""
        yield from (
            f"            '{several}{name}[{meaning}]{value}' \\"
            for name in (option.flag, f"-{option.short}" if option.short else "")
            if name
        )
    if verbs:
        yield f"            '1:command:({' '.join(VERBS)})' \\"
    yield "            '*:file:_files'"


def _fish() -> Iterator[str]:
    yield f"complete -c onlineauto -n __fish_use_subcommand -a '{' '.join(VERBS)}'"
    paths = " ".join(_OWN)
    for condition, options in (
        (f"not __fish_seen_subcommand_from {paths}", REGISTRY.options),
        *((f"__fish_seen_subcommand_from {verb}", registry.options) for verb, registry in _OWN.items()),
    ):
        for option in options:
            meaning = _short(option).replace("\\", "\\\\").replace("'", "\\'")
            short = f" -s {option.short}" if option.short else ""
            value = "" if option.switch else " -r"
            value += f" -f -a '{' '.join(option.choices)}'" if option.choices else ""
            yield f"complete -c onlineauto -n '{condition}' -l {option.name}{short}{value} -d '{meaning}'"


def _short(option: Option) -> str:
    """Return the meaning of an option, truncated if it is long."""
    return textwrap.shorten(option.help, _MOST, placeholder=" ...")


_SCRIPTS: Final = {"bash": _bash, "zsh": _zsh, "fish": _fish}
