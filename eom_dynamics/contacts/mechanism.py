# SPDX-License-Identifier: Apache-2.0
"""What contacts need to know of a robot, alike for a fixed and a floating base.

The configuration of a robot with a fixed base is q, and its rates are nu = qd; with a floating base the configuration
is (pose, q), and nu = (V_0, qd).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..arrays import Array
from ..codegen.floating_programs import RATE_NAMES
from ..constraints import FrameMotion
from ..dynamics import Dynamics
from ..exceptions import StateError
from ..floating_base import FloatingBase
from ..jet import Jet
from ..kinematics import Kinematics
from ..robot import Frame, Robot
from ..spelling import shown
from ..states import STATE_NAMES, name_of, real_array


class Mechanism(Protocol):
    """A robot with a fixed or a floating base.

    Attributes:
        robot: the robot.
        base: number of rates that no joint drives, which come first: 0, or 6 of a floating base.
    """

    robot: Robot
    base: int

    def frame(self, name: str) -> Frame:
        """The frame of a name; StateError if there is none."""

    def state(self, configuration: Any, *rates: Any) -> tuple[Any, list[Array]]:
        """Configuration and rates nu, nud, … as arrays; StateError if they have other shapes or are not finite."""

    def frame_motion(self, frame: str, configuration: Any, *rates: Array) -> FrameMotion:
        """Motion of a frame, with as many derivatives of its Jacobian as rates."""

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
        self.frame = self._kinematics.frame
        self.mass_matrix = dynamics.mass_matrix
        self.bias = dynamics.bias

    def state(self, configuration: Any, *rates: Any) -> tuple[Array, list[Array]]:
        """Checked q and qd, qdd, …."""
        q = real_array(configuration, STATE_NAMES[0], (self.robot.n,))
        return q, _checked(rates, STATE_NAMES[1:], self.robot.n)

    def frame_motion(self, frame: str, configuration: Array, *rates: Array) -> FrameMotion:
        """By compiled code for the frame."""
        J = Jet(self._kinematics.jacobian_derivatives(configuration, *rates, frame=frame))
        if not rates:
            return FrameMotion(self._kinematics.pose(configuration, frame), Jet([]), J)
        pose, *twist = self._kinematics.motion(configuration, *rates, frame=frame)
        return FrameMotion(pose, Jet(twist), J)

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
        self.frame = dynamics.frame
        self._dynamics = dynamics

    def state(self, configuration: Any, *rates: Any) -> tuple[tuple[Array, Array], list[Array]]:
        """Checked (pose, q) and nu, nud, …."""
        if not isinstance(configuration, (tuple, list)) or len(configuration) != 2:
            raise StateError(f"the configuration of a floating base is (pose, q), not {shown(configuration)}")
        pose = real_array(configuration[0], "pose", (4, 4))
        q = real_array(configuration[1], STATE_NAMES[0], (self.robot.n,))
        return (pose, q), _checked(rates, RATE_NAMES, self.base + self.robot.n)

    def frame_motion(self, frame: str, configuration: tuple[Array, Array], *rates: Array) -> FrameMotion:
        """By compiled code for the frame."""
        J = Jet(self._dynamics.jacobian_derivatives(configuration[1], *rates, frame=frame))
        if not rates:
            return FrameMotion(self._dynamics.pose(*configuration, frame), Jet([]), J)
        pose, *twist = self._dynamics.motion(*configuration, *rates, frame=frame)
        return FrameMotion(pose, Jet(twist), J)

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
