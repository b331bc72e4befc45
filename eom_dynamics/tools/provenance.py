# SPDX-License-Identifier: Apache-2.0
"""Provenance of results: date, software and machine."""

from __future__ import annotations

import os
import platform
from datetime import datetime
from pathlib import Path

import numpy as np

from .. import __version__


def date() -> str:
    """Return date and time, with the time zone."""
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")


def software() -> str:
    """Return the versions of eom_dynamics, Python and NumPy."""
    return f"eom_dynamics {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"


def machine() -> str:
    """Return processor, number of cores, and operating system."""
    return f"{processor()}, {os.cpu_count()} logical cores, {platform.system()} {platform.machine()}"


def processor() -> str:
    """Return the name of the processor."""
    return cpuinfo().get("model name") or platform.processor() or platform.machine()


def cpuinfo() -> dict[str, str]:
    """Return what Linux says about the first processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return dict(reversed([[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line]))
