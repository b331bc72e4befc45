# SPDX-License-Identifier: Apache-2.0
"""Description of the machine that times are measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from importlib import metadata

from eom_dynamics import __version__
from eom_dynamics.codegen.compiler import FLAGS, find_compiler
from eom_dynamics.exceptions import KernelError
from eom_dynamics.tools.provenance import cpuinfo, processor


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


def _details() -> str:
    facts = cpuinfo()
    vectors = "AVX-512" if "avx512f" in facts.get("flags", "").split() else "no AVX-512"
    return f"family {facts['cpu family']}, model {facts['model']}, {vectors}" if "cpu family" in facts else vectors


def _compiler() -> str:
    try:
        command = find_compiler()
    except KernelError as error:
        return str(error)
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False).stdout
    return f"{version.splitlines()[0] if version else command[0]}, {' '.join(FLAGS)}"
