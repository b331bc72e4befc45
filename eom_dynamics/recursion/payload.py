# SPDX-License-Identifier: Apache-2.0
"""Links that carry payloads whose inertial parameters are scalars or jets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .links import LinkTree, Moments, with_moments
from .regressor import PARAMETERS
from .scalars import Scalar


def carrying(tree: LinkTree, payload: Sequence[Scalar]) -> LinkTree:
    """The tree with a rigid body fixed to each tool.

    Efforts are linear in its parameters; jets of these carry their rates into the time derivatives of the efforts.

    Args:
        tree: links of the robot.
        payload: for each tool mass, first moment (x, y, z) and inertia (xx, xy, xz, yy, yz, zz) of the body about the
            origin of the tool's frame and along its axes; kg, kg m, kg m².
    """
    links, base = list(tree.links), tree.base
    for k, (i, pose) in enumerate(tree.tools):
        load = _at_link(pose, payload[PARAMETERS * k : PARAMETERS * (k + 1)])
        if i >= 0:
            links[i] = with_moments(links[i], load)
        else:
            base = with_moments(base, load)
    return replace(tree, links=tuple(links), base=base)


def _at_link(pose: Any, parameters: Sequence[Scalar]) -> Moments:
    """Moments in the frame of the link and about its origin.

    By the pseudo-inertia [[Z, h], [h', m]] of P. M. Wensing, S. Kim and J.-J. E. Slotine, "Linear matrix inequalities
    for physically consistent inertial parameter identification", IEEE Robot. Autom. Lett. 3 (2018), which a pose T
    moves as T P T'.
    """
    m, x, y, z, xx, xy, xz, yy, yz, zz = parameters
    a, b, c = 0.5 * (yy + zz - xx), 0.5 * (xx + zz - yy), 0.5 * (xx + yy - zz)
    pseudo_inertia = np.empty((4, 4), dtype=object)
    for i, row in enumerate(((a, -xy, -xz, x), (-xy, b, -yz, y), (-xz, -yz, c, z), (x, y, z, m))):
        for j, entry in enumerate(row):
            pseudo_inertia[i, j] = entry
    moved = pose @ pseudo_inertia @ pose.T
    # The same expressions on both sides of the diagonal.
    for i in range(4):
        for j in range(i):
            moved[i, j] = moved[j, i]
    return Moments(moved[3, 3], moved[:3, 3], moved[:3, :3])
