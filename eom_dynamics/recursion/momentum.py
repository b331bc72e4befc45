# SPDX-License-Identifier: Apache-2.0
"""Momenta of the joint variables, and the efforts that change them, in O(n) without accelerations.

Let (N, f) be the momentum of a link and all links beyond it, in its frame and about its origin. The momentum of its
joint is the component along the joint's twist S. A joint moves these links as one body, so that the kinetic energy
changes with its position by (V x S)' (N, f) for the link's twist V. The momenta change by tau - Q_grav + dT/dq.
"""

from __future__ import annotations

from collections.abc import Sequence

from .composite import Composite, Step, along
from .links import LinkTree
from .scalars import Numbers, Scalar, cross, plus


def momentum_balance(tree: LinkTree, q: Sequence[Scalar], qd: Sequence[Scalar]) -> tuple[Numbers, Numbers]:
    """Momenta M qd, and Q_grav - dT/dq of inertia only, without friction and passive efforts; (n) each."""
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
