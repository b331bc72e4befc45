# SPDX-License-Identifier: Apache-2.0
"""Time of the compiler, and a temporary folder."""

from __future__ import annotations

import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

from eom_dynamics.codegen.compiler import FLAGS, find_compiler


@cache
def scratch() -> Path:
    """Temporary folder of this process."""
    folder = tempfile.TemporaryDirectory(prefix="eom_dynamics_bench_")
    _kept.append(folder)
    return Path(folder.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


def compile_seconds(source: str) -> float:
    """Time to compile C source, s."""
    file = scratch() / "source.c"
    file.write_text(source)
    start = time.perf_counter()
    subprocess.run([*find_compiler(), *FLAGS, str(file), "-o", str(file.with_suffix(".so"))], check=True)
    return time.perf_counter() - start
