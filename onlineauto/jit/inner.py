"""``Inner``: kernels that only kernels call, compiled without what Python would need to call them.

Numba optimises every kernel by itself, makes machine code of it, and adds a function that unpacks Python's
arguments. Then it does all of it again as part of each caller. A caller needs only the code from before these
steps, and LLVM makes the caller's own from it. Leaving the steps out takes a third of the time.
"""

# ruff: noqa: SLF001 - this is a part of Numba that Numba does not have

from __future__ import annotations

from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar

from numba.core import sigutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.types import unliteral

from onlineauto.jit.entry import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Inner"]


def _no_code(flags: Any) -> Any:
    flags.no_compile = True
    flags.no_cpython_wrapper = True
    return flags


def _link(library: Any) -> None:
    """Take in what is called, and leave optimisation and machine code to the caller."""
    for callee in dict.fromkeys(library._linking_libraries):
        library._final_module.link_in(callee._get_module_for_linking(), preserve=True)
    library._finalize_dynamic_globals()
    library._finalized = True


class Inner(CPUDispatcher):
    """A kernel for kernels. Called from Python, it is compiled once more, as an `Entry`.

    Attributes
    ----------
    made : int
        Number of such kernels.
    listeners : list of callable
        Called whenever one of them begins to be compiled.
    """

    made: ClassVar[int] = 0
    listeners: ClassVar[list[Callable[[], object]]] = []

    def __init__(self, function: Callable[..., Any], settings: Mapping[str, Any]) -> None:
        super().__init__(function, targetoptions=dict(settings))
        me: Any = self
        me._compiler._customize_flags = _no_code
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
        """Compile for callers; return what they know the result by."""
        me: Any = self  # Numba is not typed
        with global_compiler_lock, me._compiling_counter:
            normalize: Any = sigutils.normalize_signature
            plain: Any = unliteral
            given, return_type = normalize(sig)
            types = tuple(plain(each) for each in given)  # not anew for every constant
            known = me.overloads.get(types)
            if known is not None:
                return known.entry_point
            for listener in self.listeners:
                listener()
            result = me._compiler.compile(types, return_type)
            result.library.finalize = MethodType(_link, result.library)
            key = object()
            me.targetctx.insert_user_function(key, result.fndesc, [result.library])
            me.overloads[types] = result._replace(entry_point=key)
            return key
