"""Build the library of kernels: compile them for each level of processors, and link each level's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from onlineauto.jit.levels import compiles_for, levels
from onlineauto.jit.library import INDEX

_SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")


def build_library(folder: Path, warm_up: list[str]) -> None:
    """Compile all kernels for each level of this kind of machine; write shared objects and their index."""
    folder.mkdir(parents=True, exist_ok=True)
    files, results = dict[str, str](), dict[str, str]()
    for level in levels():
        with tempfile.TemporaryDirectory() as cache:
            environment = os.environ | compiles_for(level) | {"ONLINEAUTO_CACHE_DIR": cache}
            subprocess.run(warm_up, check=True, env=environment, stdout=subprocess.DEVNULL)
            objects = []
            for path in sorted(Path(cache).rglob("*.o")):
                head, _, code = path.read_bytes().partition(b"\n")
                path.write_bytes(code)
                objects.append(str(path))
                results[path.stem] = json.loads(head)["result"]
            files[level] = f"kernels-{level}{_SUFFIX}"
            linker = os.environ.get("CC", "cc")
            output = str(folder / files[level])
            subprocess.run([linker, "-shared", "-s", "-o", output, *objects, "-lm"], check=True)
    (folder / INDEX).write_text(json.dumps({"files": files, "results": results}, indent=1, sort_keys=True))
