"""Names of trainables: from ``MODULE:NAME`` to a function or a class, and back."""

from __future__ import annotations

import importlib
import sys
from functools import reduce
from typing import TYPE_CHECKING, Any

from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from onlineauto.tune.workers.trainable import AnyTrainable

OF_STREAM = "stream "
"""Prefix of the recorded trainable if trials learn a stream, which no other process can import."""


def import_trainable(text: str) -> Any:
    """Return the object with the name ``MODULE:NAME``.

    >>> import_trainable("json:dumps") is import_trainable("json:encoder.JSONEncoder.encode")
    False
    """
    module, colon, name = text.partition(":")
    if not (colon and name and all(map(str.isidentifier, module.split(".")))):
        raise OptionError(f"trainable = {text!r}: it is MODULE:NAME, as in train:loss for loss in train.py")
    try:
        target: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise OptionError(f"trainable = {text!r}: there is no module {error.name!r} here") from None
    for part in name.split("."):
        try:
            target = getattr(target, part)
        except AttributeError:
            raise OptionError(f"trainable = {text!r}: the module {module!r} has no {part!r}") from None
    return target


def name_of_trainable(trainable: AnyTrainable) -> str | None:
    """Return the name by which other processes import a function or a class; None if they cannot.

    >>> import json
    >>> name_of_trainable(json.dumps), name_of_trainable(lambda config: 0)
    ('json:dumps', None)
    """
    module, name = getattr(trainable, "__module__", None), getattr(trainable, "__qualname__", None)
    if not (isinstance(module, str) and isinstance(name, str)) or module == "__main__":
        return None
    try:
        target: Any = reduce(getattr, name.split("."), sys.modules.get(module))
    except AttributeError:
        return None
    return f"{module}:{name}" if target is trainable else None


def about_stream(trainable: AnyTrainable, stored: str | None, study: str) -> str | None:
    """Return the description of the stream that trials learn, or None."""
    about: str | None = getattr(trainable, "about", None)
    if stored is not None and stored.startswith(OF_STREAM) and about != stored:
        raise OptionError(
            f"trials of {study!r} learn the {stored}, but these would learn the {about or 'function'}: "
            "give the study another name"
        )
    return about
