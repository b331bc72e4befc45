# SPDX-License-Identifier: Apache-2.0
"""What contacts need to know of a robot, alike for a fixed and a floating base.

The configuration of a robot with a fixed base is q, and its rates are nu = qd; with a floating base the configuration
is (pose, q), and nu = (V_0, qd).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..arrays import AnyArray, Array
from ..codegen.expressions import Expression
from ..codegen.floating_programs import RATE_NAMES, base_pose
from ..codegen.functions import Vector, joint_vectors
from ..constraints import FrameMotion
from ..dynamics import Dynamics
from ..exceptions import StateError
from ..floating_base import FloatingBase
from ..jet import Jet
from ..kinematics import Kinematics
from ..recursion import kinematics, link_tree
from ..recursion.scalars import Matrix, Numbers
from ..robot import Frame, Robot
from ..spelling import shown
from ..states import STATE_NAMES, name_of, real_array

Inputs: TypeAlias = Mapping[str, Sequence[Expression]]


class Mechanism(Protocol):
    """A robot with a fixed or a floating base.

    Attributes:
        robot: the robot.
        base: number of rates that no joint drives, which come first: 0, or 6 of a floating base.
        backend: of its compiled functions.
    """

    robot: Robot
    base: int
    backend: str

    def frame(self, name: str) -> Frame:
        """The frame of a name; StateError if there is none."""

    def state(self, configuration: Any, *rates: Any) -> tuple[Any, list[Array]]:
        """Configuration and rates nu, nud, … as arrays; StateError if they have other shapes or are not finite."""

    def vectors(self, orders: int) -> tuple[Vector, ...]:
        """The configuration and its rates, as arguments of a compiled function."""

    def frame_motion(self, frame: str, x: Inputs, orders: int) -> FrameMotion:
        """Motion of a frame over expressions, with derivatives of its Jacobian up to an order."""

    def mass_matrix(self, configuration: Any) -> Array:
        """M (base + n, base + n)."""

    def bias(self, configuration: Any, nu: Array) -> Array:
        """Efforts (base + n,) at zero acceleration."""

    def inverse_dynamics(self, configuration: Any, *rates: Array) -> tuple[Array, ...]:
        """Efforts (base + n,) and as many derivatives as rates beyond the accelerations, at most two."""


class FixedBase:
    """A robot with a fixed base."""

    base = 0

    def __init__(self, dynamics: Dynamics) -> None:
        self.robot = dynamics.robot
        self._dynamics = dynamics
        self._kinematics = Kinematics(dynamics.robot, backend=dynamics.backend)
        self.frame, self.backend = self._kinematics.frame, dynamics.backend
        self.mass_matrix = dynamics.mass_matrix
        self.bias = dynamics.bias

    def state(self, configuration: Any, *rates: Any) -> tuple[Array, list[Array]]:
        """Checked q and qd, qdd, …."""
        q = real_array(configuration, STATE_NAMES[0], (self.robot.n,))
        return q, _checked(rates, STATE_NAMES[1:], self.robot.n)

    def vectors(self, orders: int) -> tuple[Vector, ...]:
        """q, qd, …."""
        return joint_vectors(self.robot.n, orders + 1)

    def frame_motion(self, frame: str, x: Inputs, orders: int) -> FrameMotion:
        """By the recursion."""
        tree, states = link_tree(replace(self.robot, tools=(self.frame(frame),))), list(x.values())
        twist = kinematics.body_twist(tree, states) if orders else []
        return _frame_motion(kinematics.pose(tree, states[0]), twist, kinematics.jacobian(tree, states, "body"))

    def inverse_dynamics(self, configuration: Array, *rates: Array) -> tuple[Array, ...]:
        """By the compiled recursion."""
        if len(rates) == 2:
            return (self._dynamics.effort(configuration, *rates),)
        return self._dynamics.inverse_dynamics(configuration, *rates)[: len(rates) - 1]


class MovingBase:
    """A robot with a floating base; its configuration is (pose, q)."""

    base = 6

    def __init__(self, dynamics: FloatingBase) -> None:
        self.robot = dynamics.robot
        self.frame, self.backend = dynamics.frame, dynamics.backend
        self._dynamics = dynamics

    def state(self, configuration: Any, *rates: Any) -> tuple[tuple[Array, Array], list[Array]]:
        """Checked (pose, q) and nu, nud, …."""
        if not isinstance(configuration, (tuple, list)) or len(configuration) != 2:
            raise StateError(f"the configuration of a floating base is (pose, q), not {shown(configuration)}")
        pose = real_array(configuration[0], "pose", (4, 4))
        q = real_array(configuration[1], STATE_NAMES[0], (self.robot.n,))
        return (pose, q), _checked(rates, RATE_NAMES, self.base + self.robot.n)

    def vectors(self, orders: int) -> tuple[Vector, ...]:
        """pose, q, nu, nud, …."""
        return self._dynamics.signature("jacobian", orders).arguments

    def frame_motion(self, frame: str, x: Inputs, orders: int) -> FrameMotion:
        """By the recursion."""
        tree, (pose, q, *rates) = link_tree(replace(self.robot, tools=(self.frame(frame),))), x.values()
        states, base = [q, *(nu[self.base :] for nu in rates)], [nu[: self.base] for nu in rates]
        twist = kinematics.body_twist(tree, states, base) if orders else []
        at = kinematics.pose_on_base(tree, q, base_pose(pose))
        return _frame_motion(at, twist, kinematics.jacobian_on_base(tree, states, "body", base))

    def mass_matrix(self, configuration: tuple[Array, Array]) -> Array:
        """It depends on the joints alone."""
        return self._dynamics.mass_matrix(configuration[1])

    def bias(self, configuration: tuple[Array, Array], nu: Array) -> Array:
        """By the compiled recursion."""
        return self._dynamics.bias(*configuration, nu)

    def inverse_dynamics(self, configuration: tuple[Array, Array], *rates: Array) -> tuple[Array, ...]:
        """By the compiled recursion."""
        if len(rates) == 2:
            return (self._dynamics.effort(*configuration, *rates),)
        return self._dynamics.inverse_dynamics(*configuration, *rates)[: len(rates) - 1]


def _frame_motion(at: tuple[Matrix, Numbers], twist: list[Numbers], jacobian: list[list[Numbers]]) -> FrameMotion:
    pose: AnyArray = np.eye(4, dtype=object)
    pose[:3, :3], pose[:3, 3] = at
    twists = Jet([np.array(V, dtype=object) for V in twist])
    return FrameMotion(pose, twists, Jet([np.array(columns, dtype=object).T for columns in jacobian]))


def _checked(rates: Sequence[Any], names: Sequence[str], size: int) -> list[Array]:
    return [real_array(rate, name_of(names, k), (size,)) for k, rate in enumerate(rates)]


def mechanism(robot: Any) -> Mechanism:
    """The mechanism of a robot, of its dynamics, or of those with a floating base.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(robot, Robot):
        return FixedBase(Dynamics(robot))
    if isinstance(robot, Dynamics):
        return FixedBase(robot)
    if isinstance(robot, FloatingBase):
        return MovingBase(robot)
    raise TypeError(f"contacts are those of a Robot, its Dynamics or FloatingBase, not of {shown(robot)}")


def joints_and_base(vector: Array, base: int) -> tuple[Array, Array]:
    """Entries of joints (n,) and of the base (base,)."""
    return np.asarray(vector[base:]), np.asarray(vector[:base])
