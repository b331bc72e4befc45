# SPDX-License-Identifier: Apache-2.0
"""Exported code for tests, written to a folder, compiled and run."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from chains import fixed_case

from eom_dynamics import Robot, robot_from_parameters
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.export import LANGUAGES, Project, StoredValues, project, stored_values

FUNCTIONS: Mapping[str, Iterable[str]] = {
    "iiwa": ["effort"],
    "planar_2r": PROGRAMS,
    "mixed_chain": ["inverse_dynamics"],
    "slider": ["effort", "mass_matrix"],
    "scissors": ["effort_partials"],
}
"""Functions to export by robot: together all kinds of joints, angles and outputs."""


def robot(name: str) -> Robot:
    """A robot of :data:`FUNCTIONS`.

    The slider has no angles and a constant mass matrix; the scissors are a tree with a tool on each branch, and a mimic
    joint.
    """
    described = {"slider": _slider, "scissors": _scissors}
    return robot_from_parameters(described[name]()) if name in described else fixed_case(name, 1).robot


def export(
    robot: Robot, language: str, folder: Path, functions: Iterable[str] = PROGRAMS
) -> tuple[Project, StoredValues]:
    """Write the code of a robot to a folder."""
    exported = project(robot, functions)
    stored = stored_values(exported)
    for name, content in LANGUAGES[language](exported, stored).items():
        (folder / name).write_bytes(content)
    return exported, stored


def run(command: Sequence[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder."""
    return subprocess.run([str(x) for x in command], cwd=folder, capture_output=True, text=True, check=False)


def succeed(command: Sequence[str | Path], folder: Path) -> str:
    """Output of a command, which must succeed."""
    done = run(command, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def replace_in(file: Path, old: str, new: str) -> None:
    """Replace text, which must be present."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


BODY = {"mass": 2.0, "center_of_mass": [0.1, 0.0, 0.0], "inertia": [0.02, 0.0, 0.0, 0.02, 0.0, 0.01]}


def _slider() -> dict[str, Any]:
    origin = {"xyz": [0.0, 0.0, 0.3], "rpy": [0.0, 0.0, 0.0]}
    screws = {"x": [0.0, 0.0, 0.0, 1.0, 0.0, 0.0], "z": [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]}
    joints = {name: {"type": "prismatic", "screw": screw, "origin": origin, **BODY} for name, screw in screws.items()}
    return {"name": "slider", "joint_names": list(joints), "inertia_reference": "com", "joints": joints}


def _scissors() -> dict[str, Any]:
    origin = {"xyz": [0.2, 0.0, 0.3], "rpy": [0.3, -0.4, 0.5]}
    turn = {"type": "revolute", "screw": [0.0, 0.0, 1.0, 0.0, 0.0, 0.0], "origin": origin, **BODY}
    blade = {"parent": "arm", "screw": [0.0, 1.0, 0.0, 0.1, 0.0, 0.0]}
    return {
        "name": "scissors",
        "joint_names": ["arm", "first", "second"],
        "inertia_reference": "com",
        "tool_names": ["first", "second"],
        "joints": {
            "arm": turn,
            "first": turn | blade,
            "second": turn | blade | {"mimic": {"joint": "first", "ratio": -0.7, "offset": 0.2}},
        },
    }
