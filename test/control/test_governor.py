# SPDX-License-Identifier: Apache-2.0
"""Governor of online motion: efforts, their rates and motors stay within limits, since the motion slows down before."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from loop_rig import LoopRig, Record
from springs import with_springs

import eom_dynamics as eom
from eom_dynamics.actuators.springs import CubicSpring, DampedSpring, LinearSpring
from eom_dynamics.control.control_loop import ControlLoop, Refusal
from eom_dynamics.control.online_trajectory import motion_limits
from eom_dynamics.control.robot_table import RobotTable, limits_of
from eom_dynamics.trajectory import Spline

PERIOD = 1_000_000
LIMITED = ("tau", "taud", "motor_velocity", "motor_effort")


def limited(name: str, **limits: Any) -> eom.Robot:
    """A packaged robot with limits of its joints, a number or (n,) each."""
    robot = eom.load_robot(name)
    rows = {key: np.broadcast_to(value, robot.n) for key, value in limits.items()}
    joints = (
        replace(joint, limits=replace(joint.limits, **{key: float(row[i]) for key, row in rows.items()}))
        for i, joint in enumerate(robot.joints)
    )
    return replace(robot, joints=tuple(joints))


def elastic() -> eom.Robot:
    """An ur5e with springs that are cubic, damped and linear, and friction."""
    springs = CubicSpring(4e3, 2e6), DampedSpring(8e3, 40.0), LinearSpring(3e3)
    return with_springs(eom.load_robot("ur5e"), *springs, rotor_inertia=0.3, friction=2.0, damping=1.0)


def with_motors() -> eom.Robot:
    motor = eom.load_robot("sea_planar_2r").joints[0].actuator
    springs = CubicSpring(8e3, 2e6), DampedSpring(9e3, 30.0)
    return with_springs(eom.load_robot("iiwa"), *springs, rotor_inertia=0.4, actuator=motor, gear_ratio=160.0)


# Robot, limits of the motion, and payload in kg.
FAMILY: Mapping[str, tuple[Any, dict[str, float], float]] = {
    "ur5e": (lambda: eom.load_robot("ur5e"), {"acceleration": 30.0}, 0.0),
    "ur5e with 5 kg": (lambda: eom.load_robot("ur5e"), {"acceleration": 10.0}, 5.0),
    "panda with 2 kg": (lambda: eom.load_robot("panda"), {}, 2.0),
    "iiwa with 3 kg": (
        lambda: limited("iiwa", effort=[160, 160, 90, 90, 55, 20, 20]),
        {"velocity": 2.0, "acceleration": 15.0},
        3.0,
    ),
    "sea with 1 kg": (lambda: eom.load_robot("sea_planar_2r"), {"velocity": 4.9, "acceleration": 25.0}, 1.0),
    "cubic, damped, friction, 3 kg": (elastic, {"acceleration": 15.0}, 3.0),
    "motors of iiwa": (with_motors, {"velocity": 2.0, "acceleration": 15.0}, 0.0),
}


class Driven:
    """A loop that leads an arm to random targets, and the largest shares of its limits."""

    def __init__(self, robot: eom.Robot, motion: Mapping[str, Any], mass: float = 0.0, **settings: Any) -> None:
        self.arm = eom.ElasticArm(robot)
        self.limits = motion_limits(self.arm, motion)
        self.loop = ControlLoop(RobotTable(self.arm))
        self.loop.configure(**{"safety": "permissive"} | settings)
        if mass:
            self.loop.carry(eom.Payload(mass), 0.0)
        self.loop.limit(self.limits, 1e-9 * PERIOD)
        numbers = limits_of(self.arm)
        self.ends = {x: numbers[f"upper.{x}"] for x in LIMITED}
        self.now, self.shares, self.states = 10**12, dict.fromkeys(LIMITED, 0.0), np.zeros((5, self.arm.robot.n))
        self.least = 1.0

    @classmethod
    def of(cls, name: str, **settings: Any) -> "Driven":
        """One of the family."""
        make, limits, mass = FAMILY[name]
        return cls(make(), limits, mass, **settings)

    def run(self, cycles: int) -> None:
        states = np.zeros((cycles, *self.states.shape))
        commands = {x: np.zeros((cycles, self.loop.command[x].size)) for x in self.ends}
        for k in range(cycles):
            self.now += PERIOD
            assert self.loop.update(self.now, 1e-9 * PERIOD) <= 0
            states[k] = self.loop.state
            for x, row in commands.items():
                row[k] = self.loop.command[x]
        for x, row in commands.items():
            self.shares[x] = max(self.shares[x], float(np.max(np.abs(row) / self.ends[x], initial=0.0)))
        self.states = np.maximum(self.states, np.abs(states).max(axis=0, initial=0.0))
        self.least = min(self.least, self.loop.number("slowed_to"))

    def wander(self, seed: int, targets: int) -> None:
        draw, n = np.random.default_rng(seed), self.arm.robot.n
        lower, upper = np.maximum(self.limits.lower, -2.5), np.minimum(self.limits.upper, 2.5)
        self.loop.restart(np.clip(np.zeros(n), lower, upper))
        for k in range(targets):
            near = np.clip(self.loop.state[0] + 0.3 * draw.normal(size=n), lower, upper)
            assert self.loop.aim(self.now, draw.uniform(lower, upper) if k % 2 else near) == 0
            self.run(int(draw.uniform(20, 900)))


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("ur5e with 5 kg", 0),
        pytest.param("panda with 2 kg", 77, id="slowed down on the way to a limit of position"),
        ("cubic, damped, friction, 3 kg", 0),
        ("motors of iiwa", 0),
    ],
)
def test_commands_stay_within_limits(name: str, seed: int) -> None:
    """Of efforts, rates and motors, over random targets amid motion, which exceed them without a governor."""
    driven = Driven.of(name)
    driven.wander(seed, 12)
    assert max(driven.shares.values()) <= 1.0, driven.shares
    assert driven.least < 1.0
    for k, x in enumerate(("velocity", "acceleration", "jerk", "snap"), start=1):
        assert (driven.states[k] <= getattr(driven.limits, x) * (1 + 1e-9)).all(), x
    free = Driven.of(name, limits="ignore")
    free.wander(seed, 12)
    assert max(free.shares.values()) > 1.0, free.shares


def random_case(seed: int) -> tuple[eom.Robot, dict[str, Any]]:
    """A packaged arm, by chance with springs of 3 to 25 Hz, and random limits of efforts, rates and the motion."""
    draw = np.random.default_rng(seed)
    robot = eom.load_robot(str(draw.choice(["sea_planar_2r", "vsa_planar_2r", "iiwa", "panda", "ur5e", "planar_2r"])))
    dynamics, states = eom.Dynamics(robot), draw.uniform(-2.5, 2.5, (100, robot.n))
    inertia = np.max(np.diagonal(dynamics.mass_matrix(states), axis1=1, axis2=2), axis=0)
    springs = np.array([x.spring for x in robot.joints])
    rotors = np.array([x.rotor_inertia for x in robot.joints])
    if robot.name != "vsa_planar_2r" and draw.random() < 0.75:
        stiffness = np.maximum((2 * np.pi * draw.uniform(3, 25)) ** 2 * inertia, 50.0)
        kind, growth = draw.integers(3), draw.uniform(1, 50)
        springs = np.array(
            [(LinearSpring(k), CubicSpring(k, k * growth), DampedSpring(k, 0.005 * k))[kind] for k in stiffness]
        )
        rotors = inertia * draw.uniform(0.1, 1)
    acceleration = draw.uniform(2, 25)
    gravity = np.max(np.abs(dynamics.gravity(states)), axis=0)
    effort = gravity * draw.uniform(1.15, 3) + inertia * acceleration * draw.uniform(0.1, 1) + 0.5
    rate = effort * draw.uniform(3, 40)
    given = draw.random(2) < (0.7, 0.5)
    effort, rate = (np.where(known, x, np.inf) for known, x in zip(given, (effort, rate), strict=True))
    joints = (
        replace(
            joint, spring=springs[i], rotor_inertia=rotors[i], limits=replace(joint.limits, effort=a, effort_rate=b)
        )
        for i, (joint, a, b) in enumerate(zip(robot.joints, effort.tolist(), rate.tolist(), strict=True))
    )
    limits: dict[str, Any] = {"velocity": draw.uniform(0.8, 4), "acceleration": acceleration}
    if draw.random() < 0.5:
        limits["jerk"] = acceleration * draw.uniform(8, 120)
        limits["snap"] = limits["jerk"] * draw.uniform(20, 250)
    if draw.random() < 0.5:
        limits["smoothing"] = draw.choice([0.0, 0.003, 0.005, 0.01, 0.02, 0.05])
    robot = replace(robot, joints=tuple(joints))
    most = limits_of(eom.ElasticArm(robot))
    for name, row in (("velocity", "qd"), ("acceleration", "qdd"), ("jerk", "qddd")):
        if name in limits and f"upper.{row}" in most:
            limits[name] = np.minimum(limits[name], most[f"upper.{row}"] / 1.0001)
    return robot, limits


@pytest.mark.parametrize("seed", range(8))
def test_random_arms_go_to_random_targets_within_limits(seed: int) -> None:
    """With soft, stiff and damped springs, and limits of jerk and snap far beyond those of the motors."""
    robot, limits = random_case(seed)
    driven = Driven(robot, limits, limits="refuse")
    driven.wander(seed, 12)
    assert max(driven.shares.values()) <= 1.0, driven.shares


@pytest.mark.parametrize("seed", [0, 11, 20, 23])
def test_motions_of_random_arms_that_stay_below_limits_are_untouched(seed: int) -> None:
    """To the last bit, in their largest states and commands."""
    free, governed = (Driven(*random_case(seed), limits=policy) for policy in ("ignore", "warn"))
    for driven in (free, governed):
        driven.wander(seed, 6)
    assert max(free.shares.values()) <= 0.99 and governed.least == 1.0
    assert np.array_equal(free.states, governed.states) and free.shares == governed.shares


def test_motor_efforts_by_snap_slow_a_motion_down_that_takes_over() -> None:
    """Amid a trajectory, with a limit of snap that takes four times the effort of a motor."""
    limits = {"velocity": 2.0, "acceleration": 20.0, "jerk": 2000.0, "snap": 4e5, "smoothing": 0.005}
    rig = LoopRig("sea_planar_2r", "permissive", targets=limits, limits="refuse")
    rig.restart(np.zeros(2))
    ends = np.zeros((5, 2, 2))
    ends[0, 1] = 0.3
    rig.trajectory(Spline([0.0, 2.0], ends))
    rig.cycles(400)
    rig.target(np.zeros(2))
    rig.cycles(1500)
    record = Record(rig)
    assert (record.code == 0).all() and record.setpoint["qd"][399, 0] > 0 and rig.number("arrived")
    assert "motor effort" in rig.loop.text("slowed")


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FAMILY)
def test_commands_stay_within_limits_for_long(name: str) -> None:
    for seed in range(1, 4):
        driven = Driven.of(name)
        driven.wander(seed, 150)
        assert max(driven.shares.values()) <= 1.0, (seed, driven.shares)


def test_a_target_that_the_arm_cannot_hold_does_not_lead_beyond_limits_of_positions() -> None:
    """It rests before: where it went on, its stop led 0.3 rad beyond, where efforts are less."""
    holds = abs(eom.Dynamics(eom.load_robot("ur5e")).gravity(np.zeros(6))[1])
    robot = limited("ur5e", effort=[500.0, 0.85 * holds, *[500.0] * 4], upper=[6.0, 0.3, *[6.0] * 4])
    limits, loop = (
        motion_limits(eom.ElasticArm(robot), {"acceleration": 10.0}),
        ControlLoop(RobotTable(eom.ElasticArm(robot))),
    )
    loop.limit(limits, 1e-3)
    loop.restart(np.array([0.0, -1.5, 0.0, 0.0, 0.0, 0.0]))
    assert Refusal(loop.aim(0, np.zeros(6))).name == "overload" and not loop.number("aiming")
    loop.configure(limits="warn")
    assert loop.aim(0, np.zeros(6)) == 0
    loop.configure(limits="refuse")
    lift = []
    for k in range(4000):
        loop.update(k * PERIOD, 1e-3)
        lift.append(loop.state[0, 1])
    assert -1.0 < max(lift) < 0.0 and lift[-1] == lift[-500] and loop.number("refused") == 1 and loop.number("arrived")


def test_a_target_is_refused_where_the_arm_cannot_rest_with_what_it_is_to_carry() -> None:
    """Also at the end of a chunk, and amid a target that moves on, which comes to rest; others are reached."""
    dynamics, at = eom.Dynamics(eom.load_robot("ur5e")), lambda q: np.array([0.0, q, 0.0, 0.0, 0.0, 0.0])
    load, most = (abs(dynamics.gravity(at(q))[1]) for q in (0.0, 0.7))
    loop = ControlLoop(RobotTable(eom.ElasticArm(limited("ur5e", effort=[500.0, most, *[500.0] * 4]))))
    loop.limit(motion_limits(loop.arm, {"acceleration": 2.0}), 1e-3)
    loop.restart(at(1.5))
    now, rate = 0, at(-0.3)

    def run(cycles: int) -> float:
        nonlocal now
        for _ in range(cycles):
            now += PERIOD
            assert loop.update(now, 1e-3) <= 0
        return float(loop.state[0, 1])

    assert loop.aim(now, at(1.2)) == 0 and run(200) > 1.2
    chunk = np.array([at(1.2), at(0.0)]), None, np.array([0.0, 1.0])
    for target in (chunk, (at(0.0),)):
        assert Refusal(loop.aim(now, *target)).name == "overload"
    text = f"effort of shoulder_lift_joint would be {load:.4g}, beyond its limit {most:.4g} (SI units)"
    assert loop.text("overload") == text and run(3000) == pytest.approx(1.2, abs=1e-12)
    assert loop.aim(now, at(1.2), rate) == 0 and run(200) < 1.19
    assert Refusal(loop.aim(now, at(0.0))).name == "overload" and 0.8 < run(2000) == run(1) < 1.19
    assert loop.aim(now, at(1.5)) == 0 and run(4000) == pytest.approx(1.5, abs=1e-12)
    loop.carry(eom.Payload(5.0), 60.0)
    assert Refusal(loop.aim(now, at(0.9))).name == "overload" and loop.aim(now, at(1.4)) == 0


def test_a_motion_to_a_target_slows_down_for_a_payload_that_is_to_come() -> None:
    """It was broken off: what began without it became heavy on its way."""
    driven = Driven.of("ur5e", limits="refuse")
    driven.loop.carry(eom.Payload(8.0), 0.5)
    driven.loop.restart(np.array([0.0, -1.5, 0.0, 0.0, 0.0, 0.0]))
    assert driven.loop.aim(driven.now, np.array([0.0, 1.5, 0.0, 0.0, 0.0, 0.0])) == 0
    driven.run(4000)
    assert driven.loop.number("arrived") and driven.least < 0.8 and max(driven.shares.values()) < 0.995


def swing(effort: float, policy: str, rate: int, speed: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions of a sine that is sent to an iiwa at a rate, Hz, and its largest motor efforts relative to a limit."""
    loop = ControlLoop(RobotTable(eom.ElasticArm(limited("iiwa", effort=effort, effort_rate=np.inf))))
    loop.configure(safety="permissive", limits=policy)
    loop.limit(motion_limits(loop.arm, {"acceleration": 15.0}), 1e-9 * PERIOD)
    middle, size = np.array([0, 0.9, 0, -1.2, 0, 0.8, 0]), np.array([0.3, 0.3, 0.15, 0.3, 0.15, 0.15, 0.15])
    loop.restart(middle)
    states, shares = [], []
    for k in range(6000):
        if k % (1000 // rate) == 0:
            # Faster in the middle second than before and after.
            angle = speed * k / 1000 + 0.4 * np.clip(k / 1000 - 2, 0, 1)
            assert loop.aim(10**12 + k * PERIOD, middle + size * np.sin(angle)) == 0
        assert loop.update(10**12 + (k + 1) * PERIOD, 1e-9 * PERIOD) <= 0
        states.append(loop.state.copy())
        shares.append(np.max(np.abs(loop.command["motor_effort"])) / effort)
    return np.array(states), np.array(shares)


@pytest.mark.parametrize(("rate", "speed"), [(500, 4.0), (20, 3.0)])
def test_streams_below_limits_are_untouched_and_those_beyond_recover(rate: int, speed: float) -> None:
    """To the last bit with a peak of 0.989; with one of 1.06 and 1.1, within limits, back 0.5 s after the last peak."""
    free, efforts = swing(1e6, "ignore", rate, speed)
    peak = 1e6 * efforts.max()
    assert np.array_equal(swing(peak / 0.989, "warn", rate, speed)[0], free)
    for share in (1.06, 1.1):
        found, shares = swing(peak / share, "warn", rate, speed)
        assert shares.max() <= 1.0 and not np.array_equal(found, free)
        away = np.abs(found[:, 0] - free[:, 0]).max(axis=1)
        peaks = np.flatnonzero(share * efforts / efforts.max() > 0.99)
        late = [k for k in range(500, len(free)) if away[k] > 3e-4 and not ((peaks > k - 500) & (peaks <= k)).any()]
        assert away.max() < 0.05 and not late


def test_what_slows_down_a_motion_is_told() -> None:
    """With the joint and its limit; no more once a target comes at full acceleration again."""
    driven = Driven.of("ur5e with 5 kg")
    driven.loop.restart(np.zeros(6))
    assert driven.loop.aim(driven.now, np.full(6, 0.01)) == 0
    driven.run(500)
    assert driven.loop.text("slowed") == ""
    assert driven.loop.aim(driven.now, np.array([0.0, -1.5, 0.0, 0.0, 0.0, 0.0])) == 0
    driven.run(2500)
    assert re.fullmatch(
        r"to \d\d % of accelerations by the limit of motor effort of shoulder_lift_joint", driven.loop.text("slowed")
    )
    assert driven.loop.number("arrived") and driven.loop.state[0, 1] == pytest.approx(-1.5, abs=1e-12)
    assert driven.loop.aim(driven.now, np.full(6, 0.01)) == 0
    driven.run(1)
    assert driven.loop.text("slowed") == ""
