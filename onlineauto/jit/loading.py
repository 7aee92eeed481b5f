"""Loading: object code into this process, by LLVM's loader and without the compiler."""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Any

from llvmlite import binding

__all__ = ["load"]

_lock = threading.Lock()
if hasattr(os, "register_at_fork"):  # a child would have the locks of a thread that loads, but not the thread
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@cache
def _engine() -> Any:
    """Return the loader of this process."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    empty: Any = binding.parse_assembly("")
    empty.triple = binding.get_process_triple()
    target = binding.Target.from_triple(empty.triple)
    return binding.create_mcjit_compiler(empty, target.create_target_machine(jit=True))


def load(code: bytes, symbol: str) -> int:
    """Return the address of a function of object code, loaded into this process for as long as it runs."""
    with _lock:
        engine = _engine()
        address: int = engine.get_function_address(symbol)
        if not address:  # another thread may have been faster
            engine.add_object_file(binding.ObjectFileRef.from_data(code))
            engine.finalize_object()
            address = engine.get_function_address(symbol)
    if not address:
        raise RuntimeError(f"the object code has no function {symbol}")
    return address
