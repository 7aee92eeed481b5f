"""``Entry``: kernels that Python calls, loaded from disk without anything that only compiling needs.

Before Numba looks into its cache, it imports the code that compiles NumPy's functions: 60 MB, in a quarter of
a second. It also stores and loads, beside the machine code, what another kernel would need to be compiled
with this one. No kernel calls an `Entry`, so both are left out here.
"""

# ruff: noqa: SLF001 - this is a part of Numba that Numba does not have

from __future__ import annotations

import hashlib
import logging
from functools import lru_cache
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING, Any

from llvmlite import binding
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys

from onlineauto.jit.cache import cache_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Entry"]


_LOG = logging.getLogger("onlineauto")
_DIRECTORY = cache_directory()


class _Locator:
    """Tells Numba where a kernel is cached: in our directory, which may be read-only, and nowhere else."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._file, self._line = Path(file), function.__code__.co_firstlineno
        self._path = _DIRECTORY / function.__module__

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> _Locator:
        """Return the locator of `function`, defined in `file`."""
        return cls(function, file)

    def ensure_cache_path(self) -> None:
        """Make the directory; if it cannot be written, saving a kernel raises."""
        self._path.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """Return the directory as text."""
        return str(self._path)

    def get_source_stamp(self) -> str:
        """Return the hash of the file, "" without a file. The directory's name already covers the package."""
        return hashlib.sha256(self._file.read_bytes()).hexdigest() if self._file.exists() else ""

    def get_disambiguator(self) -> str:
        """Return the function's line number, which tells functions of one name apart."""
        return str(self._line)


class _Kept(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012 - Numba's


class _Cache(FunctionCache):
    """Kernels on the disk, that are loaded as they are."""

    _impl_class = _Kept

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel, None if it is not there."""
        me: Any = self  # Numba is not typed
        rtsys.initialize(target_context)
        try:
            return me._load_overload(sig, target_context)
        except OSError:  # no directory, or not ours to read
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a kernel."""
        me: Any = super()
        data.library._get_module_for_linking = MethodType(_names, data.library)
        try:
            me.save_overload(sig, data)
        except OSError as error:
            why = f"{_DIRECTORY} cannot be written ({error.strerror})"
            _say_once(f"kernels are compiled for this run only: {why}")


@lru_cache
def _say_once(text: str) -> None:
    _LOG.warning(text)


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
        cache: Any = _Cache
        me._cache = cache(function)
