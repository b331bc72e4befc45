# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics of textbooks: a biped's closed form, Newton-Raphson, the singularity-robust inverse."""

import runpy
from dataclasses import replace

import numpy as np
import pytest
from lazy import Lazy
from paths import ROOT

from eom_dynamics import Kinematics, Robot, inverse_kinematics, lie, load_robot
from eom_dynamics.kinematics import POSITION, differential_inverse_kinematics, newton_raphson
from eom_dynamics.robot import Frame

ARMS = Lazy(lambda name: Kinematics(load_robot(name), backend="numpy"))


# --- Closed forms -------------------------------------------------------------------------------------


def test_biped_leg_of_the_example_and_its_singular_poses() -> None:
    """S. Kajita et al., Introduction to Humanoid Robotics (2014), section 2.5; J. Zhang, example 11."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    leg_angles = runpy.run_path(str(ROOT / "examples" / "singularities.py"))["leg_angles"]
    leg = Kinematics(load_robot(ROOT / "examples" / "biped_leg.yaml"), backend="numpy")
    for q in np.random.default_rng(1).uniform(-0.5, 0.5, (5, 6)) + 0.6 * np.eye(6)[3]:
        np.testing.assert_allclose(leg_angles(leg.pose(q)), q, atol=1e-14)
    # Lifting the foot by v bends a knee with links of length l at angles a with the vertical by v/(l sin a).
    bent, v = np.array([0, 0, -np.pi / 6, np.pi / 3, -np.pi / 6, 0]), 0.1
    rate = v / (0.3 * np.sin(np.pi / 6))
    (qd,) = differential_inverse_kinematics(leg, bent, ([0, 0, 0, 0, 0, v],), reference="world_aligned").rates
    np.testing.assert_allclose(qd, [0, 0, -rate / 2, rate, -rate / 2, 0], atol=1e-14)
    singular = {
        "a: stretched": np.zeros(6),
        "b: axes of hip yaw and ankle roll coincide": bent + np.pi / 2 * np.eye(6)[4],
        "c: axes of hip roll and ankle roll coincide": [0, 0, -np.pi / 2 - 0.5, 1.0, np.pi / 2 - 0.5, 0],
    }
    for name, pose in singular.items():
        assert np.linalg.matrix_rank(leg.jacobian(pose), tol=1e-12) == 5, name


# --- Newton-Raphson -----------------------------------------------------------------------------------


def unit_2r() -> Robot:
    robot = load_robot("planar_2r")
    first, second = robot.joints
    second = replace(second, reference_pose=lie.pose(np.eye(3), np.array([1.0, 0, 0])))
    tip = Frame("tip", 1, lie.pose(np.eye(3), np.array([1.0, 0, 0])))
    return replace(robot, joints=(first, second), tools=(tip,))


def test_iterates_of_lynch_and_park_example_6_1() -> None:
    """Modern Robotics, example 6.1: 2R arm, from (0°, 30°) to (30°, 90°), the table of iterates and body twists."""
    kinematics = Kinematics(unit_2r(), backend="numpy")
    target = kinematics.pose(np.radians([30.0, 90.0]))
    np.testing.assert_allclose(target[:2, 3], [0.366, 1.366], atol=5e-4)
    found = newton_raphson(kinematics, target, np.radians([0.0, 30.0]), tolerance=1e-4)
    assert found.success and len(found.q) == 4
    expected = [[0.00, 30.00], [34.23, 79.18], [29.98, 90.22], [30.00, 90.00]]
    np.testing.assert_allclose(np.degrees(found.q), expected, atol=6e-3)
    twists = [[1.571, 0.498, 1.858], [0.115, -0.074, 0.108], [-0.004, 0.000, -0.004], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(found.error[:, 2:5], twists, atol=6e-4)
    tips = [[1.866, 0.500], [0.429, 1.480], [0.363, 1.364], [0.366, 1.366]]
    np.testing.assert_allclose(kinematics.pose(found.q)[:, :2, 3], tips, atol=6e-4)


def test_newton_of_a_scalar_equation_with_a_step_size() -> None:
    """q ← q - α (f(q) - x)/f'(q) for the height of the pendulum's tip, written out."""
    q, expected = 0.4, [0.4]
    goal = np.array([0.0, 0.0, -0.5 * np.cos(1.1)])
    for _ in range(5):
        # Least squares of both coordinates, x = -0.5 sin q and z = -0.5 cos q: the goal is off the circle.
        J, e = 0.5 * np.array([-np.cos(q), np.sin(q)]), goal[[0, 2]] + 0.5 * np.array([np.sin(q), np.cos(q)])
        q += 0.3 * (J @ e) / (J @ J)
        expected.append(q)
    found = newton_raphson(ARMS["pendulum"], goal, [0.4], step=0.3, iterations=5)
    np.testing.assert_allclose(found.q[:, 0], expected, atol=1e-14)
    assert not found.success


def test_a_damped_leg_converges_where_newton_jumps() -> None:
    """From almost stretched: the first step of Newton-Raphson is radians, that with damping is not."""
    target, start = ARMS["leg"].pose([0.1, 0.5, -1.0])[:3, 3], [0.0, 0.0, -1e-3]
    plain = newton_raphson(ARMS["leg"], target, start)
    damped = newton_raphson(ARMS["leg"], target, start, damping=0.02)
    assert np.max(np.abs(plain.q[1])) > 50 > 2 > np.max(np.abs(damped.q[1]))
    assert damped.success and np.max(np.abs(ARMS["leg"].pose(damped.q[-1])[:3, 3] - target)) < 2e-10


def test_iterates_of_the_compiled_solver() -> None:
    kinematics = Kinematics(load_robot("leg"))
    target, start = kinematics.pose([0.1, 0.5, -1.0]), np.array([0.0, 0.2, -0.5])
    found = inverse_kinematics(kinematics, target, start=start, weights=POSITION, iterates=True)
    plain = inverse_kinematics(kinematics, target, start=start, weights=POSITION)
    assert plain.iterates is None and found.iterates is not None
    assert np.array_equal(plain.q, found.q) and np.array_equal(found.iterates[[0, -1]], [start, found.q])
    assert len(found.iterates) == found.iterations + found.attempts
    gaps = np.linalg.norm(kinematics.pose(found.iterates)[:, :3, 3] - target[:3, 3], axis=1)
    # Quadratic: digits double near the solution.
    assert np.all(gaps[2:-1] < 10 * gaps[1:-2] ** 2) and gaps[-1] < 1e-10
    # An unreachable target takes all attempts, each from its start.
    far = lie.pose(np.eye(3), np.array([0.0, 0.0, -1.0]))
    missed = inverse_kinematics(
        kinematics, far, start=start, weights=POSITION, attempts=3, objective="start", iterates=True
    )
    assert missed.attempts == 3 and missed.iterates is not None and len(missed.iterates) > 6


# --- The singularity-robust inverse -------------------------------------------------------------------


@pytest.mark.parametrize("lam", [0.0, 1e-3, 0.04])
@pytest.mark.parametrize("name", ["leg", "ur5e"])
def test_singularity_robust_inverse_of_nakamura_and_hanafusa(name: str, lam: float) -> None:
    """J' (J J' + λ I)⁻¹ v in SI units, of a position (leg, 3 x 3) and of a position and a pose of six joints."""
    kinematics = ARMS[name]
    n, rng = kinematics.robot.n, np.random.default_rng(1)
    q, V = rng.uniform(-1, 1, n), rng.uniform(-1, 1, 6)
    J = kinematics.jacobian(q, reference="world_aligned")
    options = {"reference": "world_aligned", "damping": np.sqrt(lam), "length": 1.0}
    for task, rows in ((POSITION, slice(3, 6)), ((1,) * 6, slice(0, 6))):
        A, v = J[rows], V[rows]
        if len(A) > n and lam == 0:
            continue  # not regular
        expected = A.T @ np.linalg.solve(A @ A.T + lam * np.eye(len(A)), v)
        found = differential_inverse_kinematics(kinematics, q, (V,), task=task, **options)
        np.testing.assert_allclose(found.rates[0], expected, rtol=1e-9, atol=1e-12)
        missed = np.zeros(6)
        missed[rows] = v - A @ expected
        np.testing.assert_allclose(found.missed[0], missed, atol=1e-10)


def test_a_position_task_of_six_joints_is_not_singular_and_its_derivatives_are_followed() -> None:
    kinematics = Kinematics(load_robot("ur5e"), backend="numpy")
    q = np.array([0.3, -1.2, 1.4, 0.3, 0.0, 0.6])  # where the wrist is singular
    J = kinematics.jacobian(q, reference="world_aligned")[3:]
    V, Vd = np.random.default_rng(2).uniform(-1, 1, (2, 6))
    found = differential_inverse_kinematics(kinematics, q, (V, Vd), reference="world_aligned", task=POSITION)
    assert found.damping == 0
    qd, qdd = found
    np.testing.assert_allclose(qd, np.linalg.pinv(J) @ V[3:], atol=1e-12)
    _, Jd = kinematics.jacobian_derivatives(q, qd, reference="world_aligned")
    np.testing.assert_allclose(J @ qdd + Jd[3:] @ qd, Vd[3:], atol=1e-12)
    assert not np.any(found.missed[0][:3]) and np.max(np.abs(found.missed)) < 1e-12
