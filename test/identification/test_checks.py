# SPDX-License-Identifier: Apache-2.0
"""Recordings that contradict the file: each contradiction is named, and a consistent recording has none."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from excited import efforts, motion, recording, true_robot
from paths import PANDA_BAG

from eom_dynamics import Robot, load_robot
from eom_dynamics.actuators.friction import Friction
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Options, Recording, Regressor, fit
from eom_dynamics.identification.links.checks import Contradiction, contradictions
from eom_dynamics.identification.links.equations import training_data
from eom_dynamics.identification.links.filtering import default_filter
from eom_dynamics.identification.links.lag import delay_test, lag, lag_notes, spring_loops
from eom_dynamics.identification.links.parameters import vector_of_file
from eom_dynamics.identification.recording import recording_notes
from eom_dynamics.identification.sampling import LowPass
from eom_dynamics.recordings.joint_recordings import read_recording
from eom_dynamics.robot import Inertial, robot_from_urdf
from eom_dynamics.robot.model import Limits

RATE = 100.0  # of recordings, Hz; filters and regressors of more samples take most of the time

Case = tuple[str, str]

CASES: tuple[Case, ...] = (("ur5e", "joint"), ("ur5e", "motor"), ("sea_planar_2r", "joint"))


@cache
def source(case: Case) -> tuple[Robot, Robot, Recording, Regressor]:
    name, side = case
    robot = load_robot(name)
    true = true_robot(robot, side)
    terms = Options(side=side).for_robot(robot).terms
    assert terms is not None
    return robot, true, recording(robot, true, side, rate=RATE), Regressor(robot, terms)


def contradicting(regressor: Regressor, recorded: Recording, side: str, cutoff: float = 5.0) -> list[Contradiction]:
    using, file = default_filter(regressor.robot, cutoff, motor_side=side == "motor"), vector_of_file(regressor, side)
    return contradictions(regressor, training_data(regressor, file, [recorded], using).samples, file)


def lag_of(case: Case, recorded: Recording, cutoff: float = 5.0) -> tuple[float, float]:
    """Lag of efforts, and the share of squares that is left without it."""
    robot, *_, regressor = source(case)
    return lag(regressor, [recorded], default_filter(robot, cutoff, motor_side=case[1] == "motor"))


def scaled(recorded: Recording, *factors: float) -> Recording:
    n = recorded.tau.shape[1]
    return replace(recorded, tau=recorded.tau * np.resize(np.array(factors), n))


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_said_of_a_recording_as_it_should_be(case: Case) -> None:
    _, _, recorded, regressor = source(case)
    assert contradicting(regressor, recorded, case[1]) == []
    assert lag_notes(*lag_of(case, recorded)) == ([], [])


@pytest.mark.parametrize("case", [CASES[-1], pytest.param(CASES[1], marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("change", "start"),
    [
        (lambda r: scaled(r, -1.0), "efforts of {all} have the opposite sign"),
        (lambda r: scaled(r, 1.0, -1.0, *5 * (1.0,)), "efforts of {second} have the opposite sign"),
        (lambda r: scaled(r, 0.01), "efforts are in another unit, by factors of the file's prediction of {first} 0.01"),
        (lambda r: scaled(r, 1 / 8, 1 / 15, 1 / 14), "efforts are in another unit"),
        (lambda r: replace(r, tau=r.tau[:, [1, 0, *range(2, r.tau.shape[1])]]), "efforts of {first} and {second} look"),
        (
            lambda r: replace(r, **{x: getattr(r, x)[:, [1, 0, *range(2, r.q.shape[1])]] for x in ("q", "tau")}),
            "{first} and {second} look swapped",
        ),
    ],
    ids=["all signs", "one sign", "unit", "amperes", "efforts swapped", "joints swapped"],
)
def test_contradictions(case: Case, change: Callable[[Recording], Recording], start: str) -> None:
    robot, _, recorded, regressor = source(case)
    names = robot.joint_names
    expected = start.format(all=", ".join(names), first=names[0], second=names[1])
    assert contradicting(regressor, change(recorded), case[1])[0].words.startswith(expected)


@pytest.mark.parametrize("joint", range(6))
def test_efforts_of_a_joint_a_hundred_times_too_large(joint: int) -> None:
    """Also of the last joint, which the file balances: its efforts are beyond its limit."""
    robot, _, recorded, regressor = source(CASES[0])
    factors = np.where(np.arange(6) == joint, 100.0, 1.0)
    (found,) = contradicting(regressor, scaled(recorded, *factors), "joint")
    assert found.joints == (robot.joint_names[joint],)
    assert "another unit" in found.words and ("limit" in found.words) == (joint == 5)


@pytest.mark.parametrize("seed", [100, 114, 117])
def test_motor_currents_of_arms_whose_masses_differ(seed: int) -> None:
    """With factors of the file's prediction of 0.04 to 0.21: a fifth alone is no other unit."""
    robot, _, _, regressor = source(CASES[1])
    recorded = recording(robot, true_robot(robot, "motor", seed=seed), "motor", rate=RATE)
    (found,) = contradicting(regressor, scaled(recorded, 1 / 8, 1 / 15, 1 / 14), "motor")
    assert found.joints == robot.joint_names and "torque constant times gear ratio" in found.words


@pytest.mark.parametrize(("wrong", "named"), [(None, []), (0, ["shoulder_pan_joint"]), (2, ["elbow_joint"])])
def test_small_efforts_whose_sign_is_that_of_the_masses(wrong: int | None, named: list[str]) -> None:
    """Wrong centers of mass can reverse the effort of a wrist, but not of a shoulder; there is no friction."""
    robot = load_robot("ur5e")
    true = true_robot(robot, seed=135)
    true = replace(true, joints=tuple(replace(joint, damping=0.0, friction=0.0) for joint in true.joints))
    regressor, recorded = Regressor(robot, ("offset",)), recording(robot, true, rate=50.0)
    recorded = scaled(recorded, *np.where(np.arange(robot.n) == wrong, -1.0, 1.0))
    assert [x.joints for x in contradicting(regressor, recorded, "joint")] == ([tuple(named)] if named else [])


@pytest.mark.skipif(not PANDA_BAG.is_file(), reason="the recording of a Panda is missing")
@pytest.mark.parametrize("rows", [slice(480, None), slice(None)], ids=["8 s", "24 s"])
def test_signs_of_a_real_arm(rows: slice) -> None:
    """As recorded, with all signs reversed, and with a joint without gravity reversed; in 8 s, few samples are free."""
    pytest.importorskip("rosbags")
    robot = load_robot("panda")
    terms = Options(side="motor").for_robot(robot).terms
    assert terms is not None
    regressor, recorded = Regressor(robot, terms), read_recording(PANDA_BAG, robot)[rows]

    def named(*factors: float) -> list[tuple[str, ...]]:
        return [x.joints for x in contradicting(regressor, scaled(recorded, *factors), "motor", 1.57)]

    names = robot.joint_names
    assert named(1.0) == [] and named(-1.0) == [names]
    if rows.start is None:
        # Other signs are undecided, but friction does not drive joint 3.
        assert named(1.0, 1.0, 1.0, 1.0, -1.0, 1.0, 1.0) == [names[4:5]]
        assert named(-1.0, -1.0, 1.0, -1.0, -1.0, -1.0, -1.0) == [(*names[:2], *names[3:])]


@pytest.mark.parametrize(("case", "delay"), [*((case, x) for case in CASES for x in (0.05, 0.2)), (CASES[-1], -0.3)])
def test_lag(case: Case, delay: float) -> None:
    late, left = lag_of(case, source(case)[2].without_delay(-delay))
    assert late == pytest.approx(delay, abs=1e-3)
    ((found,), notes) = lag_notes(late, left)
    assert f"--effort-delay {late:.2g}" in found.words and not notes
    # Noise and friction of a real arm leave more.
    assert lag_notes(late, 0.7)[0] == [] and len(lag_notes(late, 0.7)[1]) == 1


SHARES = (0.05, 0.1, 0.2)


@cache
def without_loops() -> Array:
    """Efforts (S, N, n) by deflections of springs with a loop, a share of their range, tau = x + w sign(xd)."""
    recorded = source(CASES[-1])[2]
    tau = LowPass(recorded.period, 10.0).whole(recorded.tau)
    width, slow = 0.5 * np.outer(SHARES, np.ptp(tau, axis=0)), 0.02 * np.std(np.diff(tau, axis=0), axis=0)
    x = np.empty((len(SHARES), *tau.shape))
    x[:, 0] = tau[0]
    for k in range(1, len(tau)):
        low, high = tau[k] - width, tau[k] + width
        for _ in range(40):
            middle = 0.5 * (low + high)
            above = middle + width * np.tanh((middle - x[:, k - 1]) / slow) > tau[k]
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        x[:, k] = 0.5 * (low + high)
    return x + recorded.tau - tau


@pytest.mark.parametrize("share", range(len(SHARES)), ids=map(str, SHARES))
def test_hysteresis_of_springs_is_no_lag(share: int) -> None:
    """Efforts by deflections lack the loop between loading and unloading, and look late; they are identified anyway."""
    robot, _, recorded, regressor = source(CASES[-1])
    looped = replace(recorded, tau=without_loops()[share])
    late, left = lag_of(CASES[-1], looped)
    assert late > 0.015 and left < 0.8
    (words,) = spring_loops(regressor, [looped], default_filter(robot, 5.0), late)
    assert words.startswith("hysteresis of springs, a loop") and "joint_2" in words
    found = fit(robot, looped[:3000], looped[3000:], Options(side="joint", cutoff=5.0))
    assert found.contradictions == () and found.kept == () and words.split(" delay")[0] in " ".join(found.notes)
    # A delay is different.
    delayed = recorded.without_delay(-late)
    assert spring_loops(regressor, [delayed], default_filter(robot, 5.0), late) == []
    (refused,) = fit(robot, delayed, (), Options(side="joint", cutoff=5.0)).contradictions or [""]
    assert ("in 4 of 4 blocks)" in refused) == (late > 0.02)


def test_a_lag_that_predicts_no_better_is_not_said() -> None:
    """The recording is fitted with and without it, by the masses that all joints share."""
    case = CASES[0]
    robot, _, recorded, regressor = source(case)
    file = vector_of_file(regressor, case[1])
    data = training_data(regressor, file, [recorded], default_filter(robot, 5.0))
    for late in (0.089, -0.05, 0.01):
        test = delay_test(data, late)
        assert not test.holds and test.ratio < 1 and lag_notes(late, 0.2, test) == ([], [])
    moved = training_data(regressor, file, [recorded.without_delay(-0.089)], default_filter(robot, 5.0))
    assert delay_test(moved, 0.089).holds


def test_held_out_blocks_are_not_pauses() -> None:
    robot, _, recorded, _ = source(CASES[-1])
    training, validation, _ = replace(recorded, t=recorded.t + 0.6 * (recorded.t > 10.0)).held_out(0.3)
    assert recording_notes(robot, [training], [validation]) == [
        "simulated: pauses, lost samples or jumps of the clock separate 2 motions"
    ]


def wrist() -> Robot:
    """Three joints with friction; the last is balanced: its load is 0.3 kg, 0.4 mm off its axis."""

    def link(name: str, mass: float, x: float, inertia: float) -> str:
        inertial = f'<origin xyz="{x} 0 0.02"/><mass value="{mass}"/><inertia ixx="{inertia / 2}"'
        rest = f'iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/>'
        return f'<link name="{name}"><inertial>{inertial} {rest}</inertial></link>'

    def joint(k: int, xyz: str, rpy: str) -> str:
        return (
            f'<joint name="j{k}" type="revolute"><parent link="l{k - 1}"/><child link="l{k}"/><origin xyz="{xyz}" '
            f'rpy="{rpy}"/><axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="300" velocity="3"/></joint>'
        )

    quarter = "1.5707963267948966"
    links = link("l1", 9, 0.3, 0.3), link("l2", 4, 0.25, 0.1), link("l3", 0.3, 4e-4, 2e-4)
    joints = joint(1, "0 0 0.2", f"{quarter} 0 0"), joint(2, "0.6 0 0", "0 0 0"), joint(3, "0.5 0 0", f"0 {quarter} 0")
    robot = robot_from_urdf(f'<robot name="wrist"><link name="l0"/>{"".join(links + joints)}</robot>')
    laws = [Friction(v, c, c) for v, c in ((10.0, 8.0), (6.0, 5.0), (3.0, 2.8))]
    actuated = [replace(x, actuator=replace(x.actuator, friction=y)) for x, y in zip(robot.joints, laws, strict=True)]
    return replace(robot, joints=tuple(actuated))


LOADS = {
    "2.8 kg, off axis": (2, 2.8, (0.15, 0.0, 0.05)),
    "8 kg": (2, 8.0, (-0.05, 0.12, 0.1)),
    "on the link before": (1, 3.0, (0.4, 0.05, 0.1)),
}


@pytest.mark.parametrize("load", LOADS)
def test_a_load_on_a_balanced_wrist_is_no_other_unit(load: str) -> None:
    """For a payload or inertias of all bodies; wrong signs are found anyway."""
    robot, (body, mass, center) = wrist(), LOADS[load]
    x = np.array(center)
    inertia = mass * (x @ x * np.eye(3) - np.outer(x, x)) + 0.003 * mass * np.eye(3)
    loaded = robot.joints[body].with_inertial(robot.joints[body].inertial + Inertial(mass, x, inertia))
    true = replace(robot, joints=tuple(loaded if k == body else y for k, y in enumerate(robot.joints)))
    recorded, terms = recording(robot, true, "motor", rate=RATE), Options(side="motor").for_robot(robot).terms
    assert terms is not None
    regressor, file = Regressor(robot, terms, motor_side=True), vector_of_file(Regressor(robot, terms), "motor")

    def named(recorded: Recording, payload: str | None) -> list[tuple[str, ...]]:
        samples = training_data(regressor, file, [recorded], default_filter(robot, 4.0, motor_side=True)).samples
        return [found.joints for found in contradictions(regressor, samples, file, payload)]

    for name in (f"j{body + 1}", None):
        assert named(recorded, name) == [], name
        assert named(scaled(recorded, -1.0), name) == [robot.joint_names]


@pytest.mark.parametrize(("bends", "inertia"), [(0, 3.0), (1, 0.3)])
def test_links_that_bend_are_named(bends: int, inertia: float) -> None:
    """Behind one joint, an inertia on a spring, undamped: by its exact response to each frequency of the motion."""
    robot, count, frequency = load_robot("planar_2r"), 4000, 9.01
    robot = replace(robot, joints=tuple(replace(joint, limits=Limits()) for joint in robot.joints))
    t = np.arange(count) / RATE
    q, qd, qdd = motion(2, t, amplitude=0.5, slowest=0.5)  # 0.5 to 2.5 Hz, in whole periods
    f = np.fft.rfftfreq(count, 1 / RATE)
    moved = np.fft.rfft(q[:, bends]) * (1 / (1 - np.square(f / frequency)) - 1)
    rigid = efforts(true_robot(robot), q, qd, qdd)
    tau = rigid + 0.02 * np.random.default_rng(0).standard_normal(q.shape)
    tau[:, bends] += inertia * np.fft.irfft(-np.square(2 * np.pi * f) * moved, count)
    options = Options(cutoff=8.0)

    def notes(tau: Array) -> list[str]:
        found = fit(robot, Recording(robot.joint_names, t, q, tau), options=options)
        return [line for line in found.notes if "bend" in line]

    (line,) = notes(tau)
    (name, at), *others = re.findall(r"(joint_\d), at about (\S+) Hz", line)
    assert name == robot.joint_names[bends] and others == [] and float(at) == pytest.approx(frequency, rel=0.3)
    assert notes(rigid + 0.02 * np.random.default_rng(0).standard_normal(q.shape)) == []
