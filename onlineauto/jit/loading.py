"""Loading: object code into this process, by LLVM's loader and without the compiler."""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import binding

from onlineauto.jit.compiling import unforked


@cache
def _engine() -> Any:
    """Return the loader of this process."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    empty: Any = binding.parse_assembly("")
    empty.triple = binding.get_process_triple()
    target = binding.Target.from_triple(empty.triple)
    # llvmlite's memory manager places the sections of an object side by side. LLVM's own one asks for each by
    # itself: in a process that has mapped gigabytes, as an actor of Ray has, they may be too far apart to
    # refer to one another, and then LLVM aborts.
    return binding.create_mcjit_compiler(empty, target.create_target_machine(jit=True), use_lmm=True)


def load(code: bytes, symbol: str) -> int:
    """Return the address of a function of object code, loaded into this process for as long as it runs."""
    with unforked:
        engine = _engine()
        address: int = engine.get_function_address(symbol)
        if not address:  # another thread may have been faster
            engine.add_object_file(binding.ObjectFileRef.from_data(code))
            engine.finalize_object()
            address = engine.get_function_address(symbol)
    if not address:
        raise RuntimeError(f"the object code has no function {symbol}")
    return address
