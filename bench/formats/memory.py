"""Peak memory of a run beside the size of its input: it must not grow.

    python -m bench.formats.memory [--megabytes 10 1000] [--json FILE]

Each run is a process of its own, ``onlineauto learn`` on a generated file of the given size; its peak is what
the operating system counted. The kernels are compiled before, by a small run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import kit
from datasets.generate import stream

FLAGS = ("--cb_explore_adf", "--quiet")


def write_stream(path: Path, *, megabytes: float) -> int:
    """Write a narrow stream of at least so many megabytes; return the number of bytes."""
    size = 0
    with path.open("wb") as file:
        for chunk in stream("narrow", events=2**40, seed=1):
            size += file.write(chunk.text)
            if size >= megabytes * 1e6:
                return size
    raise AssertionError("the stream ended")


_RUN = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-m", "onlineauto", *sys.argv[1:]], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def measure(path: Path) -> float:
    """Peak resident memory (MB) of learning a file."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *FLAGS, "-d", str(path)], capture_output=True, text=True, check=True
    )
    kilobytes = int(done.stdout) / (1024 if sys.platform == "darwin" else 1)
    return kilobytes / 1000


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; write JSON if asked to."""
    options = kit.parser(__doc__, megabytes=[10.0, 1000.0], json=Path).parse_args(argv)
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "stream.txt")
        write_stream(path, megabytes=0.1)
        measure(path)
        for megabytes in options.megabytes:
            size = write_stream(path, megabytes=megabytes)
            rows.append({"input_mb": size / 1e6, "peak_mb": measure(path)})
    print(f"{'input MB':>10} {'peak MB':>10} {'ratio':>8}")
    for row in rows:
        print(f"{row['input_mb']:10.1f} {row['peak_mb']:10.1f} {row['peak_mb'] / rows[0]['peak_mb']:8.3f}")
    kit.write_json(options.json, {"flags": FLAGS, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
