"""Load object code into this process with LLVM's loader, without the compiler."""

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
    # llvmlite's memory manager allocates the sections of an object in one piece. LLVM's own manager allocates
    # each section separately. In a process that has mapped gigabytes, such as an actor of Ray, the sections
    # may be too far apart to refer to each other, and then LLVM aborts.
    return binding.create_mcjit_compiler(empty, target.create_target_machine(jit=True), use_lmm=True)


def load(code: bytes, symbol: str) -> int:
    """Return the address of a function of object code, loaded into this process for as long as it runs."""
    with unforked:
        engine = _engine()
        address: int = engine.get_function_address(symbol)
        if not address:  # another thread may have loaded it first
            engine.add_object_file(binding.ObjectFileRef.from_data(code))
            engine.finalize_object()
            address = engine.get_function_address(symbol)
    if not address:
        raise RuntimeError(f"the object code has no function {symbol}")
    return address
