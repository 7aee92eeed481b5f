"""The public API as text: the signature of each name that the API reference documents."""

from __future__ import annotations

import inspect
import re
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES: Final = Path(__file__).parents[1] / "docs" / "reference" / "api"
_DIRECTIVE: Final = re.compile(
    r"^\.\. auto(module|class|function|exception|data):: ([\w.]+)[^\n]*((?:\n   \S.*)*)", re.MULTILINE
)
_HEAD: Final = """\
The public API: every name that docs/reference/api documents, with its signature.
Generated, by `python -m tools.generate`. A line that changes or goes may stop programs: deprecate it first.

"""
_PLAIN: Final = (type(None), bool, int, float, str, bytes)


def public_names() -> dict[str, tuple[Any, str]]:
    """Return each documented class, function and value by its name, with the options of its directive."""
    names = {f"onlineauto.{name}": (_found(f"onlineauto.{name}"), "") for name in _all("onlineauto")}
    for page in sorted(PAGES.glob("*.md")):
        for kind, name, options in _DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            names |= _of_module(name, options) if kind == "module" else {name: (_found(name), options)}
    return names


def public_api(_: str) -> str:
    """Return the text."""
    names = public_names()
    classes = {value for value, _ in names.values() if inspect.isclass(value)}
    lines = [
        line for name, (value, options) in names.items() for line in _lines(name, value, options, classes)
    ]
    return _HEAD + "\n".join(sorted(set(lines))) + "\n"


def _all(module: str) -> list[str]:
    """Return the public names of a module."""
    found = import_module(module)
    own = (name for name, value in vars(found).items() if getattr(value, "__module__", "") == module)
    return [name for name in getattr(found, "__all__", own) if not name.startswith("_")]


def _of_module(module: str, options: str) -> dict[str, tuple[Any, str]]:
    """Return the documented names of a module."""
    found = import_module(module)
    names = _option("members", options) or _all(module)
    left_out = _option("exclude-members", options)
    return {f"{module}.{name}": (getattr(found, name), "") for name in names if name not in left_out}


def _option(name: str, options: str) -> list[str]:
    """Return the names that an option of a directive lists."""
    listed = re.search(rf":{name}: (.+)", options)
    return re.split(r",\s*", listed[1]) if listed else []


def _found(path: str) -> Any:
    """Return the object of a dotted name."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            value = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for name in parts[end:]:
            value = getattr(value, name)
        return value
    raise ValueError(f"there is no {path}")


def _lines(name: str, value: Any, options: str, classes: set[Any]) -> Iterator[str]:
    """Yield a line for a name, and for each documented member that no documented base defines."""
    if not inspect.isclass(value):
        yield name + (_signature(value) if callable(value) else "")
        return
    own = [cls for cls in value.__mro__ if cls.__module__.startswith("onlineauto")]
    is_made = hasattr(value, "__struct_fields__") or any(
        {"__init__", "__new__"} & {*vars(cls)} for cls in own
    )
    is_made = is_made and not issubclass(value, Enum)  # whose signature depends on the version of Python
    yield f"class {name}{_signature(value) if is_made else ''}"
    if ":no-members:" in options:
        return
    only, left_out = _option("members", options), _option("exclude-members", options)
    inherited = {member for cls in own if cls is not value and cls in classes for member in vars(cls)}
    for cls in own:
        for member, found in vars(cls).items():
            is_listed = member in only if only else member not in inherited and member not in left_out
            if is_listed and not member.startswith("_"):
                yield f"{name}.{member}{_member(getattr(value, member, found))}"


def _member(found: Any) -> str:
    """Return the signature of a method; nothing for a property or another attribute."""
    return _signature(found) if inspect.isroutine(found) else ""


def _signature(function: Any) -> str:
    """Return the names, kinds and defaults of parameters, without types, whose text depends on versions."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    parameters = [
        parameter.replace(
            annotation=parameter.empty,
            default=parameter.default if parameter.default is parameter.empty else _Shown(parameter.default),
        )
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


class _Shown:
    """A default whose text is the same in every process."""

    def __init__(self, value: object) -> None:
        self._text = repr(value) if type(value) in _PLAIN or value == () else "..."

    def __repr__(self) -> str:
        return self._text
