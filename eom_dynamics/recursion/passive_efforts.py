# SPDX-License-Identifier: Apache-2.0
"""Constant efforts and parallel springs of robot joints, with time derivatives of any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..actuators.parallel_springs import ParallelSpring
from ..jet import Jet
from ..robot import Robot
from .scalars import Scalar


@dataclass(frozen=True, eq=False)
class PassiveJoint:
    """Joint with a constant effort or a parallel spring, at the position ``ratio`` q + ``shift``.

    Attributes:
        coordinate: index of the joint variable q.
        ratio, shift: factor and offset of a mimic joint, else 1 and 0.
        constant: effort against a constant load, N m or N.
        spring: parallel spring, or None.
    """

    coordinate: int
    ratio: Any
    shift: Any
    constant: float
    spring: ParallelSpring | None

    def effort(self, q: Jet) -> Jet:
        """Effort at the joint variable; a mimic joint adds ``ratio`` times its effort to its leader."""
        if self.spring is None:
            return Jet.constant(self.ratio * self.constant, len(q))
        return self.ratio * (self.spring.effort_jet(self.ratio * q + self.shift) + self.constant)

    def energy(self, q: Scalar) -> Scalar:
        """Potential energy, zero at q = 0 for the constant effort and without deflection for the spring, J."""
        energy = self.constant * (self.ratio * q)
        return energy if self.spring is None else energy + self.spring.energy(self.ratio * q + self.shift)


def passive_joints(robot: Robot) -> tuple[PassiveJoint, ...]:
    """Joints of a robot with a constant effort or a parallel spring."""
    E, shifts = robot.coupling
    joints = []
    for joint, row, shift in zip(robot.joints, E, shifts, strict=True):
        if joint.constant_effort or joint.parallel_spring is not None:
            i = int(row.nonzero()[0][0])
            constant, spring = joint.constant_effort, joint.parallel_spring
            joints.append(PassiveJoint(i, row[i].item(), shift.item(), constant, spring))
    return tuple(joints)


def passive_efforts(joints: Sequence[PassiveJoint], n: int, positions: Sequence[Sequence[Scalar]]) -> list[Jet]:
    """Efforts of n joint variables against constant loads and parallel springs, with time derivatives.

    Args:
        joints: result of :func:`passive_joints`.
        positions: q, qd, …, one scalar for each joint variable.

    Returns:
        A jet for each joint variable, with an entry for each of q, qd, ….
    """
    efforts = [Jet.constant(0.0, len(positions)) for _ in range(n)]
    for joint in joints:
        i = joint.coordinate
        efforts[i] = efforts[i] + joint.effort(Jet([x[i] for x in positions]))
    return efforts


def passive_stiffness(joints: Sequence[PassiveJoint], q: Sequence[Scalar]) -> list[Scalar]:
    """Passive stiffness: derivative of each passive effort with respect to its joint variable, N m/rad or N/m."""
    ones = [1.0] * len(q)
    return [effort[1] for effort in passive_efforts(joints, len(q), [q, ones])]


def passive_energy(joints: Sequence[PassiveJoint], q: Sequence[Scalar]) -> Scalar:
    """Potential energy of all passive efforts, J."""
    return sum((joint.energy(q[joint.coordinate]) for joint in joints), 0.0)
