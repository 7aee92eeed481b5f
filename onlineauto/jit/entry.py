"""``Entry``: kernels that Python calls, loaded from disk without anything that only compiling needs.

Before Numba looks into its cache, it imports the code that compiles NumPy's functions: 60 MB, in a quarter of
a second. It also stores and loads, beside the machine code, what another kernel would need to be compiled
with this one. No kernel calls an `Entry`, so both are left out here.
"""

from __future__ import annotations

import hashlib
import logging
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onlineauto.jit.cache import cache_directory
from onlineauto.jit.numba_private import Dispatcher, KernelCache, keep_on_disk

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


class _Cache(KernelCache, locator=_Locator):
    """Kernels on the disk, if it can be read and written."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel of signature `sig` from disk, None if it is not there."""
        try:
            return super().load_overload(sig, target_context)
        except OSError:  # no directory, or one that cannot be read
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled kernel to disk; warn once if the directory cannot be written."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            why = f"{_DIRECTORY} cannot be written ({error.strerror})"
            _say_once(f"kernels are compiled for this run only: {why}")


@lru_cache
def _say_once(text: str) -> None:
    _LOG.warning(text)


class Entry(Dispatcher):
    """A kernel that Python calls. Kernels cannot call it."""

    def __init__(self, function: Callable[..., Any], settings: Mapping[str, Any]) -> None:
        super().__init__(function, settings)
        cache: Any = _Cache  # Numba is not typed
        keep_on_disk(self, cache(function))
