# SPDX-License-Identifier: Apache-2.0
"""Changes of the payload along a stream: smooth, and on the time of the stamps."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from loop_rig import LoopRig, rest
from paced import fast
from reference.payload_blend import PayloadBlend
from springs import EVERY_KIND, with_springs

import eom_dynamics as eom
from eom_dynamics.arrays import EFFORT_NAMES, Array
from eom_dynamics.control.control_loop import ControlLoop, Refusal
from eom_dynamics.control.online_trajectory import motion_limits
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.control.settings import LONGEST_BLEND
from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.robot.model import Limits
from eom_dynamics.trajectory import Spline
from eom_dynamics.trajectory.waypoints import through

MS, START, G = 1_000_000, 1_700_000_000_000_000_000, 9.80665


@pytest.fixture(scope="module")
def tables() -> dict[str, RobotTable]:
    return {name: RobotTable(eom.ElasticArm(eom.load_robot(name))) for name in ("planar_2r", "dual_arm")}


class Scales:
    """A planar arm at rest, stretched out level, whose second joint weighs a point mass at the tool."""

    def __init__(self, table: RobotTable) -> None:
        self.loop = ControlLoop(table)
        self.loop.configure(safety="permissive")
        self._empty = self.weigh(START, START)

    def carry(self, mass: float, time: float) -> None:
        self.loop.carry(eom.Payload(mass), time)

    def weigh(self, stamp: int | None, clock: int) -> Array:
        """Mass carried and its two rates at the command of a setpoint, or without."""
        self.loop.rest()
        if stamp is not None:
            self.loop.refer(stamp)
        assert self.loop.update(clock) == 0
        found = np.array([self.loop.command[name][1] for name in EFFORT_NAMES]) / (0.4 * G)
        return found - getattr(self, "_empty", 0.0)

    def along(self, milliseconds: Iterable[int]) -> Array:
        return np.array([self.weigh(START + k * MS, START + k * MS) for k in milliseconds])


@pytest.fixture
def scales(tables: dict[str, RobotTable]) -> Scales:
    return Scales(tables["planar_2r"])


def test_values_and_rates_are_derivatives_of_each_other_also_of_changes_within_changes(scales: Scales) -> None:
    """A newer change begins at the end of the present one; of those that wait, the latest counts."""
    parts = []
    for first, last, mass, time in ((0, 10, 0.0, 0.0), (10, 300, 3.0, 0.4), (300, 350, 0.5, 0.3), (350, 999, 3.0, 0.2)):
        if mass == 0.5:
            scales.carry(7.0, 0.1)
        if first != 350:
            scales.carry(mass, time)
        elif last == 999:  # while the second change is under way
            parts.append(scales.along(range(first, 600)))
            scales.carry(mass, time)
            first = 600
        parts.append(scales.along(range(first, last)))
    P, Pd, Pdd = np.concatenate(parts).T
    # Central differences, exact to h²/6 of the third derivative, which jumps at ends: at most 60/T³ of the change.
    h, worst = 1e-3, 60 / 0.2**3 * 3.0 * 2
    assert np.all(np.abs((P[2:] - P[:-2]) / (2 * h) - Pd[1:-1]) <= h * h / 2 * worst + 1e-9)
    assert np.all(np.abs((Pd[2:] - Pd[:-2]) / (2 * h) - Pdd[1:-1]) <= h * worst + 1e-9)
    assert np.all(np.abs(np.diff(Pdd)) <= h * worst + 1e-9)
    assert P[-1] == pytest.approx(3.0, rel=1e-14) and P[330] > 2.5 and np.all((P > -1e-13) & (P < 3.0 + 1e-13))
    assert P[405:420].max() == pytest.approx(3.0, rel=1e-6) and P[700:730].min() == pytest.approx(0.5, rel=1e-6)


def test_commands_ahead_carry_the_payload_of_now() -> None:
    """Efforts pass in the same way with any lead, also with one longer than the passage."""
    efforts = []
    for lead in (0.0, 0.002, 0.1):
        scales = Scales(RobotTable(eom.ElasticArm(replace(eom.load_robot("planar_2r"), drive_delay=lead))))
        scales.carry(3.0, 0.05)
        efforts.append(scales.along(range(80)))
    np.testing.assert_allclose(efforts[1:], [efforts[0]] * 2, rtol=0, atol=1e-14)


def test_a_change_takes_as_long_as_rates_of_efforts_need() -> None:
    """At the first command, which is no step, it takes no time."""
    arm = eom.load_robot("planar_2r")
    joints = tuple(replace(joint, limits=Limits(effort=80.0, effort_rate=600.0)) for joint in arm.joints)
    loop = ControlLoop(RobotTable(eom.ElasticArm(replace(arm, joints=joints))))
    loop.configure(safety="strict")
    q = np.array([-0.6, 0.6])
    loop.carry(eom.Payload(1.0), 0.0, q)
    loop.restart(q)
    loop.update(START)
    assert loop.number("valid") and not loop.number("blending")
    loop.carry(eom.Payload(2.0), 0.0)
    rates = []
    for k in range(1, 300):
        loop.rest()
        loop.given["q"][:] = q
        loop.refer(START + k * MS)
        assert loop.update(START + k * MS) == 0
        rates.append(np.abs(loop.command["taud"]).max())
    assert 290 < max(rates) <= 300 and not loop.number("blending")


def test_a_change_at_rest_goes_on_where_setpoints_have_ended(scales: Scales) -> None:
    """After 0.1 s, without a step, and to the next setpoint; positions stay."""
    scales.carry(3.0, 0.3)
    begun = scales.along(range(51))
    P, Pd, Pdd = np.array([scales.weigh(None, START + k * MS) for k in range(51, 300)]).T
    assert begun[-1, 0] > 0.1 and np.all(P[:99] == begun[-1, 0]) and P[120] > P[100] > P[99]
    np.testing.assert_allclose((P[101:] - P[99:-2]) / 2e-3, Pd[100:-1], atol=1e-6 / 6 * 3 * 60 / 0.3**3)
    np.testing.assert_allclose((Pd[101:] - Pd[99:-2]) / 2e-3, Pdd[100:-1], atol=1e-3 * 3 * 60 / 0.3**3)
    after = scales.weigh(START + 300 * MS, START + 300 * MS)
    assert after[0] - P[-1] == pytest.approx(1e-3 * after[1], rel=0.1) and not scales.loop.setpoint["q"].any()
    for k in range(301, 600):
        last = scales.weigh(None, START + k * MS)
    np.testing.assert_allclose(last, [3.0, 0.0, 0.0], rtol=1e-14)
    assert not scales.loop.number("blending")


AT_REST = [0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5]


def refusing(**settings: Any) -> tuple[ControlLoop, Callable[[], None], Array]:
    """A loop whose limits are refused, what gives it a setpoint at rest, and limits of effort and its rate (2, n)."""
    loop = ControlLoop(RobotTable(eom.ElasticArm(eom.load_robot("panda"))))
    loop.configure(**{"safety": "permissive", "limits": "refuse"} | settings)

    def rest() -> None:
        loop.rest()
        loop.given["q"][:] = AT_REST
        loop.refer(START)
        assert loop.update(START) == 0

    return loop, rest, np.array([(x.limits.effort, x.limits.effort_rate) for x in loop.arm.robot.joints]).T


@pytest.mark.parametrize("measured", [False, True], ids=["commanded", "measured"])
def test_what_the_arm_cannot_hold_is_refused(measured: bool) -> None:
    """A center of mass in mm."""
    payload = eom.Payload(3.0, [0.0, 0.0, 100.0])
    loop, rest, (limit, _) = refusing()
    q = np.array(AT_REST)
    if not measured:
        rest()
    found = np.abs(loop.arm.feedforward(q, *np.zeros((4, 7)), payload=payload).tau)
    worst = int(np.argmax(found / limit))
    text = f"effort of fer_joint{worst + 1} would be {found[worst]:.4g}, beyond its limit {limit[worst]:g} (SI un"
    with pytest.raises(eom.StateError, match=f"^{re.escape(text)}its\\): give mass in kg and centre of mass in m"):
        loop.carry(payload, 0.3, q if measured else None)
    assert not loop.number("blending")
    loop.carry(eom.Payload(1.0), 0.2)


def test_a_payload_beyond_limits_before_the_first_command_refuses_setpoints_until_a_lighter_one() -> None:
    """One that was taken while no position was known, by which it could be judged."""
    loop, rest, _ = refusing()
    loop.carry(eom.Payload(200.0, [0.0, 0.0, 0.1]), 0.2)
    loop.rest()
    loop.given["q"][:] = AT_REST
    loop.refer(START)
    assert loop.update(START) == Refusal.over_limits and not loop.number("valid")
    loop.carry(eom.Payload(1.0), 0.2)
    rest()
    wanted = loop.arm.feedforward(np.array(AT_REST), *np.zeros((4, 7)), payload=eom.Payload(1.0)).tau
    np.testing.assert_array_equal(loop.command["tau"], wanted)


@pytest.mark.parametrize("source", ["stream", "target", "stop"])
def test_a_change_leaves_limits_of_rates_to_motions_and_ends(source: str) -> None:
    """It is as short as limits allow, and slows down where the motion needs its rates itself."""
    loop, rest, (effort, rate) = refusing(on_setpoint_loss="hold")
    loop.limit(motion_limits(loop.arm), 1e-3)
    rest()
    begun, ended = [0.0], 0
    for k in range(1, 4000):
        now = START + k * MS
        if k == 5 and source != "stream":
            assert loop.aim(now, loop.setpoint["q"] + 0.4) == 0
        if k == 20:
            loop.carry(eom.Payload(2.0, [0.0, 0.0, 0.1]), 0.0)
        if k == 60 and source == "stop":
            loop.act("stop")
        if source == "stream" and k < 1500:
            t, w = 1e-3 * k, 12.0
            loop.rest()
            derivatives = np.array([1 - np.cos(w * t), w * np.sin(w * t), w**2 * np.cos(w * t)])
            derivatives = np.append(derivatives, [-(w**3) * np.sin(w * t), -(w**4) * np.cos(w * t)])
            for row, value in zip(("q", "qd", "qdd", "qddd", "qdddd"), 0.02 * derivatives, strict=True):
                loop.given[row][:] = value
            loop.given["q"] += AT_REST
            loop.refer(now)
        assert loop.update(now) <= 0
        assert np.all(np.abs(loop.command["tau"]) <= effort) and np.all(np.abs(loop.command["taud"]) <= rate)
        if loop.number("blending"):
            begun.append(float(np.abs(loop.command["taud"] / rate).max()))
            ended = k
    assert max(begun) > 0.4 and 20 < ended < 1500
    wanted = loop.arm.feedforward(loop.setpoint["q"], *np.zeros((4, 7)), payload=eom.Payload(2.0, [0.0, 0.0, 0.1])).tau
    if source != "stream":
        np.testing.assert_array_equal(loop.command["tau"], wanted)


def test_an_arm_that_is_measured_beyond_limits_may_take_what_adds_nothing() -> None:
    """Before the first command, as after it."""
    robot = eom.load_robot("planar_2r")
    weak = (replace(joint, limits=Limits(effort=1.0)) for joint in robot.joints)
    loop = ControlLoop(RobotTable(eom.ElasticArm(replace(robot, joints=tuple(weak)))))
    loop.carry(eom.Payload(0.0), 0.1, np.zeros(2))
    with pytest.raises(eom.StateError, match="beyond its limit 1 "):
        loop.carry(eom.Payload(0.1), 0.1, np.zeros(2))


def test_a_payload_before_the_first_command_is_taken_where_measured_positions_are_not_known() -> None:
    """As hardware has them until its first reading."""
    loop, rest, _ = refusing()
    loop.carry(eom.Payload(1.0), 0.2, np.full(7, np.nan))
    rest()
    wanted = loop.arm.feedforward(np.array(AT_REST), *np.zeros((4, 7)), payload=eom.Payload(1.0)).tau
    np.testing.assert_array_equal(loop.command["tau"], wanted)


@pytest.mark.parametrize("seed", [3, 7])
def test_a_motion_slows_down_for_a_payload_that_is_taken_amid_it(seed: int) -> None:
    """It was broken off at a limit, mostly where no stop was within limits."""
    loop, _, limits = refusing(stop_duration=0.2)
    motion = fast(loop.arm, np.random.default_rng(seed))
    loop.send_trajectory(motion, START)
    allowed = set()
    for k in range(5000):
        loop.plan(START + k * MS, 1e-3)
        if k == 300:
            loop.carry(eom.Payload(7.0, [0.0, 0.0, 0.05]), 0.3)
        loop.update(START + k * MS)
        assert np.all(np.abs([loop.command["tau"], loop.command["taud"]]) <= limits)
        allowed.add(round(loop.number("allowed_pace"), 1))
    assert 1.0 in allowed and min(allowed) < 0.9
    np.testing.assert_allclose(loop.state[0], motion.derivatives(motion.end, 0)[0], rtol=0, atol=1e-14)
    wanted = loop.arm.feedforward(*loop.state, payload=eom.Payload(7.0, [0.0, 0.0, 0.05])).tau
    np.testing.assert_array_equal(loop.command["tau"], wanted)


STAMPS = {
    "of two publishers 3 s apart": lambda k: START + (k - 3000 * (k % 2)) * MS,
    "of one publisher with and one without": lambda k: (START + k * MS) * (k % 2),
    "none": lambda k: 0,
    "from a clock ten times too fast": lambda k: START + 10 * k * MS,
    "once far ahead": lambda k: START + (k + 10_000 * (k == 300)) * MS,
    "that begin anew": lambda k: (START + k * MS) if k < 400 else k * MS,
}


@pytest.mark.parametrize("stamp", STAMPS.values(), ids=STAMPS)
def test_time_is_never_ahead_of_the_clock_by_more_than_its_lead(tables: dict[str, RobotTable], stamp) -> None:
    """Nor behind by more than two setpoints in each of two changes, the second after the first. Masses increase."""
    found = []
    for stamps in (stamp, lambda k: 0):
        scales, masses = Scales(tables["planar_2r"]), []
        for k in range(2400):
            if k in (1, 200):
                scales.carry(3.0 if k > 1 else 0.5, 1.0)
            masses.append(scales.weigh(stamps(k), START + (7 + k) * MS)[0])
        found.append(np.array(masses))
    mine, exact = found
    assert np.all(mine[:-40] <= exact[40:] + 1e-12) and np.all(mine[4:] >= exact[:-4] - 1e-12)
    assert mine[-1] == exact[-1] == pytest.approx(3.0, rel=1e-14)
    assert np.max(np.abs(np.diff(mine))) < 1.875 * 3.0 * 0.021


def test_of_any_number_of_payloads_the_latest_counts(scales: Scales) -> None:
    for _ in range(100):
        scales.carry(3.0, 0.1)
    for _ in range(8):
        scales.carry(0.0, 0.2)
        scales.weigh(START, START)
    assert scales.loop.number("blending") and np.all(scales.along(range(20, 501, 20))[-1] == 0.0)
    assert not scales.loop.number("blending")
    for time in (-0.1, np.nan, np.inf, LONGEST_BLEND * 1.01):
        with pytest.raises(eom.StateError, match="blend_time must be 0 to 60 s"):
            scales.carry(3.0, time)
    with pytest.raises(RobotDescriptionError, match=r"payload.*planar_2r.*'nobody'"):
        scales.loop.carry(eom.Payload(1.0, tool="nobody"), 0.1)


def test_a_trajectory_that_waits_for_the_end_of_another_one_is_checked_with_a_payload_that_comes_meanwhile() -> None:
    """Too fast for it, it is refused at its start; it was broken off on its way."""
    loop, q = ControlLoop(RobotTable(eom.ElasticArm(eom.load_robot("ur5e")))), np.array([0.0, -0.9, 0.9, 0.0, 0.0, 0.0])
    loop.configure(safety="permissive", limits="refuse")
    loop.restart(q)
    codes, t = [], np.linspace(0.0, 0.55, 9)
    for k in range(1200):
        if k in (1, 2):
            motion = through([0.0, 0.55], [q, q - 0.5 * (k - 1) * np.eye(6)[1]])
            loop.send_trajectory(Spline(t, np.array(motion.derivatives(t, 4))), START + (1 if k == 1 else 602) * MS)
        if k == 200:
            assert loop.number("playing") and loop.number("waiting")
            loop.carry(eom.Payload(7.0, [0.0, 0.0, 0.05]), 0.2)
        codes.append(loop.plan(START + k * MS, 1e-3))
        loop.update(START + k * MS)
    assert codes[602] == Refusal.over_limits and not loop.number("over_limits")
    np.testing.assert_array_equal(loop.setpoint["q"], q)


def test_a_burst_amid_a_long_motion_is_checked_with_the_payload_before_it_begins() -> None:
    """It is shorter than the time between places that are checked evenly: it was broken off on its way."""
    loop, q = ControlLoop(RobotTable(eom.ElasticArm(eom.load_robot("ur5e")))), np.array([0.0, -0.9, 0.9, 0.0, 0.0, 0.0])
    loop.configure(safety="permissive", limits="refuse")
    loop.restart(q)
    loop.carry(eom.Payload(7.0, [0.0, 0.0, 0.05]), 0.0)
    for seconds, expected, twists in ((0.25, Refusal.over_limits, 0), (0.25, Refusal.over_limits, 200), (0.5, 0, 0)):
        loop.update(START)
        times = [0.0, 30.02, 30.02 + seconds / 2, 30.02 + seconds, *range(32, 32 + 2 * twists), 500.0]
        states = np.zeros((5, len(times), 6))
        states[0] = q
        states[0, 2, 1] += 0.02
        states[0, 5:-1:2, 5] = 0.1  # more peaks of a wrist than are checked
        loop.send_trajectory(Spline(times, states), START)
        assert loop.plan(START, 1e-3) == expected


@pytest.mark.parametrize("seed", range(3))
def test_changes_along_any_stream_are_those_of_the_reference(tables: dict[str, RobotTable], seed: int) -> None:
    """With gaps, without stamps, with stamps of other clocks, and with changes within changes at two tools."""
    rng, loop = np.random.default_rng(seed), ControlLoop(tables["dual_arm"])
    robot = loop.arm.robot
    loop.configure(safety="permissive")
    blend, stamp, clock, widths = PayloadBlend(robot), START, START, set[int]()
    carried = loop.vectors("setpoint", dict.fromkeys(("P", "Pd", "Pdd"), 10 * len(robot.tools)))
    for _ in range(600):
        if rng.random() < 0.02:
            tool = robot.tools[int(rng.integers(len(robot.tools)))].name
            body, time = (
                eom.Payload(float(rng.choice([0.0, 0.5, 2.0])), [0.0, 0.1, 0.0], tool=tool),
                rng.uniform(0, 0.2),
            )
            loop.carry(body, time)
            blend.change(body, time)
        step = int(rng.choice([1, 1, 1, 1, 3, 40, 300])) * MS
        clock += step
        stamp += int(rng.choice([step, step, step, 0, 2 * step, -2_000 * MS], p=[0.5, 0.2, 0.1, 0.1, 0.09, 0.01]))
        given = stamp if rng.random() < 0.9 else 0
        loop.rest()
        loop.refer(given)
        assert loop.update(clock) <= 0
        wanted = np.zeros((3, 10 * len(robot.tools)))
        for row, x in zip(wanted, blend.at(given, clock), strict=False):
            row[:] = np.ravel(x)
        blend.commit()
        assert loop.number("blending") == blend.blending
        widths.add(blend.changes)
        size = 1e-13 * np.array([[1.0], [1e3], [1e6]]) * (1 + np.abs(wanted).max())
        assert (np.abs(np.array([*carried.values()]) - wanted) <= size).all()
    assert {0, 1, 2} <= widths


def test_dampers_settle_under_a_payload_that_changes_at_rest() -> None:
    """Without setpoints since, and without a response to their loss."""
    robot = with_springs(eom.load_robot("planar_2r"), EVERY_KIND["damped"], rotor_inertia=0.2)
    q, rig = np.array([-1.4, 0.3]), LoopRig(robot, setpoint_timeout=0.0)
    rig.restart(q)
    rig.cycles(60, rest(q))
    rig.cycles(150)
    rig.loop.carry(eom.Payload(0.8, [0.03, 0.0, 0.02]), 0.05)
    rig.cycles(100)
    assert rig.loop.number("blending") and np.abs(rig.loop.sent["drive_velocity"]).max() > 1e-3
    rig.cycles(400)
    assert not rig.loop.number("blending")
    settled = rig.arm.feedforward(q, *np.zeros((4, 2)), payload=eom.Payload(0.8, [0.03, 0.0, 0.02]))
    np.testing.assert_allclose(rig.loop.sent["drive_effort"], settled.motor_effort, atol=1e-4)
    np.testing.assert_allclose(rig.loop.sent["drive_velocity"], 0.0, atol=1e-6)
