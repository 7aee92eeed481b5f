"""``Entry``: kernels that Python calls, loaded from the disk without what only compiling needs.

To compile, Numba imports the code for all of NumPy's functions, 60 MB of it in a quarter of a second; it does
so before it looks whether there is anything to compile. And with the machine code it keeps and loads what
another kernel would be compiled with, which nobody here asks for.
"""

# ruff: noqa: SLF001 - this is a part of Numba that Numba does not have

from __future__ import annotations

from types import MethodType
from typing import TYPE_CHECKING, Any

from llvmlite import binding
from numba.core import config
from numba.core.caching import FunctionCache
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys

from onlineauto.jit.cache import cache_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Entry"]


_DIRECTORY = str(cache_directory())


class _Cache(FunctionCache):
    """Kernels on the disk, that are loaded as they are."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel, None if it is not there."""
        me: Any = self  # Numba is not typed
        rtsys.initialize(target_context)
        with me._guard_against_spurious_io_errors():
            return me._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a kernel."""
        me: Any = super()
        data.library._get_module_for_linking = MethodType(_names, data.library)
        me.save_overload(sig, data)


def _names(library: Any) -> Any:
    """A module of functions and variables that are there by name only, as Numba looks them up."""
    module = library._final_module
    lines = [
        f'define void @"{each.name}"() {{ ret void }}' for each in module.functions if not each.is_declaration
    ]
    lines += [f'@"{each.name}" = global i8 0' for each in module.global_variables if not each.is_declaration]
    empty = str(library._codegen._create_empty_module(library.name))
    return binding.parse_assembly("\n".join([empty, *lines]))


class Entry(CPUDispatcher):
    """A kernel for Python to call; kernels may not."""

    def __init__(self, function: Callable[..., Any], settings: Mapping[str, Any]) -> None:
        super().__init__(function, targetoptions=dict(settings))
        me: Any = self
        switches: Any = config
        before, switches.CACHE_DIR = switches.CACHE_DIR, _DIRECTORY
        try:
            cache: Any = _Cache
            me._cache = cache(function)
        finally:
            switches.CACHE_DIR = before
