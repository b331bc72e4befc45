# SPDX-License-Identifier: Apache-2.0
"""Poses, twists and Jacobians of a frame, and joint rates from twists, with time derivatives of any order.

The body Jacobian has the column J_i of joint i in the frame; the space Jacobian has it in the base. Their derivatives
depend only on the twists formed by these columns, relative to the frame, and to the base:

    body:   dJ_i/dt = [J_i, sum over j > i of J_j dq_j/dt]
    space:  dJ_i/dt = [sum over j < i of J_j dq_j/dt, J_i]

along the path from the base to the frame; derivatives of higher order follow by Leibniz' rule. Scalars may be of any
type, as in :mod:`.newton_euler`; constants of poses and Jacobians are integers, which keep fractions exact.

Joint rates follow from the twist of the first tool and its derivatives. The rates x for a twist V, with a damping d and
a null-space motion u, are

    x = u + J' y,    V = J x + d² y,

or, if fewer joints move the tool than the twist has entries, J' (V - J x) = d² (x - u). Both hold at each time, so that
Leibniz' rule gives their derivatives in sequence. The derivative of order k contains J to order k, x to order k - 1,
and the unknown of order k with the same matrix for all orders, K = J J' + d² I or K = J' J + d² I. The results are
therefore derivatives of the same motion, damped or not. V - J x is the error of the twist.

The inverse of K is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import NamedTuple

from ..arguments import choice
from ..arrays import Array
from ..jet import Jet, leibniz
from .links import Link, LinkTree
from .scalars import (
    Angle,
    Matrix,
    Numbers,
    Scalar,
    Vector,
    cross,
    dot,
    leibniz_sum,
    minus,
    plus,
    product,
    shifted_sincos,
    transposed,
)

REPRESENTATIONS = ("body", "space", "world_aligned")
"""Twist in the moving frame; in the base frame about the base origin; along the base axes about the moving origin."""

SYNONYMS = {"local": "body", "world": "space", "local_world_aligned": "world_aligned"}
"""Pinocchio's names of the representations."""


def representation(name: str) -> str:
    """Representation with this name, in REPRESENTATIONS; StateError if unknown."""
    known = SYNONYMS.get(name, name) if isinstance(name, str) else name
    choice(known, "reference", (*REPRESENTATIONS, *SYNONYMS))
    return known


def frame_pose(tree: LinkTree, q: Sequence[Scalar]) -> tuple[Matrix, Numbers]:
    """Rotation (3 x 3) and position (3) of the first tool in the base frame."""
    rotation, position, _ = _poses(tree, q)
    return rotation, position


def frame_twist(
    tree: LinkTree, states: Sequence[Sequence[Scalar]], base: Sequence[Sequence[Scalar]] = ()
) -> list[Numbers]:
    """Body twist of the first tool and its time derivatives.

    Args:
        states: q, qd, qdd, …, at least these two.
        base: body twist (6) of the base and the same number of time derivatives; empty for a fixed base.

    Returns:
        V, Vd, …, a vector for each state from qd on; angular part first.
    """
    orders = len(states) - 1
    w: Vector = [Jet.constant(0.0, orders) for _ in range(3)]
    v = list(w)
    if len(base):
        w, v = ([Jet([twist[k] for twist in base]) for k in rows] for rows in (range(3), range(3, 6)))
    for link in _path(tree):
        q = link.displacement(states)
        into = link.rotation.T.tolist()
        w, v = product(into, w), product(into, _velocity_at(link.translation.tolist(), w, v))
        if link.turns:
            angle = Angle(*shifted_sincos(q[0], link.angle), q.rate)
            w, v = angle.turned(w), angle.turned(v)
            w = [w[0], w[1], w[2] + q.rate]
        shift = link.pitch * q + Jet.constant(link.offset, len(q))
        v = [v[0] + w[1] * shift, v[1] - w[0] * shift, v[2] + shift.rate]
    at = tree.tools[0][1]
    into = at[:3, :3].T.tolist()
    w, v = product(into, w), product(into, _velocity_at(at[:3, 3].tolist(), w, v))
    return [[x[k] for x in (*w, *v)] for k in range(orders)]


def jacobian(
    tree: LinkTree, states: Sequence[Sequence[Scalar]], representation: str, point: Sequence[Scalar] = (0, 0, 0)
) -> list[list[Numbers]]:
    """Jacobian of the first tool and its time derivatives.

    Args:
        states: q, qd, …, at least the first.
        representation: an entry of REPRESENTATIONS.
        point: point (3) fixed to the tool, instead of its origin, m.

    Returns:
        J, Jd, …, a matrix for each state: a column of six entries for each joint variable, angular part first.
    """
    rotation, position, axes = _poses(tree, states[0])
    path = _path(tree)
    # About the origin of the base or about the point, along the axes of the base.
    about = [0] * 3 if representation == "space" else plus(position, product(rotation, point))
    columns = [_column(link, axis, minus(about, origin)) for link, (axis, origin) in zip(path, axes, strict=True)]
    if representation == "body":
        columns = [_turned(transposed(rotation), column) for column in columns]
    rates = [[link.ratio * state[link.coordinate] for state in states[1:]] for link in path]
    derivatives = _DERIVATIVES[representation](columns, rates, len(states) - 1)
    return [_by_joint(tree, path, columns) for columns in derivatives]


def jacobian_on_base(
    tree: LinkTree,
    states: Sequence[Sequence[Scalar]],
    representation: str,
    base: Sequence[Sequence[Scalar]] = (),
    at: tuple[Matrix, Numbers] | None = None,
) -> list[list[Numbers]]:
    """Jacobian of the first tool on a moving base, and its time derivatives.

    The columns of the base come first, as columns of six joints before all others that do not move relative to the
    base. The forms in the inertial frame follow from the body form by d(C y)/dt = C (dy/dt + [V, y]). V is the twist of
    the tool for the space form, and only its angular part for the world-aligned form.

    Args:
        tree, states: as for :func:`jacobian`.
        representation: an entry of REPRESENTATIONS, with the inertial frame as the base.
        base: body twist (6) of the base and its time derivatives, for each of qd, qdd, …; unused in the body form.
        at: rotation and position of the base; unused in the body form.

    Returns:
        J, Jd, …, a matrix for each state: columns of six entries, for the base twist, then for each joint variable.
    """
    rotation, position, axes = _poses(tree, states[0])
    path = _path(tree)
    units = [[float(i == k) for i in range(3)] for k in range(3)]
    columns = [[*unit, *cross(unit, position)] for unit in units] + [[0.0, 0.0, 0.0, *unit] for unit in units]
    columns += [_column(link, axis, minus(position, origin)) for link, (axis, origin) in zip(path, axes, strict=True)]
    columns = [_turned(transposed(rotation), column) for column in columns]
    still: Numbers = [0.0] * (len(states) - 1)
    rates = [still] * 6 + [[link.ratio * state[link.coordinate] for state in states[1:]] for link in path]
    levels = _body_derivatives(columns, rates, len(states) - 1)
    if at is not None and representation != "body":
        twists = frame_twist(tree, states, base) if len(states) > 1 else []
        if representation == "world_aligned":
            twists = [[*twist[:3], 0.0, 0.0, 0.0] for twist in twists]
        levels = _in_fixed_axes(levels, twists)
        turned = _composed(at, (rotation, position))
        about = turned[1] if representation == "space" else [0.0] * 3
        levels = [[_turned_out(turned[0], about, column) for column in level] for level in levels]
    return [[*level[:6], *_by_joint(tree, path, level[6:])] for level in levels]


def _in_fixed_axes(levels: list[list[Numbers]], twists: list[Numbers]) -> list[list[Numbers]]:
    """Derivatives of C y along the present axes of a moving frame, from derivatives of columns y in this frame."""
    fixed = []
    while levels:
        fixed.append(levels[0])
        levels = [
            [
                plus(column, leibniz_sum(twists, [level[i] for level in levels], k, _bracket))
                for i, column in enumerate(levels[k + 1])
            ]
            for k in range(len(levels) - 1)
        ]
    return fixed


def pose_on_base(tree: LinkTree, q: Sequence[Scalar], at: tuple[Matrix, Numbers]) -> tuple[Matrix, Numbers]:
    """Rotation and position of the first tool in the inertial frame, from rotation and position of the base."""
    return _composed(at, frame_pose(tree, q))


def _composed(outer: tuple[Matrix, Numbers], inner: tuple[Matrix, Numbers]) -> tuple[Matrix, Numbers]:
    columns = [product(outer[0], column) for column in transposed(inner[0])]
    return transposed(columns), plus(outer[1], product(outer[0], inner[1]))


def _turned(rotation: Matrix, twist: Numbers) -> Numbers:
    return [*product(rotation, twist[:3]), *product(rotation, twist[3:])]


def _turned_out(rotation: Matrix, position: Numbers, twist: Numbers) -> Numbers:
    """Ad of a pose times a twist."""
    turned = _turned(rotation, twist)
    return [*turned[:3], *plus(turned[3:], cross(position, turned[:3]))]


def _body_derivatives(columns: list[Numbers], rates: list[Numbers], orders: int) -> list[list[Numbers]]:
    # In reverse order, the sum over j > i is a sum over earlier joints, and the bracket changes its sign.
    reverse = _space_derivatives(columns[::-1], rates[::-1], orders, sign=-1.0)
    return [level[::-1] for level in reverse]


def _space_derivatives(
    columns: list[Numbers], rates: list[Numbers], orders: int, sign: float = 1.0
) -> list[list[Numbers]]:
    levels = [columns]
    for order in range(orders):
        twists: list[list[Numbers]] = []  # for each joint, the twist of earlier joints, and its derivatives
        before = [[0.0] * 6 for _ in range(order + 1)]
        for i in range(len(columns)):
            twists.append(before)
            before = [plus(x, _rate(levels, rates, i, k)) for k, x in enumerate(before)]
        levels.append(
            [
                leibniz_sum(twists[i], [[sign * x for x in level[i]] for level in levels], order, _bracket)
                for i in range(len(columns))
            ]
        )
    return levels


def _world_aligned_derivatives(columns: list[Numbers], rates: list[Numbers], orders: int) -> list[list[Numbers]]:
    """Derivatives from the space form about the present tool position: J_v' + J_w x r with the tool at r from there."""
    about_fixed = _space_derivatives(columns, rates, orders)
    lever: list[Numbers] = [[0.0] * 3]
    levels = [columns]
    for order in range(orders):
        velocity = [0.0] * 3
        for i in range(len(columns)):
            velocity = plus(velocity, _rate(levels, rates, i, order)[3:])
        lever.append(velocity)
        level = []
        for i in range(len(columns)):
            turning = [about_fixed[k][i][:3] for k in range(order + 2)]
            level.append(
                [
                    *about_fixed[order + 1][i][:3],
                    *plus(about_fixed[order + 1][i][3:], leibniz_sum(turning, lever, order + 1, cross)),
                ]
            )
        levels.append(level)
    return levels


_DERIVATIVES: dict[str, Callable[[list[Numbers], list[Numbers], int], list[list[Numbers]]]] = {
    "body": _body_derivatives,
    "space": _space_derivatives,
    "world_aligned": _world_aligned_derivatives,
}


def _rate(levels: list[list[Numbers]], rates: list[Numbers], i: int, order: int) -> Numbers:
    """Derivative of a joint's twist, column times rate."""
    return [leibniz([level[i][r] for level in levels], rates[i], order, lambda a, b: a * b) for r in range(6)]


def _poses(tree: LinkTree, q: Sequence[Scalar]) -> tuple[Matrix, Numbers, list[tuple[Numbers, Numbers]]]:
    """Rotation and position of the first tool, and axis and frame origin of each link on the path."""
    R: Matrix = [[int(i == j) for j in range(3)] for i in range(3)]
    p: Numbers = [0] * 3
    axes = []
    for link in _path(tree):
        p = plus(p, product(R, link.translation.tolist()))
        R = [[dot(row, column) for column in link.rotation.T.tolist()] for row in R]
        x = link.ratio * q[link.coordinate]
        shift = link.pitch * x + link.offset
        p = [p[i] + R[i][2] * shift for i in range(3)]
        if link.turns:
            s, c = shifted_sincos(x, link.angle)
            R = [[c * row[0] + s * row[1], c * row[1] - s * row[0], row[2]] for row in R]
        axes.append(([row[2] for row in R], p))
    at = tree.tools[0][1]
    p = plus(p, product(R, at[:3, 3].tolist()))
    return [[dot(row, column) for column in at[:3, :3].T.tolist()] for row in R], p, axes


def _path(tree: LinkTree) -> list[Link]:
    path, i = [], tree.tools[0][0]
    while i >= 0:
        path.append(tree.links[i])
        i = tree.links[i].parent
    return path[::-1]


def _column(link: Link, axis: Numbers, lever: Numbers) -> Numbers:
    """Twist of a unit rate, about a point at ``lever`` from the axis."""
    if not link.turns:
        return [0, 0, 0, *axis]
    return [*axis, *plus(cross(axis, lever), [link.pitch * x for x in axis])]


def _by_joint(tree: LinkTree, path: Sequence[Link], columns: Sequence[Numbers]) -> list[Numbers]:
    """Columns of the joint variables; a mimic joint adds to the column of its leader."""
    result: list[Numbers] = [[0] * 6 for _ in range(tree.n)]
    for link, column in zip(path, columns, strict=True):
        result[link.coordinate] = plus(result[link.coordinate], [link.ratio * x for x in column])
    return result


def _velocity_at(point: Sequence[float], w: Vector, v: Vector) -> Vector:
    return plus(v, [-x for x in cross(point, w)])


def _bracket(a: Numbers, b: Numbers) -> Numbers:
    return [*cross(a[:3], b[:3]), *plus(cross(a[:3], b[3:]), cross(a[3:], b[:3]))]


def center_of_mass(tree: LinkTree, states: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
    """Center of mass of all links in the base frame, and its time derivatives.

    Args:
        tree: links of the robot, with inertias that are not regrouped.
        states: q, qd, …, at least the first.

    Returns:
        c, cd, …, a vector for each state.
    """
    mass, moments = first_moment(tree, states)
    return [[(1.0 / mass) * x for x in moment] for moment in moments]


def first_moment(
    tree: LinkTree, states: Sequence[Sequence[Scalar]], *, with_base: bool = False
) -> tuple[float, list[list[Scalar]]]:
    """Mass of all links, and first mass moment in the base frame with time derivatives, from the tips to the base.

    Args:
        with_base: whether to add the base.
    """
    orders = len(states)
    # Masses and moments of each link with its descendants; the base is the last.
    masses = [*(link.mass for link in tree.links), tree.base.mass if with_base else 0.0]
    moments = [_constant(link.first_moment, orders) for link in tree.links]
    moments.append(_constant(tree.base.first_moment if with_base else [0.0] * 3, orders))
    for i in reversed(range(len(tree.links))):
        link, (x, y, z) = tree.links[i], moments[i]
        q = link.displacement(states)
        moment = [x, y, z + masses[i] * (link.pitch * q + Jet.constant(link.offset, orders))]
        if link.turns:
            moment = Angle(*shifted_sincos(q[0], link.angle), q.rate).back().turned(moment)
        moment = plus(product(link.rotation.tolist(), moment), _constant(masses[i] * link.translation, orders))
        masses[link.parent] += masses[i]
        moments[link.parent] = plus(moments[link.parent], moment)
    return masses[-1], [[x[k] for x in moments[-1]] for k in range(orders)]


def _constant(vector: Sequence[float] | Array, orders: int) -> Vector:
    return [Jet.constant(float(x), orders) for x in vector]


class JointRates(NamedTuple):
    """Rates qd, qdd, …, (n) each, and the errors of V, Vd, …, (6) each."""

    rates: list[Numbers]
    missed: list[Numbers]


def joint_rates(
    tree: LinkTree,
    q: Sequence[Scalar],
    twists: Sequence[Numbers],
    null_motion: Sequence[Numbers],
    inverse: Matrix,
    squared_damping: Scalar,
    reference: str,
    moving: Sequence[int],
    units: Sequence[float],
    scales: Sequence[Scalar],
) -> JointRates:
    """Joint rates and their derivatives.

    Args:
        q: joint variables (n).
        twists: V, Vd, … (6) each.
        null_motion: u, ud, … (n) for each twist, in units of ``scales``.
        inverse: inverse of K, (6 x 6), or (m x m) with m < 6 moving joints.
        squared_damping: d².
        reference: as for :func:`.jacobian`.
        moving: indices of the joint variables that move the tool.
        units: factors (6) of the rows, 0 for free rows; K has rows in these units.
        scales: units (n) of the joint rates; K has columns in these units.
    """
    wide = len(moving) >= len(units)
    rates: list[Numbers] = []
    x: list[Numbers] = []
    y: list[Numbers] = []
    missed: list[Numbers] = []
    for V, u in zip(twists, null_motion, strict=True):
        levels = jacobian(tree, [q, *rates], reference)
        J = [[[unit * level[j][i] * scales[j] for j in moving] for i, unit in enumerate(units)] for level in levels]
        Jt = [transposed(level) for level in J]
        preferred = [u[j] for j in moving]
        rest = minus([unit * entry for unit, entry in zip(units, V, strict=True)], _known(J, x))
        if wide:
            known = plus(preferred, _known(Jt, y))
            y.append(product(inverse, minus(rest, product(J[0], known))))
            x.append(plus(known, product(Jt[0], y[-1])))
        else:
            right = plus(product(Jt[0], rest), _known(Jt, missed))
            x.append(product(inverse, plus(right, [squared_damping * u for u in preferred])))
        missed.append(minus(rest, product(J[0], x[-1])))
        every = dict(enumerate(u)) | dict(zip(moving, x[-1], strict=True))
        rates.append([value * scales[j] for j, value in sorted(every.items())])
    in_si = [
        [entry * (1.0 / unit if unit else 0.0) for entry, unit in zip(level, units, strict=True)] for level in missed
    ]
    return JointRates(rates, in_si)


def _known(matrices: Sequence[Matrix], vectors: Sequence[Numbers]) -> Numbers:
    """Derivative of the product of a matrix and a vector, without the term of the vector's next derivative."""
    k = len(vectors)
    total: Numbers = [0.0] * len(matrices[0])
    for j in range(1, k + 1):
        total = plus(total, [comb(k, j) * b for b in product(matrices[j], vectors[k - j])])
    return total
