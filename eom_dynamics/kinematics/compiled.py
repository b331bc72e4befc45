# SPDX-License-Identifier: Apache-2.0
"""Compiled kinematics of one robot, for one state or a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import by_unit_rates, is_sequence, not_negative, real_array, with_unit_rates
from ..arrays import STATE_NAMES, Array, times
from ..codegen import programs as programs
from ..codegen.backends import require_numeric_robot, require_robot, working_kernel
from ..codegen.functions import CompiledFunction, Keyword, Signature, Vector, derivatives, motion_vectors
from ..codegen.native import NativeSolver
from ..codegen.state_method import CompiledMethods, Key
from ..exceptions import RobotDescriptionError, StateError
from ..recursion.kinematics import REPRESENTATIONS, SYNONYMS, representation
from ..robot import Frame, Robot
from ..robot.model import frames_by_name
from ..spelling import shown
from .frames import named_frame, signature_of

_TWIST, _POINT = (6,), (3,)

# Number of robots with cached kinematics, for functions that take a robot.
_CACHED_ROBOTS = 16

# Singular values below this share of the largest are zero, as for numpy.linalg.matrix_rank.
_SINGULAR = 6 * np.finfo(float).eps


class Kinematics(CompiledMethods):
    """Poses, twists, Jacobians and statics of the frames of one robot.

    A frame is named after a tool, another frame of the robot's description, or a joint (for the body that it moves); by
    default the first tool. The first use of each quantity of a frame compiles code, which takes a fraction of a second.
    Later uses load the code from the cache on disk, as for :class:`.Dynamics`.

    Twists are (angular; linear). The **body** twist is along the frame's axes, with the velocity of its origin. The
    **space** twist is along the base axes, with the velocity of a point at the base origin. The **world_aligned** twist
    is along the base axes, with the velocity of the frame's origin.

    All methods raise StateError if an argument has the wrong shape or is not finite, or a frame or reference is
    unknown.

    >>> import eom_dynamics as eom
    >>> kinematics = eom.Kinematics(eom.load_robot("planar_2r"))
    >>> kinematics.pose([0.0, 0.0])[:3, 3].tolist()
    [0.9, 0.0, 0.0]
    >>> kinematics.jacobian([0.0, 0.5], reference="space")[2].tolist()  # both axes are along z
    [1.0, 1.0]

    Attributes:
        robot: the robot.
        backend: ``native`` (compiled C) or ``numpy``.
    """

    def __init__(self, robot: Robot, *, backend: str | None = None) -> None:
        """Compile the forward kinematics of a robot, or load them from the cache.

        Arguments and errors are as for :class:`.Dynamics`; :class:`.SymbolicKinematics` takes symbols.
        """
        require_numeric_robot(robot)
        recipe = programs.pose_program(robot.tools[0])
        self.backend, kernel = working_kernel(robot, recipe, backend)
        self.robot = robot
        self._frames = frames_by_name(robot)
        self._solvers: dict[tuple[Frame, ...], NativeSolver] = {}
        self._calls = {("pose", None): CompiledFunction(self.signature("pose"), kernel).state_call()}

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of the frames."""
        return tuple(self._frames)

    def pose(self, q: ArrayLike, frame: str | None = None) -> Array:
        """Pose C of a frame in the base frame, (4, 4) or (N, 4, 4), m, equation (5).

        Args:
            q: joint variables (n,) or (N, n), rad or m.
            frame: name of the frame; by default the first tool.
        """
        key = "pose", frame
        call = self._stored_call(key) or self._keep(
            key, programs.pose_program(self.frame(frame)), self.signature("pose")
        )
        return call(q)

    def motion(self, q: ArrayLike, *rates: ArrayLike, frame: str | None = None) -> tuple[Array, ...]:
        """Pose and body twist of a frame, with the time derivatives of the twist.

        Args:
            q, frame: as for :meth:`pose`.
            rates: qd, qdd, …, at least one, in the shape of q, per s, s², ….

        Returns:
            C, V, Vd, …: (4, 4) and (6,), or (N, 4, 4) and (N, 6); a twist or derivative for each rate. rad/s and m/s,
            and per s, ….
        """
        orders = len(rates)
        if not orders:
            raise StateError("motion requires q and at least qd")
        key = "motion", frame, orders
        call = self._stored_call(key) or self._keep(
            key, programs.pose_derivatives(self.frame(frame), orders), self.signature("motion", orders)
        )
        return call(q, *rates)

    pose_derivatives = motion

    def jacobian(
        self, q: ArrayLike, frame: str | None = None, reference: str = "body", *, point: ArrayLike | None = None
    ) -> Array:
        """Jacobian J (6, n) or (N, 6, n) of a frame, from joint rates to twist, angular first, equations (15)-(18).

        Args:
            q: joint variables (n,) or (N, n), rad or m.
            frame: name of the frame; by default the first tool. The name of a reference below instead selects the first
                tool with this reference.
            reference: kind of the twist: ``body``, ``space`` or ``world_aligned``; in Pinocchio's names ``local``,
                ``world`` or ``local_world_aligned``.
            point: point (3,) or (N, 3) fixed to the frame, in its coordinates, m. The linear part is the velocity of
                this point rather than of the origin (except for ``space``).
        """
        if point is not None:
            return self.jacobian_derivatives(q, frame=frame, reference=reference, point=point)[0]
        key = "jacobian", frame, reference
        call = self._stored_call(key) or self._jacobian_caller(key, frame, reference, 0)
        return call(q)

    def jacobian_derivatives(
        self,
        q: ArrayLike,
        *rates: ArrayLike,
        frame: str | None = None,
        reference: str = "body",
        point: ArrayLike | None = None,
    ) -> tuple[Array, ...]:
        """Jacobian of a frame and its time derivatives J, Jd, …: (6, n) or (N, 6, n) each, a derivative for each rate.

        The rates are qd, qdd, …, in the shape of q, per s, s², …; other arguments are as for :meth:`jacobian`.
        """
        orders, of_point = len(rates), point is not None
        if not orders and not of_point:
            return (self.jacobian(q, frame, reference),)
        key = "jacobian_derivatives", frame, reference, orders, of_point
        call = self._stored_call(key) or self._jacobian_caller(key, frame, reference, orders, of_point=of_point)
        return call(q, *rates, point=point) if of_point else call(q, *rates)

    def hessian(
        self, q: ArrayLike, frame: str | None = None, reference: str = "body", *, point: ArrayLike | None = None
    ) -> Array:
        """Kinematic Hessian H_ijk = dJ_ij/dq_k, so that Jd_ij = sum over k of H_ijk qd_k, and Jd qd = qd' H qd.

        The linear rows of ``world_aligned`` are the second derivatives of the position of the frame, or of ``point``,
        symmetric in j and k. Other rows are not symmetric, since angular velocities are not rates of coordinates.
        Arguments are as for :meth:`jacobian`, with one point (3,). H is (6, n, n) or (N, 6, n, n).
        """
        n = self.robot.n
        repeated, units, samples = with_unit_rates(q, n, n)
        points = None if point is None else np.tile(real_array(point, "point", _POINT), (len(repeated), 1))
        _, rates = self.jacobian_derivatives(repeated, units, frame=frame, reference=reference, point=points)
        return by_unit_rates(rates, samples)

    def center_of_mass(self, q: ArrayLike) -> Array:
        """Center of mass c of all moving bodies, (3,) or (N, 3), as :meth:`center_of_mass_derivatives`."""
        return self.center_of_mass_derivatives(q)[0]

    def center_of_mass_derivatives(self, q: ArrayLike, *rates: ArrayLike) -> tuple[Array, ...]:
        """Center of mass in the base frame, and its time derivatives c, cd, …, each (3,) or (N, 3); m, m/s, ….

        Each of the rates qd, qdd, … adds a derivative; rates have the shape of q (n,) or (N, n); rad or m, per s, s²,
        …. Raises RobotDescriptionError if the robot has no mass.
        """
        return self._center("center_of_mass", (q, *rates))

    def center_of_mass_jacobian(self, q: ArrayLike) -> Array:
        """Jacobian of the center of mass, cd = J qd: (3, n) or (N, 3, n); as :meth:`center_of_mass_derivatives`."""
        return self.center_of_mass_jacobian_derivatives(q)[0]

    def center_of_mass_jacobian_derivatives(self, q: ArrayLike, *rates: ArrayLike) -> tuple[Array, ...]:
        """Jacobian of the center of mass and its time derivatives J, Jd, …: (3, n) or (N, 3, n) each.

        Arguments and errors are as for :meth:`center_of_mass_derivatives`.
        """
        return self._center("center_of_mass_jacobian", (q, *rates))

    def statics(
        self,
        q: ArrayLike,
        wrench: ArrayLike,
        *,
        frame: str | None = None,
        reference: str = "body",
        point: ArrayLike | None = None,
    ) -> Array:
        """Joint efforts tau (n,) or (N, n), N m or N, for a wrench that a frame exerts: tau = J' F, without gravity.

        Args:
            q, frame, reference, point: as for :meth:`jacobian`; a force acts at the point.
            wrench: F (6,) or (N, 6), moment first, N m and N, dual to the twists of ``reference``.
        """
        J = self.jacobian(q, frame, reference, point=point)
        return times(np.swapaxes(J, -1, -2), _vectors(wrench, "wrench", 6))

    def wrench(
        self,
        q: ArrayLike,
        tau: ArrayLike,
        *,
        frame: str | None = None,
        reference: str = "body",
        point: ArrayLike | None = None,
    ) -> Array:
        """Least-norm wrench F (6,) or (N, 6) that a frame exerts under joint efforts: tau = J' F, without gravity.

        The efforts tau are (n,) or (N, n), N m or N; the moment is first, N m and N; other arguments are as for
        :meth:`statics`. If no wrench balances the efforts (more than six joints, or a singular configuration), the
        result is the least-squares solution. A norm of N m and N depends on the unit of length.
        """
        J = self.jacobian(q, frame, reference, point=point)
        inverse = np.asarray(np.linalg.pinv(np.swapaxes(J, -1, -2), rcond=_SINGULAR), dtype=float)
        return times(inverse, _vectors(tau, "tau", self.robot.n))

    def manipulability(self, q: ArrayLike, *, frame: str | None = None, rows: Sequence[int] | None = None) -> Array:
        """Manipulability sqrt(det(J J')), the product of the singular values of J: T. Yoshikawa, IJRR 4 (1985).

        Args:
            q, frame: as for :meth:`jacobian`.
            rows: rows of the body Jacobian, by default all six: [3, 4] for a point in the x-y plane of the frame, [3,
                4, 5] for a position. With rotations and translations, the result depends on the unit of length.

        Returns:
            Manipulability () or (N,); zero with fewer joints than rows.
        """
        J = self.jacobian(q, frame)
        if rows is not None:
            if not is_sequence(rows) or not set(rows) <= set(range(6)) or len(set(rows)) < len(rows) or not len(rows):
                raise StateError(f"rows must be different numbers from 0 to 5, are {shown(rows)}")
            J = J[..., list(rows), :]
        if self.robot.n < J.shape[-2]:
            return np.zeros(J.shape[:-2])
        return np.prod(np.linalg.svd(J, compute_uv=False), axis=-1)

    def singular_directions(
        self, q: ArrayLike, *, tolerance: float = _SINGULAR, frame: str | None = None, reference: str = "body"
    ) -> Array:
        """Singular directions: twists that no joint rates realize, as orthonormal rows (k, 6); none if J has rank six.

        Args:
            q: joint variables (n,), rad or m.
            tolerance: singular values of J below this share of the largest, from 0 to 1, count as zero.
            frame, reference: as for :meth:`jacobian`.
        """
        if not_negative(tolerance, "tolerance") > 1:
            raise StateError(f"tolerance must be from 0 to 1, is {tolerance!r}")
        J = self.jacobian(q, frame, reference)
        if J.ndim != 2:
            raise StateError(f"q must have shape ({self.robot.n},), has {np.shape(q)}")
        U, values, _ = np.linalg.svd(J)
        rank = int(np.sum(values > tolerance * values[0]))
        return U[:, rank:].T

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the robot and the backend; compiled code comes from the cache."""
        return partial(Kinematics, backend=self.backend), (self.robot,)

    def frame(self, name: str | None = None) -> Frame:
        """Frame with this name; by default the first tool."""
        return named_frame(self.robot, self._frames, name)

    def solver(self, frames: tuple[Frame, ...]) -> NativeSolver:
        """Compiled inverse-kinematics solver of some frames."""
        if frames not in self._solvers:
            self._solvers[frames] = NativeSolver(self.robot, frames)
        return self._solvers[frames]

    def joint_rates(
        self,
        q: Array,
        inputs: Sequence[Array],
        orders: int,
        *,
        frame: str | None,
        reference: str,
        units: tuple[float, ...],
        preferred: bool,
        weighted: bool,
    ) -> tuple[Array, ...]:
        """Compiled core of :func:`.differential_inverse_kinematics`, for finite inputs."""
        key = "joint_rates", frame, reference, units, orders, preferred, weighted
        call = self._calls.get(key)
        if call is None:
            tool, kind = self._frame_and_reference(frame, reference)
            recipe = programs.joint_rates_program(tool, kind, units, orders, preferred=preferred, weighted=weighted)
            vectors = [Vector(f"input {k}", x.shape[-1:], shared=True) for k, x in enumerate(inputs)]
            rates = derivatives(STATE_NAMES[1:], orders, q.shape[-1:], "joint rates")
            missed = derivatives(("missed",), orders, _TWIST, "missing part of the twist")
            signature = Signature((*motion_vectors(self.robot.n, 1), *vectors), rates + missed)
            call = self._keep(key, recipe, signature)
        return call(q, *inputs)

    def _jacobian_caller(
        self, key: Key, frame: str | None, reference: str, orders: int, *, of_point: bool = False
    ) -> Callable[..., Any]:
        recipe = programs.jacobian_program(*self._frame_and_reference(frame, reference), orders, of_point=of_point)
        signature = self.signature("jacobian_derivatives", orders)
        if of_point:
            of_frame = Keyword("point", (Vector("point", _POINT, "fixed to the frame, m"),), alone=True, check=_points)
            signature = replace(signature, keywords=(of_frame,), result_type=tuple)
        return self._keep(key, recipe, signature)

    def _frame_and_reference(self, frame: str | None, reference: str) -> tuple[Frame, str]:
        if isinstance(frame, str) and frame in (*REPRESENTATIONS, *SYNONYMS) and frame not in self._frames:
            return self.frame(), representation(frame)
        return self.frame(frame), representation(reference)

    def _center(self, quantity: str, states: tuple[ArrayLike, ...]) -> tuple[Array, ...]:
        orders = len(states) - 1
        key = quantity, orders
        call = self._calls.get(key)
        if call is None:
            if not sum(joint.mass for joint in self.robot.joints):
                raise RobotDescriptionError(f"{self.robot.name} has no mass, and thus no center of mass")
            recipe = programs.center_of_mass_program(quantity, orders)
            call = self._keep(key, recipe, self.signature(f"{quantity}_derivatives", orders))
        levels = call(*states)
        return levels if orders else (levels,)

    def signature(self, method: str, orders: int = 0) -> Signature:
        """Signature of a method with a number of rates, as :meth:`.CompiledMethods.signature`."""
        return signature_of(method, motion_vectors(self.robot.n, orders + 1), orders, self.robot.n)


def _points(value: ArrayLike, samples: tuple[int, ...]) -> list[Array]:
    """Point (3,), or points (N, 3)."""
    points = real_array(value, "point")
    if points.shape not in (_POINT, (*samples, 3)):
        raise StateError(f"point must have shape (3,) or (..., 3) like q, has {points.shape}")
    return [points]


@lru_cache(_CACHED_ROBOTS)
def _kinematics(robot: Robot) -> Kinematics:
    return Kinematics(robot)


def kinematics_of(robot: Robot | Kinematics) -> Kinematics:
    """Kinematics: the argument itself, or the cached kinematics of a robot."""
    if isinstance(robot, Kinematics):
        return robot
    require_robot(robot)  # the cache takes hashable arguments only
    return _kinematics(robot)


def _vectors(value: ArrayLike, name: str, size: int) -> Array:
    vectors = real_array(value, name)
    if vectors.ndim not in (1, 2) or vectors.shape[-1] != size:
        raise StateError(f"{name} must have shape ({size},) or (N, {size}), has {vectors.shape}")
    return vectors
