"""Keep the table of members of a Markdown file in step with the registry.

``python -m onlineauto.cli.generators.member_table docs/reference/members.md`` rewrites the text between the
comments ``<!-- members:begin -->`` and ``<!-- members:end -->``. With ``--check`` it only reports whether the
text is current.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onlineauto.cli.generators.option_table import between
from onlineauto.engine.ensemble.member import ANY, Needs
from onlineauto.engine.ensemble.registry import MEMBERS, member_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BEGIN: Final = "<!-- members:begin -->"
_END: Final = "<!-- members:end -->"


def member_table() -> str:
    """Return a Markdown table with a row for each score of each member."""
    return "\n".join(_rows())


def _rows() -> Iterator[str]:
    yield "| member | score | least worth | needs |"
    yield "| --- | --- | --- | --- |"
    for name, entry in MEMBERS.items():
        member = member_of(name)
        for at, (score, needs) in enumerate(zip(member.names, member.needs, strict=True)):
            which = f"`{name}`: {entry.help}" + ("" if entry.default else " (if chosen)") if at == 0 else ""
            yield f"| {which} | {score} | {member.least_worth:g} | {'; '.join(_needs(needs)) or 'nothing'} |"


def _needs(needs: Needs) -> Iterator[str]:
    """Yield the conditions of a score in words."""
    limits = (
        (needs.most_features, "features and bins"),
        (needs.most_numbers, "numbers"),
        (needs.most_actions, "actions"),
        (needs.width, "features of a context"),
    )
    yield from (f"at most {most} {what}" for most, what in limits if most < ANY)
    if needs.least_actions > 1:
        yield f"at least {needs.least_actions} actions"
    if needs.numbers:
        yield "a number, unless there are more than 32 actions"
    if needs.events:
        yield f"{needs.events:,} learnt events"
    if needs.upon:
        yield f"`{needs.upon}`"


def main(argv: Sequence[str]) -> int:
    """Update the named file and return 0; with ``--check``, return 1 if it is not current."""
    path = Path(next(word for word in argv if word != "--check"))
    old = path.read_text(encoding="utf-8")
    new = between(old, begin=_BEGIN, end=_END, made=member_table())
    if "--check" in argv and new != old:
        print(
            f"{path} is not current: run python -m onlineauto.cli.generators.member_table {path}",
            file=sys.stderr,
        )
        return 1
    if new != old:
        path.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
