# SPDX-License-Identifier: Apache-2.0
"""Joint accelerations in O(n): the articulated-body algorithm.

R. Featherstone, "Rigid Body Dynamics Algorithms" (2008), table 7.1. Spatial vectors have the angular part first and are
about the origin of the link's frame. The articulated inertia of a link with its descendants,

    I = [A  B; B'  M],    force = I acceleration + p,

is computed from the tips to the base, and the accelerations from the base to the tips. Scalars may be of any type with
+ - * and the reciprocal 1 / x, as in :mod:`.newton_euler`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos
from typing import TypeAlias

import numpy as np

from .. import lie
from ..arrays import Array
from .composite import composite_inertias
from .inverse_mass_matrix import reciprocal_pivot, solver
from .links import Link, LinkTree, Moments
from .passive_efforts import passive_efforts
from .scalars import Matrix, Numbers, Scalar, cross, dot, minus, plus, product, shifted_sincos, transposed_product

# Number of configurations to estimate the size of the entries of M.
_CONFIGURATIONS = 4

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
        tree: links of a robot with independent joints: each has its own variable.
        q, qd, tau: one scalar for each joint variable.
        wrench: W, the wrenches that the robot exerts on its surroundings at its tools; six scalars for each tool,
            moment first, in the tool's frame. Omitted wrenches are zero.
        added_inertia: inertia added to the diagonal of the mass matrix; one scalar for each joint variable, or none.

    Returns:
        qdd: one scalar for each joint variable.

    Raises:
        RobotDescriptionError: a joint moves no mass.
    """
    bodies = _bodies(tree, q, qd, wrench, None)
    _articulate(tree, bodies, q, qd, tau, added_inertia, None)
    base = [0.0, 0.0, 0.0, *(-g for g in tree.gravity.tolist())]
    return _accelerations(tree, bodies, base)


def forward_dynamics_on_base(
    tree: LinkTree,
    q: Sequence[Scalar],
    nu: Sequence[Scalar],
    tau: Sequence[Scalar],
    gravity: Sequence[Scalar],
    wrench: Sequence[Scalar] = (),
) -> list[Scalar]:
    """Rate of nu = (V0, qd) under a wrench on the base and joint efforts.

    The base is an additional body, with the positive definite articulated inertia of the whole robot.

    Args:
        tree, q, wrench: as for :func:`forward_dynamics`.
        nu: body-fixed twist of the base, then one scalar for each joint variable.
        tau: wrench (moment; force) on the base in its frame, then one scalar for each joint variable.
        gravity: gravitational acceleration (3) in the frame of the base.
    """
    base = _with_momentum(_Body([], [], list(nu[:6]), [], _rigid(tree.base), [], []))
    bodies = _bodies(tree, q, nu[6:], wrench, base)
    _articulate(tree, bodies, q, nu[6:], tau[6:], (), base)
    accelerated = solver(base.inertia)(minus(tau[:6], base.p))
    qdd = _accelerations(tree, bodies, accelerated)
    return [*accelerated[:3], *plus(accelerated[3:], gravity), *qdd]


def _bodies(
    tree: LinkTree, q: Sequence[Scalar], qd: Sequence[Scalar], wrench: Sequence[Scalar], base: _Body | None
) -> list[_Body]:
    """Moving links; ``base`` None stands for a base at rest."""
    bodies: list[_Body] = []
    for link in tree.links:
        parent = bodies[link.parent] if link.parent >= 0 else base
        bodies.append(_moving(link, q[link.coordinate], qd[link.coordinate], parent))
    for k, (i, pose) in enumerate(tree.tools if len(wrench) else ()):
        body = bodies[i] if i >= 0 else base
        if body is not None:
            R, r = pose[:3, :3].tolist(), pose[:3, 3].tolist()
            body.p = plus(body.p, _force_out(R, r, wrench[6 * k : 6 * k + 6]))
    return bodies


def _articulate(
    tree: LinkTree,
    bodies: list[_Body],
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    added_inertia: Sequence[Scalar],
    base: _Body | None,
) -> None:
    """Articulated inertias of all links, from the tips to the base."""
    friction, passive = tree.joint_friction([qd]), passive_efforts(tree.passive, tree.n, [q])
    scales = _largest_inertias(tree)
    for i in reversed(range(len(tree.links))):
        link, body = tree.links[i], bodies[i]
        S = _axis(link)
        body.U = product(body.inertia, S)
        D = dot(S, body.U)
        for added in (added_inertia, tree.rotors):
            if len(added):
                D = D + added[link.coordinate]
        body.reciprocal = reciprocal_pivot(D, scales[i], tree.n)
        body.u = tau[link.coordinate] - friction[link.coordinate][0] - passive[link.coordinate][0] - dot(S, body.p)
        parent = bodies[link.parent] if link.parent >= 0 else base
        if parent is not None:
            scaled = [x * body.reciprocal for x in body.U]
            rows = zip(body.inertia, scaled, strict=True)
            inertia = [[a - x * y for a, y in zip(row, body.U, strict=True)] for row, x in rows]
            force = plus(body.p, plus(product(inertia, body.c), [x * body.u for x in scaled]))
            parent.inertia = [plus(a, b) for a, b in zip(parent.inertia, _inertia_out(body, inertia), strict=True)]
            parent.p = plus(parent.p, _force_out(body.R, body.r, force))


def _largest_inertias(tree: LinkTree) -> list[float]:
    """Largest diagonal entry of M of each link over configurations without symmetry."""
    largest = [0.0] * len(tree.links)
    for k in range(_CONFIGURATIONS):
        inertias = composite_inertias(tree, [cos(1.0 + 2.4 * i + 0.7 * k * (i + 1)) for i in range(tree.n)])
        for i, link in enumerate(tree.links):
            largest[i] = max(largest[i], float(inertias[link.coordinate]))
    return largest


def _accelerations(tree: LinkTree, bodies: list[_Body], base: Spatial) -> list[Scalar]:
    accelerations: list[Spatial] = []
    result: list[Scalar] = [0.0] * tree.n
    for link, body in zip(tree.links, bodies, strict=True):
        before = accelerations[link.parent] if link.parent >= 0 else base
        a = plus(_motion_in(body, before), body.c)
        qdd = (body.u - dot(body.U, a)) * body.reciprocal
        result[link.coordinate] = qdd
        accelerations.append(plus(a, [x * qdd for x in _axis(link)]))
    return result


@dataclass
class _Body:
    """Link: rotation R to the parent's frame and position r there, velocity, and results of the passes."""

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
    body.velocity = v = plus(before, joint)
    w = v[:3]
    body.c = [*cross(w, joint[:3]), *plus(cross(w, joint[3:]), cross(v[3:], joint[:3]))]
    return _with_momentum(body)


def _with_momentum(body: _Body) -> _Body:
    """Body with the force p at constant velocity, due to the rotating momentum."""
    momentum, w = product(body.inertia, body.velocity), body.velocity[:3]
    moment, force = momentum[:3], momentum[3:]
    body.p = [*plus(cross(w, moment), cross(body.velocity[3:], force)), *cross(w, force)]
    return body


def _rigid(link: Link | Moments) -> list[Spatial]:
    """Spatial inertia (6, 6) of a link about the origin of its frame."""
    Z, cross_h = link.second_moment, lie.skew(link.first_moment)
    whole: Array = np.block([[np.trace(Z) * np.eye(3) - Z, cross_h], [cross_h.T, link.mass * np.eye(3)]])
    return whole.tolist()


def _axis(link: Link) -> list[float]:
    return [0.0, 0.0, 1.0 if link.turns else 0.0, 0.0, 0.0, link.pitch]


def _motion_in(body: _Body, v: Spatial) -> Spatial:
    """Velocity or acceleration of the parent at the link's origin, in the link's frame."""
    moved = plus(v[3:], cross(v[:3], body.r))
    return [*transposed_product(body.R, v[:3]), *transposed_product(body.R, moved)]


def _force_out(R: Matrix, r: Numbers, f: Sequence[Scalar]) -> Spatial:
    """Moment and force of a frame at a pose, in the reference frame and about its origin."""
    moment, force = product(R, f[:3]), product(R, f[3:])
    return [*plus(moment, cross(r, force)), *force]


def _inertia_out(body: _Body, inertia: list[Spatial]) -> list[Spatial]:
    """X' I X, with the motion of the parent at the link X: columns of I X, then rows."""
    columns = [_force_out(body.R, body.r, column) for column in inertia]  # symmetric: rows are columns
    rows = [_force_out(body.R, body.r, [column[i] for column in columns]) for i in range(6)]
    # Rounding and traced expressions are the same on both sides of the diagonal.
    return [[rows[min(i, j)][max(i, j)] for j in range(6)] for i in range(6)]
