# SPDX-License-Identifier: Apache-2.0
"""Reproducible random chains."""

from __future__ import annotations

import numpy as np

from eom_dynamics import Joint, Robot, lie
from eom_dynamics.robot.inertia import steiner


def chain(n: int) -> Robot:
    """``n`` revolute joints about axes in all directions, with bodies of the size of an arm's."""
    rng = np.random.default_rng(20210721)
    return Robot(f"chain of {n}", tuple(_joint(rng, i) for i in range(n)))


def _joint(rng: np.random.Generator, index: int) -> Joint:
    axis = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    pose = lie.pose(_rotation(rng), rng.uniform(-0.3, 0.3, 3) if index else np.zeros(3))
    mass, center = rng.uniform(0.5, 3.0), rng.uniform(-0.1, 0.1, 3)
    principal = _rotation(rng)
    about_center = principal @ np.diag(rng.uniform(0.01, 0.02, 3)) @ principal.T
    inertia = about_center + steiner(mass, center)
    return Joint(f"joint_{index + 1}", axis, pose, index - 1, mass, center, inertia)


def _rotation(rng: np.random.Generator) -> np.ndarray:
    a, b, c, d = (lambda v: v / np.linalg.norm(v))(rng.standard_normal(4))
    return np.array(
        [
            [1 - 2 * (c * c + d * d), 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), 1 - 2 * (b * b + d * d), 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), 1 - 2 * (b * b + c * c)],
        ]
    )
