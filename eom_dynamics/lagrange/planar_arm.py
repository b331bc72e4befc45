# SPDX-License-Identifier: Apache-2.0
"""The planar arm with n revolute joints, in symbols."""

from __future__ import annotations

import numpy as np
import sympy as sp

from .. import lie
from ..robot import Frame, Joint, Robot
from .variables import LagrangianError


def planar_arm(n: int) -> Robot:
    """Planar arm with n revolute joints about z, and gravity g along -y, as a robot of SymPy symbols.

    Link k has the length L_k, mass m_k and inertia I_k about its centre of mass, which is at a_k along it. The tool is
    the tip, at L_n.

    Raises:
        LagrangianError: n is not a positive integer.
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise LagrangianError(f"n must be positive, an integer, is {n!r:.60}")
    joints = []
    for k in range(1, n + 1):
        mass, inertia, center, before = sp.symbols(f"m{k} I{k} a{k} L{k - 1}", positive=True)
        offset = np.array([before if k > 1 else 0, 0, 0], dtype=object)
        moment = inertia + mass * center**2
        joints.append(
            Joint(
                name=f"joint_{k}",
                screw=np.array([0, 0, 1, 0, 0, 0]),
                reference_pose=lie.pose(np.eye(3, dtype=int), offset),
                parent=k - 2,
                mass=mass,
                center_of_mass=np.array([center, 0, 0], dtype=object),
                inertia_about_origin=np.diag([0, moment, moment]).astype(object),
            )
        )
    last = np.array([sp.Symbol(f"L{n}", positive=True), 0, 0], dtype=object)
    tip = Frame("tip", n - 1, lie.pose(np.eye(3, dtype=int), last))
    gravity = np.array([0, -sp.Symbol("g", positive=True), 0], dtype=object)
    return Robot(f"planar_{n}r", tuple(joints), gravity, (tip,))
