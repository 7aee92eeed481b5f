"""Compute the fingerprint of a kernel: one hash of everything that its machine code depends on.

A kernel's machine code contains the kernels that it calls, and the constants that they name. So the hash
covers the files of all these kernels, and the values that the kernels name in other files. The hash is the
same under every version of Python and NumPy, except for a kernel without a file, whose bytecode is hashed
instead. What NumPy computes may differ by the processor, so kernels make their constants with `math`
(`tests/house`). Code stored under a fingerprint is never stale, and a change of a file affects only kernels
that depend on it.
"""

from __future__ import annotations

from enum import EnumType
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.jit.operation import Operation
from onlineauto.jit.sha256 import sha256

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.jit.packing import Packed

_HERE = Path(__file__).resolve().parent
_MODULES = ("math", "numpy")
"""Modules that a kernel may name: their functions change only with the versions in the cache's name."""


@cache
def _file_digest(path: str) -> bytes:
    """Return the hash of a file; empty if it cannot be read."""
    try:
        return sha256(Path(path).read_bytes()).digest()
    except OSError:
        return b""


def _bytecode(code: CodeType) -> bytes:
    """Return bytes that identify code that has no source file, such as code from a notebook or a shell."""
    inner = (
        _bytecode(constant) if isinstance(constant, CodeType) else repr(constant).encode()
        for constant in code.co_consts
    )
    names = code.co_names, code.co_varnames, code.co_freevars
    return repr((code.co_code, names)).encode() + b"(" + b",".join(inner) + b")"


@cache
def _compiler_digest() -> bytes:
    """Return the hash of the files that emit instructions: operations, and the reading of packed words."""
    files = sorted((*_HERE.glob("compiler/*.py"), _HERE / "packing.py"))
    return sha256(b"".join(_file_digest(str(file)) for file in files)).digest()


def fingerprint_of(function: FunctionType) -> str:
    """Return the hash of a kernel's function and of everything it depends on, as hexadecimal digits."""
    digest = sha256(_compiler_digest())
    for part in sorted(map(_identity, _reachable_functions(function))):
        digest.update(sha256(part).digest())
    return digest.hexdigest()


def symbol_of(function: FunctionType, packed: Packed) -> str:
    """Return the name of a kernel's machine code, which differs if anything that the code depends on does."""
    plain = "".join(
        character if character.isalnum() else "_"
        for character in f"{function.__module__}.{function.__name__}"
    )
    return f"{plain}_{packed.name}_{fingerprint_of(function)[:16]}"


def kernels_of(function: FunctionType) -> int:
    """Return the number of kernels in a kernel's machine code, the kernel itself included."""
    return len(_reachable_functions(function))


def _reachable_functions(function: FunctionType) -> list[FunctionType]:
    """Return a kernel's function and those of all kernels that it calls."""
    functions, waiting = [function], [function]
    while waiting:
        for _, callee in _named_values(waiting.pop()):
            if isinstance(callee, FunctionType) and callee not in functions:
                functions.append(callee)
                waiting.append(callee)
    return functions


def _identity(function: FunctionType) -> bytes:
    """Return bytes that identify a function and each value that it names."""
    named = (name.encode() + b"=" + _description(value) for name, value in _named_values(function))
    return b"\n".join((_description(function), *named))


def _named_values(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a function's globals and of its closure."""
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield name, _function_of(function.__globals__[name])
    yield from _closure(function)


def _closure(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, _function_of(cell.cell_contents)


def _function_of(value: Any) -> Any:
    """Return the function of a kernel; return any other value unchanged."""
    return getattr(value, "py_func", value)


def _names(code: CodeType) -> set[str]:
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)


def _description(value: Any) -> bytes:
    """Return bytes that identify a value."""
    if isinstance(value, FunctionType):
        name = f"{value.__module__}.{value.__qualname__} ".encode()
        code = value.__code__
        around = b",".join(_description(content) for _, content in _closure(value))
        text = _file_digest(code.co_filename) or _bytecode(code)
        return name + text + b"(" + around + b")" + b"".join(map(_description, value.__defaults__ or ()))
    if isinstance(value, np.ndarray | np.generic):
        form = value.shape, value.strides, value.flags.writeable
        return _description(value.dtype) + repr(form).encode() + value.tobytes()
    if isinstance(value, bool | int | float | str | bytes | None):
        return repr(value).encode()
    if isinstance(value, tuple):
        return b"(" + b",".join(map(_description, value)) + b")"
    if isinstance(value, Operation):
        return value.name.encode() + b"".join(map(_description, value.arguments))
    if isinstance(value, EnumType):
        named: dict[str, Any] = dict(value.__members__)
        members = [(name, member.value) for name, member in named.items()]
        return repr((value.__module__, value.__qualname__, members)).encode()
    if isinstance(value, type):
        parts = getattr(value, "_fields", ()), getattr(value, "_field_defaults", ())
        return repr((value.__module__, value.__qualname__, *parts)).encode()
    if isinstance(value, np.dtype):
        return repr(value.descr if value.names else value.str).encode()
    if isinstance(value, ModuleType) and value.__name__ in _MODULES:
        return value.__name__.encode()
    if isinstance(value, BuiltinFunctionType | np.ufunc):
        return value.__name__.encode()
    raise TypeError(f"a kernel names {value!r}, on which machine code cannot depend")
