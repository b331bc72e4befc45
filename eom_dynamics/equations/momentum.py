# SPDX-License-Identifier: Apache-2.0
"""Spatial momentum of a robot and its time derivatives of any order, on a fixed and on a floating base.

With the twists V = J qd of all bodies and the map U from a base twist to body twists, the momentum (angular; linear) of
all bodies in the base frame is

    h = U' M_b V,

and its time derivatives follow by Leibniz' rule on U, V and dU/dt = -S U (:mod:`.system`). On a floating base with the
twist V0, U and V are as in :mod:`.floating_base`, and each derivative along inertial axes is a step

    d/dt (T h) = T (dh/dt - ad_V0' h),    T = Ad' of the inverse of the base's pose.

Only external wrenches change the momentum. A robot with zero derivatives of its momentum is dynamically balanced: it
loads its base with its constant weight only. V. van der Wijk et al., Int. J. Robotics Research 32 (2013); Y. Wu and C.
M. Gosselin, Int. J. Robotics Research 23 (2004).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arguments import choice, joint_vectors, number_of_states
from ..arrays import AnyArray
from ..codegen.backends import require_robot
from ..exceptions import RobotDescriptionError, StateError
from ..jet import Jet, leibniz
from ..robot import Robot
from .body_matrices import BodyMatrices
from .floating_base import floating_states, floating_system
from .system import system_matrices

ABOUT = ("origin", "center_of_mass")
"""Reference points of the angular momentum."""


def spatial_momentum(robot: Robot, q: ArrayLike, *rates: ArrayLike, about: str = "origin") -> tuple[AnyArray, ...]:
    """Spatial momentum of a robot on a fixed base, and its time derivatives.

    Momentum (angular; linear) of all bodies, along the axes of the inertial base frame; N m s and N s, and per s, s².
    Its rate is the sum of all external wrenches on the bodies, from base, gravity and surroundings.

    Args:
        robot: the robot.
        q: joint variables (n,) or (N, n), rad or m. A batch is computed state by state.
        rates: qd, qdd, …, as q, at least qd. m rates give m - 1 time derivatives of the momentum.
        about: reference point of the angular part: ``origin`` of the base frame, or the moving ``center_of_mass`` of
            the robot.

    Returns:
        h, hd, hdd, …: each (6,) or (N, 6).

    >>> import eom_dynamics as eom
    >>> h, hd = eom.equations.spatial_momentum(eom.load_robot("planar_2r"), [0.3, -0.5], [0.2, 0.1], [0.0, 0.0])
    >>> h.shape, hd.shape
    ((6,), (6,))

    Raises:
        StateError: a vector has the wrong length or is not finite, qd is missing, or the reference point is unknown.
        RobotDescriptionError: the momentum is about the center of mass, and the robot has no mass.
        TypeError: ``robot`` is not a Robot.
    """
    require_robot(robot)
    if not rates:
        raise StateError("spatial_momentum needs at least q and qd")
    choice(about, "about", ABOUT)
    if (N := number_of_states(q)) is not None:
        states = joint_vectors(robot.n, q, *rates, samples=(N,))
        return _stacked([spatial_momentum(robot, *(x[i] for x in states), about=about) for i in range(N)])
    q, *derivatives = joint_vectors(robot.n, q, *rates)
    body = system_matrices(robot, q, *derivatives)
    momentum = tuple(_in_base(body))
    return momentum if about == "origin" else _about_center(robot, body, np.eye(4, dtype=int), momentum)


def floating_spatial_momentum(
    robot: Robot, pose: ArrayLike, q: ArrayLike, *rates: ArrayLike, about: str = "origin"
) -> tuple[AnyArray, ...]:
    """Spatial momentum of a robot on a floating base, and its time derivatives.

    Momentum (angular; linear) of the base and all bodies, along inertial axes; N m s and N s, and per s, s². Its rate
    is the sum of all external wrenches: gravity, contacts, and the support of the base.

    Args:
        robot: the robot; the inertia of its base is ``robot.base``.
        pose: pose of the base in the inertial frame, (4, 4) or (N, 4, 4), m. A batch is computed state by state.
        q: joint variables (n,) or (N, n), rad or m.
        rates: nu, nud, …, each (6 + n,) or (N, 6 + n), at least nu. m rates give m - 1 time derivatives.
        about: reference point of the angular part: ``origin`` of the inertial frame, or ``center_of_mass`` of the
            robot, for :meth:`.FloatingBase.centroidal_momentum` with its time derivatives.

    Returns:
        h, hd, hdd, …: each (6,) or (N, 6).

    Raises:
        StateError: an array has the wrong shape or is not finite, the pose is invalid, nu is missing, or the reference
            point is unknown.
        RobotDescriptionError: the momentum is about the center of mass, and the robot has no mass.
        TypeError: ``robot`` is not a Robot.
    """
    choice(about, "about", ABOUT)
    states, samples = floating_states("floating_spatial_momentum", robot, pose, q, rates)
    if samples:
        return _stacked(
            [floating_spatial_momentum(robot, *(x[i] for x in states), about=about) for i in range(*samples)]
        )
    C, joints, *motion = states
    body = floating_system(robot, joints, motion)
    ad_base, h = Jet([lie.ad(nu[:6]) for nu in motion]), _in_base(body)
    to_inertial, terms = lie.Ad(lie.inverse(C)).T, []
    while len(h):
        terms.append(to_inertial @ h[0])
        h = h.rate - ad_base.T @ h
    momentum = tuple(terms)
    return momentum if about == "origin" else _about_center(robot, body, C, momentum)


def _in_base(body: BodyMatrices) -> Jet:
    """Momentum (6,) of all bodies in the frame of the base, with the time derivatives of its components."""
    return body.U.T @ (body.inertia @ body.V)


def _about_center(
    robot: Robot, body: BodyMatrices, pose: AnyArray, momentum: Sequence[AnyArray]
) -> tuple[AnyArray, ...]:
    """The momentum about the center of mass c: its angular part minus c x p, with dc/dt = p / m."""
    M = body.U[0].T @ body.inertia @ body.U[0]  # inertia of the whole robot in this configuration, in the base frame
    mass = M[5, 5]
    if mass == 0:
        raise RobotDescriptionError(f"{robot.name} has no mass, and thus no center of mass")
    moment = np.array([M[2, 4], M[0, 5], M[1, 3]])
    p = [h[3:] for h in momentum]
    center = [pose[:3, :3] @ (moment / mass) + pose[:3, 3], *(rate / mass for rate in p)]
    return tuple(np.concatenate([h[:3] - leibniz(center, p, k, np.cross), h[3:]]) for k, h in enumerate(momentum))


def _stacked(momenta: Sequence[tuple[AnyArray, ...]]) -> tuple[AnyArray, ...]:
    return tuple(map(np.stack, zip(*momenta, strict=True)))
