# SPDX-License-Identifier: Apache-2.0
"""Kinematics of one robot by code that is specialised for it, for one state or a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..codegen import kinematic_programs
from ..codegen.backends import Kernel, require_robot, working_kernel
from ..codegen.evaluation import evaluate
from ..codegen.native import NativeKernel
from ..codegen.native_solver import NativeSolver
from ..codegen.recipe import Recipe
from ..exceptions import StateError
from ..recursion.kinematics import REPRESENTATIONS
from ..robot import Frame, Robot
from ..spelling import hint
from ..states import joint_states

_POSE, _TWIST = (4, 4), (6,)

# Singular values below this share of the largest one are zero, as for numpy.linalg.matrix_rank.
_SINGULAR = 6 * np.finfo(float).eps


class Kinematics:
    """Poses, twists, Jacobians and statics of the frames of one robot.

    A frame is named by the name of a tool, of another frame of the robot's description, or of a joint, for the body
    that it moves; by default it is the first tool. The first use of each quantity of each frame compiles code for it,
    which takes a fraction of a second; later uses load it from the cache on disk, as for :class:`.Dynamics`.

    Twists are (angular; linear). The **body** twist is along the axes of the frame, with the velocity of its origin;
    the **space** twist along the axes of the base, with the velocity of a point at the origin of the base; the
    **world_aligned** twist along the axes of the base, with the velocity of the frame's origin.

    Attributes:
        robot: the robot.
        backend: ``native`` (compiled C), ``casadi`` or ``numpy``.
    """

    def __init__(self, robot: Robot, *, backend: str | None = None) -> None:
        """Compile the forward kinematics of a robot, or load them from the cache.

        Args:
            robot: the robot.
            backend: as for :class:`.Dynamics`.

        Raises:
            KernelError: the requested backend is unavailable.
            ValueError: the backend is unknown.
            TypeError: ``robot`` is not a Robot.
        """
        require_robot(robot)
        recipe = kinematic_programs.pose(robot.tools[0])
        self.backend, kernel = working_kernel(robot, recipe, backend)
        self.robot = robot
        self._frames = _frames(robot)
        # With the frames, whose identity is the key.
        self._solvers: dict[tuple[int, ...], tuple[tuple[Frame, ...], NativeSolver]] = {}
        self._pose_calls: dict[str | None, Callable[..., Any]] = {None: self._caller(kernel, recipe.name, 1, [_POSE])}
        self._jacobian_calls: dict[tuple[str | None, str], Callable[..., Any]] = {}
        self._derivative_calls: dict[tuple[str, str | None, str, int], Callable[..., Any]] = {}

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of the frames."""
        return tuple(self._frames)

    def pose(self, q: ArrayLike, *, of: str | None = None) -> Array:
        """Pose of a frame in the base frame, equations (5)-(7).

        Args:
            q: joint variables (n,) or (N, n), rad or m.
            of: name of the frame; by default the first tool.

        Returns:
            C: (4, 4) or (N, 4, 4), m.

        Raises:
            StateError: q has the wrong shape or is not finite, or there is no such frame.
        """
        call = self._pose_calls.get(of)
        if call is None:
            recipe = kinematic_programs.pose(self.frame(of))
            call = self._pose_calls[of] = self._compiled(recipe, 1, [_POSE])
        pose: Array = call(q)
        return pose

    def pose_derivatives(self, q: ArrayLike, *rates: ArrayLike, of: str | None = None) -> tuple[Array, ...]:
        """Pose and body twist of a frame, with the time derivatives of the twist.

        Args:
            q: joint variables (n,) or (N, n), rad or m.
            rates: qd, qdd, …, at least one, in the shape of q, per s, s², ….
            of: name of the frame; by default the first tool.

        Returns:
            C, V, Vd, …: (4, 4) and (6,), or (N, 4, 4) and (N, 6); as many twists and derivatives as rates. rad/s and
            m/s, and per s, ….

        Raises:
            StateError: an argument has the wrong shape or is not finite, or there is no such frame.
        """
        orders = len(rates)
        if not orders:
            raise StateError("pose_derivatives requires q and at least qd")
        key = ("pose_derivatives", of, "", orders)
        call = self._derivative_calls.get(key)
        if call is None:
            recipe = kinematic_programs.pose_derivatives(self.frame(of), orders)
            call = self._derivative_calls[key] = self._compiled(recipe, orders + 1, [_POSE, *[_TWIST] * orders])
        results: tuple[Array, ...] = call(q, *rates)
        return results

    def jacobian(self, q: ArrayLike, *, frame: str = "body", of: str | None = None) -> Array:
        """Jacobian of a frame: maps joint rates to its twist, equations (15)-(18).

        Args:
            q: joint variables (n,) or (N, n), rad or m.
            frame: kind of the twist: ``body``, ``space`` or ``world_aligned``.
            of: name of the frame; by default the first tool.

        Returns:
            J: (6, n) or (N, 6, n); angular rows first.

        Raises:
            StateError: q has the wrong shape or is not finite, or there is no such frame.
            ValueError: ``frame`` is none of these.
        """
        call = self._jacobian_calls.get((of, frame))
        if call is None:
            call = self._jacobian_calls[of, frame] = self._jacobian_caller(of, frame, 0)
        jacobian: Array = call(q)
        return jacobian

    def jacobian_derivatives(
        self, q: ArrayLike, *rates: ArrayLike, frame: str = "body", of: str | None = None
    ) -> tuple[Array, ...]:
        """Jacobian of a frame and its time derivatives.

        Args:
            q: joint variables (n,) or (N, n), rad or m.
            rates: qd, qdd, …, in the shape of q, per s, s², ….
            frame, of: as for :meth:`jacobian`.

        Returns:
            J, Jd, …: (6, n) or (N, 6, n) each; as many derivatives as rates.

        Raises:
            StateError: an argument has the wrong shape or is not finite, or there is no such frame.
            ValueError: ``frame`` is none of these.
        """
        orders = len(rates)
        if not orders:
            return (self.jacobian(q, frame=frame, of=of),)
        key = ("jacobian", of, frame, orders)
        call = self._derivative_calls.get(key)
        if call is None:
            call = self._derivative_calls[key] = self._jacobian_caller(of, frame, orders)
        results: tuple[Array, ...] = call(q, *rates)
        return results

    def joint_efforts(self, q: ArrayLike, wrench: ArrayLike, *, frame: str = "body", of: str | None = None) -> Array:
        """Joint efforts that hold a wrench which a frame exerts on its surroundings: tau = J' F, without gravity.

        Args:
            q: joint variables (n,) or (N, n), rad or m.
            wrench: F (6,) or (N, 6), moment first, N m and N, in the frame that ``frame`` says.
            frame, of: as for :meth:`jacobian`.

        Returns:
            tau: (n,) or (N, n), N m or N.

        Raises:
            StateError: as for :meth:`jacobian`, or the wrench has the wrong shape.
        """
        J = self.jacobian(q, frame=frame, of=of)
        return _times(np.swapaxes(J, -1, -2), _vectors(wrench, "wrench", 6))

    def wrench(self, q: ArrayLike, tau: ArrayLike, *, frame: str = "body", of: str | None = None) -> Array:
        """Wrench of least norm that a frame exerts under joint efforts: tau = J' F, without gravity.

        Where the efforts are balanced by no wrench (more than six joints, or a singular configuration), the wrench is
        that of least squares. A norm of N m and N depends on the unit of length.

        Args:
            q: joint variables (n,) or (N, n), rad or m.
            tau: (n,) or (N, n), N m or N.
            frame, of: as for :meth:`jacobian`.

        Returns:
            F: (6,) or (N, 6), moment first, N m and N.

        Raises:
            StateError: as for :meth:`jacobian`, or tau has the wrong shape.
        """
        J = self.jacobian(q, frame=frame, of=of)
        inverse = np.asarray(np.linalg.pinv(np.swapaxes(J, -1, -2), rcond=_SINGULAR), dtype=float)
        return _times(inverse, _vectors(tau, "tau", self.robot.n))

    def manipulability(self, q: ArrayLike, *, of: str | None = None) -> Array:
        """Manipulability sqrt(det(J J')), the product of the singular values of J: T. Yoshikawa, IJRR 4 (1985).

        Args:
            q: joint variables (n,) or (N, n), rad or m.
            of: name of the frame; by default the first tool.

        Returns:
            () or (N,); zero with fewer than six joints. It depends on the unit of length.

        Raises:
            StateError: as for :meth:`jacobian`.
        """
        J = self.jacobian(q, of=of)
        if self.robot.n < 6:
            return np.zeros(J.shape[:-2])
        values: Array = np.prod(np.linalg.svd(J, compute_uv=False), axis=-1)
        return values

    def singular_directions(
        self, q: ArrayLike, *, tolerance: float = _SINGULAR, frame: str = "body", of: str | None = None
    ) -> Array:
        """Twists that no joint rates realise.

        Args:
            q: joint variables (n,), rad or m.
            tolerance: smallest ratio of a singular value of J to the largest one that is not zero.
            frame, of: as for :meth:`jacobian`.

        Returns:
            Orthonormal rows (k, 6); none where the Jacobian has rank six.

        Raises:
            StateError: as for :meth:`jacobian`.
        """
        J = self.jacobian(q, frame=frame, of=of)
        if J.ndim != 2:
            raise StateError(f"q must have shape ({self.robot.n},), has {np.shape(q)}")
        U, values, _ = np.linalg.svd(J)
        rank = int(np.sum(values > tolerance * values[0]))
        directions: Array = U[:, rank:].T
        return directions

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the robot and the backend; compiled code comes from the cache."""
        return partial(Kinematics, backend=self.backend), (self.robot,)

    def frame(self, name: str | None = None) -> Frame:
        """The frame of a name; by default the first tool.

        Raises:
            StateError: there is no such frame.
        """
        if name is None:
            return self.robot.tools[0]
        if name not in self._frames:
            raise StateError(f"{self.robot.name} has no frame {name!r}; {hint(name, self._frames)}")
        return self._frames[name]

    def solver(self, frames: tuple[Frame, ...]) -> NativeSolver:
        """Compiled solver of the inverse kinematics of some frames."""
        key = tuple(map(id, frames))
        if key not in self._solvers:
            self._solvers[key] = frames, NativeSolver(self.robot, frames)
        return self._solvers[key][1]

    def _jacobian_caller(self, of: str | None, frame: str, orders: int) -> Callable[..., Any]:
        if frame not in REPRESENTATIONS:
            raise ValueError(f"frame must be one of {', '.join(REPRESENTATIONS)}, is {frame!r}")
        recipe = kinematic_programs.jacobian(self.frame(of), frame, orders)
        return self._compiled(recipe, orders + 1, [(6, self.robot.n)] * (orders + 1))

    def _compiled(self, recipe: Recipe, vectors: int, shapes: list[tuple[int, ...]]) -> Callable[..., Any]:
        _, kernel = working_kernel(self.robot, recipe, self.backend)
        return self._caller(kernel, recipe.name, vectors, shapes)

    def _caller(self, kernel: Kernel, name: str, vectors: int, shapes: list[tuple[int, ...]]) -> Callable[..., Any]:
        """Function of joint vectors; for one state, it costs no more than a call in C."""
        n, alone = self.robot.n, len(shapes) == 1

        def general(*states: ArrayLike) -> Array | tuple[Array, ...]:
            if len(states) != vectors:
                raise StateError(f"{name} requires {vectors} joint vectors, has {len(states)}")
            checked = joint_states(n, *states)
            results = evaluate(kernel, checked[0].shape[:-1], checked, shapes)
            assert results is not None  # the states are finite
            return results[0] if alone else results

        if not isinstance(kernel, NativeKernel):
            return general
        return kernel.state_call(vectors, n, shapes, general, alone=alone)


def _frames(robot: Robot) -> dict[str, Frame]:
    """Frames by name; those of tools come before others, and these before bodies."""
    bodies = [Frame(joint.name, i, np.eye(4)) for i, joint in enumerate(robot.joints)]
    return {frame.name: frame for frame in (*bodies, *robot.frames[::-1], *robot.tools[::-1])}


def _vectors(value: ArrayLike, name: str, size: int) -> Array:
    vectors = np.asarray(value, dtype=float)
    if vectors.ndim not in (1, 2) or vectors.shape[-1] != size:
        raise StateError(f"{name} must have shape ({size},) or (N, {size}), has {vectors.shape}")
    return vectors


def _times(matrix: Array, vector: Array) -> Array:
    product: Array = (matrix @ vector[..., np.newaxis])[..., 0]
    return product
