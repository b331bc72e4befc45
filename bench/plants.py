# SPDX-License-Identifier: Apache-2.0
"""Arms with elastic joints that sections simulate in MuJoCo, packaged or random, and their link errors."""

from typing import Any

import numpy as np
from chains import packaged_parameters
from mujoco_arms import Command, MujocoArm

from eom_dynamics.arrays import Array

LENGTHS = np.array([0.5, 0.4])  # of the links of sea_planar_2r, m


def arm_parameters(name: str | int) -> dict[str, Any]:
    """Parameters of a packaged robot by its name, or of a random arm by its seed."""
    return packaged_parameters(name) if isinstance(name, str) else random_arm(name)


def random_arm(seed: int, *, prismatic: bool = False) -> dict[str, Any]:
    """Serial chain with joints that get lighter and softer to the tip; on request, its second joint is prismatic.

    Masses from 11 to 0.6 kg, springs from 12,000 to 200 N m/rad, rotors from 0.8 to 0.025 kg m², each drawn at random
    within 30 % or so, with axes and poses in all directions.
    """
    rng, joints = np.random.default_rng(seed), {}
    for k in range(6):
        mass, length = float(rng.uniform(4, 8) * 1.5 * 0.55**k + 0.3), 0.35 * 0.8**k
        center = rng.uniform(-0.5, 0.5, 3) * length
        squares = np.sort(rng.uniform(0.05, 0.3, 3) * length) ** 2 * mass
        axis = rng.normal(size=3)
        stiffness = float(1.2e4 * 0.45**k * rng.uniform(0.7, 1.3))
        rotor = float(0.8 * 0.5**k * rng.uniform(0.7, 1.3))
        joint = elastic_joint(axis, rng.uniform(-1, 1, 3) * length, rng.uniform(-3, 3, 3), mass, center, squares)
        slides = prismatic and k == 1
        if slides:
            joint |= {"type": "prismatic", "screw": joint["screw"][3:] + joint["screw"][:3]}
        spring = {"type": "linear", "stiffness": 10 * stiffness if slides else stiffness}
        joints[f"joint_{k + 1}"] = joint | {"rotor_inertia": 10 * rotor if slides else rotor, "elasticity": spring}
    return described(f"random_{seed}", joints) | {"gravity": [0.0, 0.0, -9.81]}


def elastic_joint(axis: Array, xyz: Array, rpy: Array, mass: float, center: Array, squares: Array) -> dict[str, Any]:
    """Parameters of a revolute joint, with the second moments of mass (3,) of its body, kg m²."""
    return {
        "type": "revolute",
        "screw": [*(axis / np.linalg.norm(axis)).tolist(), 0.0, 0.0, 0.0],
        "origin": {"xyz": xyz.tolist(), "rpy": rpy.tolist()},
        "mass": mass,
        "center_of_mass": center.tolist(),
        "inertia": np.diag(squares.sum() - squares)[np.triu_indices(3)].tolist(),
    }


def described(name: str, joints: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a serial chain of joints."""
    return {"name": name, "joint_names": list(joints), "inertia_reference": "com", "joints": joints}


def link_errors(plant: MujocoArm, command: Command, motion: Any, **options: Any) -> tuple[Array, Array]:
    """Times (T,), s, and errors of the links (T, n) on a motion, with the options of :meth:`.MujocoArm.run`."""
    t, q, _ = plant.run(command, motion, **options)
    return t, q - motion.derivatives(t, 0)[0]


def angles_of(points: Array) -> Array:
    """Joint angles (K, 2) that put the tip of sea_planar_2r at points (K, 2), m, with the elbow below."""
    elbow = np.arccos((np.sum(points**2, axis=1) - LENGTHS @ LENGTHS) / (2 * np.prod(LENGTHS)))
    across, along = LENGTHS[1] * np.sin(elbow), LENGTHS[0] + LENGTHS[1] * np.cos(elbow)
    return np.column_stack([np.arctan2(*points.T[::-1]) - np.arctan2(across, along), elbow])


def tip(q: Array) -> Array:
    """Tip of sea_planar_2r (…, 2), m."""
    angles = np.cumsum(q, axis=-1)
    return np.stack([np.cos(angles) @ LENGTHS, np.sin(angles) @ LENGTHS], axis=-1)
