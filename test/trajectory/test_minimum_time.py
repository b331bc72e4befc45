# SPDX-License-Identifier: Apache-2.0
"""Minimum-time motions: compared with the optimum of one joint, within all limits, and refused if there is none."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from refusals import refusals

import eom_dynamics as eom
from eom_dynamics.elastic.limits import arm_limits
from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.robot.model import Limits
from eom_dynamics.trajectory import Spline, Trajectory, check, minimum_time, rest_to_rest, through
from eom_dynamics.trajectory.fastest.motion import violated_instants
from eom_dynamics.trajectory.poses import _blended

PANDA = [[0, 0.2, 0, -1.6, 0, 1.8, 0], [0.6, -0.3, 0.4, -2.0, 0.5, 2.2, 0.4], [1.2, 0.3, 0.1, -1.4, -0.3, 1.5, 1.0]]
PLANAR = [[0.0, 0.5], [0.8, -0.2], [1.2, 0.6]]


@cache
def arm_of(name: str) -> eom.ElasticArm:
    return eom.ElasticArm(eom.load_robot(name))


def only(arm: eom.ElasticArm, **limits: float) -> dict[str, Limits]:
    return {joint.name: Limits(**limits) for joint in arm.robot.joints}


def worst(arm: eom.ElasticArm, motion: Trajectory, limits: Any = None) -> float:
    verdict = check(arm, motion, rate=10_000.0, limits=limits)
    return max(peak.ratio for peak in verdict.peaks if np.isfinite(peak.limit))


@pytest.mark.parametrize(
    ("distance", "limits", "shortest", "most"),
    [
        # Half of the way at full acceleration, half at full deceleration: 2 sqrt(d/a); 2 ms to start and to stop.
        (1.0, {"acceleration": 4.0}, 1.0, 1.004),
        # Up to the velocity v in 2 sqrt(v/j), on average at v/2, and down again.
        (2.0, {"velocity": 2.0, "jerk": 50.0}, 1.0 + 2 * np.sqrt(2.0 / 50.0), 1.005),
    ],
    ids=["bang-bang", "velocity and jerk"],
)
def test_a_joint_beside_its_known_optimum(
    distance: float, limits: dict[str, float], shortest: float, most: float
) -> None:
    arm = arm_of("pendulum")
    motion = minimum_time(arm, [[0.0], [distance]], limits=only(arm, **limits))
    assert shortest <= motion.duration <= most * shortest


@pytest.mark.parametrize(("s", "length"), [(1e-3, 1.0), (1e3, 1e-3)])
def test_scaling_kinematic_limits_by_orders_of_magnitude(s: float, length: float) -> None:
    arm = arm_of("planar_2r")
    path = length * np.array(PLANAR)
    usual, other = (
        minimum_time(arm, path, limits=only(arm, velocity=v, acceleration=3 * v**2, jerk=40 * v**3)).duration
        for v in (1e-3, 1e-3 * s)
    )
    # 2 ms to start and to stop, and 6 ms in between, are the shortest motion.
    assert usual / s * (1 - 1e-3) <= other <= usual / s * (1 + 1e-3) + 0.012


def lines(waypoints: Any, corner: float) -> Spline:
    """Straight lines in joint space, with blends that pass waypoints at a distance."""
    q = np.array(waypoints, dtype=float)
    return _blended(q, np.diff(q, axis=0), corner)


def random_path(arm: eom.ElasticArm) -> Spline:
    """With half as many instants in a piece, an effort exceeded its limit by 1.1e-4."""
    lower, upper = ([getattr(j.limits, end) for j in arm.robot.joints] for end in ("lower", "upper"))
    lower, upper = np.maximum(lower, -3.0), np.minimum(upper, 3.0)
    waypoints = lower + (upper - lower) * (0.3 + 0.4 * np.random.default_rng(49).random((5, arm.robot.n)))
    return through(np.linspace(0.0, 1.0, 5), waypoints, ends="free")


def rubbing() -> eom.ElasticArm:
    """Effort rates peak at reversals of joints, narrower than the node spacing."""
    robot = eom.load_robot("planar_2r")
    joints = tuple(replace(joint, friction=1.0) for joint in robot.joints)
    return eom.ElasticArm(replace(robot, joints=joints, joint_friction=True))


def driven() -> eom.ElasticArm:
    """Limits of motors alone, behind springs."""
    robot = eom.load_robot("pendulum")
    motor = replace(robot.joints[0].actuator.motor, torque_constant=0.05, resistance=0.5, speed_limit=200.0)
    motor = replace(motor, voltage_limit=12.0, current_limit=8.0)
    joint = replace(robot.joints[0], actuator=replace(robot.joints[0].actuator, motor=motor), gear_ratio=50.0)
    return eom.ElasticArm(replace(robot, joints=(joint,)), stiffness=100.0, rotor_inertia=0.2)


# Peaks of motors with friction that turn back are narrower than nodes are apart; 0.3009 s on any processor.
SEA = [[0, 0], [0.5, 0.3], [1, 0]]
TURNING_BACK = [[-0.5, 0.5], [0.85, 0.45], [-0.55, -0.85]]
# Effort rates below the gravity effort rate at the largest velocity, balanced by inertia, rise with the duration.
SLOW = [[-0.9, 0.7], [-0.2, -0.3], [1.0, 0.6], [0.0, -0.2]]


@pytest.mark.parametrize(
    ("arm", "path", "limits", "duration"),
    [
        (lambda: arm_of("panda"), PANDA, None, np.inf),
        (lambda: arm_of("sea_planar_2r"), SEA, {"velocity": np.inf}, 0.302),
        (lambda: arm_of("planar_2r"), SLOW, {"velocity": 3.0, "effort_rate": 4.0}, np.inf),
        (lambda: arm_of("ur5e"), random_path, ("velocity", "effort"), np.inf),
        (rubbing, lines(TURNING_BACK, 0.1), {"effort_rate": 374.0}, 1.10),
        (driven, [[0.0], [1.5]], None, np.inf),
    ],
    ids=["motors", "friction of motors", "gravity", "between instants", "friction of joints", "motors with springs"],
)
def test_all_limits_are_met_and_one_is_used_up(arm: Any, path: Any, limits: Any, duration: float) -> None:
    arm = arm()
    if isinstance(limits, tuple):
        limits = {j.name: Limits(**{name: getattr(j.limits, name) for name in limits}) for j in arm.robot.joints}
    elif limits:
        limits = only(arm, **limits)
    motion = minimum_time(arm, path(arm) if callable(path) else path, limits=limits)
    assert 0.98 < worst(arm, motion, limits) <= 1.0 + 1e-6
    assert motion.active and motion.duration < duration


def test_peaks_between_the_instants_of_the_check_are_found() -> None:
    arm, rng = arm_of("pendulum"), np.random.default_rng(0)
    motion = Spline(0.01 * np.arange(101), rng.standard_normal((5, 101, 1)) * 0.01 ** -np.arange(5.0).reshape(5, 1, 1))
    t, states = motion.in_pieces(4096, 3, np.arange(100))
    for piece, peak in enumerate(np.max(np.abs(states[3]), axis=(0, 2))):
        own = arm_limits(arm, only(arm, jerk=peak / (1 + 1e-6)))
        over = violated_instants(arm, own, motion, 0.0, np.array([piece]), 1 + 1e-9)
        assert over.pieces == [piece]
        assert t[0, piece] <= np.min(over.t) <= np.max(over.t) <= t[-1, piece]


def test_the_motion_is_at_rest_at_both_ends_and_on_the_path_whose_timing_does_not_matter() -> None:
    arm = arm_of("planar_2r")
    limits = only(arm, velocity=2.0, effort=30.0, effort_rate=500.0)
    path, slower = (through(np.array([0.0, 1.0, 2.0]) * s, PLANAR, ends="free") for s in (1.0, 10.0))
    motion, other = (minimum_time(arm, x, limits=limits) for x in (path, slower))
    assert motion.duration == pytest.approx(other.duration, rel=1e-6)
    for end in (motion.start, motion.end):
        assert np.max(np.abs(motion.derivatives(end, 4)[1:])) == 0.0
    t = 0.5 * (motion.t[1:] + motion.t[:-1])
    dense = path.derivatives(np.linspace(0.0, 2.0, 20001), 0)[0]
    (q,) = motion.derivatives(t, 0)
    away = [np.min(np.max(np.abs(dense - each), axis=1)) for each in q]
    assert np.max(away) < 2e-4  # half the distance of the dense samples


def test_a_motion_that_nearly_stops_between_nodes_is_refused() -> None:
    arm = arm_of("planar_2r")
    with pytest.raises(TrajectoryError, match="fastest"):
        minimum_time(arm, lines(PLANAR, 2e-6), limits=only(arm, velocity=2.0, acceleration=10.0))


def test_progress_may_cancel() -> None:
    with pytest.raises(ZeroDivisionError):
        minimum_time(arm_of("panda"), PANDA, progress=lambda fraction: 1 // bool(0.0 <= fraction <= 0.2))


class Corner:
    """Two straight lines with a jump of the slope in the middle."""

    n, start, end = 2, 0.0, 1.0

    def derivatives(self, t: Any, order: int = 4) -> tuple[np.ndarray, ...]:
        t = np.atleast_1d(np.asarray(t, dtype=float))
        slope = np.where((t < 0.5)[:, np.newaxis], [1.0, 0.0], [0.0, 1.0])
        q = np.stack([np.minimum(t, 0.5), np.maximum(t - 0.5, 0.0)], axis=1)
        return (q, slope, *[np.zeros_like(q)] * (order - 1))


def _planar(**limits: float) -> dict[str, Any]:
    return {"limits": only(arm_of("planar_2r"), **limits)}


OUT_OF_RANGE = "joint_1: position 1.2.* rad at 100 % of the path is out of its range, -inf to 0.5; change the path"
IN_DEGREES = "out of its range, -inf to -6, more than a turn .* not in degrees$"
WITHOUT = {"limits": {"joint_1": Limits(velocity=1.0), "joint_2": Limits()}}


test_what_is_refused = refusals(
    TrajectoryError,
    ([[0.0, 0.0]], {}, r"waypoints must have shape \(K, n\), K >= 2"),
    ([[0.0, 0.0], [0.0, 0.0]], {}, "the path does not move: all 2 waypoints are within the path tolerance"),
    ([[0.0], [1.0]], {}, "the path has 1 joints, planar_2r has 2"),
    (PLANAR, _planar(), "there are no limits"),
    (PLANAR, _planar(velocity=1.0, effort_rms=5.0), "joint_1: the search has no limits of effort_rms; omit them, and"),
    (PLANAR, _planar(upper=0.5, velocity=1.0), OUT_OF_RANGE),
    (PLANAR, _planar(upper=-6.0, velocity=1.0), IN_DEGREES),
    (PLANAR, _planar(effort=5.0), "joint_1: effort .* N m at rest at .* leaves nothing of its limit 5 N m"),
    ([[0.0, 0.0], [0.0, 1.0]], WITHOUT, "no shortest duration"),
    (Corner(), _planar(velocity=1.0), "the path has a corner between 0.4975 and 0.5: joint 0 .* leave out those"),
    (rest_to_rest([0.0, 0.0], [0.0, 0.0], 1.0), _planar(velocity=1.0), "the path does not move anywhere"),
    (eom.trajectory.paper_motion(2), _planar(velocity=1.0), "must have a start and an end"),
    call=lambda path, options: minimum_time(arm_of("planar_2r"), path, **options),
)


def test_springs_that_would_be_slack_are_refused() -> None:
    arm = arm_of("vsa_planar_2r")
    with pytest.raises(TrajectoryError, match="reduce"):
        minimum_time(arm, PLANAR, limits=only(arm, velocity=5.0, effort_rate=3000.0))
