"""Compile programs into the cache, for another process: ``python -m onlineauto.jit.worker``.

Standard input begins with the list of `onlineauto.jit.ahead`, a line of JSON. Its end is the end of this
process. The progress is written to standard output, a line of JSON for each kernel.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pkgutil import resolve_name

from onlineauto.jit.ahead import kind_of
from onlineauto.jit.cache import kernel_lock
from onlineauto.jit.code import compile_program
from onlineauto.jit.compiling import watch_compiling
from onlineauto.jit.fingerprint import symbol_of
from onlineauto.jit.packing import Packed


def main() -> None:
    """Compile each program that no other process compiles."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    programs = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    with watch_compiling(_show):
        for symbol, name, kinds in programs:
            function, packed = resolve_name(name).py_func, Packed(tuple(map(kind_of, kinds)))
            with kernel_lock(f"{symbol}-ahead", wait=False) as mine:  # so that no other waits
                with kernel_lock(symbol, wait=False) as free:
                    pass
                if mine and free and symbol_of(function, packed) == symbol:  # the sources may have changed
                    compile_program(function, packed, symbol)


def _show(*progress: str | int) -> None:
    sys.stdout.write(json.dumps(progress) + "\n")
    sys.stdout.flush()


def _end_with_input() -> None:
    os.read(0, 1)  # not `sys.stdin`, whose lock would make Python abort at its end
    signal.raise_signal(signal.SIGKILL)


if __name__ == "__main__":
    main()
