# SPDX-License-Identifier: Apache-2.0
"""Limited quantities of joints and motors along a motion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Array
from ..elastic import ElasticArm
from ..elastic.bounds import Bounds
from ..elastic.motor_programs import STIFFNESS_NAMES
from ..exceptions import StateError
from ..states import STATE_NAMES, WRENCH_NAMES


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
        """Create from arrays, with constants repeated for all samples.

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
        """Selected samples, slowed down by s, one number or one per sample: k-th derivatives divided by s^k."""
        return Load(
            *(
                tuple(x[samples] / np.reshape(s, (-1, *[1] * (x.ndim - 1))) ** k for k, x in enumerate(arrays))
                for arrays in self
            )
        )


def derivatives_for_limits(arm: ElasticArm, limits: Bounds) -> int:
    """Highest derivative of q, 2 to 4, that the limited quantities depend on."""
    if not _links_suffice(arm, limits):
        return len(STATE_NAMES) - 1
    return 3 if limits.limited("jerk", "effort_rate") else 2


def quantities(arm: ElasticArm, load: Load, limits: Bounds | None = None) -> dict[str, Array]:
    """Values of quantities except the position, each (N, number of names); NaN if a motor's constant is unknown.

    Args:
        arm: the arm.
        load: its motion, with the derivatives of :func:`derivatives_for_limits` at least.
        limits: with which only quantities that have a limit are computed, if the others take time; by default all.
    """
    rates = zip(("velocity", "acceleration", "jerk"), load.states[1:4], strict=False)
    of_joints = {name: all_joints(arm, x) for name, x in rates}
    if limits is not None and not load.stiffness and _links_suffice(arm, limits):
        efforts = arm.efforts(*load.states, wrench=load.wrench) if limits.limited("effort", "effort_rate") else ()
        return of_joints | dict(zip(("effort", "effort_rate"), efforts, strict=False))
    command = arm.feedforward(*load.states, wrench=load.wrench, commanded_stiffness=load.stiffness)
    of_joints |= {"effort": command.tau, "effort_rate": command.taud}
    if limits is not None and not limits.of_motors:
        return of_joints
    drive = arm.drive(command)
    return of_joints | {
        "motor_speed": drive.velocity,
        "motor_torque": drive.torque,
        "motor_current": drive.current,
        "motor_voltage": drive.voltage,
    }


def effort_rms(arm: ElasticArm, t: Array, load: Load) -> Array:
    """Root mean square of the effort of each motor over times (N,), on the link side of its gear (m,), N m or N."""
    effort = arm.feedforward(*load.states, wrench=load.wrench, commanded_stiffness=load.stiffness).motor_effort
    mean: Array = np.diff(t) @ (effort[1:] ** 2 + effort[:-1] ** 2) / (2 * (t[-1] - t[0]))
    return np.sqrt(mean)


def _links_suffice(arm: ElasticArm, limits: Bounds) -> bool:
    """Whether limits are those of the links alone, and the springs can follow any motion."""
    springs = arm.spring_set
    return not limits.of_motors and arm.rotors is None and springs.is_linear and not np.any(arm.variable)


def all_joints(arm: ElasticArm, x: Array) -> Array:
    """Rates of all joints, mimic joints included, from those of the independent joints (N, n)."""
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
