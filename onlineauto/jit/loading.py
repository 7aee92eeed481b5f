"""Load object code into this process: with the linker of `onlineauto.jit.elf`, or with LLVM's."""

from __future__ import annotations

from functools import cache
from typing import Any

from onlineauto.jit.compiling import unforked
from onlineauto.jit.elf import UnsupportedCodeError, link

_addresses: dict[str, int] = {}


def load(code: bytes, symbol: str) -> int:
    """Return the address of a function of object code, loaded into this process for as long as it runs."""
    with unforked:
        address = _addresses.get(symbol)  # another thread may have loaded it first
        if address is None:
            try:
                address = link(code, symbol)
            except UnsupportedCodeError:
                address = _load_with_llvm(code, symbol)
            _addresses[symbol] = address
        return address


def _load_with_llvm(code: bytes, symbol: str) -> int:
    from llvmlite import binding

    engine = _engine()
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address: int = engine.get_function_address(symbol)
    if not address:
        raise RuntimeError(f"the object code has no function {symbol}")
    return address


@cache
def _engine() -> Any:
    """Return LLVM's linker in this process."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    empty: Any = binding.parse_assembly("")
    empty.triple = binding.get_process_triple()
    target = binding.Target.from_triple(empty.triple)
    # llvmlite's memory manager allocates the sections of an object in one piece. LLVM's own manager allocates
    # each section separately. In a process that has mapped gigabytes, such as an actor of Ray, the sections
    # may be too far apart to refer to each other, and then LLVM aborts.
    return binding.create_mcjit_compiler(empty, target.create_target_machine(jit=True), use_lmm=True)
