# SPDX-License-Identifier: Apache-2.0
"""Compiled kinematics of the frames of one robot on a floating base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import real_array
from ..arrays import EFFORT_NAMES, STATE_NAMES, Array, derivative_names
from ..codegen import floating_programs as programs
from ..codegen.floating_programs import RATE_NAMES
from ..codegen.functions import Signature, Vector, derivatives, motion_vectors, vectors
from ..codegen.state_method import CompiledMethods
from ..exceptions import RobotDescriptionError, StateError
from ..recursion.composite import BASE
from ..recursion.kinematics import REPRESENTATIONS, representation
from ..robot import Frame, Robot
from ..spelling import shown
from .frames import named_frame, signature_of

_POSE = (4, 4)


def state_vectors(robot: Robot) -> dict[str, Vector]:
    """Arguments and results of :class:`.FloatingBase` by name, for one state."""
    n, m = robot.n, BASE + robot.n
    efforts, joint_efforts = "wrench on the base and joint efforts, N m and N", "joint efforts, N m or N"
    ordered = (
        *motion_vectors(n, len(STATE_NAMES), required=3),
        *derivatives(RATE_NAMES, len(RATE_NAMES), (m,), "twist of the base and joint rates, rad/s or m/s", 2),
        *derivatives(EFFORT_NAMES, 3, (m,), efforts),
        *derivatives(derivative_names("u", 3), 3, (n,), joint_efforts),
    )
    return (
        {vector.name: vector for vector in ordered}
        | vectors(_POSE, pose="of the base in the inertial frame, m")
        | vectors((m,), bias=f"{efforts}, at zero acceleration", Q_grav=f"{efforts}, against gravity", p="momenta")
        | vectors((m, m), M="mass matrix", C="Coriolis matrix")
        | vectors((), T="kinetic energy, J", U="potential energy, J")
        | vectors((6,), h="centroidal momentum, angular first, N m s and N s")
        | vectors((6, m), A="h = A nu")
        | vectors((3, m), J="velocity of the center of mass is J nu")
    )


class FloatingKinematics(CompiledMethods):
    """Poses, twists and Jacobians of frames, and the center of mass, of one robot on a floating base.

    These methods of :class:`.FloatingBase` take its state. They raise StateError if an argument has the wrong shape or
    is not finite, or a frame or reference is unknown.
    """

    _frames: Mapping[str, Frame]

    @property
    def total_mass(self) -> float:
        """Mass of all bodies including the base, kg."""
        return programs.total_mass(self.robot)

    def center_of_mass(self, pose: ArrayLike, q: ArrayLike, *rates: ArrayLike) -> Any:
        """Center of mass c (3,) or (N, 3), m, in the inertial frame; with rates nu, nud, … the tuple c, cd, ….

        Raises RobotDescriptionError if the robot has no mass.
        """
        orders = len(rates)
        key = "center_of_mass", orders
        call = self._calls.get(key)
        if call is None:
            self._require_mass()
            recipe = programs.floating_center_of_mass_program(self.robot, orders)
            call = self._keep(key, recipe, self.signature("center_of_mass", orders))
        return call(pose, q, *rates)

    def pose(self, pose: ArrayLike, q: ArrayLike, frame: str | Frame | None = None) -> Array:
        """Pose of a frame in the inertial frame, (4, 4) or (N, 4, 4), m.

        The frame is the name of a robot frame, as for :class:`.Kinematics`, or ``base``; or any :class:`.robot.Frame`
        on a body of the robot. By default the first tool.
        """
        key = "pose", frame
        call = self._stored_call(key) or self._keep(
            key, programs.floating_pose_program(self.robot, self.frame(frame)), self.signature("pose")
        )
        return call(pose, q)

    def motion(
        self, pose: ArrayLike, q: ArrayLike, *rates: ArrayLike, frame: str | Frame | None = None
    ) -> tuple[Array, ...]:
        """Pose of a frame in the inertial frame, and its body-fixed twist with time derivatives.

        Returns:
            C, V, Vd, …: (4, 4) and (6,), or (N, 4, 4) and (N, 6); a vector for each of the rates nu, nud, …, at least
            nu.
        """
        orders = len(rates)
        if not orders:
            raise StateError("motion requires pose, q and at least nu")
        key = "motion", frame, orders
        call = self._stored_call(key) or self._keep(
            key, programs.motion_program(self.robot, self.frame(frame), orders), self.signature("motion", orders)
        )
        return call(pose, q, *rates)

    def jacobian(
        self, pose: ArrayLike | None, q: ArrayLike, frame: str | Frame | None = None, reference: str = "body"
    ) -> Array:
        """Jacobian of a frame, (6, 6 + n) or (N, 6, 6 + n): V = J nu.

        The kind of the twist V is as for :meth:`.Kinematics.jacobian`, with the inertial frame as the base. The body
        Jacobian does not depend on the pose, which may be None.
        """
        return self._jacobians(pose, (q,), frame, reference)

    def jacobian_derivatives(
        self,
        pose: ArrayLike | None,
        q: ArrayLike,
        *rates: ArrayLike,
        frame: str | Frame | None = None,
        reference: str = "body",
    ) -> tuple[Array, ...]:
        """Jacobian of a frame and its time derivatives J, Jd, …, each (6, 6 + n) or (N, 6, 6 + n): Vd = J nud + Jd nu.

        Each of the rates nu, nud, … adds a derivative; other arguments are as for :meth:`jacobian`.
        """
        levels = self._jacobians(pose, (q, *rates), frame, reference)
        return levels if rates else (levels,)

    def frame(self, frame: str | Frame | None = None) -> Frame:
        """Frame with this name; by default the first tool."""
        if isinstance(frame, Frame):
            if not isinstance(frame.joint, int | np.integer):
                raise StateError(f"joint of the frame {shown(frame.name)} must be an index, is {shown(frame.joint)}")
            if not -1 <= frame.joint < len(self.robot.joints):
                raise StateError(f"{self.robot.name} has no body {frame.joint} for the frame {shown(frame.name)}")
            real_array(frame.pose, f"pose of the frame {shown(frame.name)}", _POSE)
            return frame
        return named_frame(self.robot, self._frames, frame)

    def _require_mass(self) -> None:
        if not self.total_mass:
            raise RobotDescriptionError(f"{self.robot.name} has no mass, and thus no center of mass")

    def _jacobians(
        self, pose: ArrayLike | None, states: tuple[ArrayLike, ...], frame: str | Frame | None, reference: str
    ) -> Any:
        orders = len(states) - 1
        if reference not in REPRESENTATIONS:
            reference = representation(reference)
        key = "jacobian", frame, reference, orders
        call = self._stored_call(key)
        if call is None:
            recipe = programs.floating_jacobian_program(self.robot, self.frame(frame), reference, orders)
            signature = self.signature("jacobian", orders)
            if reference == "body":
                signature = replace(signature, arguments=signature.arguments[1:])
            call = self._keep(key, recipe, signature)
        if reference == "body":
            return call(*states)
        if pose is None:
            raise StateError(f"the {reference} Jacobian requires the pose of the base")
        return call(pose, *states)

    def signature(self, method: str, orders: int = 0) -> Signature:
        """Signature of a method with a number of rates, as :meth:`.CompiledMethods.signature`."""
        known = state_vectors(self.robot)
        nu = known["nu"]
        rates = derivatives(derivative_names("nu", orders), orders, nu.shape, nu.about) if orders else ()
        return signature_of(method, (known["pose"], known["q"], *rates), orders, *nu.shape)
