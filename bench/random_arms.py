# SPDX-License-Identifier: Apache-2.0
"""Random arms with elastic joints, as parameters of a robot file."""

from typing import Any

import numpy as np


def random_arm(seed: int, *, prismatic: bool = False) -> dict[str, Any]:
    """A serial chain whose joints get lighter and softer to the tip; on request, its second joint is prismatic.

    Masses from 11 to 0.6 kg, springs from 12,000 to 200 N m/rad, rotors from 0.8 to 0.025 kg m², each drawn at random
    within 30 % or so, with axes and poses in all directions.
    """
    rng, joints = np.random.default_rng(seed), {}
    for k in range(6):
        mass, length = float(rng.uniform(4, 8) * 1.5 * 0.55**k + 0.3), 0.35 * 0.8**k
        center = rng.uniform(-0.5, 0.5, 3) * length
        squares = np.sort(rng.uniform(0.05, 0.3, 3) * length) ** 2 * mass
        moments = squares.sum() - squares
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        stiffness = float(1.2e4 * 0.45**k * rng.uniform(0.7, 1.3))
        rotor = float(0.8 * 0.5**k * rng.uniform(0.7, 1.3))
        slides = prismatic and k == 1
        joints[f"joint_{k + 1}"] = {
            "type": "prismatic" if slides else "revolute",
            "screw": [0.0, 0.0, 0.0, *axis.tolist()] if slides else [*axis.tolist(), 0.0, 0.0, 0.0],
            "origin": {"xyz": (rng.uniform(-1, 1, 3) * length).tolist(), "rpy": rng.uniform(-3, 3, 3).tolist()},
            "mass": mass,
            "center_of_mass": center.tolist(),
            "inertia": [float(moments[0]), 0.0, 0.0, float(moments[1]), 0.0, float(moments[2])],
            "rotor_inertia": 10 * rotor if slides else rotor,
            "elasticity": {"type": "linear", "stiffness": 10 * stiffness if slides else stiffness},
        }
    return {
        "name": f"random_{seed}",
        "joint_names": list(joints),
        "inertia_reference": "com",
        "gravity": [0.0, 0.0, -9.81],
        "joints": joints,
    }
