# SPDX-License-Identifier: Apache-2.0
"""What the springs of an arm do at its motors: efforts, stiffness, energy and loss, those of one kind at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..actuators import ElasticArm
from ..drivetrain.springs import AntagonisticPair, CoupledSpring, DampedSpring, RigidSpring, VariableSpring

Array = NDArray[np.float64]


class _Group(NamedTuple):
    """Springs of one kind: numbers of their joints and motors, and one spring that stands for all."""

    joints: Any
    motors: Any
    spring: Any


class SpringLoads:
    """The springs between m motors and n joints.

    Deflections are those of the motors' joint side less the links, delta (…, m), rad or m.

    Attributes:
        rigid: (m,) whether a motor is at a rigid joint: what is there stays zero.
    """

    def __init__(self, arm: ElasticArm) -> None:
        """Sort the springs of the arm by kind."""
        self._motors, self._nominal = len(arm.motor_joint), arm.stiffness
        self._groups: list[_Group] = []
        coupled = list(arm.coupled[0]) if arm.coupled else []
        if arm.coupled:
            self._groups.append(_Group(coupled, np.searchsorted(arm.motor_joint, coupled), arm.coupled[1]))
        kinds: dict[Any, list[int]] = {}
        for joint, spring in enumerate(arm.springs):
            if joint not in coupled and not isinstance(spring, RigidSpring):
                # A pair has two motors: it stays alone.
                kinds.setdefault(joint if isinstance(spring, AntagonisticPair) else type(spring), []).append(joint)
        for joints in kinds.values():
            springs = [arm.springs[joint] for joint in joints]
            if isinstance(springs[0], AntagonisticPair):
                self._groups.append(_Group(joints[0], np.flatnonzero(arm.motor_joint == joints[0]), springs[0]))
            else:
                stacked = type(springs[0]).stacked(springs)
                self._groups.append(_Group(joints, np.searchsorted(arm.motor_joint, joints), stacked))
        self.rigid = np.ones(self._motors, dtype=bool)
        for group in self._groups:
            self.rigid[group.motors] = False

    def effort(self, delta: Array, deltad: Array, stiffness: Array | None = None) -> Array:
        """Efforts (…, m) on the motors' joint side, N m or N.

        Args:
            delta, deltad: deflections and their rates (…, m).
            stiffness: (n,) that of joints where it is commanded, N m/rad or N/m; None: nominal.
        """
        effort = np.zeros_like(delta)
        for joints, motors, spring in self._groups:
            own = delta[..., motors]
            if isinstance(spring, DampedSpring):
                effort[..., motors] = spring.effort(own, deltad[..., motors])
            elif isinstance(spring, VariableSpring):
                effort[..., motors] = spring.effort(own, self._commanded(stiffness)[joints])
            else:
                effort[..., motors] = spring.effort(own)
        return effort

    def energy(self, delta: Array, stiffness: Array | None = None) -> Array:
        """Energy of all springs (…), J; arguments are those of :meth:`effort`."""
        energy = np.zeros(delta.shape[:-1])
        for joints, motors, spring in self._groups:
            own = delta[..., motors]
            held = (
                spring.energy(own, self._commanded(stiffness)[joints])
                if isinstance(spring, VariableSpring)
                else spring.energy(own)
            )
            energy = energy + (np.sum(held, axis=-1) if np.ndim(held) == delta.ndim else held)
        return energy

    def loss(self, deltad: Array) -> Array:
        """Power that dampers beside springs turn to heat (…), W."""
        loss = np.zeros(deltad.shape[:-1])
        for _, motors, spring in self._groups:
            if isinstance(spring, DampedSpring):
                loss = loss + np.sum(spring.power_loss(deltad[..., motors]), axis=-1)
        return loss

    def stretch(self, delta: Array) -> Array:
        """By how much springs that only pull are stretched (…, m), rad or m, negative where slack; else infinite."""
        stretch = np.full_like(delta, np.inf)
        for _, motors, spring in self._groups:
            if isinstance(spring, AntagonisticPair):
                stretch[..., motors] = delta[..., motors] * [1.0, -1.0]
        return stretch

    def tangents(self, delta: Array, stiffness: Array | None = None) -> tuple[Array, Array]:
        """Derivatives of :meth:`effort` with respect to delta and deltad, each (…, m, m)."""
        slope, damping = np.zeros((2, *delta.shape, self._motors))
        for joints, motors, spring in self._groups:
            where = (..., motors, motors)
            own = delta[..., motors]
            if isinstance(spring, DampedSpring):
                slope[where], damping[where] = spring.constant, spring.damping
            elif isinstance(spring, VariableSpring):
                slope[where] = self._commanded(stiffness)[joints]
            elif isinstance(spring, AntagonisticPair):
                slope[where] = spring.pull_stiffness(own * [1.0, -1.0])
            elif isinstance(spring, CoupledSpring):
                rows, columns = np.ix_(motors, motors)
                slope[..., rows, columns] = spring.matrix
            else:
                slope[where] = spring.stiffness(own)
        return slope, damping

    def _commanded(self, stiffness: Array | None) -> Array:
        return self._nominal if stiffness is None else stiffness
