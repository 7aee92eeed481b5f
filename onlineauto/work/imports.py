"""``import_parts``: modules of users that this process, and each process that it starts, imports first."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Final

from onlineauto.errors import OptionError, short_repr

IMPORTED: Final[dict[str, str]] = {}
"""What `import_parts` has imported: modules by name, with the module or the file that was requested."""


def import_parts(source: str) -> None:
    """Import a module by its name, or by its file, so that it registers parts.

    Raises
    ------
    OptionError
        There is no such module or file, or another module has the name of the file.
    """
    file = Path(source).resolve() if source.endswith(".py") else None
    if file is not None:
        if not file.is_file():
            raise OptionError(f"--import {source}: there is no such file")
        if str(file.parent) not in sys.path:
            sys.path.insert(0, str(file.parent))
    name = source if file is None else file.stem
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # a module that the module imports is missing
        raise OptionError(f"--import {source}: there is no module {error.name!r} here") from None
    except (TypeError, ValueError):
        raise OptionError(
            f"--import {short_repr(source)}: give a module, or a file that ends in .py"
        ) from None
    if file is not None and Path(module.__file__ or "").resolve() != file:
        raise OptionError(f"--import {source}: there is another module {name!r}: rename the file")
    IMPORTED[name] = source
