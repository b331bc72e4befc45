# SPDX-License-Identifier: Apache-2.0
"""Requirements on the machine, and how to meet each of them."""

import importlib.util
import os
import platform
import shutil
import sys
import sysconfig
from pathlib import Path


def check_machine():
    """Exit with a one-line message if this machine cannot build or run the project."""
    problem = platform_problem() or python_problem() or compiler_problem()
    if problem:
        sys.exit(f"eom_dynamics cannot be set up here: {problem}")


def platform_problem():
    """Return why the ROS 2 wheels do not run on this platform, or None."""
    here, (libc, version) = f"{platform.system()} {platform.machine()}", platform.libc_ver()
    if here != "Linux x86_64":
        return (
            f"this is {here}, but the Python packages of ROS 2 Jazzy are for Linux x86_64 only. "
            "Use such a machine or container, or run colcon build in a ROS 2 Jazzy installation."
        )
    if libc != "glibc" or tuple(int(part) for part in version.split(".")[:2]) < (2, 28):  # wheels are manylinux_2_28
        return (
            f"its C library is {libc or 'not glibc'} {version}, but the ROS 2 packages need glibc 2.28 or newer. "
            "Use a newer system, such as Debian 12 or Ubuntu 22.04."
        )
    return None


def python_problem():
    """Return why this Python cannot create .venv or build extensions, or None."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if platform.python_implementation() != "CPython":
        return f"{sys.executable} is {platform.python_implementation()}. Choose a CPython: make PYTHON=python3.12"
    if not all(map(importlib.util.find_spec, ("venv", "ensurepip"))):
        return (
            f"{sys.executable} cannot create virtual environments. "
            f"On Debian and Ubuntu: sudo apt install {name}-venv. Or choose another Python: make PYTHON=python3.12"
        )
    # A virtual environment has no headers: use the headers of its base Python.
    base = {"installed_base": sys.base_prefix, "base": sys.base_prefix}
    header = Path(sysconfig.get_path("include", vars=base)) / "Python.h"
    if not header.is_file():
        return (
            f"the C headers of {sys.executable} are missing ({header}). "
            f"On Debian and Ubuntu: sudo apt install {name}-dev. Or choose another Python: make PYTHON=python3.12"
        )
    return None


def compiler_problem():
    """Return which compiler is missing and how to get it, or None."""
    for language, variable, commands in (
        ("C", "CC", ("cc", "gcc", "clang")),
        ("C++", "CXX", ("c++", "g++", "clang++")),
    ):
        chosen = os.environ.get(variable, "").split()[:1]
        if not any(map(shutil.which, chosen or commands)):
            return (
                f"no {language} compiler found (looked for {' '.join(chosen) or ', '.join(commands)}). "
                f"On Debian and Ubuntu: sudo apt install g++. Or set {variable} to your compiler."
            )
    return None
