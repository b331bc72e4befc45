# SPDX-License-Identifier: Apache-2.0
"""Joint accelerations in O(n): the articulated-body algorithm.

R. Featherstone, "Rigid Body Dynamics Algorithms" (2008), table 7.1. Spatial vectors have the angular part first and are
about the origin of the link's frame; the articulated inertia of a link and of what it carries,

    I = [A  B; B'  M],    force = I acceleration + p,

goes from the tips to the base, and the accelerations back. Scalars may be of any type with + - * and the reciprocal
1 / x, as in :mod:`.newton_euler`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..arrays import Array
from .joint_friction import joint_friction
from .kinematics import Matrix, Numbers
from .links import Link, LinkTree
from .vectors import Scalar, shifted_sincos

Spatial: TypeAlias = list[Scalar]


def forward_dynamics(
    tree: LinkTree,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    wrench: Sequence[Scalar] = (),
    added_inertia: Sequence[Scalar] = (),
) -> list[Scalar]:
    """Joint accelerations under joint efforts.

    Args:
        tree: links of a robot whose joints are independent: each has a variable of its own.
        q, qd, tau: one scalar for each joint variable.
        wrench: W, the wrenches that the robot exerts on its surroundings at its tools; six scalars for each tool,
            moment first, in the tool's frame. Omitted ones are zero.
        added_inertia: added to the diagonal of the mass matrix; one scalar for each joint variable, or none.

    Returns:
        qdd: one scalar for each joint variable.
    """
    bodies: list[_Body] = []
    for link in tree.links:
        parent = bodies[link.parent] if link.parent >= 0 else None
        bodies.append(_moving(link, q[link.coordinate], qd[link.coordinate], parent))
    for k, (i, pose) in enumerate(tree.tools if len(wrench) else ()):
        if i >= 0:
            bodies[i].p = _plus(bodies[i].p, _at_link(pose, wrench[6 * k : 6 * k + 6]))

    friction = joint_friction(tree, [qd])
    for i in reversed(range(len(tree.links))):
        link, body = tree.links[i], bodies[i]
        S = _axis(link)
        body.U = _times(body.inertia, S)
        D = _dot(S, body.U)
        if len(added_inertia):
            D = D + added_inertia[link.coordinate]
        body.reciprocal = 1.0 / D
        body.u = tau[link.coordinate] - friction[link.coordinate][0] - _dot(S, body.p)
        if link.parent >= 0:
            scaled = [x * body.reciprocal for x in body.U]
            rows = zip(body.inertia, scaled, strict=True)
            inertia = [[a - x * y for a, y in zip(row, body.U, strict=True)] for row, x in rows]
            force = _plus(body.p, _plus(_times(inertia, body.c), [x * body.u for x in scaled]))
            parent = bodies[link.parent]
            parent.inertia = [_plus(a, b) for a, b in zip(parent.inertia, _inertia_out(body, inertia), strict=True)]
            parent.p = _plus(parent.p, _force_out(body, force))

    accelerations: list[Spatial] = []
    result: list[Scalar] = [0.0] * tree.n
    base = [0.0, 0.0, 0.0, *(-g for g in tree.gravity.tolist())]
    for link, body in zip(tree.links, bodies, strict=True):
        before = accelerations[link.parent] if link.parent >= 0 else base
        a = _plus(_motion_in(body, before), body.c)
        qdd = (body.u - _dot(body.U, a)) * body.reciprocal
        result[link.coordinate] = qdd
        accelerations.append(_plus(a, [x * qdd for x in _axis(link)]))
    return result


@dataclass
class _Body:
    """A link: rotation R to its parent's frame and position r there, velocity, and what its passes compute."""

    R: Matrix
    r: Numbers
    velocity: Spatial
    c: Spatial
    inertia: list[Spatial]
    p: Spatial
    U: Spatial
    reciprocal: Scalar = 0.0
    u: Scalar = 0.0


def _moving(link: Link, q: Scalar, qd: Scalar, parent: _Body | None) -> _Body:
    R: Matrix = link.rotation.tolist()
    shift = link.pitch * q + link.offset
    r = [t + z * shift for t, z in zip(link.translation.tolist(), link.rotation[:, 2].tolist(), strict=True)]
    if link.turns:
        s, c = shifted_sincos(q, link.angle)
        R = [[c * x + s * y, c * y - s * x, z] for x, y, z in R]
    body = _Body(R, r, [0.0] * 6, [0.0] * 6, _rigid(link), [0.0] * 6, [])
    joint = [x * qd for x in _axis(link)]
    before = _motion_in(body, parent.velocity) if parent is not None else [0.0] * 6
    body.velocity = v = _plus(before, joint)
    w = v[:3]
    body.c = [*_cross(w, joint[:3]), *_plus(_cross(w, joint[3:]), _cross(v[3:], joint[:3]))]
    momentum = _times(body.inertia, v)
    moment, force = momentum[:3], momentum[3:]
    body.p = [*_plus(_cross(w, moment), _cross(v[3:], force)), *_cross(w, force)]
    return body


def _rigid(link: Link) -> list[Spatial]:
    """Spatial inertia (6, 6) of a link about the origin of its frame."""
    Z, h, m = link.second_moment, link.first_moment, link.mass
    x, y, z = h.tolist()
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    whole: Array = np.block([[np.trace(Z) * np.eye(3) - Z, skew], [skew.T, m * np.eye(3)]])
    rows: list[Spatial] = whole.tolist()
    return rows


def _axis(link: Link) -> list[float]:
    return [0.0, 0.0, 1.0 if link.turns else 0.0, 0.0, 0.0, link.pitch]


def _motion_in(body: _Body, v: Spatial) -> Spatial:
    """Velocity or acceleration of the parent at the origin of the link, in its frame."""
    moved = _plus(v[3:], _cross(v[:3], body.r))
    return [*_back(body.R, v[:3]), *_back(body.R, moved)]


def _force_out(body: _Body, f: Spatial) -> Spatial:
    """Moment and force of a link in its parent's frame, about its parent's origin."""
    moment, force = _product(body.R, f[:3]), _product(body.R, f[3:])
    return [*_plus(moment, _cross(body.r, force)), *force]


def _inertia_out(body: _Body, inertia: list[Spatial]) -> list[Spatial]:
    """X' I X, with the motion of the parent at the link X: columns of I X, then rows."""
    columns = [_force_out(body, column) for column in inertia]  # symmetric: rows are columns
    rows = [_force_out(body, [column[i] for column in columns]) for i in range(6)]
    # Rounding and the traced expressions are the same on both sides of the diagonal.
    return [[rows[min(i, j)][max(i, j)] for j in range(6)] for i in range(6)]


def _at_link(pose: Array, wrench: Sequence[Scalar]) -> Spatial:
    R, r = pose[:3, :3].tolist(), pose[:3, 3].tolist()
    moment, force = _product(R, wrench[:3]), _product(R, wrench[3:])
    return [*_plus(moment, _cross(r, force)), *force]


def _times(matrix: Sequence[Spatial], vector: Sequence[Scalar]) -> Spatial:
    return [_dot(row, vector) for row in matrix]


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def _product(matrix: Matrix, vector: Sequence[Scalar]) -> Numbers:
    return [_dot(row, vector) for row in matrix]


def _back(matrix: Matrix, vector: Sequence[Scalar]) -> Numbers:
    return [_dot(column, vector) for column in zip(*matrix, strict=True)]


def _cross(a: Sequence[Scalar], b: Sequence[Scalar]) -> Numbers:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _plus(a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    return [x + y for x, y in zip(a, b, strict=True)]
