# SPDX-License-Identifier: Apache-2.0
"""Exportable functions: programs of a robot, its simulation plant, and sequences of programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from ..codegen import floating_programs
from ..codegen.expressions import Scalar
from ..codegen.program import Program, Sizes, trace
from ..codegen.programs import PROGRAMS, TOOL_KINEMATICS, WITH_PAYLOAD, forward_kinematics
from ..elastic import motor_programs
from ..elastic.carried_rotors import links_with_rotors
from ..elastic.drive_programs import drive_command, drive_state
from ..elastic.flatness import flat_state_program
from ..elastic.motor_programs import FRICTION_STATE, Vectors, between
from ..elastic.motor_side import MotorSide
from ..jet import Jet
from ..recursion import composite, forward_dynamics, inverse_dynamics, link_tree
from ..recursion.inverse_mass_matrix import solver
from ..recursion.scalars import minus
from ..robot import Robot
from ..robot.mass_matrix import admits_articulated_bodies, joints_without_inertia
from ..vectors import FAMILIES

ACCELERATIONS, MOTOR_STATE = ("link_acceleration", "rotor_acceleration"), FAMILIES["theta"].names
"""Names of the plant's outputs, and of its inputs motor position and velocity."""


def plant(robot: Robot, side: MotorSide) -> Program:
    """Accelerations of links and motors under motor efforts; motors of rigid joints move with their links."""
    n, tree = robot.n, link_tree(robot)
    articulated = admits_articulated_bodies(robot)
    motors = list(enumerate(side.motor_joint.tolist()))

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        stiffness = [Jet([k, 0.0]) for k in x["k"]] if "k" in x else None
        links, load, _ = side.efforts(between(side, x, MOTOR_STATE), stiffness)
        tau: list[Scalar] = [0.0 if rigid else jet[0] for rigid, jet in zip(side.rigid, links, strict=True)]
        added, net = [0.0] * n, list[Scalar]()
        for (motor, joint), behind in zip(motors, side.motor_loads([jet[0] for jet in load]), strict=True):
            state = x[FRICTION_STATE][motor] if side.presliding[motor] else None
            against = side.motor_effort(motor, Jet([behind]), Jet([x["thetad"][motor]]), Jet([0.0]), state)
            net.append(x["tau_m"][motor] - against[0])
            if side.rigid[joint]:
                tau[joint], added[joint] = net[motor], side.rotor_inertia[joint]
        if articulated:
            qdd = forward_dynamics(tree, x["q"], x["qd"], tau, (), added)
        else:
            M = composite.of_joints(composite.composite_mass_matrix(tree, x["q"]))
            for joint, inertia in enumerate(added):
                M[joint][joint] = M[joint][joint] + inertia
            (bias,) = inverse_dynamics(tree, [x["q"], x["qd"], [0.0] * n])
            qdd = solver(M)(minus(tau, bias))
        thetadd = [
            qdd[joint] if side.rigid[joint] else net[motor] / side.rotor_inertia[joint] for motor, joint in motors
        ]
        return dict(zip(ACCELERATIONS, (qdd, thetadd), strict=True))

    inputs = dict.fromkeys(("q", "qd"), n) | dict.fromkeys((*MOTOR_STATE, "tau_m"), len(motors))
    inputs |= dict.fromkeys((FRICTION_STATE,) if side.presliding.any() else (), len(motors))
    return trace("plant", inputs | dict.fromkeys(("k",) if side.variable.any() else (), n), compute)


def friction(robot: Robot, side: MotorSide) -> Program:
    """Friction efforts: of joints with friction as part of their efforts, and of motors that follow the links."""

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        velocity = side.motors_of([x["qd"][joint] for joint in side.motor_joint])
        rows = zip((side.actuators[joint].friction for joint in side.motor_joint), velocity, strict=True)
        of_joints = link_tree(robot).joint_friction([x["qd"]])
        return {
            "joint_friction": [jet[0] for jet in of_joints],
            "motor_friction": [law.effort_jet(Jet([rate]))[0] for law, rate in rows],
        }

    return trace(FRICTION, {"qd": robot.n}, compute)


def plant_unavailable(robot: Robot, side: MotorSide, function: str = "plant") -> str | None:
    """Reason why a robot's plant, or another function, cannot be exported; None if it can."""
    if robot.rotor_model != "reduced":
        return f"{robot.name}: rotor_model must be reduced for code of {function}, is {robot.rotor_model}"
    moved = robot.transmission[0] if robot.transmission else ()
    for joint in side.motor_joint.tolist():
        name, rigid = side.joint_names[joint], side.rigid[joint]
        if not rigid and side.rotor_inertia[joint] == 0:
            return f"{name}: rotor_inertia must be positive for code of {function}, is 0"
        if rigid and not side.actuators[joint].gear.is_lossless:
            return f"{name}: efficiency must be 1 at a rigid joint for code of {function}"
        if rigid and joint in moved:
            return f"{name}: is rigid, and moved by a transmission; there is no code of {function}"
    for name in joints_without_inertia(robot):
        joint = robot.joint_names.index(name)
        if not (side.rigid[joint] and side.rotor_inertia[joint]):
            return f"{robot.name}: the mass matrix is not positive definite: {name} moves no mass"
    return None


FEEDFORWARD, ON_BASE, PLANT = "feedforward", "feedforward_on_base", "plant"
"""Names of the functions: feedforward on a fixed and on a moving base, and plant (motor efforts to accelerations)."""

FRICTION = "friction"
"""Name of the function from link velocities to friction of joints and motors."""

DRIVE_COMMAND, DRIVE_STATE = "drive_command", "drive_state"
"""Names of the functions from commands to drive commands, and from drive reports to SI units."""

FEEDFORWARD_WITH_PAYLOAD, ON_BASE_WITH_PAYLOAD, DRIVE_COMMAND_WITH_PAYLOAD = (
    name + WITH_PAYLOAD for name in (FEEDFORWARD, ON_BASE, DRIVE_COMMAND)
)
"""Names of the functions with payload parameters."""

OBSERVER = ("momentum_balance", "momentum_balance" + WITH_PAYLOAD, "spring_loads", "motor_loads", "deflections")
"""Names of the functions of the observer of external efforts."""

STRAIGHT_LINE: Mapping[str, Callable[[Robot], Program]] = MappingProxyType(
    {
        name: PROGRAMS[name]
        for name in ("inverse_dynamics", "effort", "mass_matrix", "effort_partials", "inverse_dynamics" + WITH_PAYLOAD)
    }
    | {"forward_kinematics": forward_kinematics, "tool_kinematics": TOOL_KINEMATICS}
)
"""Functions of the links only."""

_WITH_ROTORS: Mapping[str, Callable[[Robot, MotorSide], Program]] = {
    "links_with_rotors": links_with_rotors,
    "links_with_rotors" + WITH_PAYLOAD: partial(links_with_rotors, payload=True),
    "efforts_on_base": lambda robot, side: floating_programs.efforts_on_base()(robot),
    "efforts_on_base" + WITH_PAYLOAD: lambda robot, side: floating_programs.efforts_on_base(payload=True)(robot),
}


def _flat_state(robot: Robot, side: MotorSide, *, payload: bool = False) -> Program:
    """Link accelerations and their rates from spring efforts; at rigid joints they are inputs."""
    return flat_state_program(robot, np.flatnonzero(side.rigid).tolist(), payload=payload)


OF_MOTORS: Mapping[str, Callable[[Robot, MotorSide], Program]] = MappingProxyType(
    {
        "motors": lambda robot, side: motor_programs.motors(side, spin=robot.rotor_model == "complete"),
        "drive": lambda robot, side: motor_programs.drive(side),
        FRICTION: friction,
        "filtered": lambda robot, side: motor_programs.filtered(side),
        "presliding": lambda robot, side: motor_programs.presliding(side),
        OBSERVER[0]: lambda robot, side: PROGRAMS[OBSERVER[0]](robot),
        OBSERVER[1]: lambda robot, side: PROGRAMS[OBSERVER[1]](robot),
        "spring_loads": lambda robot, side: motor_programs.spring_loads(side),
        "motor_loads": lambda robot, side: motor_programs.motor_loads(side),
        "deflections": lambda robot, side: motor_programs.deflections(side),
        # From the motion of motors and links; zero if this motion does not determine them.
        "spring_efforts": lambda robot, side: motor_programs.spring_efforts(
            side, motors=MOTOR_STATE, unknown=0.0, constant=False
        ),
        "flat_state": _flat_state,
        "flat_state" + WITH_PAYLOAD: partial(_flat_state, payload=True),
    }
)
"""Programs of motors."""

OF_DRIVES: Mapping[str, Callable[[Robot, MotorSide], Program]] = MappingProxyType(
    {
        DRIVE_COMMAND: drive_command,
        DRIVE_COMMAND_WITH_PAYLOAD: partial(drive_command, payload=True),
        DRIVE_STATE: drive_state,
    }
)
"""Programs of drives with other units than SI, or of robots that add efforts themselves."""

FUNCTIONS = (
    *(*STRAIGHT_LINE, *_WITH_ROTORS, *OF_MOTORS, PLANT, *OF_DRIVES),
    *(FEEDFORWARD, FEEDFORWARD_WITH_PAYLOAD, ON_BASE, ON_BASE_WITH_PAYLOAD),
)
"""Names of the exportable functions."""


@dataclass(frozen=True)
class Steps:
    """Sequence of programs: a result is an input, by name, of later programs.

    Attributes:
        name: a C identifier.
        programs: programs in order.
        keys: program names without the name of the robot.
    """

    name: str
    programs: tuple[Program, ...]
    keys: tuple[str, ...]

    @property
    def inputs(self) -> Sizes:
        """Names and lengths of the inputs that no earlier program returns, in order."""
        sizes: dict[str, int] = {}
        for program in self.programs:
            sizes |= program.inputs
        return {name: size for name, size in sizes.items() if name not in self.outputs}

    @property
    def outputs(self) -> Sizes:
        """Names and lengths of all vectors that the programs return, in order."""
        return {name: size for program in self.programs for name, size in program.outputs.items()}


Function: TypeAlias = Program | Steps
"""Function of a robot's states, with ``name``, ``inputs`` and ``outputs``."""


def links_of(robot: Robot) -> str:
    """Name of the program that computes the link efforts of the feedforward."""
    return "inverse_dynamics" if robot.rotor_model == "reduced" else "links_with_rotors"


def function_unavailable(robot: Robot, side: MotorSide, function: str) -> str | None:
    """Reason why a function of a robot cannot be exported, or None."""
    reduced = robot.rotor_model == "reduced"
    if function == "tool_kinematics" and not robot.tools:
        return f"{robot.name}: there is no tool, for code of {function}"
    if function.removesuffix(WITH_PAYLOAD) in (PLANT, "flat_state"):
        for name in [] if function == PLANT else np.array(side.joint_names)[side.damped]:
            return f"{name}: is damped; there is no code of {function}"
        return plant_unavailable(robot, side, function)
    if function.removesuffix(WITH_PAYLOAD) == "links_with_rotors" and reduced:
        return f"{robot.name}: rotor_model must be complete for code of {function}, is reduced"
    if function.removesuffix(WITH_PAYLOAD) in (ON_BASE, *OBSERVER) and not reduced:
        return f"{robot.name}: rotor_model must be reduced for code of {function}, is {robot.rotor_model}"
    if function in OF_DRIVES and not robot.has_own_drives:
        return f"{robot.name}: drives are sent the command: it has no drive section and no compensated_by_robot"
    if function == DRIVE_COMMAND_WITH_PAYLOAD and "payload" not in robot.compensated_by_robot:
        return f"{robot.name}: compensated_by_robot has no payload, for code of {function}"
    if function == "filtered" and not side.damped.any():
        return f"{robot.name}: no spring has a damper, for code of {function}"
    if function == "presliding" and not side.presliding.any():
        return f"{robot.name}: no friction of a motor has a presliding_distance, for code of {function}"
    return None


def loop_functions(robot: Robot) -> list[str]:
    """Available functions of a control loop and a simulated robot."""
    side = MotorSide.of(robot)
    names = (FEEDFORWARD, FEEDFORWARD_WITH_PAYLOAD, "tool_kinematics", *OBSERVER, PLANT)
    return [name for name in names if not function_unavailable(robot, side, name)] + [ON_BASE] * robot.moving_base


def functions(robot: Robot, side: MotorSide, wanted: Iterable[str], prefix: str) -> dict[str, Function]:
    """Functions by name, each after its dependencies.

    If both moving base and payloads are wanted, their combination is included.

    Args:
        wanted: names from :data:`FUNCTIONS`, all available by :func:`function_unavailable`.
        prefix: prefix of their names in code.
    """
    exported: dict[str, Function] = {}
    wanted = list(wanted)
    if {ON_BASE, FEEDFORWARD_WITH_PAYLOAD} <= set(wanted):
        wanted.append(ON_BASE_WITH_PAYLOAD)
    for function in wanted:
        for name in (*_needed(robot, side, function), function):
            if name in exported:
                continue
            if name in _STEPS:
                keys = _STEPS[name](robot)
                programs = (exported[key] for key in keys)
                exported[name] = Steps(f"{prefix}_{name}", tuple(x for x in programs if isinstance(x, Program)), keys)
            else:
                exported[name] = replace(traced(robot, side, name), name=f"{prefix}_{name}")
    return exported


_STEPS: Mapping[str, Callable[[Robot], tuple[str, ...]]] = {
    FEEDFORWARD: lambda robot: (links_of(robot), "motors"),
    FEEDFORWARD_WITH_PAYLOAD: lambda robot: (links_of(robot) + WITH_PAYLOAD, "motors"),
    ON_BASE: lambda robot: ("efforts_on_base", "motors"),
    ON_BASE_WITH_PAYLOAD: lambda robot: ("efforts_on_base" + WITH_PAYLOAD, "motors"),
}


def traced(robot: Robot, side: MotorSide, name: str) -> Program:
    """Trace a program of a robot."""
    if name in STRAIGHT_LINE:
        return STRAIGHT_LINE[name](robot)
    return {**OF_MOTORS, **_WITH_ROTORS, **OF_DRIVES, PLANT: plant}[name](robot, side)


def _needed(robot: Robot, side: MotorSide, function: str) -> tuple[str, ...]:
    """Dependencies of a function: the functions that it calls, and the functions of a control loop."""
    if function in _STEPS:
        drives = [DRIVE_COMMAND, DRIVE_STATE] + [DRIVE_COMMAND_WITH_PAYLOAD] * function.endswith(WITH_PAYLOAD)
        others = ["filtered", "presliding", *drives]
        others = [name for name in others if not function_unavailable(robot, side, name)]
        return (*_STEPS[function](robot), "drive", *others)
    if function in OBSERVER:
        return OBSERVER
    if function == PLANT:
        return (*_needed(robot, side, FEEDFORWARD), FEEDFORWARD)
    return ()
