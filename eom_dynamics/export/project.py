# SPDX-License-Identifier: Apache-2.0
"""Programs of a robot for export, with identifiers valid in all languages, units, descriptions; ROS 2 packages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources

import numpy as np

from .. import __version__
from ..arrays import at_joint, unit
from ..codegen.backends import require_numeric_robot
from ..codegen.c_functions import filled
from ..codegen.program import Program
from ..codegen.programs import WITH_PAYLOAD
from ..elastic import ElasticArm
from ..elastic.carried_rotors import SPIN
from ..elastic.motor_programs import DEFLECTION, FRICTION_STATE, MOTOR_NAMES, SETTLED
from ..elastic.motor_side import MotorSide
from ..exceptions import RobotDescriptionError
from ..robot import Robot
from ..vectors import AXES, TOOLS, VECTORS
from .functions import (
    DRIVE_COMMAND,
    DRIVE_STATE,
    FEEDFORWARD,
    FRICTION,
    FUNCTIONS,
    ON_BASE,
    PLANT,
    Function,
    function_unavailable,
    functions,
)

# MATLAB truncates names to 63 characters, and suffixes of the robot's name have up to 26.
_LONGEST_NAME = 37

SUMMARIES = {
    "inverse_dynamics": "Joint efforts with their first and second time derivatives.",
    "effort": "Joint efforts.",
    "mass_matrix": "The mass matrix.",
    "effort_partials": "Partial derivatives of the joint efforts.",
    "forward_kinematics": "Poses of the tools.",
    "tool_kinematics": "Poses and Jacobians of the tools.",
    "momentum_balance": "Momenta of the joint variables, and joint efforts less rates of these.",
    "links_with_rotors": "Joint efforts with rotors carried by the links, and efforts that accelerate these.",
    "efforts_on_base": "Joint efforts with two time derivatives on a moving base.",
    "motors": "Motion and efforts of the motors from motion of the links and efforts on them.",
    "drive": "Torque, speed, current and voltage of the motors, and their efforts within limits.",
    FRICTION: "Efforts against the friction of joints, and of motors that move as their links do.",
    "filtered": "Deflections of damped springs from one setpoint to the next.",
    "presliding": "States of presliding friction from one setpoint to the next.",
    "spring_loads": "Efforts of the springs on links and motors from positions and velocities of these.",
    "motor_loads": "Efforts of the motors against springs, gears and friction, without rotor inertia.",
    "deflections": "Deflections of the springs with two time derivatives, and efforts at motors, from joint efforts.",
    "spring_efforts": "Efforts of the springs from positions and velocities of links and motors.",
    "flat_state": "Joint accelerations and their rates from the efforts of the springs.",
    PLANT: "Accelerations of links and motors under motor efforts, without tool wrench: a plant to integrate.",
    DRIVE_COMMAND: "Drive command of a motor command: in drive units, without efforts that the robot adds itself.",
    DRIVE_STATE: "Motor state from drive units, with a fraction of the efforts that the robot adds at q and qd.",
    FEEDFORWARD: "Joint efforts, and motion and efforts of motors of elastic joints, on the link side of the gears.",
    ON_BASE: "The feedforward on a moving base.",
}
"""Description of each function."""

SUMMARIES |= {
    name + WITH_PAYLOAD: f"{text[:-1]}; with payloads at the tools, also during changes."
    for name, text in SUMMARIES.items()
}

_MATRICES = {
    "M": "mass matrix",
    "dtau_dq": "partial derivatives of tau with respect to q",
    "dtau_dqd": "partial derivatives of tau with respect to qd",
    "dtau_dqdd": "partial derivatives of tau with respect to qdd, the mass matrix",
}

_NOTES = {
    "spring_efforts": ["Zero at rigid joints; spring_effort_rate is also zero at damped springs."],
    "drive": ["current and voltage are NaN for unknown motor constants."],
    PLANT: [
        "The motor of a rigid joint moves with its link: theta and thetad are read there for friction only.",
        "Accelerations are NaN for a singular mass matrix.",
    ],
}


def template(name: str) -> str:
    """Text of a template with ``@fields@``, or of a file that is the same for every robot."""
    return (resources.files(__package__) / "templates" / name).read_text(encoding="ascii")


@dataclass(frozen=True)
class Project:
    """Functions of a robot under names for all languages.

    Attributes:
        robot: the robot.
        side: its motor side.
        name: the robot's name as an identifier.
        joints: names of the joints as unique identifiers in capitals.
        functions: programs by function; their names are ``{name}_{function}``.
    """

    robot: Robot
    side: MotorSide
    name: str
    joints: tuple[str, ...]
    functions: dict[str, Function]

    @cached_property
    def arm(self) -> ElasticArm:
        """Arm of the robot, on NumPy: compiling its kernels would take longer than these few evaluations."""
        return ElasticArm(self.robot, backend="numpy")

    @property
    def programs(self) -> dict[str, Program]:
        """The straight-line programs by function."""
        return {name: function for name, function in self.functions.items() if isinstance(function, Program)}

    @property
    def library(self) -> str:
        """Name of the library."""
        return f"{self.name}_dynamics"

    def notice(self) -> list[str]:
        """File header, in ASCII: origin, joints and conventions."""
        robot = self.robot
        rows = [
            (str(k), joint.type, unit("position", joint.type), unit("effort", joint.type), in_ascii(joint.name))
            for k, joint in enumerate(robot.independent_joints)
        ]
        gravity = " ".join(f"{x:.10g}" for x in robot.gravity)
        return [
            f"Generated by eom_dynamics {__version__} for the robot {in_ascii(robot.name)}; do not edit.",
            "This file is yours: eom_dynamics claims no rights to generated code.",
            "",
            "Joints, in the order of all joint vectors:",
            "",
            *("  " + line for line in table([("", "type", "unit of q", "of tau", "name"), *rows])),
            "",
            "SI units. W is the wrench that the robot exerts on its surroundings at each tool, in the tool's frame:",
            f"moment x y z in N m, force x y z in N; tools: {', '.join(in_ascii(tool.name) for tool in robot.tools)}.",
            f"Gravity is a constant of the code: [{gravity}] m/s^2 in the base frame.",
        ]

    def notice_as(self, prefix: str) -> str:
        """File header as comment lines with a prefix."""
        return "\n".join(f"{prefix}{line}".rstrip() for line in self.notice())

    def meaning(self, vector: str) -> str:
        """Description of an input or output, with its unit."""
        if vector in _MATRICES:
            return f"{_MATRICES[vector]}, SI units"
        if is_pose(vector):
            tool = self.robot.tools[int(vector.partition("_")[2] or 1) - 1]
            return f"pose of {in_ascii(tool.name)} in the base frame, m"
        family, k = VECTORS[vector]
        if family.order < 0:
            return family.about
        text = f"time derivative {k} of {family.names[0]}" if k else family.about
        order = family.order + k
        rate = f"/s^{order}" if order > 1 else "/s" * order
        if not family.unit:
            return text + f", per {rate[1:]}" * (k > 0)
        types = ["revolute"] if family.of in (AXES, TOOLS) else [joint.type for joint in self.robot.independent_joints]
        units = (at_joint(family.unit, x).replace(" and ", f"{rate} and ") + rate for x in types)
        return f"{text}, {' or '.join(dict.fromkeys(units))}"

    def notes(self, function: str) -> list[str]:
        """User notes on a function, in ASCII, one line each."""
        side, vectors = self.side, {**self.functions[function].inputs, **self.functions[function].outputs}
        names, notes = [in_ascii(name) for name in side.joint_names], list(_NOTES.get(function, []))
        if {*MOTOR_NAMES, "theta", SPIN} & vectors.keys():
            notes.append(f"Motors, in the order of motor vectors: {', '.join(map(in_ascii, side.motor_names))}.")
        if "kdd" in vectors:
            commanded = [f"{names[i]} (nominally {side.rest_stiffness[i]:g})" for i in np.flatnonzero(side.variable)]
            notes.append(f"k, kd and kdd are read at {', '.join(commanded)}.")
            notes.append("All results of the motors of a joint are NaN where its k is out of range.")
        if DEFLECTION in vectors:
            damped = ", ".join(names[i] for i in np.flatnonzero(side.damped))
            transient = "" if "step" in vectors else f"; {SETTLED:g}: steady state"
            notes.append(f"{DEFLECTION} is read at {damped}{transient}.")
        if FRICTION_STATE in vectors:
            sliding = ", ".join(in_ascii(side.motor_names[i]) for i in np.flatnonzero(side.presliding))
            unknown = "" if "step" in vectors else f"; {SETTLED:g}: by the velocity"
            notes.append(f"{FRICTION_STATE} is read at {sliding}{unknown}.")
        return notes


def is_pose(vector: str) -> bool:
    """True for an output that is a pose (4, 4)."""
    return vector.partition("_")[0] == "C"


def matrix_size(vector: str, n: int) -> int:
    """Number of rows and columns of an output that is a square matrix; 0 for a vector."""
    if is_pose(vector):
        return 4
    return n if vector in _MATRICES else 0


def project(robot: Robot, wanted: Iterable[str]) -> Project:
    """Functions of a robot for export.

    Args:
        robot: the robot.
        wanted: names from :data:`.FUNCTIONS`; functions that they call are exported, too.

    Raises:
        TypeError: ``robot`` is not a Robot (for example a floating base or closed loops), or has symbols.
        RobotDescriptionError: a function is not available for the robot, see :func:`.capabilities`.
    """
    require_numeric_robot(robot)
    wanted, side = list(wanted), MotorSide.of(robot)
    for function in wanted:
        if reason := function_unavailable(robot, side, function):
            others = ", ".join(name for name in FUNCTIONS if not function_unavailable(robot, side, name))
            raise RobotDescriptionError(f"{reason}; functions that can be exported: {others}")
    name = identifier(robot.name, "robot")
    if name.lower() == "eom" or name.lower().startswith("eom_"):  # the prefix of code shared by all robots
        name = f"robot_{name}"
    name = name[:_LONGEST_NAME].rstrip("_")
    return Project(
        robot=robot,
        side=side,
        name=name,
        joints=_unique([identifier(joint, "joint").upper() for joint in robot.joint_names]),
        functions=functions(robot, side, wanted, name),
    )


def identifier(name: str, kind: str) -> str:
    """Identifier in C and MATLAB for a name, with the prefix ``kind`` if it does not begin with a letter."""
    cleaned = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return cleaned if cleaned[:1].isalpha() else f"{kind}_{cleaned}".rstrip("_")


def in_ascii(name: str) -> str:
    """Name as printable ASCII that is safe in comments, with other characters escaped."""
    escaped = name.encode("unicode_escape").decode("ascii")
    return re.sub(r"\*/|/\*|\?\?", lambda match: " ".join(match.group()), escaped)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    taken: dict[str, None] = {}
    for name in names:
        number, candidate = 1, name
        while candidate in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken[candidate] = None
    return tuple(taken)


_CMAKE_NAMES = {"eigen": "Eigen3"}

_IN_XML = ((" ", "\ud7ff"), ("\ue000", "\ufffd"), ("\U00010000", "\U0010ffff"))


def ros_package(
    name: str, description: str, notice: str, depends: Sequence[str], build: str, launched: Sequence[str] = ()
) -> dict[str, str]:
    """Text of package.xml and CMakeLists.txt.

    Args:
        description: description in XML.
        notice: comment at the head of the build file.
        depends: packages to build and run with.
        build: end of the build file.
        launched: packages to run with.
    """
    needed = [f"  <depend>{x}</depend>" for x in depends] + [f"  <exec_depend>{x}</exec_depend>" for x in launched]
    packages = [f"find_package({_CMAKE_NAMES.get(x, x)} REQUIRED)" for x in ("ament_cmake", *depends)]
    version = ".".join(__version__.split(".")[:3])  # a ROS package has three numbers
    values = {"package": name, "version": version, "description": description, "notice": notice}
    values |= {"needed": "\n".join(needed), "packages": "\n".join(packages)}
    texts = [filled(template(file), **values) for file in ("package.xml.in", "ros_package.cmake.in")]
    return {"package.xml": texts[0], "CMakeLists.txt": texts[1] + build}


def refused_names(robot: Robot) -> str | None:
    """Reason why XML cannot contain a name of the robot, even escaped; None if it can."""
    for name in (robot.name, *robot.joint_names):
        if not all(x in "\t\n\r" or any(low <= x <= high for low, high in _IN_XML) for x in name):
            return f"XML cannot have the name {name!r}: rename it without such characters"
    return None
