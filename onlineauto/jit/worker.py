"""Compile programs into the cache, in a process of `onlineauto.jit.ahead`."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from onlineauto.jit.ahead import kind_of
from onlineauto.jit.cache import kernel_lock
from onlineauto.jit.code import compile_program
from onlineauto.jit.compiling import watch_compiling
from onlineauto.jit.fingerprint import symbol_of
from onlineauto.jit.packing import Packed

if TYPE_CHECKING:
    from onlineauto.work.process import Parent


def compile_listed(parent: Parent, programs: list[Any]) -> None:
    """Compile each program that no other process compiles, and send the parent the progress."""
    with watch_compiling(lambda *progress: parent.send(progress)):
        for symbol, name, kinds in programs:
            function, packed = resolve_name(name).py_func, Packed(tuple(map(kind_of, kinds)))
            with kernel_lock(f"{symbol}-ahead", wait=False) as mine:  # so that no other waits
                with kernel_lock(symbol, wait=False) as free:
                    pass
                if mine and free and symbol_of(function, packed) == symbol:  # the sources may have changed
                    compile_program(function, packed, symbol)
