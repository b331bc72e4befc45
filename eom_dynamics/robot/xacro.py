# SPDX-License-Identifier: Apache-2.0
"""Xacro files, expanded to URDF by the package ``xacro`` in a process of its own.

A xacro file is a program: it may include files, read YAML, compute in Python, and run for ever. So it is expanded
only from a path that the user gives, never from a text that came over a topic, by a process that may do nothing but
read (:mod:`eom_dynamics.robot.xacro_process`): only below the folder of the file's own package, and of packages in
the ament index, with bounds on time, memory and what comes back.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ..exceptions import RobotDescriptionError
from .files import read_text
from .xml import MAX_CHARACTERS

_SECONDS = 20


def expanded(path: Path, arguments: Mapping[str, str]) -> str:
    """The URDF that a xacro file expands to.

    Args:
        path: the file.
        arguments: values of its ``<xacro:arg>``.

    Raises:
        RobotDescriptionError: it cannot be read or expanded, or the package ``xacro`` is not installed.
    """
    read_text(path, MAX_CHARACTERS)  # is it a file, and can it be read?
    if importlib.util.find_spec("xacro") is None:
        raise RobotDescriptionError(
            f"{path}: xacro files need the package xacro: pip install eom_dynamics[urdf], or the ROS 2 package xacro"
        )
    given = [f"{name}:={value}" for name, value in arguments.items()]
    command = [sys.executable, "-m", f"{__package__}.xacro_process", os.path.abspath(path), *given]
    try:
        # Python looks for modules in the folder that it starts in: in one where nobody leaves any.
        done = subprocess.run(
            command, capture_output=True, timeout=_SECONDS, env=_environment(), cwd=os.sep, check=False
        )
    except subprocess.TimeoutExpired:
        raise RobotDescriptionError(f"{path}: xacro took more than {_SECONDS} s") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise RobotDescriptionError(f"{path}: xacro: {lines[-1]:.500}")
    return done.stdout.decode("utf-8")


def _environment() -> dict[str, str]:
    """That of this process, in which the other one finds the same packages."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONUTF8": "1"}
