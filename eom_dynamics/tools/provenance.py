# SPDX-License-Identifier: Apache-2.0
"""Provenance of results for the foot of an HTML page: date, software and machine."""

from __future__ import annotations

import os
import platform
from datetime import datetime

import numpy as np

from .. import __version__
from .benchmark.machine import processor


def date() -> str:
    """Return date and time, with the time zone."""
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")


def software() -> str:
    """Return the versions of eom_dynamics, Python and NumPy."""
    return f"eom_dynamics {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"


def about(**others: str) -> dict[str, str]:
    """Return date and software with other facts, by their names with spaces for underscores."""
    return {"date": date(), "software": software(), **{name.replace("_", " "): x for name, x in others.items()}}


def machine() -> str:
    """Return processor, number of cores, and operating system."""
    return f"{processor()}, {os.cpu_count()} logical cores, {platform.system()} {platform.machine()}"
