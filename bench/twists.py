# SPDX-License-Identifier: Apache-2.0
"""Recursions over twists, in body-fixed frames and in the base frame.

They have the arguments of :func:`eom_dynamics.recursion.inverse_dynamics` and compute the same efforts. Gravity is an
acceleration -g of the base: its twist is zero, but the derivative of its twist is not.

In the base frame ("spatial" twists), motions and forces are not transformed between bodies: the twist of a body is
V = V_parent + Y dq/dt with the screw Y of the joint, dY/dt = ad_V Y, and tau = Y' F. However, inertias vary in time:
:func:`spatial` transforms them to the base frame, :func:`spatial_by_bodies` transforms twists to the bodies and forces
back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eom_dynamics.jet import Jet
from eom_dynamics.recursion import Link, LinkTree
from eom_dynamics.recursion.vectors import Angle, add, cross, rotated, shifted_sincos, times

Scalar = Any
Vector = list[Jet]
Recursion = Callable[[LinkTree, Sequence[Sequence[Scalar]]], list[list[Scalar]]]


def body_fixed(tree: LinkTree, states: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
    """Twists and wrenches in the frames of the bodies."""
    orders = len(states) - 2
    twists: list[tuple[Vector, Vector]] = []
    turns: list[tuple[Angle | None, Jet]] = []
    forces, moments = [], []
    for i, link in enumerate(tree.links):
        q = Jet([state[i] for state in states])
        w, v = twists[link.parent] if link.parent >= 0 else _base(tree, orders)
        into = link.rotation.T.tolist()
        v = rotated(into, _difference(v, cross(link.translation.tolist(), w)))
        w = rotated(into, w)
        angle = Angle(*shifted_sincos(q[0], link.angle), q.rate) if link.turns else None
        if angle is not None:
            w, v = angle.turned(w), angle.turned(v)
        shift = _shift(link, q)
        v = [v[0] + w[1] * shift, v[1] - w[0] * shift, v[2] + link.pitch * q.rate]
        if link.turns:
            w = [w[0], w[1], w[2] + q.rate]
        twists.append((w, v))
        turns.append((angle, shift))
        moment, force = _momentum_rate((w, v), _momentum(link, w, v))
        moments.append(moment)
        forces.append(force)
    efforts: list[Jet] = []
    for i in reversed(range(len(tree.links))):
        link, (angle, shift) = tree.links[i], turns[i]
        force, moment = forces[i], moments[i]
        efforts.insert(0, moment[2] + link.pitch * force[2] if link.turns else force[2])
        if link.parent >= 0:
            moment = [moment[0] - shift * force[1], moment[1] + shift * force[0], moment[2]]
            if angle is not None:
                force, moment = angle.back().turned(force), angle.back().turned(moment)
            out = link.rotation.tolist()
            force, moment = rotated(out, force), rotated(out, moment)
            forces[link.parent] = add(forces[link.parent], force)
            moments[link.parent] = add(moments[link.parent], add(moment, cross(link.translation.tolist(), force)))
    return [[effort[k] for effort in efforts] for k in range(orders)]


def spatial(tree: LinkTree, states: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
    """All quantities in the base frame, with inertias by dc/dt = w x c + m v, dZ/dt = W Z + Z W' + v c' + c v'."""

    def force(link: Link, R: list[list[Scalar]], p: list[Scalar], w: Vector, v: Vector) -> tuple[Vector, Vector]:
        c, Z = _moments_in_base(link, R, p)
        length = len(w[0])
        for k in range(length - 1):
            known = [Jet(x) for x in c]
            rate = add(_crossed(w, known), times(link.mass, v))
            half = [[_entry(w, v, Z, known, a, b, k) for b in range(3)] for a in range(3)]
            for a in range(3):
                c[a].append(rate[a][k])
                for b in range(a, 3):
                    Z[a, b].append(half[a][b] + half[b][a])
        first = [Jet(x) for x in c]
        second = {place: Jet(x) for place, x in Z.items()}
        inertia = [
            [second[1, 1] + second[2, 2], -second[0, 1], -second[0, 2]],
            [-second[0, 1], second[0, 0] + second[2, 2], -second[1, 2]],
            [-second[0, 2], -second[1, 2], second[0, 0] + second[1, 1]],
        ]
        angular = [row[0] * w[0] + row[1] * w[1] + row[2] * w[2] for row in inertia]
        angular = add(angular, _crossed(first, v))
        linear = add(times(link.mass, v), _crossed(w, first))
        return [x.rate for x in angular], [x.rate for x in linear]

    return _spatial(tree, states, force)


def spatial_by_bodies(tree: LinkTree, states: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
    """Twists in the base frame, momenta in body-fixed frames.

    The derivatives of the body-fixed twist are Ad^-1 D^k V with D = d/dt - ad_V, and those of the force in the base
    frame Ad^-T E^(k + 1) h with E = d/dt - ad'.
    """

    def force(link: Link, R: list[list[Scalar]], p: list[Scalar], w: Vector, v: Vector) -> tuple[Vector, Vector]:
        back = [list(column) for column in zip(*R, strict=True)]
        body: list[tuple[list[Scalar], list[Scalar]]] = []
        moving = (w, v)
        while True:
            at_origin = add([x[0] for x in moving[1]], _crossed([x[0] for x in moving[0]], p))
            body.append((rotated(back, [x[0] for x in moving[0]]), rotated(back, at_origin)))
            if len(moving[0][0]) == 1:
                break
            moving = (
                _difference([x.rate for x in moving[0]], _crossed(w, moving[0])),
                _difference([x.rate for x in moving[1]], add(_crossed(v, moving[0]), _crossed(w, moving[1]))),
            )
        w_body, v_body = ([Jet([entry[part][axis] for entry in body]) for axis in range(3)] for part in range(2))
        momentum = _momentum(link, w_body, v_body)
        moments: list[list[Scalar]] = [[], [], []]
        forces: list[list[Scalar]] = [[], [], []]
        while len(momentum[0][0]) > 1:
            momentum = _momentum_rate((w_body, v_body), momentum)
            force = rotated(R, [x[0] for x in momentum[1]])
            moment = add(rotated(R, [x[0] for x in momentum[0]]), _crossed(p, force))
            for axis in range(3):
                moments[axis].append(moment[axis])
                forces[axis].append(force[axis])
        return [Jet(x) for x in moments], [Jet(x) for x in forces]

    return _spatial(tree, states, force)


def _spatial(
    tree: LinkTree,
    states: Sequence[Sequence[Scalar]],
    force: Callable[[Link, list[list[Scalar]], list[Scalar], Vector, Vector], tuple[Vector, Vector]],
) -> list[list[Scalar]]:
    orders = len(states) - 2
    bodies: list[tuple[list[list[Scalar]], list[Scalar], Vector, Vector]] = []
    screws: list[tuple[Vector, Vector]] = []
    totals: list[tuple[Vector, Vector]] = []
    for i, link in enumerate(tree.links):
        q = Jet([state[i] for state in states])
        if link.parent >= 0:
            R, p, w, v = bodies[link.parent]
        else:
            R, p = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [0.0, 0.0, 0.0]
            w, v = _base(tree, orders)
        p = add(p, rotated(R, link.translation.tolist()))
        R = [rotated(link.rotation.T.tolist(), row) for row in R]
        z = [row[2] for row in R]
        p = add(p, times(_shift(link, q)[0], z))
        if link.turns:
            s, c = shifted_sincos(q[0], link.angle)
            R = [[c * x + s * y, c * y - s * x, z] for x, y, z in R]
        screw = _screw(link, z, p, w, v, orders)
        w, v = ([a + b * q.rate for a, b in zip(part, Y, strict=True)] for part, Y in zip((w, v), screw, strict=True))
        bodies.append((R, p, w, v))
        screws.append(screw)
        totals.append(force(link, R, p, w, v))
    efforts: list[Jet] = []
    for i in reversed(range(len(tree.links))):
        products = [Y * F for half in zip(screws[i], totals[i], strict=True) for Y, F in zip(*half, strict=True)]
        total = products[0]
        for product in products[1:]:
            total = total + product
        efforts.insert(0, total)
        parent = tree.links[i].parent
        if parent >= 0:
            totals[parent] = (add(totals[parent][0], totals[i][0]), add(totals[parent][1], totals[i][1]))
    return [[effort[k] for effort in efforts] for k in range(orders)]


def _screw(link: Link, z: list[Scalar], p: list[Scalar], w: Vector, v: Vector, orders: int) -> tuple[Vector, Vector]:
    """Jet of Y by dY/dt = ad_V Y, with the parent's twist, since that of the joint adds nothing."""
    angular = [[x] for x in z] if link.turns else [[0.0], [0.0], [0.0]]
    start = add(_crossed(p, z), times(link.pitch, z)) if link.turns else z
    linear = [[x] for x in start]
    for k in range(orders):
        a, b = [Jet(x) for x in angular], [Jet(x) for x in linear]
        turning, shifting = _crossed(w, a), add(_crossed(v, a), _crossed(w, b))
        for axis in range(3):
            angular[axis].append(turning[axis][k])
            linear[axis].append(shifting[axis][k])
    return [Jet(x) for x in angular], [Jet(x) for x in linear]


def _moments_in_base(
    link: Link, R: list[list[Scalar]], p: list[Scalar]
) -> tuple[list[list[Scalar]], dict[tuple[int, int], list[Scalar]]]:
    """First and second moment of a body in the base frame, about its origin."""
    turned = rotated(R, link.first_moment.tolist())
    RZ = [rotated(link.second_moment.tolist(), row) for row in R]
    second = {}
    for a in range(3):
        for b in range(a, 3):
            entry = RZ[a][0] * R[b][0] + RZ[a][1] * R[b][1] + RZ[a][2] * R[b][2]
            entry = entry + p[a] * turned[b] + turned[a] * p[b]
            second[a, b] = [entry + link.mass * (p[a] * p[b])]
    return [[c + link.mass * x] for c, x in zip(turned, p, strict=True)], second


def _entry(w: Vector, v: Vector, Z: dict[tuple[int, int], list[Scalar]], c: Vector, a: int, b: int, k: int) -> Scalar:
    """Entry (a, b) of the k-th derivative of W Z + v c', half of the rate of the second moment."""
    x, y = (a + 1) % 3, (a + 2) % 3
    row = [Jet(Z[min(i, b), max(i, b)]) for i in (y, x)]
    return (w[x] * row[0] - w[y] * row[1] + v[a] * c[b])[k]


def _momentum(link: Link, w: Vector, v: Vector) -> tuple[Vector, Vector]:
    """Angular momentum about the origin of the body's frame, and linear momentum."""
    c = link.first_moment.tolist()
    (Zxx, Zxy, Zxz), (_, Zyy, Zyz), (_, _, Zzz) = link.second_moment.tolist()
    inertia = [[Zyy + Zzz, -Zxy, -Zxz], [-Zxy, Zxx + Zzz, -Zyz], [-Zxz, -Zyz, Zxx + Zyy]]
    return add(rotated(inertia, w), cross(c, v)), _difference(times(link.mass, v), cross(c, w))


def _momentum_rate(twist: tuple[Vector, Vector], momentum: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
    """dh/dt - ad' h: moment and force, or their derivatives, in a body-fixed frame."""
    (w, v), (angular, linear) = twist, momentum
    return (
        add([x.rate for x in angular], add(_crossed(w, angular), _crossed(v, linear))),
        add([x.rate for x in linear], _crossed(w, linear)),
    )


def _base(tree: LinkTree, orders: int) -> tuple[Vector, Vector]:
    still = [Jet.constant(0.0, orders + 1) for _ in range(3)]
    return still, [Jet([0.0, -g] + [0.0] * (orders - 1)) for g in tree.gravity.tolist()]


def _shift(link: Link, q: Jet) -> Jet:
    return link.pitch * q + Jet.constant(link.offset, len(q))


def _crossed(a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _difference(a: Vector, b: Vector) -> Vector:
    return [x - y for x, y in zip(a, b, strict=True)]
