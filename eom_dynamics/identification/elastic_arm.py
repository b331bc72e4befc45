# SPDX-License-Identifier: Apache-2.0
"""Identify a whole elastic arm from one recording of both sides of its springs: links, springs and motors.

Links from the efforts of the springs, springs from those and from deflections, motors from what is left of their
efforts. Each is a linear (or nearly linear) problem of its own, since the effort of the spring was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Array
from ..exceptions import RobotDescriptionError
from ..robot import Robot
from .elastic_robot import with_motors, with_springs
from .fit import Fit, Options, fit
from .identified_robot import identified_robot
from .motor import MotorFit, fit_motors
from .recording import Recording
from .spring_laws import LAWS
from .springs import SpringFit, fit_springs

# Laws of identification by the kind of the spring in the robot's file.
_LAW_OF = {"tabulated": "table"}

_MOTOR_TERMS = ("viscous", "coulomb", "offset")


@dataclass(frozen=True, eq=False)
class ArmRecording:
    """Both sides of the springs of n joints, in the robot's order, at even times.

    Attributes:
        t: (N,) s.
        q, qd: (N, n) positions and velocities of the links, rad or m, and per s.
        tau: (N, n) efforts of the springs, N m or N.
        theta: (N, n) positions of the motors on the link side of the gears, rad or m.
        motor_effort: (N, n) on the link side of the gears, N m or N.
    """

    t: Array
    q: Array
    qd: Array
    tau: Array
    theta: Array
    motor_effort: Array

    def centered(self, delay: float) -> ArmRecording:
        """With motor efforts by which a sample is late, s, at the times of the others; the ends are held."""
        later = np.stack([np.interp(self.t + delay, self.t, x) for x in self.motor_effort.T], axis=1)
        return replace(self, motor_effort=later)

    def links(self, robot: Robot, name: str) -> Recording:
        """The link side."""
        return Recording(robot.joint_names, self.t, self.q, self.tau, self.qd, name)


@dataclass(frozen=True, eq=False)
class ArmFit:
    """An identified elastic arm.

    Attributes:
        robot: with all that was identified.
        links: inertias of the bodies.
        springs, motors: of the joints.
    """

    robot: Robot
    links: Fit
    springs: tuple[SpringFit, ...]
    motors: tuple[MotorFit, ...]


def check_elastic(robot: Robot) -> None:
    """Raise RobotDescriptionError unless each joint has a spring and a motor of its own, of a known law."""
    if robot.coupled_stiffness is not None or robot.transmission is not None:
        raise RobotDescriptionError(f"{robot.name}: springs or motors that joints share are not identified together")
    for joint in robot.independent_joints:
        if len(joint.spring.motors) != 1 or _law(joint.spring.kind) not in LAWS:
            raise RobotDescriptionError(
                f"{joint.name}: has a spring of type {joint.spring.kind}; each joint needs one motor behind one of the "
                f"types {', '.join(sorted(LAWS))}"
            )


def identify_arm(
    robot: Robot,
    training: ArmRecording,
    validation: ArmRecording | None = None,
    *,
    progress: Callable[[str, float], None] | None = None,
) -> ArmFit:
    """Identify masses and inertias, springs, rotors, motor friction and gear loss.

    Args:
        robot: as its file describes it; springs keep their law.
        training, validation: recordings, the second to judge the links by.
        progress: called with the name of the step and the fraction of it that is done.

    Raises:
        RobotDescriptionError: a joint has no spring with a motor of its own.
        IdentificationError: the recording does not tell something.
    """
    check_elastic(robot)
    report = progress or (lambda step, done: None)
    judged = () if validation is None else validation.links(robot, "validation")
    links = fit(
        robot,
        training.links(robot, "training"),
        judged,
        Options(side="joint", terms=("offset",)),
        progress=report,
    )
    joints = robot.independent_joints
    report("springs", 0.0)
    laws = tuple(_law(joint.spring.kind) for joint in joints)
    springs = fit_springs(training.t, training.theta, training.q, training.tau, laws)
    report("motors", 0.0)
    lossy = any(joint.actuator.gear.efficiency < 1 for joint in joints)
    motors = fit_motors(
        training.t,
        training.theta,
        tau=training.tau,
        effort=training.motor_effort,
        terms=(*_MOTOR_TERMS, "efficiency") if lossy else _MOTOR_TERMS,
    )
    found = with_springs(identified_robot(links), dict(zip(robot.joint_names, springs, strict=True)))
    return ArmFit(with_motors(found, dict(zip(robot.joint_names, motors, strict=True))), links, springs, motors)


def _law(kind: str) -> str:
    return _LAW_OF.get(kind, kind)
