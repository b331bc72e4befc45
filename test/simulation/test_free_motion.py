# SPDX-License-Identifier: Apache-2.0
"""Free bodies: momentum, and the free symmetric top in closed form."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from eom_dynamics import lie
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import simulate_free_motion

CENTER = np.array([0.1, -0.05, 0.2])
TURNED = Rotation.from_rotvec([0.3, 0.5, -0.2]).as_matrix()
ABOUT_CENTER = TURNED @ np.diag([0.05, 0.08, 0.11]) @ TURNED.T
GRAVITY = np.array([0.5, -0.3, -9.80665])
POSE = lie.pose(Rotation.from_rotvec([0.4, -0.6, 1.0]).as_matrix(), [0.3, 0.2, 1.0])
NU = np.array([1.5, -2.0, 1.0, 0.5, -0.4, 2.0])
T = np.linspace(0.0, 4.0, 11)


def newton_euler(gravity: Array) -> Callable[..., Array]:
    """Acceleration of the free body by Newton's and Euler's laws about its centre of mass."""
    inverse = np.linalg.inv(ABOUT_CENTER)

    def acceleration(_: float, C: Array, q: Array, nu: Array) -> Array:
        w, v = nu[:3], nu[3:]
        wd = -inverse @ np.cross(w, ABOUT_CENTER @ w)
        # a of the centre is gravity: v' + w x v + w' x c + w x (w x c).
        vd = C[:3, :3].T @ gravity - np.cross(w, v) - np.cross(wd, CENTER) - np.cross(w, np.cross(w, CENTER))
        return np.concatenate([wd, vd])

    return acceleration


def test_a_thrown_body_keeps_its_momentum_on_a_parabola() -> None:
    """Angular momentum about the centre of mass, which flies a parabola with the velocity that the twist has."""
    found, t = simulate_free_motion(newton_euler(GRAVITY), T, POSE, NU), T[:, np.newaxis]
    R, w, v = found.pose[:, :3, :3], found.nu[:, :3], found.nu[:, 3:]
    angular, velocity = (np.einsum("tij,tj->ti", R, x) for x in (w @ ABOUT_CENTER, v + np.cross(w, CENTER)))
    assert np.max(np.abs(angular - angular[0])) < 1e-12 * np.linalg.norm(angular[0])
    assert np.max(np.abs(velocity - velocity[0] - t * GRAVITY)) < 1e-12 * np.max(np.linalg.norm(velocity, axis=1))
    center = R @ CENTER + found.pose[:, :3, 3]
    parabola = center[0] + t * velocity[0] + 0.5 * t**2 * GRAVITY
    assert np.max(np.abs(center - parabola)) < 1e-12 * np.max(np.abs(center))


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("rk4", 4)])
def test_order_of_convergence_on_the_group(method: str, order: int) -> None:
    acceleration, end = newton_euler(GRAVITY), [0.0, 0.4]
    exact = simulate_free_motion(acceleration, end, POSE, NU)

    def error(step: float) -> float:
        found = simulate_free_motion(acceleration, end, POSE, NU, method=method, step=step)
        return max(float(np.max(np.abs(a[-1] - b[-1]))) for a, b in zip(found[1:], exact[1:], strict=True) if a.size)

    longer = {1: 0.004, 4: 0.04}[order]
    assert np.log2(error(longer) / error(longer / 2)) == pytest.approx(order, abs=0.25)


def test_joint_variables_are_integrated_beside_the_pose() -> None:
    def acceleration(t: float, C: Array, q: Array, nu: Array) -> Array:
        return np.concatenate([np.zeros(6), -9.0 * q])

    twist = np.array([0.0, 0.0, 5.0, 1.0, 0.0, 0.0])
    found = simulate_free_motion(acceleration, T, POSE, [*twist, 0.0], [0.5])
    assert np.max(np.abs(found.q[:, 0] - 0.5 * np.cos(3 * T))) < 1e-11
    assert np.max(np.abs(found.pose - POSE @ lie.exp(twist, T))) < 1e-11
