# SPDX-License-Identifier: Apache-2.0
"""Limited quantities of joints and motors: their values along a motion, and their limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Array
from ..elastic import ElasticArm
from ..elastic.elastic_arm import STIFFNESS_NAMES
from ..exceptions import StateError, TrajectoryError
from ..robot.model import Limits
from ..states import WRENCH_NAMES
from ..units import SHAFT_UNITS, unit

_OF_JOINTS = ("position", "velocity", "acceleration", "jerk", "effort", "effort_rate")

UNITS = {name: unit(name) for name in _OF_JOINTS} | {f"motor_{name}": text for name, text in SHAFT_UNITS.items()}
"""Units of the limited quantities; for prismatic joints, read m and N in place of rad and N m."""


class Bounds(NamedTuple):
    """Limits of an arm.

    Attributes:
        names: by quantity, names of its joints or motors.
        units: by quantity, a unit for each name.
        largest: by quantity except the position, largest magnitude for each name; infinite without a limit.
        lower, upper: range of the position for each joint.
    """

    names: dict[str, tuple[str, ...]]
    units: dict[str, tuple[str, ...]]
    largest: dict[str, Array]
    lower: Array
    upper: Array


def bounds(arm: ElasticArm, limits: Mapping[str, Limits] | None = None) -> Bounds:
    """Limits of an arm, including those of mimic joints.

    Args:
        arm: the arm.
        limits: limits by name of joint, in place of those in the robot's file.

    Raises:
        TrajectoryError: a joint is unknown.
    """
    joints = arm.robot.joints
    every = tuple(joint.name for joint in joints)
    for name in limits or ():
        if name not in every:
            raise TrajectoryError(f"limits of unknown joint {name!r}; {arm.robot.name} has {', '.join(every)}")
    own = {joint.name: (limits or {}).get(joint.name, joint.limits) for joint in joints}
    names, largest = {"position": every}, {}
    for quantity in ("velocity", "acceleration", "jerk"):
        names[quantity] = every
        largest[quantity] = np.array([getattr(own[name], quantity) for name in every])
    for quantity in ("effort", "effort_rate"):
        names[quantity] = arm.robot.joint_names
        largest[quantity] = np.array([getattr(own[name], quantity) for name in arm.robot.joint_names])
    for quantity in ("speed", "torque", "current", "voltage"):
        names[f"motor_{quantity}"] = arm.motor_names
        limit = getattr(arm.motor, f"{quantity}_limit")
        largest[f"motor_{quantity}"] = np.broadcast_to(np.asarray(limit, dtype=float), (len(arm.motor_names),))
    lower, upper = (np.array([getattr(own[name], side) for name in every]) for side in ("lower", "upper"))
    types = {joint.name: joint.type for joint in joints}
    units = {
        quantity: tuple(unit(quantity, types[name]) if quantity in _OF_JOINTS else text for name in names[quantity])
        for quantity, text in UNITS.items()
    }
    return Bounds(names, units, largest, lower, upper)


class Load(NamedTuple):
    """Samples of a motion, the tool wrench and the commanded stiffness: the arguments of an arm's feedforward.

    Attributes:
        states: q … qdddd, each (N, n).
        wrench: at the tools, and its time derivatives, each with a leading axis of N samples.
        stiffness: commanded, and its time derivatives, each (N, n).
    """

    states: tuple[Array, ...]
    wrench: tuple[Array, ...] = ()
    stiffness: tuple[Array, ...] = ()

    @classmethod
    def of(
        cls,
        arm: ElasticArm,
        states: Sequence[Array],
        wrench: Sequence[ArrayLike] = (),
        stiffness: Sequence[ArrayLike] = (),
    ) -> Load:
        """Repeat constants for all samples.

        Raises:
            StateError: a wrench or stiffness has the wrong shape.
        """
        N = len(states[0])
        return cls(
            tuple(states),
            _all_rows(wrench, "wrench", WRENCH_NAMES, (N, *arm.robot.wrench_shape)),
            _all_rows(stiffness, "stiffness", STIFFNESS_NAMES, (N, arm.robot.n)),
        )

    def at(self, samples: NDArray[np.intp], s: Array) -> Load:
        """Some samples, slowed down by the factor s, a number or one for each: k-th derivatives over s^k."""
        return Load(
            *(
                tuple(x[samples] / np.reshape(s, (-1, *[1] * (x.ndim - 1))) ** k for k, x in enumerate(arrays))
                for arrays in self
            )
        )


def quantities(arm: ElasticArm, load: Load) -> dict[str, Array]:
    """Values of all quantities except the position, each (N, number of names); NaN if a motor's constant is unknown."""
    command = arm.feedforward(*load.states, wrench=load.wrench, stiffness=load.stiffness)
    drive = arm.drive(command)
    return {
        **{
            name: all_joints(arm, x)
            for name, x in zip(("velocity", "acceleration", "jerk"), load.states[1:4], strict=True)
        },
        "effort": command.tau,
        "effort_rate": command.taud,
        "motor_speed": drive.velocity,
        "motor_torque": drive.torque,
        "motor_current": drive.current,
        "motor_voltage": drive.voltage,
    }


def all_joints(arm: ElasticArm, x: Array) -> Array:
    """Rates of all joints, including mimic joints, from those of the independent joints (N, n)."""
    if len(arm.robot.joints) == arm.robot.n:
        return x
    return x @ arm.robot.coupling[0].T


def _all_rows(
    values: Sequence[ArrayLike], name: str, names: Sequence[str], shape: tuple[int, ...]
) -> tuple[Array, ...]:
    if len(values) > len(names):
        raise StateError(f"{name} must be ({', '.join(names)}) or the first of them, has {len(values)} entries")
    return tuple(_rows(x, f"{name} {each}", shape) for x, each in zip(values, names, strict=False))


def _rows(value: ArrayLike, name: str, shape: tuple[int, ...]) -> Array:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise StateError(f"{name} is not an array of numbers") from None
    if array.shape not in (shape, shape[1:]):
        raise StateError(f"{name} must have shape {shape} or {shape[1:]}, has {array.shape}")
    return np.broadcast_to(array, shape)
