# SPDX-License-Identifier: Apache-2.0
"""The equations of motion in closed form in spatial twists, with time derivatives of any order.

Twists of all bodies along the base axes, with the velocity of a point at the base origin, add up along the tree: V = J
qd and J = L Y. Y_i = Ad X_i are the joint screws; L has identity blocks from each body to its descendants. With b =
diag(ad_V) and the inertias M_s of the bodies in the base frame,

    dY/dt = b Y,    dM_s/dt = -b' M_s - M_s b,

and every time derivative is Leibniz' rule:

    M = J' M_s J,    C = J' (M_s dJ/dt - b' M_s J),    Q_grav = J' M_s (0; -g),    Q_ext = J' W_s.

A. Müller and S. Kumar, "Closed form time derivatives of the equations of motion of rigid body systems", Multibody
System Dynamics 53 (2021), section 2.1, leave this form open; :mod:`.closed_form` has their form, in body-fixed twists.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arguments import joint_vectors, number_of_states, wrenches
from ..arrays import AnyArray
from ..codegen.backends import require_robot
from ..exceptions import StateError
from ..jet import Jet, leibniz
from ..kinematics.frames import body_poses
from ..robot import Robot
from .body_matrices import ad_blocks, block_diagonal
from .closed_form import EquationsOfMotion, of_batch, passive_forces
from .system import ancestors, inertia_matrix, screw_matrix, tool_matrix


def spatial_equations_of_motion(
    robot: Robot, q: ArrayLike, *rates: ArrayLike, wrench: Sequence[ArrayLike] = ()
) -> EquationsOfMotion:
    """M, C, Q_grav and Q_ext in spatial twists, with their time derivatives.

    Arguments, errors and result as in :func:`.equations_of_motion`; C has the form ``skew``.
    """
    require_robot(robot)
    if not rates:
        raise StateError("spatial_equations_of_motion needs at least q and qd")
    if (N := number_of_states(q)) is not None:
        return of_batch(partial(spatial_equations_of_motion, robot), robot, N, (q, *rates), wrench)
    q, *derivatives = joint_vectors(robot.n, q, *rates)
    J, b, M_s, back = spatial_twists(robot, q, derivatives)
    T = tool_matrix(robot)
    at_tools = wrenches(wrench, len(derivatives), robot.wrench_shape, symbols=True)
    return EquationsOfMotion(
        M=tuple(J.T @ (M_s @ J)),
        C=tuple(J.T @ (M_s @ J.rate - b.T @ (M_s @ J))),
        gravity=tuple(J.T @ (M_s @ lift(robot)) + Jet(passive_forces(robot, q, derivatives))),
        external=tuple(J.T @ (back.T @ Jet([T @ np.ravel(W) for W in at_tools]))),
        rates=tuple(derivatives),
    )


def lift(robot: Robot) -> AnyArray:
    """Acceleration (0; -g) of the base, equal for all bodies (6N,) in the base frame."""
    return np.tile(np.concatenate([np.zeros(3, dtype=int), -robot.gravity]), len(robot.joints))


def spatial_twists(robot: Robot, q: AnyArray, rates: Sequence[AnyArray]) -> tuple[Jet, Jet, Jet, Jet]:
    """J (6N, n), b, M_s and the map from spatial to body-fixed twists, each (6N, 6N), with time derivatives."""
    poses = body_poses(robot, q)
    L = ancestors(robot, [np.eye(6, dtype=int)] * len(poses))
    Y = [block_diagonal([lie.Ad(C) for C in poses]) @ screw_matrix(robot) @ robot.coupling[0]]
    back = [block_diagonal([lie.Ad(lie.inverse(C)) for C in poses])]
    J, b, M_s = [L @ Y[0]], [], [back[0].T @ inertia_matrix(robot) @ back[0]]
    for k in range(len(rates)):
        b.append(ad_blocks(leibniz(J, rates, k)))
        Y.append(leibniz(b, Y, k))
        J.append(L @ Y[k + 1])
        M_s.append(-leibniz([x.T for x in b], M_s, k) - leibniz(M_s, b, k))
        back.append(-leibniz(back, b, k))
    return Jet(J), Jet(b), Jet(M_s[:-1]), Jet(back[:-1])
