"""All uses of Numba's private parts, each with its reason; no other file may use any.

Numba's public interface is its decorators, ``numba.types``, ``numba.extending``, and the contexts and
builders that are passed to an intrinsic. The parts used here may change with every release. So
``pyproject.toml`` allows a tested range of releases (``.ci/oldest`` tests the lower end), and every private
name is listed in ``tests/jit/test_numba_private.py``.
"""

# ruff: noqa: SLF001 - this file exists for the private members

from __future__ import annotations

from types import MethodType
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, sigutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.typing.templates import AttributeTemplate

from onlineauto.jit.compiling import note_begin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

__all__ = [
    "PRIVATE_SETTINGS",
    "AttributeTemplate",
    "Inner",
    "optimized_module",
    "stack_array",
    "stack_words",
    "type_of_operation",
    "value_of",
]

# Numba would emit a wrapper for calls from C, which does not call kernels. It would also emit more code for
# counting references to arrays than for everything else. Counting is not needed: Python holds every array
# while a kernel runs, and no kernel creates or returns one.
PRIVATE_SETTINGS: Mapping[str, Any] = {"no_cfunc_wrapper": True, "_nrt": False}
"""Settings of a kernel that ``numba.jit`` does not document."""


class Dispatcher(CPUDispatcher):
    """A function that Numba compiles for each type of arguments."""

    # ``numba.jit`` creates one of these, but offers no choice of where it is cached or how it is compiled.

    def __init__(self, function: Callable[..., Any], settings: Mapping[str, Any]) -> None:
        super().__init__(function, targetoptions=dict(settings))


class Inner(Dispatcher):
    """A function that is inlined into the functions that call it."""

    # Numba has no public class for a function that is compiled only as part of its callers.

    def __init__(self, function: Callable[..., Any], settings: Mapping[str, Any]) -> None:
        super().__init__(function, settings)
        _leave_code_to_callers(self)

    def compile(self, sig: Any) -> Any:
        """Compile for the argument types of `sig`; return the key by which callers find the result."""
        return _compile_for_callers(self, sig)


def _leave_code_to_callers(dispatcher: Any) -> None:
    """Let a dispatcher produce LLVM code for its callers only, without machine code or a wrapper."""
    # Numba would optimise each kernel alone and again as a part of each of its callers, which takes three
    # times as long. The flags cannot be set anywhere else.

    def customize(flags: Any) -> Any:
        flags.no_compile = True
        flags.no_cpython_wrapper = True
        return flags

    dispatcher._compiler._customize_flags = customize


def _compile_for_callers(dispatcher: Any, signature: Any) -> Any:
    """Compile a kernel for its callers; return the key by which they find the result."""
    # This repeats Numba's ``Dispatcher.compile``, which holds Numba's lock and counts running compilations.
    # There are two differences: `_link` links the library, and a kernel is not compiled again for every
    # constant that it is called with.
    with global_compiler_lock, dispatcher._compiling_counter:
        normalize: Any = sigutils.normalize_signature  # Numba is not typed
        plain: Any = types.unliteral
        argument_types, return_type = normalize(signature)
        arguments = tuple(plain(argument) for argument in argument_types)
        known = dispatcher.overloads.get(arguments)
        if known is not None:
            return known.entry_point
        note_begin(dispatcher.py_func.__qualname__)
        result = dispatcher._compiler.compile(arguments, return_type)
        result.library.finalize = MethodType(_link, result.library)
        key = object()
        dispatcher.targetctx.insert_user_function(key, result.fndesc, [result.library])
        dispatcher.overloads[arguments] = result._replace(entry_point=key)
        return key


def _link(library: Any) -> None:
    """Link a library with those that it calls; leave optimisation and machine code to the caller."""
    for callee in dict.fromkeys(library._linking_libraries):
        library._final_module.link_in(callee._get_module_for_linking(), preserve=True)
    library._finalize_dynamic_globals()
    library._finalized = True


def optimized_module(
    function: Callable[..., Any], settings: Mapping[str, Any], arguments: tuple[Any, ...]
) -> tuple[Any, str]:
    """Return the optimised LLVM module of a function and its callees, and the function's name in it."""
    # Numba would also emit machine code into memory, for this process only.
    dispatcher: Any = Dispatcher(function, settings)
    _leave_code_to_callers(dispatcher)
    with global_compiler_lock:
        result = dispatcher._compiler.compile(arguments, types.none)
        library = result.library
        for callee in dict.fromkeys(library._linking_libraries):
            library._final_module.link_in(callee._get_module_for_linking(), preserve=True)
        library._optimize_final_module()
        module = library._final_module
        module.verify()
        library._finalized = True
    return module, result.fndesc.llvm_func_name


def type_of_operation(operation: Any) -> Any:
    """Return the type that the compiler uses for an intrinsic where a kernel names it."""
    # Numba looks up the type of every global value of a kernel, and has no public function for that.
    context: Any = cpu_target.typing_context
    context.refresh()
    return context.resolve_value_type(operation)


def stack_words(builder: Any, n: int) -> Any:
    """Return the address of `n` words in the frame of a kernel."""
    # LLVM's builder would allocate in every iteration of a loop; this allocates once, in the entry block.
    make: Any = cgutils  # Numba is not typed
    return make.alloca_once(builder, ir.IntType(64), size=ir.Constant(ir.IntType(64), n))


def stack_array(context: Any, builder: Any, kind: Any, like: NDArray[Any]) -> Any:
    """Create an array of Numba's type `kind` and of the shape of `wanted` in the stack frame of a kernel."""
    # Numba has no public way to allocate on the stack, and no other one without counting references.

    def integers(*numbers: int) -> list[Any]:
        return [context.get_constant(types.intp, number) for number in numbers]

    make: Any = cgutils  # Numba is not typed
    array = context.make_array(kind)(context, builder)
    array.nitems, array.itemsize = integers(like.size, like.itemsize)
    item = context.get_data_type(kind.dtype)
    array.data = make.alloca_once(builder, item, size=integers(like.size)[0])
    array.shape = make.pack_array(builder, integers(*like.shape))
    array.strides = make.pack_array(builder, integers(*like.strides))
    return value_of(array)


def value_of(structure: Any) -> Any:
    """Return the LLVM value of a structure of Numba, such as an array."""
    # Numba has no public name for it.
    return structure._getvalue()
