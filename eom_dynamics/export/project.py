# SPDX-License-Identifier: Apache-2.0
"""A robot's programs for export, with identifiers valid in all languages, units and descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .. import __version__
from ..arrays import SHAFT_UNITS, STATE_NAMES, unit
from ..codegen.backends import require_numeric_robot
from ..codegen.program import Program
from ..codegen.programs import WITH_PAYLOAD
from ..elastic import ElasticArm
from ..elastic.carried_rotors import SPIN
from ..elastic.drive_programs import DRIVE_NAMES, SHARE
from ..elastic.motor_programs import DEFLECTION, FRICTION_STATE, MOTOR_NAMES, SETTLED
from ..elastic.motor_side import MotorSide
from ..exceptions import RobotDescriptionError
from ..robot import Robot
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

# Vectors and their time derivatives, the meaning of the first, its quantity, and the order of its derivative.
_FAMILIES = (
    (STATE_NAMES, "joint variables", "position", 0),
    (("W", "Wd", "Wdd"), "tool wrench", "wrench", 0),
    (("k", "kd", "kdd"), "commanded stiffness", "stiffness", 0),
    (("deflection",), "present deflections of damped springs", "position", 0),
    (("deflection_now",), "deflections of damped springs after the step", "position", 0),
    (("tau_before", "taud_before", "taudd_before"), "joint efforts at the start of the step", "effort", 0),
    (("tau", "taud", "taudd"), "joint efforts", "effort", 0),
    (("motor_position", "motor_velocity", "motor_acceleration"), "motor positions", "position", 0),
    (("motor_position_before",), "motor positions at the setpoint before", "position", 0),
    (("motor_effort",), "motor efforts", "effort", 0),
    (("theta", "thetad"), "motor positions", "position", 0),
    (("tau_m",), "motor efforts", "effort", 0),
    (("joint_friction",), "efforts against the friction of joints that is part of their efforts", "effort", 0),
    (("motor_friction",), "efforts against the friction of motors without presliding", "effort", 0),
    (("spin",), "motor efforts that accelerate the rotors", "effort", 0),
    (("clipped_effort",), "motor efforts within the limits of torque, current and voltage", "effort", 0),
    (("spring_effort", "spring_effort_rate"), "efforts of the springs on the links", "effort", 0),
    (("stiffness", "stiffness_rate"), "commanded stiffness, of pairs that of the deflections", "stiffness", 0),
    (("sent_effort", "sent_effort_rate"), "joint efforts without those that the robot adds", "effort", 0),
    (("beta",), "joint efforts less rates of the momenta", "effort", 0),
    (("on_links",), "efforts of the springs on the links", "effort", 0),
    (("load",), "efforts of the springs at the motors", "effort", 0),
    (("effort",), "motor efforts without acceleration", "effort", 0),
    (("delta", "deltad", "deltadd"), "deflections at the motors", "position", 0),
    (("link_acceleration",), "joint accelerations", "position", 2),
    (("rotor_acceleration",), "motor accelerations", "position", 2),
)

_VECTORS = {
    name: (text if k == 0 else f"time derivative {k} of {names[0]}", quantity, order + k)
    for names, text, quantity, order in _FAMILIES
    for k, name in enumerate(names)
}

# Of the base, and of motor shafts.
_OTHERS = {
    "w": "angular velocity of the base in its frame, rad/s",
    "wd": "its time derivative, rad/s^2",
    "wdd": "its second time derivative, rad/s^3",
    "wddd": "its third time derivative, rad/s^4",
    "f": "specific force at the origin of the base in its frame: acceleration less gravity, m/s^2",
    "fd": "its time derivative, m/s^3",
    "fdd": "its second time derivative, m/s^4",
    "p": "momenta of the joint variables, N m s and N s",
    "step": "time of the step, s; zero keeps deflections; negative: those without transient, and friction by velocity",
    FRICTION_STATE: "states of presliding friction, -1 to 1",
    f"{FRICTION_STATE}_now": "states of presliding friction after the step, -1 to 1",
    SHARE: "of the efforts that the robot adds, and its time derivative: 1 and 0 but while efforts fade; 1, 1/s",
    **dict.fromkeys(DRIVE_NAMES, "of the motors, in the units of their drives"),
    "tool_poses": "poses of all tools in the base frame, 4 x 4 each, row-major, m",
    "tool_jacobians": "Jacobians of all tools in their frames, 6 x n each, row-major: angular velocity, velocity",
    "P": "inertial parameters of the payload at each tool, in its frame: mass, first moment x y z, inertia about the "
    "origin xx xy xz yy yz zz; kg, kg m, kg m^2",
    "Pd": "their time derivative, per s",
    "Pdd": "their second time derivative, per s^2",
} | {name: f"{name} of the motors before their gears, {text}" for name, text in SHAFT_UNITS.items()}

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
    "motor_loads": "Efforts of the motors against springs, gears and friction, without those of the rotors.",
    "deflections": "Deflections of the springs with two time derivatives, and efforts at motors, from joint efforts.",
    "spring_efforts": "Efforts of the springs from positions and velocities of links and motors.",
    "flat_state": "Joint accelerations and their rates from the efforts of the springs.",
    PLANT: "Accelerations of links and motors under motor efforts, without tool wrench: a plant to integrate.",
    DRIVE_COMMAND: "What drives are sent for a command: in their units, without efforts that the robot adds itself.",
    DRIVE_STATE: "Motors from numbers of their drives, with a share of the efforts that the robot adds at q and qd.",
    FEEDFORWARD: "Joint efforts, and motion and efforts of motors of elastic joints, on the link side of the gears.",
    ON_BASE: "The feedforward on a moving base.",
}
"""Description of each function."""

SUMMARIES |= {
    name + WITH_PAYLOAD: f"{text[:-1]}; with payloads at the tools, also ones that change."
    for name, text in SUMMARIES.items()
}

_MATRICES = {
    "M": "mass matrix",
    "dtau_dq": "partial derivatives of tau with respect to q",
    "dtau_dqd": "partial derivatives of tau with respect to qd",
    "dtau_dqdd": "partial derivatives of tau with respect to qdd, the mass matrix",
}

_NOTES = {
    "spring_efforts": ["Zero at rigid joints; spring_effort_rate is zero at damped springs, too."],
    "drive": ["current and voltage are NaN where the constants of the motor are unknown."],
    PLANT: [
        "The motor of a rigid joint moves with its link: theta and thetad are not read there, but for friction.",
        "Accelerations are NaN where the mass matrix is singular.",
    ],
}


@dataclass(frozen=True)
class Project:
    """A robot's functions under names for all languages.

    Attributes:
        robot: the robot.
        side: its motor side.
        name: the robot's name as an identifier.
        joints: names of the joints as unique identifiers in capitals.
        functions: by function; their names are ``{name}_{function}``.
    """

    robot: Robot
    side: MotorSide
    name: str
    joints: tuple[str, ...]
    functions: dict[str, Function]

    @cached_property
    def arm(self) -> ElasticArm:
        """The arm of the robot, for numbers of it: its kernels would take longer to compile than these few on NumPy."""
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
        """Header of each file, in ASCII: origin, joints and conventions."""
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
        """The header of each file as comment lines, which begin with a prefix."""
        return "\n".join(f"{prefix}{line}".rstrip() for line in self.notice())

    def meaning(self, vector: str) -> str:
        """Description of an input or output, with its unit."""
        if vector in _MATRICES:
            return f"{_MATRICES[vector]}, SI units"
        if vector in _OTHERS:
            return _OTHERS[vector]
        if is_pose(vector):
            tool = self.robot.tools[int(vector.partition("_")[2] or 1) - 1]
            return f"pose of {in_ascii(tool.name)} in the base frame, m"
        text, quantity, order = _VECTORS[vector]
        rate = "" if order == 0 else "/s" if order == 1 else f"/s^{order}"
        if quantity == "wrench":
            return f"{text}, N m{rate} and N{rate}"
        units = dict.fromkeys(_unit(quantity, joint.type) for joint in self.robot.independent_joints)
        return f"{text}, {' or '.join(name + rate for name in units)}"

    def notes(self, function: str) -> list[str]:
        """Notes on a function for its users, in ASCII, one line each."""
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
            transient = "" if "step" in vectors else f"; {SETTLED:g} stands for that without transient"
            notes.append(f"{DEFLECTION} is read at {damped}{transient}.")
        if FRICTION_STATE in vectors:
            sliding = ", ".join(in_ascii(side.motor_names[i]) for i in np.flatnonzero(side.presliding))
            unknown = "" if "step" in vectors else f"; {SETTLED:g} stands for that of the velocity"
            notes.append(f"{FRICTION_STATE} is read at {sliding}{unknown}.")
        return notes


def _unit(quantity: str, joint_type: str) -> str:
    if quantity == "stiffness":
        return f"{unit('effort', joint_type)}/{unit('position', joint_type)}"
    return unit(quantity, joint_type)


def is_pose(vector: str) -> bool:
    """Whether an output is a pose (4, 4)."""
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
        wanted: names from :data:`.FUNCTIONS`; those that they call are exported, too.

    Raises:
        TypeError: ``robot`` is not a Robot, such as one with a floating base or closed loops, or has symbols.
        RobotDescriptionError: a function is not available for the robot, see :func:`.capabilities`.
    """
    require_numeric_robot(robot)
    wanted, side = list(wanted), MotorSide.of(robot)
    for function in wanted:
        if reason := function_unavailable(robot, side, function):
            others = ", ".join(name for name in FUNCTIONS if not function_unavailable(robot, side, name))
            raise RobotDescriptionError(f"{reason}; functions that can be exported: {others}")
    name = identifier(robot.name, "robot")
    if name.lower() == "eom" or name.lower().startswith("eom_"):  # the prefix of what is the same for all robots
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
    """A name as an identifier in C and MATLAB, with the prefix ``kind`` if it does not begin with a letter."""
    cleaned = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return cleaned if cleaned[:1].isalpha() else f"{kind}_{cleaned}".rstrip("_")


def in_ascii(name: str) -> str:
    """A name as printable ASCII that is safe in comments, with other characters escaped."""
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
