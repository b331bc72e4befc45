# SPDX-License-Identifier: Apache-2.0
"""A robot's programs for export: identifiers that are valid in all languages, units and descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from .. import __version__
from ..codegen.backends import require_robot
from ..codegen.kinematic_programs import forward_kinematics
from ..codegen.program import Program
from ..codegen.programs import PROGRAMS
from ..codegen.recipe import Recipe
from ..exceptions import EomDynamicsError, RobotDescriptionError
from ..robot import Robot
from ..units import unit
from .motors import FEEDFORWARD, MotorFeedforward, motor_feedforward, require_feedforward
from .plant import NEEDED, PLANT, SPRING_EFFORTS, PlantFunction, plant_functions, require_plant
from .precision import PRECISIONS

# MATLAB truncates names to 63 characters, and suffixes of the robot's name have up to 25.
_LONGEST_NAME = 38

# Description of vectors, their quantity, and the order of their time derivative.
_VECTORS = {
    "q": ("joint variables", "position", 0),
    "qd": ("joint velocities", "position", 1),
    "qdd": ("joint accelerations", "position", 2),
    "qddd": ("third time derivative of q", "position", 3),
    "qdddd": ("fourth time derivative of q", "position", 4),
    "W": ("tool wrench", "wrench", 0),
    "Wd": ("its time derivative", "wrench", 1),
    "Wdd": ("its second time derivative", "wrench", 2),
    "k": ("commanded stiffness", "stiffness", 0),
    "kd": ("its time derivative", "stiffness", 1),
    "kdd": ("its second time derivative", "stiffness", 2),
    "deflection": ("present deflections of damped springs", "position", 0),
    "tau": ("joint efforts", "effort", 0),
    "taud": ("their time derivative", "effort", 1),
    "taudd": ("their second time derivative", "effort", 2),
    "motor_position": ("motor positions", "position", 0),
    "motor_velocity": ("motor velocities", "position", 1),
    "motor_acceleration": ("motor accelerations", "position", 2),
    "motor_effort": ("motor efforts", "effort", 0),
    "theta": ("motor positions", "position", 0),
    "thetad": ("motor velocities", "position", 1),
    "tau_m": ("motor efforts", "effort", 0),
    "spring_effort": ("efforts of the springs on the links", "effort", 0),
    "spring_effort_rate": ("their time derivative", "effort", 1),
    "stiffness": ("commanded stiffness, at antagonistic pairs that of the deflections", "stiffness", 0),
    "stiffness_rate": ("its time derivative", "stiffness", 1),
    "link_acceleration": ("joint accelerations", "position", 2),
    "rotor_acceleration": ("motor accelerations", "position", 2),
}

SUMMARIES = {
    "inverse_dynamics": "Joint efforts with their first and second time derivatives.",
    "effort": "Joint efforts.",
    "mass_matrix": "The mass matrix.",
    "effort_partials": "Partial derivatives of the joint efforts.",
    "forward_kinematics": "Poses of the tools.",
    FEEDFORWARD: "Joint efforts, and motion and efforts of motors of elastic joints, on the link side of the gears.",
    SPRING_EFFORTS: "Efforts of the springs from positions and velocities of links and motors.",
    PLANT: "Accelerations of links and motors under motor efforts, without tool wrench: a plant to integrate.",
}
"""Description of each function."""

_MATRICES = {
    "M": "mass matrix",
    "dtau_dq": "partial derivatives of tau with respect to q",
    "dtau_dqd": "partial derivatives of tau with respect to qd",
    "dtau_dqdd": "partial derivatives of tau with respect to qdd, the mass matrix",
}

_PLANT_NOTES = {
    SPRING_EFFORTS: ["Zero at rigid joints; spring_effort_rate is zero at damped springs, too."],
    PLANT: ["The motor of a rigid joint moves with its link: theta and thetad are not read there, but for friction."],
}

_DYNAMICS = ("inverse_dynamics", "effort", "mass_matrix", "effort_partials")

STRAIGHT_LINE: Mapping[str, Recipe] = MappingProxyType(
    {name: PROGRAMS[name] for name in _DYNAMICS}
    | {"forward_kinematics": Recipe("forward_kinematics", forward_kinematics)}
)
"""Functions that are one program."""

FUNCTIONS = (*STRAIGHT_LINE, FEEDFORWARD, PLANT)
"""Names of the functions that can be exported; the plant comes with the efforts of its springs."""

Function: TypeAlias = Program | MotorFeedforward | PlantFunction
"""A function of a robot's states, with ``name``, ``inputs`` and ``outputs``."""


class UnavailableError(EomDynamicsError):
    """A language in which the functions of a project are not available."""


@dataclass(frozen=True)
class Project:
    """A robot's functions under names for all languages.

    Attributes:
        robot: the robot.
        name: the robot's name as an identifier.
        joints: names of the joints as unique identifiers in capitals.
        programs: the straight-line programs by function; their names are ``{name}_{function}``.
        feedforward: the motor feedforward, or None; it calls ``programs["inverse_dynamics"]``.
        plant: functions of springs and plant, in C alone; they call other functions of the project.
        precision: one of :data:`.PRECISIONS`, of C and C++.
    """

    robot: Robot
    name: str
    joints: tuple[str, ...]
    programs: dict[str, Program]
    feedforward: MotorFeedforward | None = None
    plant: Mapping[str, PlantFunction] = field(default_factory=dict)
    precision: str = PRECISIONS[0]

    @property
    def functions(self) -> dict[str, Function]:
        """Programs and motor feedforward by function."""
        return {**self.programs, **({} if self.feedforward is None else {FEEDFORWARD: self.feedforward})}

    @property
    def c_functions(self) -> dict[str, Function]:
        """All functions by name: those of every language, and those in C alone."""
        return {**self.functions, **self.plant}

    @property
    def library(self) -> str:
        """Name of the library."""
        return f"{self.name}_dynamics"

    def notice(self) -> list[str]:
        """Header of each file, in ASCII: origin, joints and conventions."""
        robot = self.robot
        rows = [
            (str(k), joint.type, unit("position", joint.type), unit("effort", joint.type), plain(joint.name))
            for k, joint in enumerate(robot.independent_joints)
        ]
        gravity = " ".join(f"{x:.10g}" for x in robot.gravity)
        return [
            f"Generated by eom_dynamics {__version__} for the robot {plain(robot.name)}; do not edit.",
            "This file is yours: eom_dynamics claims no rights to generated code.",
            "",
            "Joints, in the order of all joint vectors:",
            "",
            *("  " + line for line in table([("", "type", "unit of q", "of tau", "name"), *rows])),
            "",
            "SI units. W is the wrench that the robot exerts on its surroundings at each tool, in the tool's frame:",
            f"moment x y z in N m, force x y z in N; tools: {', '.join(plain(tool.name) for tool in robot.tools)}.",
            f"Gravity is a constant of the code: [{gravity}] m/s^2 in the base frame.",
        ]

    def meaning(self, vector: str) -> str:
        """Description of an input or output, with its unit."""
        if vector in _MATRICES:
            return f"{_MATRICES[vector]}, SI units"
        if is_pose(vector):
            tool = self.robot.tools[int(vector.partition("_")[2] or 1) - 1]
            return f"pose of {plain(tool.name)} in the base frame, m"
        text, quantity, order = _VECTORS[vector]
        rate = "" if order == 0 else "/s" if order == 1 else f"/s^{order}"
        if quantity == "wrench":
            return f"{text}, N m{rate} and N{rate}"
        units = dict.fromkeys(_unit(quantity, joint.type) for joint in self.robot.independent_joints)
        return f"{text}, {' or '.join(name + rate for name in units)}"

    def notes(self, function: str) -> list[str]:
        """What a user of a function must know beside its arguments, in ASCII: a line for each fact."""
        if function in self.plant:
            return [*_PLANT_NOTES[function], *self._motor_notes()]
        if function != FEEDFORWARD or self.feedforward is None:
            return []
        names, places = [plain(name) for name in self.robot.joint_names], self.feedforward.springs
        notes = self._motor_notes()
        commanded = [
            f"{names[place.joints[0]]} (nominally {float(place.spring.rest_stiffness):g})"
            for place in places
            if place.spring.is_variable
        ]
        if commanded:
            notes.append(f"k, kd and kdd are read at {', '.join(commanded)}.")
            notes.append("All results of the motors of a joint are NaN where its k is out of range.")
        damped = [names[place.joints[0]] for place in places if place.spring.is_damped]
        if damped:
            notes.append(f"deflection is read at {', '.join(damped)}.")
        return notes

    def _motor_notes(self) -> list[str]:
        assert self.feedforward is not None
        return [f"Motors, in the order of motor vectors: {', '.join(map(plain, self.feedforward.motor_names))}."]


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


def project(robot: Robot, functions: Iterable[str], *, precision: str = PRECISIONS[0]) -> Project:
    """Functions of a robot for export.

    Args:
        robot: the robot.
        functions: names from :data:`FUNCTIONS`; that of the motor feedforward includes the inverse dynamics,
            that of the plant the feedforward, the efforts and the mass matrix.
        precision: one of :data:`.PRECISIONS`; languages other than C and C++ have double precision only.

    Raises:
        TypeError: ``robot`` is not a Robot, such as one with a floating base or closed loops.
        RobotDescriptionError: the motor feedforward of the robot cannot be exported, see :func:`.require_feedforward`,
            or the plant, see :func:`.require_plant`; or joint friction is part of its efforts.
    """
    require_robot(robot)
    if robot.joint_friction:
        raise RobotDescriptionError(
            f"{robot.name}: joint friction cannot be exported; leave joint_friction out, and add D qd + c tanh(qd/v_0)"
        )
    name = identifier(robot.name, "robot")
    if re.match("eom(_|$)", name, re.IGNORECASE):  # the prefix of what is the same for all robots
        name = f"robot_{name}"
    name = name[:_LONGEST_NAME].rstrip("_")
    wanted = list(functions)
    if PLANT in wanted:
        wanted += [FEEDFORWARD, *NEEDED]
    straight = [function for function in dict.fromkeys(wanted) if function not in (FEEDFORWARD, PLANT)]
    if FEEDFORWARD in wanted:
        require_feedforward(robot)
        straight = list(dict.fromkeys([*straight, "inverse_dynamics"]))
    programs = {function: replace(STRAIGHT_LINE[function](robot), name=f"{name}_{function}") for function in straight}
    feedforward = None
    if FEEDFORWARD in wanted:
        called = programs["inverse_dynamics"]
        feedforward = motor_feedforward(robot, f"{name}_{FEEDFORWARD}", called.inputs, called.outputs)
    plant: Mapping[str, PlantFunction] = {}
    if PLANT in wanted and feedforward is not None:
        require_plant(robot, feedforward)
        plant = plant_functions(name, feedforward, programs)
    return Project(
        robot=robot,
        name=name,
        joints=_unique([identifier(joint, "joint").upper() for joint in robot.joint_names]),
        programs=programs,
        feedforward=feedforward,
        plant=plant,
        precision=precision,
    )


def identifier(name: str, kind: str) -> str:
    """A name as an identifier in C and MATLAB, with the prefix ``kind`` if it does not begin with a letter."""
    cleaned = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return cleaned if cleaned[:1].isalpha() else f"{kind}_{cleaned}".rstrip("_")


def plain(name: str) -> str:
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
