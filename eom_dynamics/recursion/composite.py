# SPDX-License-Identifier: Apache-2.0
"""Composite-body algorithms: mass and Coriolis matrix on a moving base, in O(n d) for a tree of depth d; momenta.

With nu = (V0, qd), the body-fixed twist of the base and the joint rates, the inertial velocity of a mass point is
J_r nu. Summed over all points,

    M = sum of J_r' J_r dm,    C = sum of J_r' dJ_r/dt dm,

so that C nu are the Coriolis and centrifugal efforts, C is linear in nu, and dM/dt - 2 C is skew-symmetric. For joint
variables only, C is the matrix of Christoffel symbols. Column j depends only on the points beyond joint j. They are a
composite body with mass m, first moment h and second moment Z in the frame of link j. The joints beyond change the
body, so that the rates of the moments are also needed:

    h = sum of r dm,    Z = sum of r r' dm,    dh/dt,    Y = sum of r (dr/dt)' dm.

For the mass matrix this is the composite-rigid-body algorithm of R. Featherstone, "Rigid Body Dynamics Algorithms"
(2008), table 6.2. The Coriolis matrix is due to S. Echeandia and P. M. Wensing, "Numerical methods to compute the
Coriolis matrix and Christoffel symbols for rigid-body systems", ASME J. Comput. Nonlinear Dyn. 16 (2021). Scalars may
be of any type, as in :mod:`.newton_euler`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .links import Link, LinkTree, Moments
from .scalars import Matrix, Numbers, Scalar, cross, plus, product, shifted_sincos, transposed, transposed_product

BASE = 6
"""Leading rows, of the base twist."""


def of_joints(matrix: Matrix) -> Matrix:
    """Rows and columns of the joint variables."""
    return [row[BASE:] for row in matrix[BASE:]]


def composite_mass_matrix(tree: LinkTree, q: Sequence[Scalar]) -> Matrix:
    """Mass matrix (6 + n rows and columns) of the base twist and the joint rates."""
    still = [0.0] * tree.n
    steps = [Step.of(link, q, still) for link in tree.links]
    bodies = composites(tree, steps, rates=False)
    M = _empty(tree)
    for j, link in enumerate(tree.links):
        force, row = bodies[j].force(*axis_of(link)), BASE + link.coordinate
        i = j
        while i >= 0:
            other = tree.links[i]
            column = BASE + other.coordinate
            entry = link.ratio * other.ratio * along(other, force)
            M[row][column] = M[row][column] + entry
            if i != j:
                M[column][row] = M[column][row] + entry
            force = steps[i].force_out(force)
            i = other.parent
        for k, entry in enumerate(force):
            M[row][k] = M[k][row] = M[row][k] + link.ratio * entry
    for i, inertia in enumerate(tree.rotors, start=BASE):
        M[i][i] = M[i][i] + inertia
    base = bodies[-1]
    for k in range(BASE):
        unit = [float(i == k) for i in range(BASE)]
        for i, entry in enumerate(base.force(unit[:3], unit[3:])):
            M[i][k] = entry
    return M


def composite_inertias(tree: LinkTree, q: Sequence[Scalar]) -> Numbers:
    """Diagonal of the mass matrix of the joint rates, in O(n) for a tree without mimic joints; q as above."""
    steps = [Step.of(link, q, [0.0] * tree.n) for link in tree.links]
    bodies, followed = composites(tree, steps, rates=False), Counter(link.coordinate for link in tree.links)
    diagonal = [0.0] * tree.n
    for j, link in enumerate(tree.links):
        force, i = bodies[j].force(*axis_of(link)), j
        diagonal[link.coordinate] += link.ratio * link.ratio * along(link, force)
        while followed[link.coordinate] > 1 and tree.links[i].parent >= 0:
            force, i = steps[i].force_out(force), tree.links[i].parent
            if (other := tree.links[i]).coordinate == link.coordinate:
                diagonal[link.coordinate] += 2 * link.ratio * other.ratio * along(other, force)
    return plus(diagonal, tree.rotors) if tree.rotors else diagonal


def composite_coriolis_matrix(tree: LinkTree, q: Sequence[Scalar], qd: Sequence[Scalar], w: Sequence[Scalar]) -> Matrix:
    """Coriolis matrix (6 + n rows and columns) of the base twist and the joint rates.

    Args:
        w: angular velocity (3) of the base in its frame. C does not depend on the base's linear velocity.
    """
    steps = [Step.of(link, q, qd) for link in tree.links]
    turning: list[Numbers] = []
    for link, step in zip(tree.links, steps, strict=True):
        before = turning[link.parent] if link.parent >= 0 else list(w)
        x, y, z = step.into(before)
        turning.append([x, y, z + step.turn_rate])
    turning.append(list(w))
    bodies = composites(tree, steps, rates=True)
    C = _empty(tree)
    for j, link in enumerate(tree.links):
        axis, row = axis_of(link), BASE + link.coordinate
        force = bodies[j].force_of_rates(*axis, turning[j])
        momentum = bodies[j].force(*axis)
        transposed = bodies[j].transposed_rates(*axis, turning[j])
        i = j
        while i >= 0:
            other = tree.links[i]
            column, factor = BASE + other.coordinate, link.ratio * other.ratio
            C[column][row] = C[column][row] + factor * along(other, force)
            if i != j:
                C[row][column] = C[row][column] + factor * along(other, transposed)
            transposed = steps[i].force_out(steps[i].moving(transposed, momentum))
            momentum, force = steps[i].force_out(momentum), steps[i].force_out(force)
            i = other.parent
        for k in range(BASE):
            C[k][row] = C[k][row] + link.ratio * force[k]
            C[row][k] = C[row][k] + link.ratio * transposed[k]
    for k in range(BASE):
        unit = [float(i == k) for i in range(BASE)]
        for i, entry in enumerate(bodies[-1].force_of_rates(unit[:3], unit[3:], list(w))):
            C[i][k] = entry
    return C


@dataclass
class Composite:
    """Composite body: a link (the base is the last) with all links beyond it, in its frame.

    Attributes:
        mass: m.
        h: first moment (3); dh: its rate.
        Z: second moment (3, 3).
        Y: sum of r (dr/dt)' dm (3, 3).
    """

    mass: float
    h: Numbers
    Z: Matrix
    dh: Numbers
    Y: Matrix

    @classmethod
    def of(cls, body: Link | Moments) -> Composite:
        """Composite body of a single body."""
        h, Z = body.first_moment.tolist(), body.second_moment.tolist()
        return cls(body.mass, h, Z, [0.0] * 3, [[0.0] * 3 for _ in range(3)])

    def force(self, w: Sequence[Scalar], v: Sequence[Scalar]) -> Numbers:
        """Moment and force for a rate (w, v) of the twist: accelerations v + w x r of the points."""
        trace = self.Z[0][0] + self.Z[1][1] + self.Z[2][2]
        spin = [trace * x - y for x, y in zip(w, product(self.Z, w), strict=True)]
        moment = plus(spin, cross(self.h, v))
        return [*moment, *plus([self.mass * x for x in v], cross(w, self.h))]

    def force_of_rates(self, w: Sequence[Scalar], v: Sequence[Scalar], turning: Numbers) -> Numbers:
        """Moment and force for a constant twist (w, v) of a rotating frame.

        The acceleration of the points is turning x (v + w x r) + w x dr/dt.
        """
        steady = cross(turning, v)
        swept = cross(product(self.Z, turning), w)  # sum of r x (turning x (w x r))
        trace = self.Y[0][0] + self.Y[1][1] + self.Y[2][2]
        changed = [trace * x - y for x, y in zip(w, transposed_product(self.Y, w), strict=True)]
        moment = plus(plus(swept, changed), cross(self.h, steady))
        inner = plus([self.mass * x for x in steady], cross(turning, cross(w, self.h)))
        return [*moment, *plus(inner, cross(w, self.dh))]

    def transposed_rates(self, moment: Sequence[Scalar], force: Sequence[Scalar], turning: Numbers) -> Numbers:
        """Transpose of the matrix of :meth:`force_of_rates` times a vector."""
        swept = cross(moment, product(self.Z, turning))
        trace = self.Y[0][0] + self.Y[1][1] + self.Y[2][2]
        changed = [trace * x - y for x, y in zip(moment, product(self.Y, moment), strict=True)]
        across = cross(self.h, cross(force, turning))
        upper = plus(plus(swept, changed), plus(across, cross(self.dh, force)))
        lower = cross(turning, cross(self.h, moment))
        return [*upper, *plus(lower, [self.mass * x for x in cross(force, turning)])]


@dataclass(frozen=True)
class Step:
    """Transform from a link's parent to the link: a constant transform, then the joint motion along and about z.

    Attributes:
        rotation: constant rotation (3 x 3); translation: (3), in the parent's frame.
        sine, cosine: sine and cosine of the joint angle; None for a prismatic joint.
        shift: displacement along z, m.
        turn_rate, shift_rate: rates of angle and shift.
    """

    rotation: list[list[float]]
    translation: list[float]
    sine: Scalar | None
    cosine: Scalar | None
    shift: Scalar
    turn_rate: Scalar
    shift_rate: Scalar

    @classmethod
    def of(cls, link: Link, q: Sequence[Scalar], qd: Sequence[Scalar]) -> Step:
        """Step to a link at joint variables q with rates qd."""
        x, rate = link.displacement([q, qd])
        sine, cosine = shifted_sincos(x, link.angle) if link.turns else (None, None)
        return cls(
            link.rotation.tolist(),
            link.translation.tolist(),
            sine,
            cosine,
            link.pitch * x + link.offset,
            rate if link.turns else 0.0,
            link.pitch * rate,
        )

    def out(self, vector: Sequence[Scalar]) -> Numbers:
        """Rotate a vector of the link into the frame of its parent."""
        x, y, z = vector
        if self.sine is not None:
            x, y = self.cosine * x - self.sine * y, self.sine * x + self.cosine * y
        return product(self.rotation, [x, y, z])

    def into(self, vector: Sequence[Scalar]) -> Numbers:
        """Rotate a vector of the parent into the frame of the link."""
        x, y, z = transposed_product(self.rotation, vector)
        if self.sine is not None:
            x, y = self.cosine * x + self.sine * y, self.cosine * y - self.sine * x
        return [x, y, z]

    def matrix_out(self, matrix: Matrix) -> Matrix:
        """R A R' for a matrix of the link."""
        columns = [self.out(row) for row in matrix]  # rows of A R', that is, columns of R A'
        return transposed([self.out(column) for column in transposed(columns)])

    def force_out(self, wrench: Numbers) -> Numbers:
        """Moment and force in the frame of the parent and about its origin."""
        (x, y, z), force = wrench[:3], wrench[3:]
        moment = self.out([x - self.shift * force[1], y + self.shift * force[0], z])
        force = self.out(force)
        return [*plus(moment, cross(self.translation, force)), *force]

    def moving(self, rates: Numbers, wrench: Numbers) -> Numbers:
        """Add the effect of the joint's motion on a wrench: w x moment + v x force, w x force."""
        nx, ny, _, fx, fy, _ = wrench
        w, v = self.turn_rate, self.shift_rate
        extra = [-(w * ny) - v * fy, w * nx + v * fx, 0.0, -(w * fy), w * fx, 0.0]
        return plus(rates, extra)


def composites(tree: LinkTree, steps: Sequence[Step], *, rates: bool) -> list[Composite]:
    """Composite bodies of all links; the last is the composite body of the base."""
    bodies = [*map(Composite.of, tree.links), Composite.of(tree.base)]
    for i in reversed(range(len(tree.links))):
        at = tree.links[i].parent
        a, b = bodies[at], _moved_out(bodies[i], steps[i], rates=rates)
        bodies[at] = Composite(a.mass + b.mass, plus(a.h, b.h), _sum(a.Z, b.Z), plus(a.dh, b.dh), _sum(a.Y, b.Y))
    return bodies


def _moved_out(body: Composite, step: Step, *, rates: bool) -> Composite:
    """Composite body in the frame of its link's parent."""
    m, d = body.mass, step.shift
    # Shift along z by the joint, rotate with the link, then shift by the constant translation.
    h = [body.h[0], body.h[1], body.h[2] + m * d]
    Z = _symmetric(_sum(body.Z, _shifted(body.h, [0.0, 0.0, d], m)))
    dh, Y = body.dh, body.Y
    if rates:
        w, v = step.turn_rate, step.shift_rate
        # dr/dt + v z + w z x r
        Y = [[*Y[0]], [*Y[1]], [y + d * x for y, x in zip(Y[2], dh, strict=True)]]
        Y = [[y[0] - w * z[1], y[1] + w * z[0], y[2] + v * x] for y, z, x in zip(Y, Z, h, strict=True)]
        dh = [dh[0] - w * h[1], dh[1] + w * h[0], dh[2] + m * v]
    h, Z = step.out(h), _symmetric(step.matrix_out(Z))
    t = step.translation
    if rates:
        dh, Y = step.out(dh), step.matrix_out(Y)
        Y = _sum(Y, [[x * y for y in dh] for x in t])
    Z = _symmetric(_sum(Z, _shifted(h, t, m)))
    return Composite(m, plus(h, [m * x for x in t]), Z, dh, Y)


def _shifted(h: Sequence[Scalar], t: Sequence[Scalar], m: float) -> Matrix:
    return [[h[i] * t[j] + t[i] * h[j] + m * (t[i] * t[j]) for j in range(3)] for i in range(3)]


def axis_of(link: Link) -> tuple[list[float], list[float]]:
    """Twist of a unit rate of the joint."""
    return [0.0, 0.0, 1.0 if link.turns else 0.0], [0.0, 0.0, link.pitch]


def along(link: Link, wrench: Numbers) -> Scalar:
    """Joint effort of a wrench."""
    return wrench[2] + link.pitch * wrench[5] if link.turns else wrench[5]


def _empty(tree: LinkTree) -> Matrix:
    return [[0.0] * (BASE + tree.n) for _ in range(BASE + tree.n)]


def _sum(a: Matrix, b: Matrix) -> Matrix:
    return [plus(x, y) for x, y in zip(a, b, strict=True)]


def _symmetric(matrix: Matrix) -> Matrix:
    """Matrix with its upper half in both halves, so that equal entries are the same expression."""
    return [[matrix[min(i, j)][max(i, j)] for j in range(3)] for i in range(3)]


def momentum_balance(tree: LinkTree, q: Sequence[Scalar], qd: Sequence[Scalar]) -> tuple[Numbers, Numbers]:
    """Momenta M qd, and Q_grav - dT/dq of inertia only, without friction and passive efforts; (n) each, in O(n).

    Let (N, f) be the momentum of a link and all links beyond it, in its frame and about its origin. The momentum of its
    joint is the component along the joint's twist S. A joint moves these links as one body, so that the kinetic energy
    changes with its position by (V x S)' (N, f) for the link's twist V. The momenta change by tau - Q_grav + dT/dq.
    """
    steps = [Step.of(link, q, qd) for link in tree.links]
    still: Numbers = [0.0] * 3
    at_base = still, still, [-g for g in tree.gravity.tolist()]
    motions: list[tuple[Numbers, Numbers, Numbers]] = []  # w, v of the origin, and gravity upwards
    for link, step in zip(tree.links, steps, strict=True):
        w, v, a = motions[link.parent] if link.parent >= 0 else at_base
        x, y, z = step.into(w)
        along_x, along_y, along_z = step.into(plus(v, cross(w, step.translation)))
        v = [along_x + y * step.shift, along_y - x * step.shift, along_z + step.shift_rate]
        motions.append(([x, y, z + step.turn_rate], v, step.into(a)))
    bodies = [Composite.of(link) for link in tree.links]
    momenta = [body.force(w, v) for body, (w, v, _) in zip(bodies, motions, strict=True)]
    masses, moments = [body.mass for body in bodies], [body.h for body in bodies]
    p = [inertia * rate for inertia, rate in zip(tree.rotors or [0.0] * tree.n, qd, strict=True)]
    beta: Numbers = [0.0] * tree.n
    for i in reversed(range(len(tree.links))):
        link, step, (w, v, a) = tree.links[i], steps[i], motions[i]
        N, f, h, m = momenta[i][:3], momenta[i][3:], moments[i], masses[i]
        weight = m * a[2] if not link.turns else h[0] * a[1] - h[1] * a[0] + link.pitch * (m * a[2])
        turning = w[1] * f[0] - w[0] * f[1]
        if link.turns:
            turning = w[1] * N[0] - w[0] * N[1] + v[1] * f[0] - v[0] * f[1] + link.pitch * turning
        k = link.coordinate
        p[k] = p[k] + link.ratio * along(link, momenta[i])
        beta[k] = beta[k] + link.ratio * (weight - turning)
        if link.parent >= 0:
            h = step.out([h[0], h[1], h[2] + m * step.shift])
            moments[link.parent] = plus(moments[link.parent], plus(h, [m * x for x in step.translation]))
            masses[link.parent] = masses[link.parent] + m
            momenta[link.parent] = plus(momenta[link.parent], step.force_out(momenta[i]))
    return p, beta
