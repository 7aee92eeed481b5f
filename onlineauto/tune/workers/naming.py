"""Names of trainables: from ``MODULE:NAME`` to a function or a class, and back."""

from __future__ import annotations

import importlib
import sys
from functools import reduce
from typing import TYPE_CHECKING, Any

from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from onlineauto.tune.workers.trainable import What

OF_STREAM = "stream "
"""How what a study notes begins if its trials learn a stream: no other process can import that."""


def imported(text: str) -> Any:
    """Return what ``MODULE:NAME`` names.

    >>> imported("json:dumps") is imported("json:encoder.JSONEncoder.encode")
    False

    Raises
    ------
    OptionError
        If it is not there.
    """
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise OptionError(f"trainable = {text!r}: it is MODULE:NAME, as in train:loss for loss in train.py")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise OptionError(f"trainable = {text!r}: there is no module {error.name!r} here") from None
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise OptionError(f"trainable = {text!r}: the module {module!r} has no {part!r}") from None
    return found


def name_of_trainable(what: What) -> str | None:
    """Return the name by which other processes import a function or a class; None if they cannot.

    >>> import json
    >>> name_of_trainable(json.dumps), name_of_trainable(lambda config: 0)
    ('json:dumps', None)
    """
    module, name = getattr(what, "__module__", None), getattr(what, "__qualname__", None)
    if not (isinstance(module, str) and isinstance(name, str)) or module == "__main__":
        return None
    try:
        found: Any = reduce(getattr, name.split("."), sys.modules.get(module))
    except AttributeError:
        return None
    return f"{module}:{name}" if found is what else None


def about_stream(what: What, noted: str | None, study: str) -> str | None:
    """Return the stream that trials learn by `what`, None if they learn none.

    Raises
    ------
    OptionError
        The study has noted another stream, or the same with other flags.
    """
    about: str | None = getattr(what, "about", None)
    if noted is not None and noted.startswith(OF_STREAM) and about != noted:
        raise OptionError(
            f"trials of {study!r} learn the {noted}; these would be of the {about or 'function'}: "
            "give the study another name"
        )
    return about
