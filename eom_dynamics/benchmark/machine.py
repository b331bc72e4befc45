# SPDX-License-Identifier: Apache-2.0
"""The machine that times are taken on, in words."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from .. import __version__
from ..exceptions import KernelError
from ..kernel.compiler import FLAGS, find_compiler


def machine(packages: Sequence[str]) -> dict[str, str]:
    """What times depend on: processor, compiler, and the versions of Python and of those packages that are there."""
    facts = {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.release()} ({platform.machine()})",
        "compiler": _compiler(),
        "Python": platform.python_version(),
        "eom_dynamics": __version__,
    }
    for name in packages:
        try:
            facts[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            facts[name] = "not installed"
    return facts


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    facts = dict(reversed([[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line]))
    vectors = "AVX-512" if "avx512f" in facts.get("flags", "").split() else "no AVX-512"
    details = f"family {facts['cpu family']}, model {facts['model']}, " if "cpu family" in facts else ""
    return f"{facts.get('model name', platform.machine())} ({details}{vectors})"


def _compiler() -> str:
    try:
        command = find_compiler()
    except KernelError as error:
        return str(error)
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False).stdout
    return f"{version.splitlines()[0] if version else command[0]}, {' '.join(FLAGS)}"
