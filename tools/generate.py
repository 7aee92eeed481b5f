"""Write what is generated: types of options, tables of pages, and the names of the public API.

``python -m tools.generate`` rewrites the files that are not current. With ``--check`` it only names them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onlineauto.cli.verb import default_text
from onlineauto.engine.ensemble.member import ANY, Needs
from onlineauto.engine.ensemble.registry import MEMBERS, member_of
from onlineauto.engine.ensemble.vector_kernels import FEW
from onlineauto.engine.options.registry import COMMAND_LINE
from onlineauto.engine.records.ensemble import MOST_ACTIONS
from onlineauto.options import options_of, title_of
from onlineauto.workspace.options import REGISTRY
from tools.public_api import public_api
from tools.tables import explorer_quirks, input_messages, journal_lines, vw_flags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from onlineauto.options import Group, Option

ROOT: Final = Path(__file__).parents[1]
_OPTION_TYPES: Final = '''\
"""Types of the keyword arguments that are options: ``Options``, and ``LearnerOptions`` for `AutoML`.

Generated, by ``python -m tools.generate``.

None is as if the option were not given. Short names, and options that other packages add, are not known here:
pass them in a ``dict[str, Any]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

Word: TypeAlias = "str | float | PathLike[str]"
"""A word of the command line; numbers and paths are converted to words."""


class LearnerOptions(TypedDict, total=False):
    """Options that `AutoML` and the other models accept as ``**options``."""
'''
_ALL_OPTIONS: Final = '''


class Options(LearnerOptions, total=False):
    """All options, by name and alias."""
'''


def main(argv: Sequence[str], root: Path = ROOT) -> int:
    """Update the generated files and return 0; with ``--check``, return 1 if one of them is not current."""
    stale = []
    for name, generate in GENERATED.items():
        path = root / name
        old = path.read_text(encoding="utf-8")
        new = generate(old)
        if new != old:
            stale.append(name)
            if "--check" not in argv:
                path.write_text(new, encoding="utf-8")
    if stale and "--check" in argv:
        print(f"{', '.join(stale)}: not current; run python -m tools.generate", file=sys.stderr)
        return 1
    return 0


def between(text: str, table: str, *, name: str) -> str:
    """Return a text with a new table between the comments ``<!-- NAME:begin -->`` and ``<!-- NAME:end -->``.

    Raises
    ------
    ValueError
        If the text does not have each comment once, in order.
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f"the text needs {begin} and then {end}, each once")
    before, rest = text.split(begin)
    return f"{before}{begin}\n\n{table}\n\n{end}{rest.split(end)[1]}"


def option_tables(text: str) -> str:
    """Return a text with a new table for each group of options."""
    return between(text, "\n\n".join("\n".join(_table(group)) for group in REGISTRY.groups), name="options")


def member_table(text: str) -> str:
    """Return a text with a new table that has a row for each score of each member."""
    return between(text, "\n".join(_member_rows()), name="members")


def _table_of(name: str, lines: Callable[[], Iterator[str]]) -> Callable[[str], str]:
    """Return the function that puts lines between the comments of a text."""
    return lambda text: between(text, "\n".join(lines()).rstrip(), name=name)


def option_types(_: str) -> str:
    """Return the module that defines the types of all options."""
    learner, others = ("\n".join(_type_lines(others=others)) for others in (False, True))
    return f"{_OPTION_TYPES}{learner}{_ALL_OPTIONS}{others}\n"


GENERATED: Final[dict[str, Callable[[str], str]]] = {
    "docs/reference/options.md": option_tables,
    "docs/reference/members.md": member_table,
    "docs/reference/journal.md": _table_of("journal", journal_lines),
    "docs/reference/input-messages.md": _table_of("messages", input_messages),
    "docs/reference/exact-mode.md": _table_of("explorers", explorer_quirks),
    "docs/reference/vw-flags.md": _table_of("flags", vw_flags),
    "onlineauto/workspace/option_types.py": option_types,
    "tools/public_api.txt": public_api,
}
"""Functions that return the new text of a file, given its old text."""


def _table(group: Group) -> Iterator[str]:
    yield f"## {title_of(group)}\n"
    yield "| option | default | meaning |"
    yield "| --- | --- | --- |"
    for option in options_of(group):
        yield f"| {_flags(option)} | {_code(default_text(option))} | {_meaning(option)} |"


def _flags(option: Option) -> str:
    value = f" {option.metavar}" if option.metavar else ""
    short = f"{_code('-' + option.short)}, " if option.short else ""
    return short + _code(option.flag + value)


def _meaning(option: Option) -> str:
    text = REGISTRY.meaning(option)
    if option.keyword:
        text += f" In Python: {option.keyword}."
    if not option.vw:
        text += " (onlineauto's own)"
    return text.replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*")


def _code(text: str) -> str:
    return "`" + text.replace("|", r"\|") + "`" if text else ""


def _member_rows() -> Iterator[str]:
    yield "| member | score | of | least worth | needs | how states merge |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, entry in MEMBERS.items():
        member, rows = member_of(name), list[str]()
        for score, needs in zip(member.names, member.needs, strict=True) if entry.costs else ():
            terms = f"{member.least_worth:g} | {'; '.join(_needs(needs)) or 'nothing'}"
            rows.append(f"{score} | costs | {terms} | {'' if rows else member.merges}")
        rows += [f"{score} | classes | | | " for score in (member.class_scores if entry.classes else ())]
        which = f"`{name}`: {entry.help}" + ("" if entry.default else " (if chosen)")
        yield from (f"| {which if at == 0 else ''} | {row} |" for at, row in enumerate(rows))


def _needs(needs: Needs) -> Iterator[str]:
    """Yield the conditions of a score in words."""
    limits = (
        (needs.most_actions, "actions"),
        (needs.width, "features of a context"),
    )
    yield from (f"at most {most} {what}" for most, what in limits if most < ANY)
    if needs.least_actions > 1:
        yield f"at least {needs.least_actions} actions"
    if needs.numbers:
        yield f"a number, unless there are more than {MOST_ACTIONS} actions"
    if needs.vectors:
        yield f"a vector of more than {FEW} numbers"
    if needs.events:
        yield f"{needs.events:,} learnt events"
    if needs.upon:
        yield f"`{needs.upon}`"


def _type_lines(*, others: bool) -> Iterator[str]:
    """Yield the fields of `LearnerOptions`, or those that only `Options` has: other options, and aliases."""
    for group in REGISTRY.groups:
        lines = [
            f"    {name}: {_type_of(option)} | None"
            for option in options_of(group)
            for at, name in enumerate(filter(None, (option.keyword, option.field, *option.aliases)))
            if others == (_is_other(option) or at > 0)
        ]
        if lines:
            yield ""
            yield f"    # {title_of(group)}"
            yield from lines


def _is_other(option: Option) -> bool:
    """Return whether an option has an effect on the command line only, or is a parameter of `AutoML`."""
    return option.name in COMMAND_LINE or option.name in ("automl", "random_seed", "bit_precision")


def _type_of(option: Option) -> str:
    """Return what `Registry.from_keywords` takes for an option, but for None."""
    if option.repeatable:
        return "Word | Sequence[Word]"
    if option.kind is str:
        return "Word | Sequence[Word]" if option.listed else "Word"
    return option.kind.__name__


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
