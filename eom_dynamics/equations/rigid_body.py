# SPDX-License-Identifier: Apache-2.0
"""Newton-Euler equations of a single rigid body: about its center of mass, and about any frame fixed to it.

With the body twist V = (w; v) of a frame fixed to the body, its inertia matrix M in that frame and the wrench F that
acts on the body,

    h = M V,    F = M dV/dt - ad_V' M V,    T = V' M V / 2,    dT/dt = V' F.

K. Lynch and F. Park, Modern Robotics (2017), section 8.2. Twists are (angular; linear), wrenches (moment; force), both
in the frame; all of them (6,), or (…, 6) for many states.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arguments import checked_pose, real_array
from ..arrays import Array, times
from ..exceptions import StateError
from ..robot.inertia import Inertial, spatial_inertia


@dataclass(frozen=True, eq=False)
class RigidBody:
    """A free rigid body, with its equations in a frame fixed to it.

    Twists V (…, 6), rad/s and m/s, their time derivatives Vd, and wrenches F (…, 6), N m and N, are in this frame, with
    the angular part first. Methods raise StateError for arguments of wrong shape.

    Attributes:
        inertial: mass, center of mass and inertia in this frame.
    """

    inertial: Inertial

    @cached_property
    def inertia_matrix(self) -> Array:
        """Inertia matrix M (6, 6), equation (31) of Müller and Kumar; block-diagonal about the center of mass."""
        body = self.inertial
        return spatial_inertia(body.mass, body.center_of_mass, body.about_origin)

    def about_center_of_mass(self) -> RigidBody:
        """This body in the frame at its center of mass, along the same axes."""
        return self.seen_from(lie.pose(np.eye(3), self.inertial.center_of_mass))

    def seen_from(self, frame: Array) -> RigidBody:
        """This body in another frame fixed to it, with the pose (4, 4) ``frame`` in the present frame.

        The inertia matrix becomes Ad' M Ad with Ad of this pose (which includes Steiner's theorem). A twist becomes
        ``lie.body_twist(frame, V)``, a wrench ``lie.body_wrench(frame, F)``.

        Raises:
            StateError: the frame is not a pose.
        """
        return RigidBody(self.inertial.moved(lie.inverse(checked_pose(frame, "frame"))))

    def momentum(self, V: ArrayLike) -> Array:
        """Momentum M V (…, 6): angular about the origin, N m s, and linear, N s."""
        return times(self.inertia_matrix, _vectors(V, "V"))

    def wrench(self, V: ArrayLike, Vd: ArrayLike) -> Array:
        """Wrench (…, 6) on the body that accelerates it with ``Vd``: M Vd - ad_V' M V."""
        V, Vd = _pair(V, "V", Vd, "Vd")
        return times(self.inertia_matrix, Vd) + self._bias(V)

    def acceleration(self, V: ArrayLike, F: ArrayLike) -> Array:
        """Time derivative (…, 6) of the twist ``V`` under a wrench ``F`` on the body, the inverse of :meth:`wrench`.

        Raises:
            StateError: the body has no mass, or no inertia about some axis.
        """
        V, F = _pair(V, "V", F, "F")
        try:
            # Fails exactly if the matrix is not positive definite.
            np.linalg.cholesky(self.inertia_matrix)
        except np.linalg.LinAlgError:
            raise StateError(
                "the body has no mass or no inertia about an axis, so that no wrench gives its acceleration"
            ) from None
        Vd = np.linalg.solve(self.inertia_matrix, (F - self._bias(V))[..., np.newaxis])[..., 0]
        return np.asarray(Vd, dtype=float)

    def kinetic_energy(self, V: ArrayLike) -> Array:
        """Kinetic energy V' M V / 2, J: () or (…)."""
        V = _vectors(V, "V")
        return np.asarray(0.5 * np.sum(V * times(self.inertia_matrix, V), axis=-1))

    def power(self, V: ArrayLike, F: ArrayLike) -> Array:
        """Power V' F, W: () or (…). With the wrench of all forces on the body, the rate of its kinetic energy."""
        V, F = _pair(V, "V", F, "F")
        return np.asarray(np.sum(V * F, axis=-1))

    def _bias(self, V: Array) -> Array:
        """-ad_V' M V."""
        return -times(np.swapaxes(lie.ad(V), -1, -2), times(self.inertia_matrix, V))


def newton_euler(
    mass: float, inertia: ArrayLike, w: ArrayLike, wd: ArrayLike, acceleration: ArrayLike
) -> tuple[Array, Array]:
    """Moment about the center of mass and force on a rigid body: I wd + w x I w, and m a.

    Args:
        mass: m, kg.
        inertia: I (3, 3) about the center of mass, kg m², along axes fixed to the body.
        w, wd: angular velocity (…, 3), rad/s, and its time derivative, along the same axes.
        acceleration: a (…, 3) of the center of mass, m/s², along any axes; the force is along the same axes. It is the
            second derivative of the position, not the linear part of the derivative of a body twist.

    Raises:
        StateError: an argument has the wrong shape or is not finite.
    """
    inertia, m = real_array(inertia, "inertia", (3, 3)), float(real_array(mass, "mass", ()))
    w, wd = _pair(w, "w", wd, "wd", 3)
    return times(inertia, wd) + np.cross(w, times(inertia, w)), m * _vectors(acceleration, "acceleration", 3)


def _pair(x: ArrayLike, x_name: str, y: ArrayLike, y_name: str, size: int = 6) -> tuple[Array, Array]:
    """Two arrays of vectors with compatible leading shapes."""
    first, second = _vectors(x, x_name, size), _vectors(y, y_name, size)
    try:
        np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise StateError(
            f"{x_name} and {y_name} must have as many states, have shapes {first.shape} and {second.shape}"
        ) from None
    return first, second


def _vectors(value: ArrayLike, name: str, size: int = 6) -> Array:
    array = real_array(value, name)
    if not array.ndim or array.shape[-1] != size:
        raise StateError(f"{name} must have shape ({size},) or (…, {size}), has {array.shape}")
    return array
