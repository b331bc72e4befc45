# SPDX-License-Identifier: Apache-2.0
"""Options of the identification of springs and motors: laws of springs, and terms of motors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...actuators.parameters import not_negative, positive
from ...actuators.springs import SPRINGS, DampedSpring, Spring, TabulatedSpring
from ...arguments import check_options, option
from ...exceptions import RobotDescriptionError
from ...robot import Joint, Robot
from ...spelling import hint
from ..recording import IdentificationError

MOTOR_TERMS = ("viscous", "asymmetric", "coulomb", "stribeck", "efficiency", "offset")
"""Terms that can be switched; the effort of the spring is always part of the model, and the rotor, known or not."""

KEEP = "keep"  # instead of a law: the spring of the file stays
ACTUATOR_TERMS = ("rotor_inertia", *MOTOR_TERMS, "torque_constant")
"""Rotor inertia, terms of :func:`.fit_motor`, and torque constant if currents were recorded."""

_DEFAULT_TERMS = ("rotor_inertia", "viscous", "coulomb", "offset", "torque_constant")


@dataclass(frozen=True)
class ElasticOptions:
    """Identification of springs and motors, of joints with a spring and a motor each.

    Attributes:
        laws: law of the spring, or keep for the spring of the file, of all joints or of one; default: law of the file.
        motor_terms: terms of the motors, or none; omitted friction is zero; default: rotor_inertia, viscous, coulomb,
            offset, torque_constant, and efficiency if the file has gear loss.
    """

    laws: Mapping[str | None, str] = option(
        {}, flag="--spring-law", choices=lambda: (*laws(), KEEP), metavar="[JOINT=]LAW"
    )
    motor_terms: tuple[str, ...] | None = option(choices=ACTUATOR_TERMS, metavar="NAME,…")

    def __post_init__(self) -> None:
        """Check names and numbers; raises IdentificationError."""
        check_options(self, IdentificationError)

    def check(self, robot: Robot) -> None:
        """Raise RobotDescriptionError if a law names a joint that the robot does not have."""
        for name in self.laws:
            if name is not None and name not in robot.joint_names:
                raise RobotDescriptionError(f"laws: {robot.name} has no joint {name}; {hint(name, robot.joint_names)}")

    def law(self, joint: Joint) -> str:
        """Name of the law of a joint's spring, whether it can be identified or, like ``rigid``, cannot."""
        chosen, kind = self.laws.get(joint.name, self.laws.get(None)), joint.spring.kind
        return chosen or next((law for law, spring in laws().items() if spring is SPRINGS[kind]), kind)

    def terms(self, robot: Robot) -> tuple[str, ...]:
        """Motor terms to identify; the default depends on the robot."""
        if self.motor_terms is not None:
            return self.motor_terms
        lossy = any(joint.actuator.gear.efficiency < 1 for joint in robot.independent_joints)
        return (*_DEFAULT_TERMS, "efficiency") if lossy else _DEFAULT_TERMS


def check_elastic(robot: Robot, options: ElasticOptions | None = None) -> None:
    """Raise RobotDescriptionError unless joints have a motor and a spring of an identifiable law each.

    Rigid joints next to elastic ones, joints of a coupled spring, and a transmission are allowed.
    """
    options = options or ElasticOptions()
    options.check(robot)
    shared, rigid = coupled_springs(robot), [joint.spring.is_rigid for joint in robot.independent_joints]
    alone = [name for name in robot.joint_names if name not in shared]
    if not alone:
        raise RobotDescriptionError(f"{robot.name}: springs that joints share are not identified together")
    for joint in robot.independent_joints:
        law = options.law(joint)
        if joint.name in shared or (joint.spring.is_rigid and law == joint.spring.kind and not all(rigid)):
            continue
        if len(joint.spring.motor_suffixes) != 1 or law not in (*laws(), KEEP):
            raise RobotDescriptionError(
                f"{joint.name}: has a spring of type {joint.spring.kind}; each joint needs one motor behind one of the "
                f"types {', '.join(sorted(laws()))}"
            )


def check_resonance(robot: Robot, options: ElasticOptions) -> None:
    """Raise RobotDescriptionError unless each joint has its own motor and a spring of an identifiable law."""
    check_elastic(robot, options)
    if robot.coupled_stiffness is not None or robot.transmission is not None:
        raise RobotDescriptionError(f"{robot.name}: springs or motors that joints share have no resonance of their own")
    for joint in robot.independent_joints:
        if joint.spring.is_rigid and options.law(joint) == joint.spring.kind:
            raise RobotDescriptionError(f"{joint.name}: is rigid, and has no resonance")


def coupled_springs(robot: Robot) -> tuple[str, ...]:
    """Names of the joints that share a spring."""
    joints = () if robot.coupled_stiffness is None else robot.coupled_stiffness[0]
    return tuple(robot.joint_names[k] for k in joints)


def laws() -> dict[str, type[Spring]]:
    """Identifiable springs by law name: the ``type`` in robot files, except ``table`` for ``tabulated``.

    These are tables, and all registered springs with one motor and numeric parameters.
    """
    known = {"table" if kind is TabulatedSpring else name: kind for name, kind in SPRINGS.items()}
    # Common laws come first in errors and help.
    names = dict.fromkeys(("linear", "damped", "cubic", "table", "exponential", *known))
    return {name: known[name] for name in names if _can_be_fitted(known[name])}


def _can_be_fitted(kind: type[Spring]) -> bool:
    declared = kind.parameters().values()
    numbers = bool(declared) and all(entry.check in (positive, not_negative) for entry in declared)
    if kind.is_damped or len(kind.motor_suffixes) > 1 or kind.is_variable:
        return kind is DampedSpring
    return numbers or kind is TabulatedSpring
