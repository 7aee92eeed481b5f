"""Keep the types of the options, as Python callers give them, in step with the registry.

``python -m onlineauto.cli.generators.option_types onlineauto/workspace/option_types.py`` rewrites the file.
With ``--check`` it only reports whether the file is current.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from onlineauto.options import options_of, title_of
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onlineauto.options import Option

_HEAD = '''\
"""``Options``: the keyword arguments that stand for options, with the types of their values.

Generated, by ``python -m onlineauto.cli.generators.option_types onlineauto/workspace/option_types.py``.

None is as if the option were not given. Short names, and options that other packages add, are not known here:
pass them in a ``dict[str, Any]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

__all__ = ["Options", "Word"]

Word: TypeAlias = "str | float | PathLike[str]"
"""A word; a number or a path is written as one."""


class Options(TypedDict, total=False):
    """The options of a workspace, by name and alias."""
'''


def option_types() -> str:
    """Return the module that defines the types of all options."""
    return _HEAD + "\n".join(f"    {line}" if line else "" for line in _lines()) + "\n"


def _lines() -> Iterator[str]:
    for group in REGISTRY.groups:
        yield ""
        yield f"# {title_of(group)}"
        for option in options_of(group):
            for name in (option.field, *option.aliases):
                yield f"{name}: {_type_of(option)} | None"


def _type_of(option: Option) -> str:
    """Return what `Registry.from_keywords` takes for an option, but for None."""
    if option.repeatable:
        return "Word | Sequence[Word]"
    if option.kind is str:
        return "Word | Sequence[Word]" if option.listed else "Word"
    return option.kind.__name__


def main(argv: Sequence[str]) -> int:
    """Write the named file and return 0; with ``--check``, return 1 if it is not current."""
    path = Path(next(word for word in argv if word != "--check"))
    current = path.exists() and path.read_text(encoding="utf-8") == option_types()
    if "--check" in argv and not current:
        print(
            f"{path} is not current: run python -m onlineauto.cli.generators.option_types {path}",
            file=sys.stderr,
        )
        return 1
    if not current:
        path.write_text(option_types(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
