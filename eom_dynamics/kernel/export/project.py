# SPDX-License-Identifier: Apache-2.0
"""What is exported of a robot: its programs, names that every language takes, and the words that explain them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ... import __version__
from ...robot import Robot
from ...states import EFFORT_NAMES, WRENCH_NAMES
from ..program import Program
from ..programs import PROGRAMS

# MATLAB takes names of 63 characters, and what is appended to the robot's has up to 22.
_LONGEST_NAME = 40

# Of joint variables, and of efforts, for joints that turn and joints that slide.
_UNITS = {"prismatic": ("m", "N"), "revolute": ("rad", "N m"), "helical": ("rad", "N m")}

# What a vector is, and the order of its time derivative.
_VECTORS = {
    "q": ("joint variables", 0),
    "qd": ("joint velocities", 1),
    "qdd": ("joint accelerations", 2),
    "qddd": ("third time derivative of q", 3),
    "qdddd": ("fourth time derivative of q", 4),
    "W": ("tool wrench", 0),
    "Wd": ("its time derivative", 1),
    "Wdd": ("its second time derivative", 2),
    "tau": ("joint efforts", 0),
    "taud": ("their time derivative", 1),
    "taudd": ("their second time derivative", 2),
}

SUMMARIES = {
    "inverse_dynamics": "Joint efforts with their first and second time derivatives.",
    "effort": "Joint efforts alone.",
    "mass_matrix": "The mass matrix.",
    "effort_partials": "Partial derivatives of the joint efforts.",
}
"""What each function computes."""

_MATRICES = {
    "M": "mass matrix",
    "dtau_dq": "partial derivatives of tau by q",
    "dtau_dqd": "partial derivatives of tau by qd",
    "dtau_dqdd": "partial derivatives of tau by qdd: the mass matrix",
}


@dataclass(frozen=True)
class Project:
    """A robot's programs and its names, for all languages.

    Attributes:
        robot: the robot.
        name: the robot's name as an identifier.
        joints: the joints' names as identifiers in capitals, all different.
        programs: the programs by their names without the robot's; each is named ``{name}_{function}``.
    """

    robot: Robot
    name: str
    joints: tuple[str, ...]
    programs: dict[str, Program]

    @property
    def library(self) -> str:
        """The name of the whole: of the library, the header and the test."""
        return f"{self.name}_dynamics"

    def notice(self) -> list[str]:
        """What stands at the head of each file, in ASCII: whose it is, the joints, the conventions."""
        robot = self.robot
        rows = [
            (str(k), joint.type, *_UNITS[joint.type], plain(joint.name))
            for k, joint in enumerate(robot.independent_joints)
        ]
        gravity = " ".join(f"{x:.10g}" for x in robot.gravity)
        return [
            f"Made by eom_dynamics {__version__} for the robot {plain(robot.name)}. Do not edit: make it anew.",
            "This file is yours; eom_dynamics lays no claim to what it generates.",
            "",
            "Joints, in the order of all joint vectors:",
            "",
            *("  " + line for line in table([("", "type", "unit of q", "of tau", "name"), *rows])),
            "",
            "SI units throughout. Twists have the angular part first, wrenches the moment.",
            "W is the wrench that the robot exerts on its surroundings at each tool, in the tool's frame:",
            f"moment x y z in N m, force x y z in N; tools: {', '.join(plain(tool.name) for tool in robot.tools)}.",
            f"Gravity is part of the code: [{gravity}] m/s^2 in the frame of the base.",
        ]

    def meaning(self, vector: str) -> str:
        """What an input or output is, with its unit."""
        if vector in _MATRICES:
            return f"{_MATRICES[vector]}, SI units"
        text, order = _VECTORS[vector]
        rate = "" if order == 0 else "/s" if order == 1 else f"/s^{order}"
        if vector in WRENCH_NAMES:
            return f"{text}, N m{rate} and N{rate}"
        which = int(vector in EFFORT_NAMES)
        units = dict.fromkeys(_UNITS[joint.type][which] for joint in self.robot.independent_joints)
        return f"{text}, {' or '.join(unit + rate for unit in units)}"


def is_matrix(vector: str) -> bool:
    """Whether an output is a matrix (n, n) rather than a vector."""
    return vector in _MATRICES


def project(robot: Robot, functions: Iterable[str]) -> Project:
    """The programs of a robot under names that every language takes.

    Args:
        robot: the robot.
        functions: names from :data:`.programs.PROGRAMS`.
    """
    name = identifier(robot.name, "robot")[:_LONGEST_NAME].rstrip("_")
    return Project(
        robot=robot,
        name=name,
        joints=_all_different([identifier(joint, "joint").upper() for joint in robot.joint_names]),
        programs={function: replace(PROGRAMS[function](robot), name=f"{name}_{function}") for function in functions},
    )


def identifier(name: str, kind: str) -> str:
    """A name as an identifier of C and MATLAB; ``kind`` stands before one that does not begin with a letter."""
    cleaned = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return cleaned if cleaned[:1].isalpha() else f"{kind}_{cleaned}".rstrip("_")


def plain(name: str) -> str:
    """A name as text that ends no comment: printable ASCII, anything else as an escape."""
    escaped = name.encode("unicode_escape").decode("ascii")
    return re.sub(r"\*/|/\*|\?\?", lambda match: " ".join(match.group()), escaped)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _all_different(names: Sequence[str]) -> tuple[str, ...]:
    taken: dict[str, None] = {}
    for name in names:
        number, candidate = 1, name
        while candidate in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken[candidate] = None
    return tuple(taken)
