# SPDX-License-Identifier: Apache-2.0
"""Checks of limits: peaks against formulas of a pendulum, and the least time scaling."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from chains import packaged_parameters
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusals

import eom_dynamics as eom
from eom_dynamics.exceptions import StateError, StiffnessError, TrajectoryError
from eom_dynamics.robot.model import Limits
from eom_dynamics.trajectory import Samples, Scaled, Spline, check, quantities, rest_to_rest, sample, through
from eom_dynamics.trajectory.feedforward import checked

MASS, LEVER, G = 2.0, 0.5, 9.80665


def pendulum(**actuator: Any) -> eom.ElasticArm:
    """Inverted pendulum about the horizontal y axis: tau = m l² qdd - m g l sin(q)."""
    joint = {
        **{"type": "revolute", "screw": [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]},
        **{"origin": {"xyz": [0.0, 0.0, 0.0], "rpy": [0.0, 0.0, 0.0]}, "mass": MASS},
        **{"center_of_mass": [0.0, 0.0, LEVER], "inertia": [1e-9, 0.0, 0.0, 1e-9, 0.0, 1e-9], "rotor_inertia": 0.1},
        **{"gear_ratio": 10.0, "elasticity": {"type": "linear", "stiffness": 200.0}},
        "limits": {"lower": -2.0, "upper": 2.0, "velocity": 3.0, "acceleration": 20.0, "jerk": 500.0},
    }
    joint |= {"actuator": actuator} if actuator else {}
    robot = {"name": "pendulum", "joint_names": ["swing"], "inertia_reference": "com", "joints": {"swing": joint}}
    return eom.ElasticArm(eom.robot_from_parameters(robot))


@cache
def iiwa() -> eom.ElasticArm:
    return eom.ElasticArm(eom.load_robot("iiwa"))


def limits_of_all(arm: eom.ElasticArm, **limits: float) -> dict[str, Limits]:
    return {name: Limits(**limits) for name in arm.robot.joint_names}


def test_peaks_of_a_pendulum() -> None:
    arm = pendulum()
    motion = rest_to_rest([-0.5], [1.0], 1.0)
    t = np.linspace(0, 1, 1001)
    q, qd, qdd, qddd, qdddd = (x[:, 0] for x in motion.derivatives(t))
    inertia, weight = MASS * LEVER**2, MASS * G * LEVER
    tau = inertia * qdd - weight * np.sin(q)
    taud = inertia * qddd - weight * np.cos(q) * qd
    taudd = inertia * qdddd - weight * (np.cos(q) * qdd - np.sin(q) * qd**2)
    expected = {
        **{"velocity": qd, "acceleration": qdd, "jerk": qddd, "effort": tau, "effort_rate": taud},
        **{"motor_speed": 10 * (qd + taud / 200), "motor_torque": (0.1 * (qdd + taudd / 200) + tau) / 10},
        "motor_effort": 0.1 * (qdd + taudd / 200) + tau,
    }
    verdict = check(arm, motion, rate=1000.0)
    peaks = {peak.quantity: peak for peak in verdict.peaks}
    assert set(peaks) == {*expected, "position"}  # without a torque constant there is no current
    for quantity, values in expected.items():
        peak, row = peaks[quantity], np.argmax(np.abs(values))
        assert peak.name == "swing" and peak.t == pytest.approx(t[peak.sample])
        np.testing.assert_allclose(abs(peak.value), np.max(np.abs(values)), rtol=1e-7)
        np.testing.assert_allclose(values[peak.sample], values[row] * np.sign(values[row] * peak.value), rtol=1e-7)
    assert peaks["position"].value == 1.0 and peaks["position"].ratio == 0.5
    own = {"velocity": 3.0, "acceleration": 20.0, "jerk": 500.0}
    for quantity, limit in own.items():
        np.testing.assert_allclose(peaks[quantity].ratio, np.max(np.abs(expected[quantity])) / limit)
    assert verdict.ok == all(np.max(np.abs(expected[quantity])) <= limit for quantity, limit in own.items())


def test_parts_of_a_motion_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peaks, time scaling and margin are for all samples together, also of RMS efforts."""
    arm, motion = pendulum(), rest_to_rest([-0.5], [1.0], 1.0)
    tight, loose = limits_of_all(arm, velocity=1.0, effort_rms=8.0), limits_of_all(arm, velocity=100.0)
    found = []
    for part in (4096, 7):
        monkeypatch.setattr(quantities, "_PART", part)
        exceeding, within = (check(arm, motion, rate=200.0, limits=limits) for limits in (tight, loose))
        found.append((exceeding.peaks, exceeding.time_scaling, within.peaks, within.margin))
    for whole, parts in zip(*found, strict=True):
        if isinstance(whole, tuple):
            assert [x[:3] + x[6:] for x in whole] == [x[:3] + x[6:] for x in parts]
            whole, parts = ([x.value for x in peaks] for peaks in (whole, parts))
        assert whole == pytest.approx(parts, rel=1e-12)


def test_peaks_of_a_limit_of_zero() -> None:
    motions, limits = (rest_to_rest([0.0], [end], 1.0) for end in (0.1, 0.0)), {"swing": Limits(velocity=0.0)}
    verdicts = [check(pendulum(), motion, rate=100.0, limits=limits) for motion in motions]
    moved, at_rest = ({peak.quantity: peak for peak in verdict.peaks}["velocity"] for verdict in verdicts)
    assert moved.ratio == np.inf and moved.exceeded and moved.limit == 0.0
    assert at_rest.ratio == 1.0 and not at_rest.exceeded


def test_violations() -> None:
    motion = rest_to_rest([0.0], [2.5], 1.0)
    verdict = check(pendulum(), motion, rate=1000.0)
    ratios = [x.ratio for x in verdict.exceeded]
    assert not verdict.ok and ratios == sorted(ratios, reverse=True)
    worst = {peak.quantity: peak for peak in verdict.exceeded}
    assert worst["position"].value == 2.5 and worst["position"].limit == 2.0 and worst["position"].violation == 0.5
    assert worst["position"].t == 1.0
    np.testing.assert_allclose(worst["velocity"].violation, 2.5 * 315 / 128 - 3.0)
    assert str(worst["velocity"]) == "swing: velocity 6.15234 rad/s at 0.500 s, limit 3 rad/s"
    assert verdict.time_scaling is None  # since the position is out of range
    assert str(verdict).endswith("; slowing down does not help")
    in_degrees = check(pendulum(), rest_to_rest([0.0], [90.0], 1.0), rate=100.0)
    reason = "more than a turn beyond its limit: angles are in rad, not in degrees"
    assert str(in_degrees) == in_degrees.in_degrees == f"swing: position 90 rad at 1.000 s, limit 2 rad, {reason}"


def test_no_time_scaling_if_gravity_exceeds_the_limit() -> None:
    motion = rest_to_rest([0.0], [1.5], 0.3)
    weight = MASS * G * LEVER * np.sin(1.5)
    for share, known in ((0.999, False), (1.001, True)):
        verdict = check(pendulum(), motion, rate=1000.0, limits={"swing": Limits(effort=share * weight)})
        assert (verdict.time_scaling is not None) == known


def test_slowing_down_may_increase_the_effort() -> None:
    """If inertial forces support the weight, the motion is feasible only up to some s."""
    arm, t = pendulum(limits={"torque": 1e3}), np.array([0.0])  # motor limit, not joint limit
    state = [np.array([[x]]) for x in (1.5, 0.0, MASS * G * LEVER * np.sin(1.5) / (MASS * LEVER**2), 0.0, 0.0)]
    limits = {"swing": Limits(effort=1.0)}
    verdict = check(arm, Samples(t, *state), limits=limits)
    assert verdict.ok and verdict.time_scaling == 1.0
    state[2] = 2 * state[2]
    verdict = check(arm, Samples(t, *state), limits=limits)
    weight = MASS * G * LEVER * np.sin(1.5)
    np.testing.assert_allclose(verdict.time_scaling, np.sqrt(2 * weight / (weight + 1.0)), rtol=1e-8)


@pytest.mark.parametrize(
    ("quantity", "actuator"),
    [
        ("motor_torque", {"limits": {"torque": 1.3}}),
        ("motor_speed", {"limits": {"speed": 25.0}}),
        ("motor_current", {"torque_constant": 0.1, "limits": {"current": 13.0}}),
        ("motor_voltage", {"torque_constant": 0.1, "resistance": 1.0, "limits": {"voltage": 15.0}}),
    ],
)
def test_limits_of_motors(quantity: str, actuator: dict[str, Any]) -> None:
    arm = pendulum(friction={"coulomb": 0.5, "viscous": 0.2}, efficiency=0.8, **actuator)
    motion = rest_to_rest([0.0], [1.5], 0.4)
    verdict = check(arm, motion, rate=1000.0, limits={"swing": Limits()})
    assert [peak.quantity for peak in verdict.exceeded] == [quantity]
    drive = arm.drive(arm.feedforward(*motion.derivatives(np.linspace(0, 0.4, 401))))
    values = getattr(drive, {"motor_speed": "velocity"}.get(quantity, quantity.removeprefix("motor_")))
    np.testing.assert_allclose(abs(verdict.exceeded[0].value), np.max(np.abs(values)), rtol=1e-9)
    check_least_scaling(arm, motion, verdict.time_scaling, {"swing": Limits()})


def check_least_scaling(arm: eom.ElasticArm, motion: Any, s: float | None, limits: dict[str, Limits]) -> None:
    """All limits are met at the factor s, at samples of the same path and at 1 kHz, but not at a smaller one."""
    assert s is not None and s > 1
    assert check(arm, Scaled(motion, s), rate=1000.0 / s, limits=limits).ok
    assert check(arm, Scaled(motion, s), rate=1000.0, limits=limits).ok
    assert not check(arm, Scaled(motion, 0.999 * s), rate=1000.0 / (0.999 * s), limits=limits).ok


def test_the_margin_of_a_motion_within_its_limits() -> None:
    """If velocity decides, it is the utilization of the limit; a faster motion exceeds a limit."""
    arm = iiwa()
    motion = through(np.linspace(0, 3, 8), np.random.default_rng(4).uniform(-1, 1, (8, 7)))
    fastest = max(peak.value for peak in check(arm, motion, rate=1000.0).peaks if peak.quantity == "velocity")
    loose = check(arm, motion, rate=1000.0, limits=limits_of_all(arm, velocity=2.5 * fastest))
    assert loose.margin == pytest.approx(0.4, rel=1e-6)
    limits = limits_of_all(arm, velocity=1e3, effort=300.0)
    verdict = check(arm, motion, rate=1000.0, limits=limits)
    s = verdict.margin
    assert s is not None and s < 1
    assert check(arm, Scaled(motion, s * (1 + 1e-6)), rate=1000.0 / s, limits=limits).ok
    assert not check(arm, Scaled(motion, 0.999 * s), rate=1000.0 / (0.999 * s), limits=limits).ok
    assert check(arm, motion, rate=1000.0, limits=limits_of_all(arm, velocity=0.5 * fastest)).margin is None


def test_the_margin_of_a_motion_whose_springs_would_be_slack_when_faster() -> None:
    arm = eom.ElasticArm(eom.load_robot("vsa_planar_2r"))
    motion = through([0.0, 1.0, 2.0], [[0.0, 0.0], [0.3, -0.3], [0.1, 0.2]])
    margin = check(arm, motion, rate=1000.0).margin
    assert margin is not None and margin < 1.0
    rows = [motion.derivatives(t) for t in np.linspace(0.0, 2.0, 2001)]
    for scaling, ok in ((1.001 * margin, True), (0.999 * margin, False)):
        states = np.moveaxis(np.array(rows), 1, 0) / scaling ** np.arange(5.0)[:, np.newaxis, np.newaxis]
        if ok:
            arm.feedforward(*states)
        else:
            with pytest.raises(StiffnessError, match="slack"):
                arm.feedforward(*states)


@settings(max_examples=4)
@given(st.integers(0, 1000))
def test_time_scaling_of_an_arm_is_the_least(seed: int) -> None:
    arm, rng = iiwa(), np.random.default_rng(seed)
    motion = through(np.linspace(0, 3, 8), rng.uniform(-1, 1, (8, 7)))
    ranges = {"velocity": (1, 4), "effort": (140, 300), "jerk": (100, 1000), "effort_rate": (300, 3000)}
    own = limits_of_all(arm, **{name: rng.uniform(*ends) for name, ends in ranges.items()})
    s = check(arm, motion, rate=1000.0, limits=own).time_scaling
    if s is None or s == 1.0:
        states = motion.derivatives(np.linspace(0, 3, 3001))
        zero = np.zeros_like(states[0])
        still = arm.feedforward(states[0], zero, zero, zero, zero).tau
        assert s == 1.0 or np.max(np.abs(still)) > own["iiwa_joint_1"].effort
    else:
        check_least_scaling(arm, motion, s, own)


def test_wrench_is_slowed_down_with_the_motion() -> None:
    arm = iiwa()
    motion = rest_to_rest(np.zeros(7), np.full(7, 0.5), 0.5)
    W = np.array([0.0, 0.0, 0.0, 20.0, 0.0, 10.0])
    own = limits_of_all(arm, effort_rate=500.0)
    t = np.linspace(0, 0.5, 501)[:, np.newaxis]
    wrench = [W * np.sin(9 * t), 9 * W * np.cos(9 * t), -81 * W * np.sin(9 * t)]
    s = check(arm, motion, rate=1000.0, limits=own, wrench=wrench).time_scaling
    assert s is not None and s > 1
    for factor, ok in ((1.0, True), (0.999, False)):
        slow = Scaled(motion, factor * s)
        slow_wrench = [x / (factor * s) ** k for k, x in enumerate(wrench)]
        assert check(arm, slow, rate=1000.0 / (factor * s), limits=own, wrench=slow_wrench).ok is ok
    constant = check(arm, motion, rate=1000.0, limits=own, wrench=[W])
    assert constant.time_scaling != s


def test_limits_of_mimic_joints() -> None:
    description = packaged_parameters("planar_2r")
    first, second = description["joint_names"]
    joint = description["joints"][second]
    for entry in ("elasticity", "rotor_inertia", "gear_ratio", "actuator"):
        joint.pop(entry, None)
    joint |= {
        "mimic": {"joint": first, "ratio": -2.0, "offset": 0.1},
        "limits": {"lower": -1.0, "upper": 3.0, "velocity": 1.0},
    }
    arm = eom.ElasticArm(eom.robot_from_parameters(description))
    verdict = check(arm, rest_to_rest([0.0], [0.6], 1.0), rate=1000.0)
    over = {peak.quantity: peak for peak in verdict.exceeded}
    assert set(over) == {"position", "velocity"} and over["position"].name == over["velocity"].name == second
    np.testing.assert_allclose(over["position"].value, -1.1)
    np.testing.assert_allclose(abs(over["velocity"].value), 2 * 0.6 * 315 / 128)


SAMPLES = sample(rest_to_rest([0.0], [1.5], 0.3), 1000.0)


USUAL = {"trajectory": rest_to_rest([0.0], [1.0], 1.0), "rate": 100.0}

test_errors = refusals(
    (TrajectoryError, StateError),
    ({"rate": None}, "requires a sample rate"),
    ({"rate": 0.0}, "rate must be positive"),
    ({"rate": 1e12}, "lower the rate"),
    ({"trajectory": rest_to_rest([0.0, 0.0], [1.0, 1.0], 1.0)}, "has 2 joints, pendulum has 1"),
    ({"trajectory": SAMPLES}, "samples have times and require no rate"),
    ({"limits": {"elbow": Limits()}}, "'elbow'"),
    ({"limits": [1.0]}, r"limits must be a mapping from names of joints, is \[1.0\]"),
    ({"limits": {"swing": [1.0]}}, "limits of 'swing' must be a mapping from their names to numbers, .*, or Limits"),
    *(
        ({"limits": {"swing": {"velocity": wrong}}}, "swing: limit velocity must ")
        for wrong in ("fast", None, [1.0], [1.0, [2.0]], np.ones(2), 1j, True, np.nan, -1.0, -np.inf)
    ),
    ({"limits": {"swing": {3: 1.0}}}, "swing: no limit is named 3"),
    ({"limits": {"swing": {"lower": np.nan}}}, "swing: limit lower must be finite, is nan"),
    ({"limits": {"swing": {"lower": 2.0, "upper": -2.0}}}, "swing: lower 2 must not exceed upper -2"),
    ({"wrench": [np.zeros(6)] * 4}, "at most 3, has 4"),
    ({"commanded_stiffness": ["stiff"]}, "stiffness k must have shape"),
    ({"trajectory": SAMPLES._replace(t=SAMPLES.t[:-1]), "rate": None}, "one row for each time"),
    ({"trajectory": SAMPLES._replace(qdd=SAMPLES.qdd * np.nan), "rate": None}, "qdd must be finite"),
    call=lambda change: check(pendulum(), **{**USUAL, **change}),
)


@pytest.mark.parametrize(("at", "duration"), [(1e-9, 1e-9), (0.7003, 9e-4), (0.7003, 0.02)])
def test_no_piece_is_too_short_to_be_checked(at: float, duration: float) -> None:
    """There and back between two instants of the check."""
    arm = pendulum()
    times = np.array([0.0, at, at + duration / 2, at + duration, 5.0])
    states = np.zeros((5, len(times), 1))
    states[0, 2] = 0.3
    motion = Spline(times, states)
    for verdict in (check(arm, motion, rate=1000.0), checked(arm, motion, 1000.0, 100)):
        worst = {peak.quantity: peak for peak in verdict.peaks}["velocity"]
        # In the middle of a piece from rest to rest, (630 / 256) of its mean velocity.
        steps = np.diff(times)
        assert abs(worst.value) == pytest.approx(630 / 256 * 0.3 / min(steps[1:3]), rel=1e-6)
        assert not verdict.ok


def test_rms_of_motor_efforts_and_the_time_scaling_that_meets_it() -> None:
    arm = pendulum()
    motion = rest_to_rest([-0.5], [1.0], 1.0)
    (peak,) = (x for x in check(arm, motion, rate=1000.0, limits=limits_of_all(arm, effort_rms=5.0)).peaks[-1:])
    t = np.linspace(0.0, 1.0, 20001)
    effort = arm.feedforward(*motion.derivatives(t)).motor_effort
    assert (peak.quantity, peak.name, peak.unit) == ("effort_rms", "swing", "N m")
    assert peak.value == pytest.approx(np.sqrt(np.mean(effort**2)), rel=1e-4)
    limits = limits_of_all(arm, effort_rms=0.9 * peak.value)
    s = check(arm, motion, rate=1000.0, limits=limits).time_scaling
    check_least_scaling(arm, motion, s, limits)
    assert check(arm, Scaled(motion, s), rate=1000.0, limits=limits).margin == pytest.approx(1.0, abs=1e-6)
    # Slow motions still hold the weight.
    assert check(arm, motion, rate=1000.0, limits=limits_of_all(arm, effort_rms=0.1)).time_scaling is None


def test_units() -> None:
    peaks = check(eom.ElasticArm(eom.load_robot("planar_pr")), rest_to_rest([0, 0], [1, 1], 1.0), rate=100.0).peaks
    assert [peak.unit for peak in peaks if peak.quantity == "effort_rate"] == ["N/s", "N m/s"]
