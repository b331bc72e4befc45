# SPDX-License-Identifier: Apache-2.0
"""Limited quantities of joints and motors along a motion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Array
from ..elastic import ElasticArm
from ..elastic.bounds import Bounds
from ..elastic.motor_programs import STIFFNESS_NAMES
from ..exceptions import StateError
from ..states import STATE_NAMES, WRENCH_NAMES

# Samples that are computed together: their working memory fits in the cache of a core.
_PART = 4096

Selection: TypeAlias = slice | NDArray[np.intp]
"""Indices of samples, or a range of them."""


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

    def slowed(self, s: Array) -> Load:
        """The load slowed down by s, one number or one per sample: k-th derivatives divided by s^k."""
        return Load(
            *(tuple(x / np.reshape(s, (-1, *[1] * (x.ndim - 1))) ** k for k, x in enumerate(arrays)) for arrays in self)
        )


class SampledLoad:
    """Load at all samples of a motion, computed part by part: memory does not grow with quantities and derivatives.

    Attributes:
        t: times of the samples (N,), s.
        is_constant: whether wrench and stiffness are the same at all samples.
    """

    def __init__(
        self,
        arm: ElasticArm,
        t: Array,
        states_at: Callable[[Selection], Sequence[Array]],
        wrench: Sequence[ArrayLike] = (),
        stiffness: Sequence[ArrayLike] = (),
    ) -> None:
        """Sample a motion.

        Args:
            arm: the arm.
            t: times of the samples (N,), s.
            states_at: returns q … qdddd of selected samples.
            wrench, stiffness: constant, or with a leading axis of N samples.

        Raises:
            StateError: a wrench or stiffness has the wrong shape.
        """
        self.t, self._states_at = t, states_at
        self._wrench = _all_rows(wrench, "wrench", WRENCH_NAMES, (len(t), *arm.robot.wrench_shape))
        self._stiffness = _all_rows(stiffness, "stiffness", STIFFNESS_NAMES, (len(t), arm.robot.n))
        rows = zip((*wrench, *stiffness), (*self._wrench, *self._stiffness), strict=True)
        self.is_constant = all(np.ndim(value) < each.ndim for value, each in rows)
        if len(t) <= _PART:  # one part, which is asked for many times
            states = tuple(states_at(slice(None)))
            self._states_at = lambda samples: [x[samples] for x in states]

    def at(self, samples: Selection, s: Array | None = None) -> Load:
        """Load at selected samples, slowed down by s, as :meth:`Load.slowed`."""
        found = Load(
            tuple(self._states_at(samples)),
            tuple(x[samples] for x in self._wrench),
            tuple(x[samples] for x in self._stiffness),
        )
        return found if s is None else found.slowed(s)

    def parts(self, s: Array | None = None, overlap: int = 0) -> Iterator[tuple[slice, Load]]:
        """Yield the load of consecutive samples; a part repeats the last ``overlap`` samples of the one before."""
        for first in range(0, len(self.t), _PART):
            part = slice(max(first - overlap, 0), first + _PART)
            yield part, self.at(part, s)


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
        if not limits.limited("effort", "effort_rate"):
            return of_joints
        efforts = joint_efforts(arm, load.states, load.wrench, rate=limits.limited("effort_rate"))
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


def joint_efforts(
    arm: ElasticArm, states: Sequence[Array], wrench: Sequence[Array] = (), *, rate: bool
) -> tuple[Array, ...]:
    """Joint efforts, in the reduced rotor model, and their time derivatives if the rate is asked for."""
    if rate:
        return arm.efforts(*states, wrench=wrench)
    return (arm.dynamics.effort(*states[:3], wrench=wrench),)


def effort_rms(arm: ElasticArm, samples: SampledLoad, s: Array | None = None) -> Array:
    """Root mean square of the effort of each motor over all samples, on the link side of its gear (m,), N m or N.

    Args:
        arm, samples: at least two samples.
        s: factor by which the motion is slowed down.
    """
    total = np.zeros(len(arm.motor_joint))
    for part, load in samples.parts(s, overlap=1):
        effort = arm.feedforward(*load.states, wrench=load.wrench, commanded_stiffness=load.stiffness).motor_effort
        total += np.diff(samples.t[part]) @ (effort[1:] ** 2 + effort[:-1] ** 2)
    return np.sqrt(total / (2 * (samples.t[-1] - samples.t[0])))


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
