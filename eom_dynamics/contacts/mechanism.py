# SPDX-License-Identifier: Apache-2.0
"""Mechanism of a robot in contact: one interface for fixed and floating bases.

The configuration of a robot with a fixed base is q, and its rates are nu = qd; with a floating base the configuration
is (pose, q), and nu = (V_0, qd).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ..arrays import AnyArray, Array
from ..codegen.expressions import Expression
from ..codegen.floating_programs import RATE_NAMES, base_pose
from ..codegen.functions import Vector, motion_vectors
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


class Mechanism:
    """A robot with a fixed base.

    Attributes:
        robot: the robot.
        base: number of rates that no joint drives, which come first: 0, or 6 of a floating base.
        backend: of its compiled functions.
    """

    base = 0

    def __init__(self, dynamics: Dynamics | FloatingBase) -> None:
        self.robot, self.backend = dynamics.robot, dynamics.backend
        self._dynamics: Any = dynamics

    @cached_property
    def frame(self) -> Callable[[str], Frame]:
        """The frame with this name; StateError if there is none."""
        return Kinematics(self.robot, backend=self.backend).frame

    def state(self, configuration: Any, *rates: Any) -> tuple[Any, list[Array]]:
        """Configuration and rates nu, nud, … as arrays; StateError if they have other shapes or are not finite."""
        q = real_array(configuration, STATE_NAMES[0], (self.robot.n,))
        return q, _checked(rates, STATE_NAMES[1:], self.robot.n)

    def vectors(self, orders: int) -> tuple[Vector, ...]:
        """The configuration and its rates, as arguments of a compiled function."""
        return motion_vectors(self.robot.n, orders + 1)

    def frame_motion(self, frame: str, x: Inputs, orders: int) -> FrameMotion:
        """Motion of a frame over expressions, with derivatives of its Jacobian up to an order."""
        tree, states = link_tree(replace(self.robot, tools=(self.frame(frame),))), list(x.values())
        twist = kinematics.frame_twist(tree, states) if orders else []
        return _frame_motion(kinematics.frame_pose(tree, states[0]), twist, kinematics.jacobian(tree, states, "body"))

    def mass_matrix(self, configuration: Any) -> Array:
        """Mass matrix M (base + n, base + n)."""
        return np.asarray(self._dynamics.mass_matrix(configuration))

    def bias(self, configuration: Any, nu: Array) -> Array:
        """Efforts (base + n,) at zero acceleration."""
        return np.asarray(self._dynamics.bias(*self._parts(configuration), nu))

    def inverse_dynamics(self, configuration: Any, *rates: Array) -> tuple[Array, ...]:
        """Efforts (base + n,) and as many derivatives as rates beyond the accelerations, at most two."""
        state = self._parts(configuration)
        if len(rates) == 2:
            return (self._dynamics.effort(*state, *rates),)
        return tuple(self._dynamics.inverse_dynamics(*state, *rates)[: len(rates) - 1])

    def _parts(self, configuration: Any) -> tuple[Array, ...]:
        """The configuration as arguments of methods of the dynamics."""
        return (configuration,)


class FloatingMechanism(Mechanism):
    """A robot with a floating base; its configuration is (pose, q)."""

    base = 6

    @cached_property
    def frame(self) -> Callable[[str], Frame]:
        """The frame with this name, or ``base``."""
        return self._dynamics.frame

    def state(self, configuration: Any, *rates: Any) -> tuple[Any, list[Array]]:
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
        """Motion of a frame in the inertial frame, as for a fixed base."""
        tree, (pose, q, *rates) = link_tree(replace(self.robot, tools=(self.frame(frame),))), x.values()
        states, base = [q, *(nu[self.base :] for nu in rates)], [nu[: self.base] for nu in rates]
        twist = kinematics.frame_twist(tree, states, base) if orders else []
        at = kinematics.pose_on_base(tree, q, base_pose(pose))
        return _frame_motion(at, twist, kinematics.jacobian_on_base(tree, states, "body", base))

    def mass_matrix(self, configuration: Any) -> Array:
        """Mass matrix, which depends on the joint variables alone."""
        return super().mass_matrix(configuration[1])

    def _parts(self, configuration: Any) -> tuple[Array, ...]:
        return tuple(configuration)


def _frame_motion(at: tuple[Matrix, Numbers], twist: list[Numbers], jacobian: list[list[Numbers]]) -> FrameMotion:
    pose: AnyArray = np.eye(4, dtype=object)
    pose[:3, :3], pose[:3, 3] = at
    twists = Jet([np.array(V, dtype=object) for V in twist])
    return FrameMotion(pose, twists, Jet([np.array(columns, dtype=object).T for columns in jacobian]))


def _checked(rates: Sequence[Any], names: Sequence[str], size: int) -> list[Array]:
    return [real_array(rate, name_of(names, k), (size,)) for k, rate in enumerate(rates)]


def mechanism(robot: Any) -> Mechanism:
    """The mechanism of a robot, given as a Robot, Dynamics or FloatingBase.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(robot, Robot):
        return Mechanism(Dynamics(robot))
    if isinstance(robot, Dynamics):
        return Mechanism(robot)
    if isinstance(robot, FloatingBase):
        return FloatingMechanism(robot)
    raise TypeError(f"contacts are those of a Robot, its Dynamics or FloatingBase, not of {shown(robot)}")
