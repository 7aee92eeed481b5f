"""``Parts``: the parts of one kind by name: the package's, registered ones, and those of other packages.

Explorers, members, oracles, priorities, schedulers, searchers and policies are each one `Parts`. A user's
part becomes known in one of three ways: by `Parts.register`; by ``--import``, which imports the module that
registers it; and by an entry point of an installed package, which is loaded when its name is first used.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from inspect import isabstract
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from onlineauto.errors import OptionError, kind_of
from onlineauto.work.imports import IMPORTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.metadata import EntryPoint

    from onlineauto.options.registry import Group, Registry

P = TypeVar("P")


class Parts(Mapping[str, P]):
    """Parts of one kind by name. Iteration yields those that are imported; a lookup imports others.

    Parameters
    ----------
    kind : str
        The noun for messages, such as ``scheduler``. Entry points are in the group ``onlineauto.schedulers``,
        its plural.
    base : type
        The base class of all parts.
    parts : mapping
        The parts of the package by name: classes if they are constructed for each use, or else objects.
    reserved : iterable of str
        Names that no part may have.
    """

    def __init__(
        self, kind: str, base: type, parts: Mapping[str, P], *, reserved: Iterable[str] = ()
    ) -> None:
        plural = f"{kind.removesuffix('y')}ies" if kind.endswith("y") else f"{kind}s"
        self.kind, self.group = kind, f"onlineauto.{plural}"
        self._base, self._reserved = base, frozenset(reserved)
        self._parts, self._own = dict(parts), frozenset(parts)
        self._are_classes = any(isinstance(part, type) for part in parts.values())
        self._entry_points: dict[str, EntryPoint] | None = None
        self._registries: list[Registry] = []

    def register(self, part: P) -> P:
        """Add a part from outside the package under its name, and return it.

        Raises
        ------
        OptionError
            The name is in use, or the part lacks something, which the message names. Then nothing is added.
        """
        self._check(part)
        self._add(part)
        return part

    def unregister(self, name: str) -> None:
        """Remove a part that was added by `register`."""
        if name in self._own or name not in self._parts:
            raise OptionError(f"no {self.kind} {name} was registered")
        del self._parts[name]

    def extend(self, registry: Registry) -> None:
        """Add the options of all parts to a registry, including parts that are registered later."""
        for part in self.values():
            registry.add(*_missing(registry, part))
        registry.on_unknown.append(self.import_all)
        self._registries.append(registry)

    def names(self) -> tuple[str, ...]:
        """Return the names of all parts, including those of entry points, which are not imported."""
        return tuple(dict.fromkeys((*self._parts, *self._found())))

    @property
    def listed(self) -> str:
        """The names as a list for messages."""
        return ", ".join(self.names())

    def import_all(self) -> None:
        """Import the parts of all entry points."""
        for name in self._found():
            self[name]

    def source(self, part: Any) -> str | None:
        """Return what ``--import`` takes to make a part known: a module, or a file; None for the package's.

        It is "" if no other process can import the part, such as a class in a function.
        """
        kind = part if isinstance(part, type) else type(part)
        if any(own is part or own is kind for own in map(self._parts.get, self._own)):
            return None
        if "<locals>" in kind.__qualname__:
            return ""
        if kind.__module__ == "__main__":
            return Path(getattr(sys.modules["__main__"], "__file__", None) or "").name
        return IMPORTED.get(kind.__module__, kind.__module__)

    def __getitem__(self, name: str) -> P:
        """Return a part by its name; an entry point with this name is imported if there is no other part."""
        if name not in self._parts and name in self._found():
            self._import(name)
        return self._parts[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._parts or name in self._found())

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def _check(self, part: Any) -> None:
        """Raise `OptionError` if a part lacks something that every part of this kind has."""
        type_: Any = part if isinstance(part, type) else type(part)
        name, base, kind = type_.__name__, self._base.__name__, self.kind
        article = "an" if kind[0] in "aeio" else "a"
        if not issubclass(type_, self._base):
            raise OptionError(f"{name} is no {base}: {article} {kind} is a subclass of {base}")
        if isabstract(type_):
            missing = ", ".join(sorted(type_.__abstractmethods__))
            raise OptionError(f"the {kind} {name} has no {missing}, which every {base} defines")
        if self._are_classes and type_ is not part:
            raise OptionError(f"register the class {name}, not {kind_of(part)}")
        if type_ is part and not self._are_classes:
            raise OptionError(f"register an object, {name}(), not the class")
        word = getattr(part, "name", None)
        if not isinstance(word, str) or [word] != word.replace(",", " ").split():
            raise OptionError(f"the {kind} {name} has no name: give it one, a word, as in name = 'mine'")
        if word in self._parts or word in self._reserved:
            raise OptionError(f"there is {article} {kind} {word} already")
        if self._are_classes:
            try:
                part(**getattr(part(), "options", {}))
            except TypeError as error:
                raise OptionError(
                    f"the {kind} {name} cannot be constructed by its name: {error}. Each argument needs a "
                    "default, and `options` are the arguments"
                ) from None

    def _add(self, part: Any) -> None:
        """Store a checked part under its name, and add its options to all registries of options."""
        for registry in self._registries:
            registry.check_addition(*_missing(registry, part))
        for registry in self._registries:
            registry.add(*_missing(registry, part))
        self._parts[part.name] = part

    def _found(self) -> Mapping[str, EntryPoint]:
        """Return the entry points of installed packages by name, which are looked up once."""
        if self._entry_points is None:
            from importlib.metadata import entry_points

            self._entry_points = {found.name: found for found in entry_points(group=self.group)}
        return self._entry_points

    def _import(self, name: str) -> None:
        """Import the part of an entry point, whose module may also register it."""
        found = self._found()[name]
        try:
            part = found.load()
        except Exception as error:  # the module of another package may raise any
            raise OptionError(
                f"the {self.kind} {name}, {found.value}, cannot be imported: {error}"
            ) from error
        if getattr(part, "name", None) != name:
            raise OptionError(f"the entry point {name} of {self.group} has another name: {found.value}.name")
        if name not in self._parts:
            self.register(part)


def _missing(registry: Registry, part: Any) -> list[Group]:
    """Return the groups of options of a part that a registry does not have."""
    return [group for group in getattr(part, "options", ()) if group not in registry.groups]
