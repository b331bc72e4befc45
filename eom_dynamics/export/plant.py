# SPDX-License-Identifier: Apache-2.0
"""Springs under deflections, and the plant of links and motors, as functions for export in C.

They are what a controller with feedback and a simulation need beside the feedforward: what
:meth:`eom_dynamics.ElasticArm.spring_efforts` and :meth:`eom_dynamics.simulation.ElasticPlant.rate` compute, in the
reduced rotor model.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..codegen.program import Program, Sizes
from ..elastic.elastic_arm import STIFFNESS_NAMES
from ..exceptions import RobotDescriptionError
from ..robot import Robot
from .motors import MotorFeedforward

SPRING_EFFORTS = "spring_efforts"
"""Name of the function of springs."""

PLANT = "plant"
"""Name of the function of the plant."""

EFFORTS = ("spring_effort", "spring_effort_rate", "stiffness", "stiffness_rate")
"""Outputs of the function of springs."""

ACCELERATIONS = ("link_acceleration", "rotor_acceleration")
"""Outputs of the plant."""

MOTOR_STATE = ("theta", "thetad")
"""Inputs: motor positions and velocities."""

NEEDED = ("effort", "mass_matrix")
"""Programs that the plant calls."""


@dataclass(frozen=True, eq=False)
class PlantFunction:
    """A function of links and motors.

    Attributes:
        name: a C identifier.
        inputs, outputs: names and lengths of the vectors, in order.
    """

    name: str
    inputs: Sizes
    outputs: Sizes


def require_plant(robot: Robot, feedforward: MotorFeedforward) -> None:
    """Check that the plant of a robot can be exported, as :class:`eom_dynamics.simulation.ElasticPlant` does.

    Raises:
        RobotDescriptionError: a motor at an elastic joint has no rotor inertia; or a rigid joint has a gear with loss
            or a transmission.
    """
    joints = robot.independent_joints
    coupled = robot.coupled_stiffness[0] if robot.coupled_stiffness else ()
    moved = robot.transmission[0] if robot.transmission else ()
    for joint, inertia, actuator in zip(
        feedforward.motor_joint, feedforward.inertia, feedforward.actuators, strict=True
    ):
        rigid = joints[joint].spring.is_rigid and joint not in coupled
        name = joints[joint].name
        if not rigid and inertia == 0:
            raise RobotDescriptionError(f"{name}: rotor_inertia must be positive for code of {PLANT}, is 0")
        if rigid and not actuator.gear.is_lossless:
            raise RobotDescriptionError(f"{name}: efficiency must be 1 at a rigid joint for code of {PLANT}")
        if rigid and joint in moved:
            raise RobotDescriptionError(f"{name}: is rigid, and moved by a transmission; there is no code of {PLANT}")


def plant_functions(name: str, feedforward: MotorFeedforward, programs: dict[str, Program]) -> dict[str, PlantFunction]:
    """Both functions of a robot with n joints and m motors.

    Args:
        name: start of their names.
        feedforward: motors and springs.
        programs: with those of :data:`NEEDED`.
    """
    n, m = programs["effort"].inputs["q"], len(feedforward.motor_joint)
    state = {"q": n, "qd": n, **dict.fromkeys(MOTOR_STATE, m)}
    commanded = [x for x in STIFFNESS_NAMES if x in feedforward.inputs]
    efforts = EFFORTS if commanded else EFFORTS[:2]
    return {
        SPRING_EFFORTS: PlantFunction(
            f"{name}_{SPRING_EFFORTS}", {**state, **dict.fromkeys(commanded[:2], n)}, dict.fromkeys(efforts, n)
        ),
        PLANT: PlantFunction(
            f"{name}_{PLANT}",
            {**state, "tau_m": m, **dict.fromkeys(commanded[:1], n)},
            dict(zip(ACCELERATIONS, (n, m), strict=True)),
        ),
    }
