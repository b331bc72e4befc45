# SPDX-License-Identifier: Apache-2.0
"""Optional libraries, and the extra that installs each: ``pip install '.[EXTRA]'`` in the sources."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from types import MappingProxyType

from .exceptions import EomDynamicsError

EXTRAS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "casadi": ("casadi",),
        "cluster": ("distributed",),
        "completion": ("argcomplete",),
        "demo": ("matplotlib", "plotly", "rich"),
        "descriptions": ("robot_descriptions",),
        "mjcf": ("mujoco",),
        "parquet": ("pyarrow",),
        "replay": ("rich", "rosbags"),
        "report": ("plotly", "rich", "rosbags"),
        "retime": ("plotly", "rich"),
        "symbolic": ("sympy",),
        "xacro": ("xacro",),
    }
)
"""Modules that an extra of ``setup.cfg`` installs, by the name of the extra."""


class MissingLibraryError(EomDynamicsError, ImportError):
    """An optional library is not installed."""


def require(extra: str) -> None:
    """Raise MissingLibraryError, with the remedy, if a library of an extra, a key of :data:`EXTRAS`, is missing."""
    if message := missing(extra):
        raise MissingLibraryError(message)


def missing(extra: str) -> str | None:
    """How to install the missing libraries of an extra, a key of :data:`EXTRAS`; None if nothing is missing."""
    for module in EXTRAS[extra]:
        if not _is_installed(module):
            return (
                f"{module} is not installed; run: make build EXTRAS={extra}, or pip install '.[{extra}]' in the sources"
            )
    return None


def require_ros() -> None:
    """Raise MissingLibraryError, with the remedy, if rclpy or the messages of this package are missing."""
    for module in ("rclpy", "eom_dynamics.msg"):
        if not _is_installed(module):
            raise MissingLibraryError(
                f"{module} is not installed; run: make build, or colcon build on a ROS 2 installation, and source "
                "install/setup.bash"
            )


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
