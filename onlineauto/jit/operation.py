"""Operations: instructions for kernels that Python has no word for; the compiler knows what they are."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Any

__all__ = ["Operation"]


class Operation:
    """A name for an intrinsic of `onlineauto.jit.compiler`, which is imported when a kernel is compiled.

    Parameters
    ----------
    file : str
        Name of the module that has it.
    name : str
        Name that it has there.
    arguments : object
        If there are any: what the function of that name is called with, to make the intrinsic.
    """

    def __init__(self, file: str, name: str, *arguments: Any) -> None:
        self._file, self.name, self.arguments = file, name, arguments

    @cached_property
    def _numba_type_(self) -> Any:
        """What Numba takes this object for, where a kernel calls it."""
        found = getattr(import_module(f"onlineauto.jit.compiler.{self._file}"), self.name)
        if self.arguments:
            found = found(*self.arguments)
        private = import_module("onlineauto.jit.compiler.numba_private")
        return private.type_of_operation(found)
