"""Generate object code from LLVM bitcode that is already optimised, without Numba."""

from __future__ import annotations

import os
from typing import Any

from llvmlite import binding


def processor() -> tuple[str, str]:
    """Return the name and the features of the processor that code is for; Numba reads the same variables."""
    name, features = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:
        host: Any = binding.get_host_cpu_features()
        features = "" if name == "generic" else host.flatten()
    return name or binding.get_host_cpu_name(), features


def object_code(bitcode: bytes) -> bytes:
    """Return the object code of a module, relocatable, to be loaded alone or linked into a library."""
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
