# SPDX-License-Identifier: Apache-2.0
"""Newton-Euler equations of all bodies of a tree, in the stacked form of Lynch and Park.

K. Lynch and F. Park, Modern Robotics (2017), section 8.4, with the twists, accelerations and wrenches of the N bodies
stacked into vectors (6N,):

    V  = L (A qd + V_base)
    Vd = L (A qdd - [ad_{A qd}] (W V + V_base) + Vd_base)
    F  = L' (G Vd - [ad_V]' G V + F_tip)
    tau = A' F,    L = (I - W)^-1,

and with the efforts of constant loads and parallel springs added to tau.

W holds the steps from parent to child, A the joint screws, G the body inertias; [ad_x] is block-diagonal. F stacks the
wrenches on the bodies from their parents. L is the A of Müller and Kumar, W their D, and L A their J. Since the bracket
of a twist with itself is zero, [ad_{A qd}] (W V + V_base) = [ad_{A qd}] V, and L [ad_{A qd}] is their S.

The equations follow the book line by line. :func:`eom_dynamics.equations_of_motion` adds time derivatives of the terms;
:class:`eom_dynamics.Dynamics` computes them fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import joint_vectors, real_array, wrenches, zeros_if_omitted
from ..arrays import AnyArray
from ..codegen.backends import require_robot
from ..robot import Robot
from .body_matrices import ad_blocks
from .closed_form import passive_forces
from .system import ancestors, base_matrix, inertia_matrix, joint_steps, parent_matrix, screw_matrix, tool_matrix


@dataclass(frozen=True, eq=False)
class SystemForm:
    """The stacked equations of a robot with N bodies and n independent joint variables, in one state.

    tau = M qdd + c + g + Q_ext + passive.

    Attributes:
        A: joint screws (6N, n). A mimic joint's screw, times its ratio, is in the column of its leader.
        W: (6N, 6N), Ad of each step at block (i, parent of i).
        L: (I - W)^-1 (6N, 6N), from each body to its descendants.
        G: block-diagonal matrix of the body inertias (6N, 6N).
        V_base: twist of the base (6N,), in the rows of the bodies attached to it.
        Vd_base: its time derivative minus gravity, in the same rows.
        V: body twists (6N,).
        Vd: their time derivatives minus gravity (6N,).
        F: wrenches (6N,) on the bodies from their parents, each in its body's frame.
        F_tip: wrenches (6N,) that the bodies exert on the surroundings.
        passive: efforts (n,) against constant loads and parallel springs of joints.
        qd, tau: joint rates and efforts (n,).
    """

    A: AnyArray
    W: AnyArray
    L: AnyArray
    G: AnyArray
    V_base: AnyArray
    Vd_base: AnyArray
    V: AnyArray
    Vd: AnyArray
    F: AnyArray
    F_tip: AnyArray
    passive: AnyArray
    qd: AnyArray
    tau: AnyArray

    @property
    def M(self) -> AnyArray:
        """Mass matrix (n, n), A' L' G L A."""
        J = self.L @ self.A
        return J.T @ self.G @ J

    @property
    def C(self) -> AnyArray:
        """Coriolis matrix (n, n), -A' L' (G L [ad_{A qd}] W + [ad_V]' G) L A; C qd = c for a base at rest.

        Md - 2 C is not skew-symmetric.
        """
        return self._velocity_terms() @ self.L @ self.A

    @property
    def c(self) -> AnyArray:
        """Velocity-dependent efforts (n,), -A' L' (G L [ad_{A qd}] (W V + V_base) + [ad_V]' G V)."""
        still = ad_blocks(self.A @ self.qd) @ self.V_base
        return self._velocity_terms() @ self.V - self.A.T @ self.L.T @ self.G @ self.L @ still

    @property
    def g(self) -> AnyArray:
        """Efforts against gravity and base acceleration (n,), A' L' G L Vd_base."""
        return self.A.T @ self.L.T @ self.G @ self.L @ self.Vd_base

    @property
    def external(self) -> AnyArray:
        """Efforts that exert the tool wrenches, Q_ext = A' L' F_tip (n,)."""
        return self.A.T @ self.L.T @ self.F_tip

    def _velocity_terms(self) -> AnyArray:
        """Map (n, 6N) from V to velocity-dependent efforts, without the terms of V_base in dV/dt."""
        coupling = self.G @ self.L @ ad_blocks(self.A @ self.qd) @ self.W + ad_blocks(self.V).T @ self.G
        return -self.A.T @ self.L.T @ coupling


def system_form(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    qdd: ArrayLike | None = None,
    *,
    base_twist: ArrayLike | None = None,
    base_acceleration: ArrayLike | None = None,
    wrench: Sequence[ArrayLike] = (),
) -> SystemForm:
    """Newton-Euler equations in system form, with all of their matrices, for one state.

    Args:
        robot: the robot.
        q: joint variables (n,), rad or m.
        qd, qdd: joint rates and accelerations (n,); zero if omitted.
        base_twist: twist (6,) of the base in its own frame; zero by default.
        base_acceleration: time derivative (6,) of this twist.
        wrench: (W,), the wrench (6,) that the robot exerts on its surroundings at its tool, moment first, in the tool's
            frame, N m and N; with k > 1 tools (k, 6).

    Gravity is ``robot.gravity``, along the present base axes: rotate it if the base rotates.

    Raises:
        StateError: a vector has the wrong shape or is not finite.
        TypeError: ``robot`` is not a Robot.
    """
    require_robot(robot)
    q, qd, qdd = joint_vectors(robot.n, *zeros_if_omitted(q, q, qd, qdd))
    V_0 = real_array(np.zeros(6) if base_twist is None else base_twist, "base_twist", (6,))
    Vd_0 = real_array(np.zeros(6) if base_acceleration is None else base_acceleration, "base_acceleration", (6,))
    (W_tip,) = wrenches(wrench, 1, robot.wrench_shape, symbols=True)
    steps = joint_steps(robot, q)
    A = screw_matrix(robot) @ robot.coupling[0]
    W, L, G = parent_matrix(robot, steps), ancestors(robot, steps), inertia_matrix(robot)
    base, lift = base_matrix(robot, steps), np.concatenate([np.zeros(3, dtype=int), -robot.gravity])
    V_base, Vd_base = base @ V_0, base @ (Vd_0 + lift)
    V = L @ (A @ qd + V_base)
    Vd = L @ (A @ qdd - ad_blocks(A @ qd) @ (W @ V + V_base) + Vd_base)
    F_tip = tool_matrix(robot) @ np.ravel(W_tip)
    F = L.T @ (G @ Vd - ad_blocks(V).T @ G @ V + F_tip)
    (passive,) = passive_forces(robot, q, [qd])
    return SystemForm(A, W, L, G, V_base, Vd_base, V, Vd, F, F_tip, passive, qd, A.T @ F + passive)
