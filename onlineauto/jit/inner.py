"""``Inner``: kernels that only kernels call, compiled without what Python would need to call them.

Numba optimises every kernel by itself, makes machine code of it, and adds a function that unpacks Python's
arguments. Then it does all of it again as part of each caller. A caller needs only the code from before these
steps, and LLVM makes the caller's own from it. Leaving the steps out takes a third of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from onlineauto.jit.entry import Entry
from onlineauto.jit.notice import announce_compiling
from onlineauto.jit.numba_private import Dispatcher, compile_for_callers, leave_code_to_callers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Inner"]


class Inner(Dispatcher):
    """A kernel that kernels call. When Python calls it, it is compiled once more, as an `Entry`.

    Attributes
    ----------
    made : int
        Number of such kernels.
    listeners : list of callable
        Called whenever one begins to be compiled; where there is none, a line is logged.
    """

    made: ClassVar[int] = 0
    listeners: ClassVar[list[Callable[[], object]]] = []

    def __init__(self, function: Callable[..., Any], settings: Mapping[str, Any]) -> None:
        super().__init__(function, settings)
        leave_code_to_callers(self)
        self._settings = dict(settings)
        self._called: Any = None
        Inner.made += 1

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel from Python."""
        if self._called is None:
            settings = {name: value for name, value in self._settings.items() if name != "forceinline"}
            self._called = Entry(self.py_func, settings)
        return self._called(*arguments)

    def compile(self, sig: Any) -> Any:
        """Compile for the argument types of `sig`; return the key by which callers find the result."""

        def tell() -> None:
            for listener in self.listeners or [announce_compiling]:
                listener()

        return compile_for_callers(self, sig, tell)
