# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics: reachable and unreachable poses, objectives and limits, and the methods of textbooks.

Textbooks: closed forms, iterates of Newton and Raphson, and the singularity-robust inverse.
"""

import runpy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from chains import packaged_parameters
from differences import deviation
from exported import robot
from paths import ROOT

from eom_dynamics import KernelError, Kinematics, Robot, inverse_kinematics, lie, load_robot
from eom_dynamics.kinematics import (
    POINTING,
    POSITION,
    body_poses,
    differential_inverse_kinematics,
    newton_raphson,
    planar_2r_inverse,
)
from eom_dynamics.robot import Frame
from eom_dynamics.robot.model import Limits

TOLERANCE = 1e-10
"""Tolerances of a solution, rad and m; entries of poses deviate by at most the distance plus the angle."""


def ranges(robot):
    limits = [joint.limits for joint in robot.independent_joints]
    lower, upper = np.array([(limit.lower, limit.upper) for limit in limits]).T
    return np.where(np.isfinite(lower), lower, -np.pi), np.where(np.isfinite(upper), upper, np.pi)


def tool_poses(robot, q):
    tool = robot.tools[0]
    return body_poses(robot, q)[tool.joint] @ tool.pose


@pytest.mark.parametrize("name", ["iiwa", "panda", "ur5e"])
def test_random_reachable_poses(name):
    robot = load_robot(name)
    lower, upper = ranges(robot)
    q, start = np.random.default_rng(5).uniform(lower, upper, (2, 500, robot.n))
    targets = tool_poses(robot, q)
    found = inverse_kinematics(Kinematics(robot), targets, start=start)
    assert np.all(found.success) and np.all(found.reason == "solved")
    assert np.max(np.abs(tool_poses(robot, found.q) - targets)) < 2 * TOLERANCE
    assert np.all(found.angle <= TOLERANCE) and np.all(found.distance <= TOLERANCE)
    finite = [np.isfinite(joint.limits.upper) for joint in robot.independent_joints]
    assert np.all((found.q >= lower)[:, finite]) and np.all((found.q <= upper)[:, finite])


def test_out_of_reach_is_said_and_the_closest_configuration_returned():
    robot = load_robot("ur5e")
    kinematics = Kinematics(robot)
    away = lie.pose(np.eye(3), [3.0, 0.0, 0.2])
    found = inverse_kinematics(kinematics, away, attempts=5, weights=POSITION)
    assert not found.success and found.reason in ("out of reach", "iterations") and found.attempts == 5
    reached = np.linalg.norm(tool_poses(robot, found.q)[:3, 3] - away[:3, 3])
    assert reached == pytest.approx(float(found.distance), rel=1e-9)
    # The distance is flat there: SciPy's minimum from twenty starts is 2.0313075257941.
    assert found.distance == pytest.approx(2.0313075257941, rel=1e-9)


def test_position_and_pointing_leave_the_rest_free():
    robot = load_robot("ur5e")
    kinematics = Kinematics(robot)
    rng = np.random.default_rng(6)
    targets = tool_poses(robot, rng.uniform(-2, 2, (50, 6)))
    start = rng.uniform(-2, 2, (50, 6))
    position = inverse_kinematics(kinematics, targets, start=start, weights=POSITION)
    assert np.all(position.success)
    C = tool_poses(robot, position.q)
    assert np.max(np.abs(C[:, :3, 3] - targets[:, :3, 3])) < TOLERANCE
    assert np.min(np.max(np.abs(C[:, :3, :3] - targets[:, :3, :3]), axis=(1, 2))) > 1e-3
    pointing = inverse_kinematics(kinematics, targets, start=start, weights=POINTING)
    C = tool_poses(robot, pointing.q)
    assert np.all(pointing.success)
    assert np.max(np.abs(C[:, :3, 2:] - targets[:, :3, 2:])) < 2 * TOLERANCE
    assert np.min(np.max(np.abs(C[:, :3, 0] - targets[:, :3, 0]), axis=1)) > 1e-6


def test_objectives_of_a_redundant_arm():
    robot = load_robot("panda")
    kinematics = Kinematics(robot)
    lower, upper = ranges(robot)
    q, start = np.random.default_rng(7).uniform(lower, upper, (2, 20, 7))
    targets = tool_poses(robot, q)
    solutions = {
        name: inverse_kinematics(kinematics, targets, start=start, objective=name)
        for name in (None, "start", "central", "manipulable")
    }
    for found in solutions.values():
        assert np.all(found.success)
        assert np.max(np.abs(tool_poses(robot, found.q) - targets)) < 2 * TOLERANCE
        assert np.all(found.q >= lower) and np.all(found.q <= upper)
    values = {
        "start": lambda q: -np.sum((q - start) ** 2, axis=1),
        "central": lambda q: -np.sum(((q - 0.5 * (lower + upper)) / (upper - lower)) ** 2, axis=1),
    }
    for name, value in values.items():
        gained = value(solutions[name].q) - value(solutions[None].q)
        # Both start at one solution, from which the objective climbs.
        assert np.all(gained >= -1e-9) and np.median(gained) > 1e-3
    # For a task with lengths in units of the robot's size; only its singular values' product is compared.
    climbed = kinematics.manipulability(solutions["manipulable"].q) - kinematics.manipulability(solutions[None].q)
    assert np.all(climbed >= -1e-9) and np.median(climbed) > 1e-3


def test_several_tools_at_once():
    robot = load_robot("dual_arm")
    kinematics = Kinematics(robot)
    names = [tool.name for tool in robot.tools]
    assert len(names) == 2
    rng = np.random.default_rng(8)
    q, start = rng.uniform(*ranges(robot), (2, 20, robot.n))
    targets = np.stack([kinematics.pose(q, frame=name) for name in names], axis=1)
    for weights in (POSITION, np.ones(6)):
        found = inverse_kinematics(kinematics, targets, start=start, frame=names, weights=weights)
        assert np.all(found.success)
        for k, name in enumerate(names):
            reached = kinematics.pose(found.q, frame=name)
            assert np.max(np.abs(reached - targets[:, k])[:, :3, 3 * (weights is POSITION) :]) < 2 * TOLERANCE


@pytest.fixture(scope="module")
def ur5e():
    return Kinematics(load_robot("ur5e"))


def test_of_whole_turns_it_is_the_one_nearest_to_the_start(ur5e):
    """The joints of the UR5e turn twice; from the middle of their ranges, and from far away."""
    rng = np.random.default_rng(8)
    for start in (np.zeros(6), rng.uniform(-6, 6, 6)):
        targets = tool_poses(ur5e.robot, rng.uniform(-np.pi, np.pi, (200, 6)))
        found = inverse_kinematics(ur5e, targets, start=np.tile(start, (200, 1)))
        assert np.all(found.success)
        lower, upper = ranges(ur5e.robot)
        for turn in (-2 * np.pi, 2 * np.pi):
            other = found.q + turn
            within = (other >= lower) & (other <= upper)
            nearer = np.abs(other - start) < np.abs(found.q - start) - 1e-12
            assert not np.any(within & nearer)


GOOD = lie.pose(np.eye(3), [0.4, 0.2, 0.3])


def test_mimic_joints_keep_to_their_ranges():
    scissors = robot("scissors")  # second = 0.2 - 0.7 first
    narrow = [replace(x, limits=Limits(-0.5, 0.5)) if x.name == "second" else x for x in scissors.joints]
    kinematics = Kinematics(replace(scissors, joints=tuple(narrow)))
    reachable, beyond = (kinematics.pose([0.1, angle], "first") for angle in (0.3, 1.4))
    assert inverse_kinematics(kinematics, reachable, "first").success
    found = inverse_kinematics(kinematics, beyond, "first")
    assert not found.success and -3 / 7 - 1e-12 <= found.q[1] <= 1 + 1e-12


def test_without_a_compiler_it_says_so():
    with pytest.raises(KernelError, match="native"):
        inverse_kinematics(Kinematics(load_robot("ur5e"), backend="numpy"), GOOD)


# --- Planar arm ---------------------------------------------------------------------


@pytest.mark.parametrize("target", [(0.8, 0.3), (-0.5, 0.9), (0.0, -0.6), (1.5, 0.0), (0.0, 0.5)])
def test_both_branches_of_the_planar_arm(target):
    right, left = planar_2r_inverse((1.0, 0.5), target)
    for angles in (right, left):
        first, second = angles[0], angles.sum()
        reached = np.array([np.cos(first), np.sin(first)]) + 0.5 * np.array([np.cos(second), np.sin(second)])
        assert deviation(reached, target, floor=1.0) < 1e-15
    assert right[1] >= 0 >= left[1]


@pytest.mark.parametrize("name", ["ur5e", "planar_pr"])
@pytest.mark.parametrize("far", [1e4, 1e16, 1e155, 1e308])
def test_success_is_that_of_the_answer_returned(name, far):
    """Far from zero, whole turns are rounded, and squares overflow: either the answer is a solution, or it says no."""
    robot = load_robot(name)
    rng = np.random.default_rng(5)
    q = rng.uniform(-1.0, 1.0, (20, robot.n))
    weights = POSITION if name == "planar_pr" else np.ones(6)
    targets = np.array([tool_poses(robot, x) for x in q])
    starts = q + far * rng.choice([-1.0, 1.0], q.shape)
    for attempts in (1, 20):
        found = inverse_kinematics(
            robot, targets, start=starts, limits=False, weights=weights, attempts=attempts, tolerance=1e-7
        )
        assert np.all(np.isfinite(found.error[found.success]))
        for target, answer, distance in zip(
            targets[found.success], found.q[found.success], found.distance[found.success], strict=True
        ):
            away = np.linalg.norm(tool_poses(robot, answer)[:3, 3] - target[:3, 3])
            # Sums of angles are rounded by each route in its own way.
            rounding = 4 * robot.n * np.spacing(max(1.0, np.max(np.abs(answer))))
            assert away <= 1e-7 + rounding and abs(away - distance) <= rounding
        if name == "ur5e" and attempts == 20:
            assert found.success.all()


def test_the_reason_tells_what_is_out_of_reach():
    robot = load_robot("iiwa")
    narrow = tuple(replace(joint, limits=replace(joint.limits, lower=-0.3, upper=0.3)) for joint in robot.joints)
    kinematics = Kinematics(replace(robot, joints=narrow))
    here, beyond = (tool_poses(robot, np.full(7, angle)) for angle in (0.2, 0.6))
    far = here.copy()
    far[:3, 3] = [0.0, 3.0, 0.5]
    found = inverse_kinematics(kinematics, np.stack([here, far, beyond]), attempts=20)
    assert found.reason.tolist() == ["solved", "out of reach", "joint range"]
    assert inverse_kinematics(kinematics, beyond, attempts=20).reason == "joint range"
    assert inverse_kinematics(robot, beyond).reason == "solved"


def test_a_stretched_arm_leaves_no_choice_of_the_orientation():
    robot = load_robot("ur5e")
    far = lie.pose(np.eye(3), [3.0, 0.0, 0.2])
    pose = tool_poses(robot, inverse_kinematics(robot, far, weights=POSITION).q)
    pose[:3, 3] *= 0.999
    pose[:3, :3] = pose[:3, :3] @ lie.exp(np.array([1.0, 1.0, 1.0, 0, 0, 0]), 1.0)[:3, :3]
    assert inverse_kinematics(robot, pose, weights=POSITION).success
    assert inverse_kinematics(robot, pose, attempts=20).reason == "orientation"


@cache
def arm(name: str) -> Kinematics:
    return Kinematics(load_robot(name), backend="numpy")


# --- Closed forms -------------------------------------------------------------------------------------


def test_biped_leg_and_its_singular_poses() -> None:
    """S. Kajita et al., Introduction to Humanoid Robotics (2014), section 2.5; J. Zhang, example 11."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    leg_angles = runpy.run_path(str(ROOT / "examples" / "singularities.py"))["leg_angles"]
    leg = Kinematics(load_robot("biped_leg"), backend="numpy")
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


def rotation_logarithm(R: np.ndarray) -> np.ndarray:
    """(ln R)^∨ (3,), for angles below a half turn."""
    angle = np.arccos((np.trace(R) - 1) / 2)
    return angle / (2 * np.sin(angle)) * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])


def zhang_iterates(start: np.ndarray, target: np.ndarray, share: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Iterates and losses of the UR5e: Zhang's (149), (152)-(154), q ← q + λ J⁻¹ (Δp, Δω), all in the world frame."""
    parameters = packaged_parameters("ur5e")
    joints = [parameters["joints"][name]["dh"] for name in parameters["joint_names"]]
    q, iterates, losses = start, [start], []
    for _ in range(steps + 1):
        C, axes = np.eye(4), []
        for dh, angle in zip(joints, q, strict=True):
            axes.append((C[:3, 2], C[:3, 3]))
            (s, c), (sa, ca) = ((np.sin(x), np.cos(x)) for x in (angle + dh["theta"], dh["alpha"]))
            a, d = dh["a"], dh["d"]
            C = C @ [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]]
        change = target[:3, 3] - C[:3, 3]
        turn = C[:3, :3] @ rotation_logarithm(C[:3, :3].T @ target[:3, :3])
        losses.append(change @ change + turn @ turn)
        J = np.array([np.r_[np.cross(axis, C[:3, 3] - point), axis] for axis, point in axes]).T
        q = q + share * np.linalg.solve(J, np.r_[change, turn])
        iterates.append(q)
    return np.array(iterates[:-1]), np.array(losses)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_iterates_of_zhang(share: float) -> None:
    """J. Zhang, Robot Kinematics, (149)-(154); iterates of the body logarithm differ, and end in the same solution."""
    kinematics, q = Kinematics(load_robot("ur5e"), backend="numpy"), np.array([0.3, -1.2, 1.4, 0.3, 0.9, 0.6])
    assert np.array_equal(kinematics.robot.tools[0].pose, np.eye(4))
    target, start, steps = kinematics.pose(q), q + 0.3, 4
    expected, losses = zhang_iterates(start, target, share, steps)
    found = newton_raphson(kinematics, target, start, error="difference", step=share, iterations=steps)
    np.testing.assert_allclose(found.q, expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(np.sqrt(found.loss), np.sqrt(losses), rtol=0, atol=1e-14)
    by_logarithm = newton_raphson(kinematics, target, start, step=share, iterations=steps)
    assert np.max(np.abs(by_logarithm.q[2] - found.q[2])) > 0.01
    for error in ("twist", "difference"):
        solved = newton_raphson(kinematics, target, start, error=error, step=share)
        assert solved.success
        np.testing.assert_allclose(solved.q[-1], q, rtol=0, atol=1e-8)


def test_a_damped_leg_converges_where_newton_jumps() -> None:
    """From an almost stretched leg: the first step of Newton-Raphson is radians, with damping it is not."""
    target, start = arm("leg").pose([0.1, 0.5, -1.0])[:3, 3], [0.0, 0.0, -1e-3]
    plain = newton_raphson(arm("leg"), target, start)
    damped = newton_raphson(arm("leg"), target, start, damping=0.02)
    assert np.max(np.abs(plain.q[1])) > 50 > 2 > np.max(np.abs(damped.q[1]))
    assert damped.success and np.max(np.abs(arm("leg").pose(damped.q[-1])[:3, 3] - target)) < 2e-10


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
    kinematics = arm(name)
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
    q = np.array([0.3, -1.2, 1.4, 0.3, 0.0, 0.6])  # singular wrist
    J = kinematics.jacobian(q, reference="world_aligned")[3:]
    V, Vd = np.random.default_rng(2).uniform(-1, 1, (2, 6))
    found = differential_inverse_kinematics(kinematics, q, (V, Vd), reference="world_aligned", task=POSITION)
    assert found.damping == 0
    qd, qdd = found
    np.testing.assert_allclose(qd, np.linalg.pinv(J) @ V[3:], atol=1e-12)
    _, Jd = kinematics.jacobian_derivatives(q, qd, reference="world_aligned")
    np.testing.assert_allclose(J @ qdd + Jd[3:] @ qd, Vd[3:], atol=1e-12)
    assert not np.any(found.missed[0][:3]) and np.max(np.abs(found.missed)) < 1e-12
