"""Generate object code from optimised bitcode, without Numba, and load it into this process.

Code for ELF on x86-64 is loaded by a small linker, because LLVM's own takes 45 MB of memory. Kernels need
little of what a linker can do: their code refers to itself, and calls functions of the C library. `link`
raises `UnsupportedCodeError` for everything else, which LLVM then loads.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
from contextlib import suppress
from functools import cache
from struct import Struct, error
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onlineauto.jit.compiling import unforked

if TYPE_CHECKING:
    from collections.abc import Iterator


_addresses: dict[str, int] = {}

_HEADER = Struct("<16sHHIQQQIHHHHHH")
_SECTION = Struct("<IIQQQQIIQQ")
_SYMBOL = Struct("<IBBHQQ")
_RELOCATION = Struct("<QQq")
_IDENT: Final = b"\x7fELF\x02\x01\x01"
_RELOCATABLE, _X86_64 = 1, 62
_SYMTAB, _RELA, _NOBITS, _UNWIND = 2, 4, 8, 0x70000001
_WRITABLE, _IN_MEMORY = 1, 2
_UNDEFINED = 0
_ABSOLUTE, _RELATIVE, _CALL = 1, 2, 4
"""Kinds of relocations: R_X86_64_64, R_X86_64_PC32 and R_X86_64_PLT32."""
_JUMP: Final = b"\xff\x25\x00\x00\x00\x00"
"""A jump to the address that follows; a call reaches 2 GB only, and the C library may be further away."""
_STUB_SIZE: Final = 16
_regions: list[Any] = []
"""The memory of linked code, which exists as long as the process."""


class UnsupportedCodeError(Exception):
    """The object code has a part that is not supported here, or the system has another format."""


class _Section(NamedTuple):
    """A section header; the fields are those of ELF's specification."""

    name: int
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    info: int
    addralign: int
    entsize: int

    def content(self, code: bytes) -> bytes:
        """Return the bytes of the section in a file; empty if memory begins as zeros."""
        return b"" if self.type == _NOBITS else code[self.offset : self.offset + self.size]


def link(code: bytes, symbol: str) -> int:
    """Return the address of a function of object code, linked into this process for as long as it runs."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise UnsupportedCodeError("the system is not Linux on x86-64")
    try:
        return _link(code, symbol)
    except OSError as problem:  # such as a system that does not let a process make memory executable
        raise UnsupportedCodeError(f"the memory is not available: {problem}") from problem
    except (error, LookupError, OverflowError, ValueError) as problem:
        raise UnsupportedCodeError(f"the file has an unknown part: {problem}") from problem


def _link(code: bytes, symbol: str) -> int:
    sections = _sections(code)
    symbols = list(_symbols(code, sections))
    functions = [name for name, section, _ in symbols if section == _UNDEFINED and name]
    places, constant, size = _places(sections, begin=_STUB_SIZE * len(functions))
    region = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(region))
    for i, name in enumerate(functions):
        stub = _JUMP + _function(name).to_bytes(8, "little")
        region[_STUB_SIZE * i : _STUB_SIZE * i + len(stub)] = stub
    for i, place in places.items():
        content = sections[i].content(code)
        region[place : place + len(content)] = content
    found = {name: places[section] + value for name, section, value in symbols if name and section in places}
    for table in sections:
        if table.type == _RELA and table.info in places:
            for offset, info, addend in _RELOCATION.iter_unpack(table.content(code)):
                kind, at = info & 0xFFFFFFFF, places[table.info] + offset
                name, section, value = symbols[info >> 32]
                calls = section == _UNDEFINED
                value += (_STUB_SIZE * functions.index(name) if calls else places[section]) + addend
                if kind == _CALL or (kind == _RELATIVE and not calls):
                    region[at : at + 4] = (value - at).to_bytes(4, "little", signed=True)
                elif kind == _ABSOLUTE and not calls:
                    region[at : at + 8] = (base + value).to_bytes(8, "little")
                else:
                    raise ValueError(f"a relocation is of kind {kind}")
    address = base + found[symbol]
    _make_executable(base, constant)
    _regions.append(region)
    return address


def _sections(code: bytes) -> list[_Section]:
    """Return the section headers of a file."""
    ident, kind, machine, _, _, _, begin, _, _, _, _, size, n, _ = _HEADER.unpack_from(code)
    if not ident.startswith(_IDENT) or (kind, machine, size) != (_RELOCATABLE, _X86_64, _SECTION.size):
        raise ValueError("it is not object code for x86-64")
    return [_Section(*fields) for fields in _SECTION.iter_unpack(code[begin : begin + n * size])]


def _symbols(code: bytes, sections: list[_Section]) -> Iterator[tuple[str, int, int]]:
    """Yield the name, the section and the offset of each symbol."""
    for table in sections:
        if table.type == _SYMTAB:
            texts = sections[table.link].content(code)
            for name, _, _, section, value, _ in _SYMBOL.iter_unpack(table.content(code)):
                yield texts[name : texts.index(b"\0", name)].decode(), section, value


def _places(sections: list[_Section], begin: int) -> tuple[dict[int, int], int, int]:
    """Return the offset of each section in memory, and the size of the constant ones (first) and of all."""
    places, constant = dict[int, int](), 0
    for writable in (0, _WRITABLE):
        for i, section in enumerate(sections):
            if (
                section.flags & _IN_MEMORY
                and section.flags & _WRITABLE == writable
                and section.type != _UNWIND
            ):
                begin = _round_up(begin, max(section.addralign, 1))
                places[i] = begin
                begin += section.size
        begin = _round_up(begin, mmap.PAGESIZE)
        constant = constant or begin
    return places, constant, begin


def _round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


@cache
def _function(name: str) -> int:
    """Return the address of a function of the C library."""
    for library in (None, "libm.so.6"):
        with suppress(AttributeError):
            return ctypes.cast(ctypes.CDLL(library)[name], ctypes.c_void_p).value or 0
    raise ValueError(f"the C library has no function {name}")


def _make_executable(address: int, size: int) -> None:
    process = ctypes.CDLL(None, use_errno=True)
    protect = process.mprotect
    protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    if protect(address, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


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


def processor() -> tuple[str, str]:
    """Return the name and the features of the processor that code is for; Numba reads the same variables."""
    from llvmlite import binding

    name, features = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:
        host: Any = binding.get_host_cpu_features()
        features = "" if name == "generic" else host.flatten()
    return name or binding.get_host_cpu_name(), features


def object_code(bitcode: bytes) -> bytes:
    """Return the object code of a module, relocatable, to be loaded alone or linked into a library."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    module: Any = binding.parse_bitcode(bitcode, binding.create_context())
    target: Any = binding.Target.from_triple(binding.get_process_triple())
    name, features = processor()
    machine = target.create_target_machine(
        cpu=name, features=features, opt=3, reloc="pic", codemodel="default"
    )
    code: bytes = machine.emit_object(module)
    return code
