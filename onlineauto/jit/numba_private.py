"""All uses of Numba's private parts, each with its reason; no other file may touch any.

Numba keeps what its manual shows: its decorators, ``numba.types``, ``numba.extending``, and the contexts and
builders that an intrinsic is given. What is here may change with every release. So the releases that may be
installed are a tested range (``pyproject.toml``; ``.ci/oldest`` tests its lower end), and every private name
is listed in ``tests/jit/test_numba_private.py``.
"""

# ruff: noqa: SLF001 - private members are what this file is about

from __future__ import annotations

from types import MethodType
from typing import TYPE_CHECKING, Any

from llvmlite import binding
from numba import types
from numba._dispatcher import compute_fingerprint
from numba.core import cgutils, sigutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

__all__ = [
    "PRIVATE_SETTINGS",
    "Dispatcher",
    "KernelCache",
    "Typed",
    "code_of",
    "compile_for_callers",
    "fingerprint_of",
    "keep_on_disk",
    "leave_code_to_callers",
    "stack_array",
]

# Numba would write a function for C to call, which nobody does. And it would write code that counts the
# references to arrays, more of it than all the rest; but Python holds an array for as long as a kernel runs,
# and no kernel makes or returns one.
PRIVATE_SETTINGS: Mapping[str, Any] = {"no_cfunc_wrapper": True, "_nrt": False}
"""Settings of a kernel that ``numba.jit`` does not document."""


class Dispatcher(CPUDispatcher):
    """A function that Numba compiles for each type of arguments."""

    # ``numba.jit`` makes one of these, but gives no choice of where it is cached or of how it is compiled.

    def __init__(self, function: Callable[..., Any], settings: Mapping[str, Any]) -> None:
        super().__init__(function, targetoptions=dict(settings))


class KernelCache(FunctionCache):
    """Kernels of one function on the disk, loaded without what only compiling needs.

    Subclasses name the class of their `locator`, which has the methods of Numba's and says where kernels lie.
    """

    def __init_subclass__(cls, *, locator: Any) -> None:
        # Numba asks its own list of locators, which depends on the file of the function and its date.
        class Found(CompileResultCacheImpl):
            _locator_classes = [locator]  # noqa: RUF012 - Numba's

        cls._impl_class = Found

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        # Numba's key has a pickle of what the function takes from the one around it, and pickles of kernels
        # are never the same. Here a kernel counts by its name: what is in it, the stamps say.
        me: Any = self
        function = me._py_func
        taken = [cell.cell_contents for cell in function.__closure__ or ()]
        names = [repr(getattr(each, "py_func", each)).partition(" at 0x")[0] for each in taken]
        return sig, codegen.magic_tuple(), (function.__code__.co_code, *names)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel, None if it is not there."""
        # The public method first imports what compiling needs, 60 MB of it, even if there is nothing to
        # compile. Of all that, a kernel that is loaded needs Numba's runtime alone.
        me: Any = self  # Numba is not typed
        rtsys.initialize(target_context)
        return me._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a kernel."""
        # What is kept for callers that are yet to be compiled is never asked for: entries have none.
        me: Any = super()
        data.library._get_module_for_linking = MethodType(_names_alone, data.library)
        me.save_overload(sig, data)


def _names_alone(library: Any) -> Any:
    """Make a module of functions and variables that are there by name only, as Numba looks them up."""
    module = library._final_module
    lines = [
        f'define void @"{each.name}"() {{ ret void }}' for each in module.functions if not each.is_declaration
    ]
    lines += [f'@"{each.name}" = global i8 0' for each in module.global_variables if not each.is_declaration]
    empty = str(library._codegen._create_empty_module(library.name))
    return binding.parse_assembly("\n".join([empty, *lines]))


def keep_on_disk(dispatcher: Any, cache: KernelCache) -> None:
    """Have the kernels of a dispatcher loaded from a cache, and saved into it."""
    # ``cache=True`` chooses Numba's own cache.
    dispatcher._cache = cache


def code_of(dispatcher: Any, arguments: tuple[Any, ...]) -> int:
    """Return the address of the machine code that a dispatcher has for arguments of these types."""
    # Numba gives addresses only of functions for C to call, which raise nothing and take no tuples.
    dispatcher.compile(arguments)
    overload = dispatcher.overloads[arguments]
    return int(overload.library.get_pointer_to_function(overload.fndesc.llvm_func_name))


def leave_code_to_callers(dispatcher: Any) -> None:
    """Have a dispatcher make the code that callers take in, and neither machine code nor a wrapper."""
    # Numba would optimise each kernel by itself and then once more as a part of each of its callers: three
    # times the time. The flags have no other place to be set.

    def customize(flags: Any) -> Any:
        flags.no_compile = True
        flags.no_cpython_wrapper = True
        return flags

    dispatcher._compiler._customize_flags = customize


def compile_for_callers(dispatcher: Any, signature: Any, begin: Callable[[], object]) -> Any:
    """Compile a kernel that leaves code to its callers; return what they know the result by.

    Parameters
    ----------
    dispatcher : Dispatcher
        One of `leave_code_to_callers`.
    signature : tuple or signature
        Types of the arguments.
    begin : callable
        Called before it is compiled, if it is not compiled already.
    """
    # This is Numba's ``Dispatcher.compile``, which holds Numba's lock and counts what is being compiled, with
    # two differences: the library is linked as `_link` says, and a kernel is not compiled anew for every
    # constant that it is called with.
    with global_compiler_lock, dispatcher._compiling_counter:
        normalize: Any = sigutils.normalize_signature  # Numba is not typed
        plain: Any = types.unliteral
        given, return_type = normalize(signature)
        arguments = tuple(plain(each) for each in given)
        known = dispatcher.overloads.get(arguments)
        if known is not None:
            return known.entry_point
        begin()
        result = dispatcher._compiler.compile(arguments, return_type)
        result.library.finalize = MethodType(_link, result.library)
        key = object()
        dispatcher.targetctx.insert_user_function(key, result.fndesc, [result.library])
        dispatcher.overloads[arguments] = result._replace(entry_point=key)
        return key


def _link(library: Any) -> None:
    """Link what the library calls; leave optimisation and machine code to the caller."""
    for callee in dict.fromkeys(library._linking_libraries):
        library._final_module.link_in(callee._get_module_for_linking(), preserve=True)
    library._finalize_dynamic_globals()
    library._finalized = True


def fingerprint_of(value: Any) -> bytes:
    """Return the bytes that Numba's dispatcher knows the type of a value by."""
    # ``numba.typeof`` takes a hundred times as long, for a tuple of fifty arrays.
    found: bytes = compute_fingerprint(value)
    return found


class Typed:
    """A value that says of what type it is to Numba."""

    # ``numba.typeof`` reads this attribute; what it can be taught instead is asked in Python, at every call.

    __slots__ = ("_numba_type_",)

    def __init__(self, kind: types.Type) -> None:
        self._numba_type_ = kind


def stack_array(context: Any, builder: Any, kind: Any, wanted: NDArray[Any]) -> Any:
    """Make an array of Numba's type `kind` and of the shape of `wanted`, in the frame of a kernel."""
    # Numba has no public way to have room on the stack, and no other one without counting references.

    def integers(*numbers: int) -> list[Any]:
        return [context.get_constant(types.intp, number) for number in numbers]

    make: Any = cgutils  # Numba is not typed
    array = context.make_array(kind)(context, builder)
    array.nitems, array.itemsize = integers(wanted.size, wanted.itemsize)
    item = context.get_data_type(kind.dtype)
    array.data = make.alloca_once(builder, item, size=integers(wanted.size)[0])
    array.shape = make.pack_array(builder, integers(*wanted.shape))
    array.strides = make.pack_array(builder, integers(*wanted.strides))
    return array._getvalue()
