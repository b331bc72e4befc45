# SPDX-License-Identifier: Apache-2.0
"""Description of the machine that times are measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from ... import __version__
from ...codegen.compiler import FLAGS, find_compiler
from ...exceptions import KernelError


def machine(packages: Sequence[str]) -> dict[str, str]:
    """Return processor, system, compiler, and the versions of Python, eom_dynamics and these packages."""
    facts = {
        "processor": f"{processor()} ({_details()}), {os.cpu_count()} cores",
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


def processor() -> str:
    """Return the name of the processor."""
    return _cpuinfo().get("model name") or platform.processor() or platform.machine()


def _details() -> str:
    facts = _cpuinfo()
    vectors = "AVX-512" if "avx512f" in facts.get("flags", "").split() else "no AVX-512"
    return f"family {facts['cpu family']}, model {facts['model']}, {vectors}" if "cpu family" in facts else vectors


def _cpuinfo() -> dict[str, str]:
    """Return what Linux says about the first processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return dict(reversed([[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line]))


def _compiler() -> str:
    try:
        command = find_compiler()
    except KernelError as error:
        return str(error)
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False).stdout
    return f"{version.splitlines()[0] if version else command[0]}, {' '.join(FLAGS)}"
