# SPDX-License-Identifier: Apache-2.0
"""Plants in the complete rotor model: against Lagrange's equations by SymPy, energy balance, and open loop."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
from differences import deviation

from eom_dynamics import ElasticArm, Robot, robot_from_parameters
from eom_dynamics.arrays import Array
from eom_dynamics.elastic import derivatives_needed, motor_jet
from eom_dynamics.simulation import ElasticPlant, energy, simulate
from eom_dynamics.trajectory import Cosine

INF = float("inf")
STIFFNESS = np.array([400.0, 300.0, 250.0])
RATIO = np.array([10.0, -8.0, 6.0])
ROTOR = np.array([0.02, 0.01, 0.008])  # rotor inertias before the gear, large enough to matter


JOINTS = (
    ([0, 0, 1], [0.0, 0.0, 0.2], 2.0, [0.05, 0.0, 0.1], {}),
    ([1, 0, 0], [0.1, 0.2, 0.0], 1.5, [0.0, 0.15, 0.02], {"axis": [0.6, 0.0, 0.8]}),
    ([0, 1, 0], [0.0, 0.3, 0.1], 1.0, [0.1, 0.1, 0.0], {"carrier": "joint_2", "axis": [0.48, 0.6, 0.64]}),
)
"""Axis, origin, mass, center of mass, and mount of the rotor."""


def arm_parameters() -> dict[str, Any]:
    joints = {
        f"joint_{i + 1}": {
            **{"type": "revolute", "screw": [*map(float, axis), 0.0, 0.0, 0.0]},
            **{"origin": {"xyz": xyz, "rpy": [0.0, 0.0, 0.0]}, "mass": mass, "center_of_mass": center},
            "inertia": [0.02, 0.0, 0.0, 0.03, 0.0, 0.01],
            "elasticity": {"type": "linear", "stiffness": float(STIFFNESS[i])},
            **{"rotor_inertia": float(ROTOR[i] * RATIO[i] ** 2), "gear_ratio": float(RATIO[i]), "rotor": mount},
        }
        for i, (axis, xyz, mass, center, mount) in enumerate(JOINTS)
    }
    return {
        **{"name": "askew", "joint_names": list(joints), "inertia_reference": "com", "gravity": [0.5, -1.0, -9.0]},
        **{"rotor_model": "complete", "joints": joints},
    }


@cache
def lagrange() -> Callable[[Array, Array], tuple[Array, Array]]:
    """Mass matrix and bias forces from positions and velocities (6,) of links and motors, without springs.

    The kinetic energy is the sum of the bodies' energies, and of I/2 (a · omega + N thetad)² for each rotor.
    """
    parameters = arm_parameters()
    x, v = sp.symbols("x0:6"), sp.symbols("v0:6")
    turns = [turn(-angle) for turn, angle in zip((sp.rot_axis3, sp.rot_axis1, sp.rot_axis2), x[:3], strict=True)]
    R, p, w = sp.eye(3), sp.zeros(3, 1), sp.zeros(3, 1)
    kinetic, potential = sp.Integer(0), sp.Integer(0)
    spins = [w]  # angular velocities of base and links, each in its own frame
    for i, joint in enumerate(parameters["joints"].values()):
        p = p + R * sp.Matrix(joint["origin"]["xyz"])
        R = R * turns[i]
        w = turns[i].T * w + v[i] * sp.Matrix(joint["screw"][:3])
        spins.append(w)
        center = p + R * sp.Matrix(joint["center_of_mass"])
        velocity = center.jacobian(sp.Matrix(x)) * sp.Matrix(v)
        inertia = sp.diag(*(joint["inertia"][k] for k in (0, 3, 5)))
        kinetic += (joint["mass"] * velocity.dot(velocity) + (w.T * inertia * w)[0]) / 2
        potential -= joint["mass"] * sp.Matrix(parameters["gravity"]).dot(center)
    axes = [sp.Matrix([0, 0, 1]), sp.Matrix([0.6, 0.0, 0.8]), sp.Matrix([0.48, 0.6, 0.64])]
    for i, carrier in enumerate((0, 1, 2)):
        kinetic += ROTOR[i] * (axes[i].dot(spins[carrier]) + RATIO[i] * v[3 + i]) ** 2 / 2
    momenta = [sp.diff(kinetic, speed) for speed in v]
    M = sp.Matrix(6, 6, lambda i, j: sp.diff(momenta[i], v[j]))
    forces = [
        sum(sp.diff(momenta[i], x[j]) * v[j] for j in range(3)) - sp.diff(kinetic - potential, x[i]) for i in range(6)
    ]
    function = sp.lambdify([x, v], [M, forces], "numpy", cse=True)
    return lambda positions, velocities: tuple(np.array(y, dtype=float) for y in function(positions, velocities))  # type: ignore[return-value]


@pytest.fixture(scope="module")
def robot() -> Robot:
    return robot_from_parameters(arm_parameters())


@pytest.mark.parametrize("rigid", [(), (1,), (0, 1, 2)], ids=["elastic", "mixed", "rigid"])
def test_accelerations_are_those_of_lagranges_equations(robot: Robot, rigid: tuple[int, ...]) -> None:
    stiffness = STIFFNESS.copy()
    stiffness[list(rigid)] = INF
    plant = ElasticPlant(ElasticArm(robot, stiffness=stiffness))
    free = np.eye(6)[:, [*range(3), *(3 + i for i in range(3) if i not in rigid)]]
    free[[3 + i for i in rigid], list(rigid)] = 1.0
    rng = np.random.default_rng(5)
    for _ in range(5):
        x, v = (free @ rng.uniform(-1.5, 1.5, free.shape[1]) for _ in range(2))
        effort = rng.uniform(-20, 20, 3)
        M, forces = lagrange()(x, v)
        spring = np.where(np.isinf(stiffness), 0.0, STIFFNESS) * (x[3:] - x[:3])
        right = np.concatenate([spring, effort - spring]) - forces
        expected = free @ np.linalg.solve(free.T @ M @ free, free.T @ right)
        state = np.concatenate([x, v])
        assert deviation(plant.rate(state, effort)[6:], expected) < 1e-12
        kinetic = 0.5 * v @ M @ v
        assert energy(plant, state).kinetic == pytest.approx(kinetic, rel=1e-12)


def test_feedforwards_in_the_complete_plant(robot: Robot) -> None:
    """Without feedback, the exact map stays on the motion, the approximation nearly, the reduced model does not.

    Rotors of the plant are bodies of the recursion; the exact map computes angular momenta along axes.
    """
    motion, duration = Cosine([0.8, -0.6, 0.7], [2.0, 3.0, 2.5]), 0.5
    complete, reduced = ElasticArm(robot), ElasticArm(robot, rotor_model="reduced")
    needed = derivatives_needed(complete)
    nodes = np.polynomial.chebyshev.chebpts1(40)
    t = 0.5 * duration * (1 + nodes)
    efforts = [
        reduced.feedforward(*motion.derivatives(t)).motor_effort,
        complete.feedforward(*motion.derivatives(t)).motor_effort,
        motor_jet(complete, motion.derivatives(t, order=needed)).motor_effort[0],
    ]
    curve = np.polynomial.chebyshev.chebfit(nodes, np.concatenate(efforts, axis=1), 39)
    plant = ElasticPlant(complete)
    start = plant.on_trajectory(*motion.derivatives(0.0, order=needed))

    def end(column: int) -> Array:
        def control(now: float, _: Array) -> Array:
            return np.polynomial.chebyshev.chebval(2 * now / duration - 1, curve).reshape(3, 3)[column]

        return plant.parts(simulate(plant, control, [0.0, duration], start).states[-1]).q

    off = [np.max(np.abs(end(k) - motion.derivatives(duration, order=0)[0])) for k in range(3)]
    assert off[2] < 1e-11
    assert off[0] > 1e-3
    assert off[1] < 0.2 * off[0]
