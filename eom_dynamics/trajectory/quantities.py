# SPDX-License-Identifier: Apache-2.0
"""What joints and motors do along a motion, beside what they may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuators import ElasticArm
from ..actuators.elastic_arm import STIFFNESS_NAMES
from ..exceptions import StateError, TrajectoryError
from ..robot.model import Limits
from ..states import WRENCH_NAMES

Array = NDArray[np.float64]

UNITS = {
    "position": "rad",
    "velocity": "rad/s",
    "acceleration": "rad/s²",
    "jerk": "rad/s³",
    "effort": "N m",
    "effort_rate": "N m/s",
    "motor_speed": "rad/s",
    "motor_torque": "N m",
    "motor_current": "A",
    "motor_voltage": "V",
}
"""All quantities that have limits, with their units; at prismatic joints m and N stand for rad and N m."""


class Bounds(NamedTuple):
    """How large each quantity may be in size.

    Attributes:
        names: by quantity, of joints or motors, as many as columns.
        units: by quantity, of each of them.
        largest: by quantity, (number of names,); infinite without a limit. Not of the position.
        lower, upper: of the positions of all joints.
    """

    names: dict[str, tuple[str, ...]]
    units: dict[str, tuple[str, ...]]
    largest: dict[str, Array]
    lower: Array
    upper: Array


def bounds(arm: ElasticArm, limits: Mapping[str, Limits] | None = None) -> Bounds:
    """The limits of an arm, those of joints that follow another among them.

    Args:
        arm: the arm.
        limits: by name of joint, in place of those in the robot's file.

    Raises:
        TrajectoryError: a limit is of a joint that the robot does not have.
    """
    joints = arm.robot.joints
    every = tuple(joint.name for joint in joints)
    for name in limits or ():
        if name not in every:
            raise TrajectoryError(f"limits of a joint {name!r}; the joints of {arm.robot.name} are {', '.join(every)}")
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
    slides = {joint.name for joint in joints if joint.type == "prismatic"}
    units = {
        quantity: tuple(
            unit.replace("N m", "N").replace("rad", "m")
            if not quantity.startswith("motor") and name in slides
            else unit
            for name in names[quantity]
        )
        for quantity, unit in UNITS.items()
    }
    return Bounds(names, units, largest, lower, upper)


class Load(NamedTuple):
    """A motion and what acts on it: what an arm's feedforward takes.

    Attributes:
        states: q … qdddd, each (N, n).
        wrench: of the tools, and its derivatives, each with an axis of N samples.
        stiffness: commanded, and its derivatives, each (N, n).
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
        """With constants repeated for each sample.

        Raises:
            StateError: a wrench or stiffness has another shape.
        """
        N = len(states[0])
        return cls(
            tuple(states),
            _all_rows(wrench, "wrench", WRENCH_NAMES, (N, *arm.robot.wrench_shape)),
            _all_rows(stiffness, "stiffness", STIFFNESS_NAMES, (N, arm.robot.n)),
        )

    def at(self, samples: NDArray[np.intp], s: Array) -> Load:
        """Some samples of the motion, each s times as slow: k-th derivatives over s^k; s is one number, or one each."""
        return Load(
            *(
                tuple(x[samples] / np.reshape(s, (-1, *[1] * (x.ndim - 1))) ** k for k, x in enumerate(arrays))
                for arrays in self
            )
        )


def quantities(arm: ElasticArm, load: Load) -> dict[str, Array]:
    """All quantities but the position, each (N, number of its names); NaN where a motor's constants are not known."""
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
    """Rates (N, n) of the joints that move on their own, at all joints."""
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
