# SPDX-License-Identifier: Apache-2.0
"""Recursive Newton-Euler algorithm with time derivatives of any order.

Quantities are jets in the frame of their link; the states determine the order. With the angular velocity w of a link
and the classical acceleration p of its origin, the acceleration of a point r of the link is

    p + U r,    U = [dw/dt] + [w]²,    [w] v = w x v.

This U is not the U of :mod:`eom_dynamics.equations`.

A link of mass m with first moment c and second moment Z therefore requires the force m p + U c and, about its origin,
the moment c x p + the axial vector of U Z. The velocity of the origin does not occur. Derivatives follow from Leibniz'
rule, as do equations (35)-(60) of A. Müller and S. Kumar, "Closed form time derivatives of the equations of motion of
rigid body systems", Multibody System Dynamics 53 (2021), but at a cost of O(n). Gravity is an acceleration -g of the
base: constant for a fixed base, and rotating in the frame of a rotating base, :func:`specific_force`.

The joint axis is the z axis of its link: the effort is the z component of the moment, or of the force at a
prismatic joint. Joint friction, constant efforts, parallel springs and rotor inertia add to it where the tree has them.

Scalars may be of any type with + - * and a sine and cosine: floats, NumPy arrays, SymPy or CasADi symbols, or the
expressions of :mod:`eom_dynamics.codegen`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from ..jet import Jet
from .links import Link, LinkTree
from .passive_efforts import passive_efforts
from .scalars import Angle, Numbers, Scalar, Vector, cross, leibniz_sum, plus, product, shifted_sincos


def inverse_dynamics(
    tree: LinkTree, states: Sequence[Sequence[Scalar]], wrench: Sequence[Sequence[Scalar]] = ()
) -> list[list[Scalar]]:
    """Joint efforts and their time derivatives.

    Args:
        tree: links of the robot; bodies of a joint are one link.
        states: q, qd, qdd, …, at least these three; one scalar for each joint variable.
        wrench: W, Wd, …, the wrenches that the robot exerts on its surroundings at its tools and their time
            derivatives; six scalars for each tool, moment first, in the tool's frame. Omitted derivatives are zero.

    Returns:
        tau, taud, …, a vector for each state from qdd on; one scalar for each joint variable.
    """
    orders = len(states) - 2
    return outward_and_inward_pass(tree, states, wrench, fixed_base(tree, orders)).efforts


def inverse_dynamics_on_base(
    tree: LinkTree,
    states: Sequence[Sequence[Scalar]],
    angular_velocity: Vector,
    acceleration: Vector,
    wrench: Sequence[Sequence[Scalar]] = (),
) -> tuple[list[list[Scalar]], list[list[Scalar]]]:
    """Joint efforts on a moving base, and the wrench on the base, with their time derivatives.

    Args:
        tree, states, wrench: as for :func:`inverse_dynamics`; the gravity of the tree has no effect.
        angular_velocity: angular velocity w of the base in its frame, a jet one order higher than the results.
        acceleration: specific force at the base origin in the base frame, as measured by an accelerometer: classical
            acceleration minus gravity, see :func:`specific_force`.

    Returns:
        tau, taud, …, as :func:`inverse_dynamics`; and F, Fd, …, the wrench (moment; force) that moves base and robot,
        in the base frame and about its origin.
    """
    motion = moving_base(angular_velocity, acceleration)
    done = outward_and_inward_pass(tree, states, wrench, motion, reaction=True)
    force, moment = done.forces[-1], done.moments[-1]
    h, p = tree.base.first_moment.tolist(), motion.p
    force = plus(force, plus([tree.base.mass * x for x in p], motion.U.times(h)))
    moment = plus(moment, plus(motion.U.axial(tree.base.second_moment), cross(h, p)))
    orders = len(states) - 2
    return done.efforts, [[x[k] for x in (*moment, *force)] for k in range(orders)]


def specific_force(w: Vector, v: Vector, gravity: Sequence[Scalar]) -> Vector:
    """Specific force: acceleration of a moving base's origin minus gravity, in its frame: p = dv/dt + w x v - R' g.

    Args:
        w, v: body-fixed twist of the base, jets.
        gravity: R' g (3), present gravitational acceleration in the base frame, where it rotates with -w.

    Returns:
        p, one order lower than the twist.
    """
    rates: list[Numbers] = [list(level) for level in zip(*w, strict=True)]
    levels: list[Numbers] = [list(gravity)]  # dg/dt = g x w
    for k in range(len(rates) - 2):
        levels.append(leibniz_sum(levels, rates, k, cross))
    turned = [Jet(column) for column in zip(*levels, strict=True)]
    transport = cross(w, v)
    return [v[i].rate + transport[i] - turned[i] for i in range(3)]


def outward_and_inward_pass(
    tree: LinkTree,
    states: Sequence[Sequence[Scalar]],
    wrench: Sequence[Sequence[Scalar]],
    base: LinkMotion,
    *,
    reaction: bool = False,
) -> Passes:
    """Outward and inward pass; force and moment of the base only with ``reaction``."""
    orders = len(states) - 2
    motions: list[LinkMotion] = []
    forces, moments = [], []
    for link in tree.links:
        q = link.displacement(states)
        parent = motions[link.parent] if link.parent >= 0 else base
        motion = _outward(link, q, parent)
        motions.append(motion)
        # Here rather than in the inward pass, so that compiled code stores fewer values between the passes.
        first_moment = link.first_moment.tolist()
        forces.append(plus([link.mass * x for x in motion.p], motion.U.times(first_moment)))
        moments.append(plus(motion.U.axial(link.second_moment), cross(first_moment, motion.p)))
    zero = [Jet.constant(0.0, orders) for _ in range(3)]
    forces.append(zero)  # the base, which has the parent index -1
    moments.append(zero)
    for k, (i, pose) in enumerate(tree.tools if len(wrench) else ()):
        moment, force = _at_tool(pose, [row[6 * k : 6 * k + 6] for row in wrench], orders)
        moments[i], forces[i] = plus(moments[i], moment), plus(forces[i], force)

    friction_efforts = tree.joint_friction(states[1 : orders + 1])
    passive = passive_efforts(tree.passive, tree.n, states[:orders])
    efforts = [x + y for x, y in zip(friction_efforts, passive, strict=True)]
    for i, inertia in enumerate(tree.rotors):
        efforts[i] = efforts[i] + inertia * Jet([state[i] for state in states[2:]])
    for i in reversed(range(len(tree.links))):
        link, motion, force, moment = tree.links[i], motions[i], forces[i], moments[i]
        effort = moment[2] + link.pitch * force[2] if link.turns else force[2]
        efforts[link.coordinate] = efforts[link.coordinate] + link.ratio * effort
        if link.parent >= 0 or reaction:
            to_parent = _inward(link, motion, force, moment)
            forces[link.parent] = plus(forces[link.parent], to_parent[0])
            moments[link.parent] = plus(moments[link.parent], to_parent[1])
    rows = [[effort[k] for effort in efforts] for k in range(orders)]
    return Passes(rows, motions, forces, moments)


@dataclass(frozen=True)
class LinkMotion:
    """Motion of a link, in its frame.

    Attributes:
        w: angular velocity, rad/s.
        p: classical acceleration of its origin, minus gravity, m/s².
        U: matrix of accelerations, 1/s².
        angle, shift: rotation about and translation along the z axis, the joint axis, rad and m.
    """

    w: Vector
    p: Vector
    U: AccelerationMatrix
    angle: Angle | None
    shift: Jet


class AccelerationMatrix:
    """U = skew(dw/dt) + skew(w)².

    U_xy = w_x w_y - dw_z/dt, U_yx = w_x w_y + dw_z/dt, U_xx = -(w_y² + w_z²).
    """

    def __init__(self, w: Vector) -> None:
        x, y, z = w
        self.squares = [_square(x), _square(y), _square(z)]
        xy, xz, yz = x * y, x * z, y * z
        self.xy, self.yx = xy - z.rate, xy + z.rate
        self.xz, self.zx = xz + y.rate, xz - y.rate
        self.yz, self.zy = yz - x.rate, yz + x.rate

    def times(self, r: Sequence[float]) -> Vector:
        """U r for a constant vector r."""
        xx, yy, zz = self.squares
        return [
            self.xy * r[1] + self.xz * r[2] - (yy + zz) * r[0],
            self.yx * r[0] + self.yz * r[2] - (xx + zz) * r[1],
            self.zx * r[0] + self.zy * r[1] - (xx + yy) * r[2],
        ]

    def times_z(self, length: Jet) -> Vector:
        """U (0, 0, length)."""
        xx, yy, _ = self.squares
        return [self.xz * length, self.yz * length, -((xx + yy) * length)]

    def axial(self, second_moment: Any) -> Vector:
        """Integral of r x U r dm for a second moment Z = integral of r r' dm (3, 3)."""
        (Zxx, Zxy, Zxz), (_, Zyy, Zyz), (_, _, Zzz) = second_moment.tolist()
        xx, yy, zz = self.squares
        return [
            self.zx * Zxy + self.zy * Zyy - self.yx * Zxz - self.yz * Zzz + (zz - yy) * Zyz,
            self.xy * Zyz + self.xz * Zzz - self.zx * Zxx - self.zy * Zxy + (xx - zz) * Zxz,
            self.yx * Zxx + self.yz * Zxz - self.xy * Zyy - self.xz * Zyz + (yy - xx) * Zxy,
        ]


@dataclass(frozen=True)
class Passes:
    """Results of the outward and the inward pass.

    Attributes:
        efforts: tau, taud, …, one scalar for each joint variable.
        motions: motions of the links.
        forces, moments: force and moment required by each link with all links beyond it, in its frame and about its
            origin; the base is the last.
    """

    efforts: list[list[Scalar]]
    motions: list[LinkMotion]
    forces: list[Vector]
    moments: list[Vector]


def fixed_base(tree: LinkTree, orders: int) -> LinkMotion:
    """Motion of a base at rest in gravity."""
    return moving_base(
        [Jet.constant(0.0, orders + 1) for _ in range(3)], [Jet.constant(-g, orders) for g in tree.gravity.tolist()]
    )


def moving_base(w: Vector, p: Vector) -> LinkMotion:
    """Motion of a base with an angular velocity and a specific force; see :func:`inverse_dynamics_on_base`."""
    return LinkMotion(w=w, p=p, U=AccelerationMatrix(w), angle=None, shift=Jet.constant(0.0, len(p[0])))


def _outward(link: Link, q: Jet, parent: LinkMotion) -> LinkMotion:
    into = link.rotation.T.tolist()
    w = product(into, parent.w)
    p = product(into, plus(parent.p, parent.U.times(link.translation.tolist())))
    angle = None
    if link.turns:
        angle = Angle(*shifted_sincos(q[0], link.angle), q.rate)
        w, p = angle.turned(w), angle.turned(p)
        w = [w[0], w[1], w[2] + q.rate]
    U = AccelerationMatrix(w)
    shift = link.pitch * q + Jet.constant(link.offset, len(q))
    x, y, z = U.times_z(shift)
    twice = 2.0 * shift.rate
    p = plus(p, [x + w[1] * twice, y - w[0] * twice, z + shift.rate.rate])
    return LinkMotion(w=w, p=p, U=U, angle=angle, shift=shift)


def _inward(link: Link, motion: LinkMotion, force: Vector, moment: Vector) -> tuple[Vector, Vector]:
    moment = [moment[0] - motion.shift * force[1], moment[1] + motion.shift * force[0], moment[2]]
    if motion.angle is not None:
        back = motion.angle.back()
        force, moment = back.turned(force), back.turned(moment)
    out = link.rotation.tolist()
    force, moment = product(out, force), product(out, moment)
    return force, plus(moment, cross(link.translation.tolist(), force))


def _at_tool(pose: Any, wrench: Sequence[Sequence[Scalar]], orders: int) -> tuple[Vector, Vector]:
    """Moment and force of the wrench at a tool, in its link's frame and about the link's origin."""
    rows = list(wrench)[:orders] + [[0.0] * 6] * (orders - len(wrench))
    components = [Jet([row[i] for row in rows]) for i in range(6)]
    R, r = pose[:3, :3].tolist(), pose[:3, 3].tolist()
    moment, force = product(R, components[:3]), product(R, components[3:])
    return plus(moment, cross(r, force)), force


def _square(x: Jet) -> Jet:
    """x², with each product of two different derivatives computed once."""
    derivatives: list[Scalar] = []
    for k in range(len(x)):
        total: Scalar = 0.0
        for j in range((k + 1) // 2):
            total = total + comb(k, j) * (x[j] * x[k - j])
        total = 2.0 * total
        if k % 2 == 0:
            total = total + comb(k, k // 2) * (x[k // 2] * x[k // 2])
        derivatives.append(total)
    return Jet(derivatives)
