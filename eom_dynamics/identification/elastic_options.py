# SPDX-License-Identifier: Apache-2.0
"""Options of the identification of springs and motors: laws of springs and terms of motors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..actuators.springs import SPRINGS
from ..exceptions import RobotDescriptionError
from ..option_fields import check_options, option
from ..robot import Joint, Robot
from ..spelling import hint
from .exceptions import IdentificationError
from .motor import TERMS as MOTOR_TERMS
from .spring_laws import laws

KEEP = "keep"
"""In place of a law: the spring of the file stays."""

SPRING_TERMS = ("damping", "hysteresis", "offset")
"""Terms of :func:`.fit_spring`."""

ACTUATOR_TERMS = ("rotor_inertia", *MOTOR_TERMS, "torque_constant", "gear_ratio")
"""Rotor inertia, terms of :func:`.fit_motor`, torque constant where currents were recorded, and gear ratio by
:func:`.fit_gear_ratio`, the positions of the shafts being those of the motors times the ratio of the file."""

_DEFAULT_TERMS = ("rotor_inertia", "viscous", "coulomb", "offset", "torque_constant")


def joint_laws() -> tuple[str, ...]:
    """Names of identifiable spring laws with one motor."""
    return tuple(law for law, kind in laws().items() if len(kind.motors) == 1)


@dataclass(frozen=True)
class ElasticOptions:
    """Identification of springs and motors, of joints with a spring and a motor each.

    Attributes:
        laws: law of the spring, or keep for the spring of the file, of all joints or of one; default: that of the file.
        spring_terms: terms besides the law, or none; default: all.
        motor_terms: terms of the motors, or none; omitted friction is zero; default: rotor_inertia, viscous, coulomb,
            offset, torque_constant, and efficiency if the file has gear loss.
        points: number of points of a table.
    """

    laws: Mapping[str | None, str] = option(
        {}, flag="--spring-law", choices=lambda: (*joint_laws(), KEEP), metavar="[JOINT=]LAW"
    )
    spring_terms: tuple[str, ...] = option(SPRING_TERMS, choices=SPRING_TERMS, metavar="NAME,…")
    motor_terms: tuple[str, ...] | None = option(choices=ACTUATOR_TERMS, metavar="NAME,…")
    points: int = option(9, flag="--spring-points", rule="[1, 10000]", metavar="N")

    def __post_init__(self) -> None:
        """Check names and numbers; raises IdentificationError."""
        check_options(self, IdentificationError)

    def check(self, robot: Robot) -> None:
        """Raise RobotDescriptionError if a law names a joint that the robot does not have."""
        for name in self.laws:
            if name is not None and name not in robot.joint_names:
                raise RobotDescriptionError(f"{robot.name} has no joint {name}; {hint(name, robot.joint_names)}")

    def law(self, joint: Joint) -> str:
        """Name of the law of a joint's spring, whether it can be identified or, like ``rigid``, cannot."""
        given, kind = self.laws.get(joint.name, self.laws.get(None)), joint.spring.kind
        return given or next((law for law, own in laws().items() if own is SPRINGS[kind]), kind)

    def terms(self, robot: Robot) -> tuple[str, ...]:
        """Motor terms to identify; the default depends on the robot."""
        if self.motor_terms is not None:
            return self.motor_terms
        lossy = any(joint.actuator.gear.efficiency < 1 for joint in robot.independent_joints)
        return (*_DEFAULT_TERMS, "efficiency") if lossy else _DEFAULT_TERMS


def check_elastic(robot: Robot, options: ElasticOptions | None = None) -> None:
    """Raise RobotDescriptionError unless each joint has its own motor and a spring of an identifiable law."""
    options = options or ElasticOptions()
    if robot.coupled_stiffness is not None or robot.transmission is not None:
        raise RobotDescriptionError(f"{robot.name}: springs or motors that joints share are not identified together")
    options.check(robot)
    for joint in robot.independent_joints:
        law = options.law(joint)
        if len(joint.spring.motors) != 1 or law not in (*joint_laws(), KEEP):
            raise RobotDescriptionError(
                f"{joint.name}: has a spring of type {joint.spring.kind}; each joint needs one motor behind one of the "
                f"types {', '.join(sorted(joint_laws()))}"
            )
