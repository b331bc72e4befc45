# SPDX-License-Identifier: Apache-2.0
"""Motions of a bag: measured positions, fitted window by window, and planned trajectories, sampled."""

from pathlib import Path

import numpy as np
import pytest
from bag_files import JOINT_STATE, START, TRAJECTORY, joint_state, read_bag, trajectory, write_bag

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.control.fields import STATE_FIELDS
from eom_dynamics.recordings import Sampling
from eom_dynamics.recordings import fitted_motion as fitting
from eom_dynamics.recordings.bags import Bag, BagError
from eom_dynamics.recordings.fitted_motion import FitFigures, fitted_motion, repeated_positions
from eom_dynamics.recordings.streams import Refusals, TopicReader
from eom_dynamics.tools.replay.bag import Job, replay_bag
from eom_dynamics.trajectory import paper_motion, through

MOTION = paper_motion(2)
RATE = 200.0
CUTOFF = 10.0
ROBOT = load_robot("planar_2r")
NAMES = ROBOT.joint_names


def bag_of(path: Path, messages) -> Path:
    return write_bag(path, {"/joint_states": (JOINT_STATE, messages)})


def measured(times, noise: float = 0.0, seed: int = 0):
    """Messages of the motion at times (N,) in s, with other joints among the robot's, in another order."""
    positions = MOTION.derivatives(times, order=0)[0]
    positions = positions + noise * np.random.default_rng(seed).standard_normal(positions.shape)
    names = ["finger", *NAMES[::-1]]
    stamps = START + np.round(times * 1e9).astype(np.int64)
    return [
        (int(t) + 50_000, joint_state(int(t), names, [9.0, *q[::-1]], [8.0, *(10 * q[::-1])]))
        for t, q in zip(stamps, positions, strict=True)
    ]


def fitted(bag: Path, cutoff: float = CUTOFF):
    refusals, figures = Refusals(), FitFigures(len(NAMES))
    with Bag(bag) as opened:
        reader = TopicReader(opened, opened.topics[0], robot=ROBOT, refusals=refusals)
        batches = list(fitted_motion(reader, ROBOT, cutoff, figures))
    return batches, refusals, figures


def test_the_motion_is_found_and_windows_meet(tmp_path: Path, monkeypatch) -> None:
    t = np.arange(3000) / RATE
    bag = bag_of(tmp_path / "in", measured(t, noise=1e-5))
    monkeypatch.setattr(fitting, "_WINDOW", 100_000)
    (whole,), *_ = fitted(bag)
    monkeypatch.setattr(fitting, "_WINDOW", 700)
    batches, refusals, figures = fitted(bag)
    assert [len(batch) for batch in batches] == [700] * 4 + [200] and not refusals.reasons
    assert [len(whole)] == [3000]
    inner = slice(200, -200)
    expected = MOTION.derivatives(t)
    for k, (name, scale) in enumerate(zip(STATE_FIELDS, (2e-5, 1e-3, 4e-2, 2.0, 100.0), strict=True)):
        parts = np.concatenate([batch.values[name] for batch in batches])
        assert np.max(np.abs(parts - expected[k])[inner]) < scale, name
        # Each window has its own knots, so that the noise differs between windows by a little.
        assert np.max(np.abs(parts - whole.values[name])) < 0.05 * scale, name
    np.testing.assert_array_equal(np.concatenate([b.stamp for b in batches]), whole.stamp)
    np.testing.assert_array_equal(np.concatenate([b.values["effort"] for b in batches]), whole.values["effort"])
    # The deviation is the noise, without its part below the cut-off.
    assert np.all((figures.rms > 0.9e-5) & (figures.rms < 1.0e-5)) and figures.count == 3000


@pytest.mark.parametrize("shift", [3600.0, -10.0], ids=["set back", "pause"])
def test_a_pause_or_a_clock_that_is_set_back_ends_a_motion(tmp_path: Path, shift: float) -> None:
    """A fit across it would oscillate; each side is fitted as if recorded alone. Small steps back are other samples."""
    t = np.arange(1000) / RATE
    messages = measured(np.concatenate([t[:500] + shift, t[500:]]) + 10.0)
    messages.insert(700, messages[690])
    messages = [(START + k, message) for k, (_, message) in enumerate(messages)]
    batches, refusals, _ = fitted(bag_of(tmp_path / "both", messages))
    (alone,), _, _ = fitted(bag_of(tmp_path / "second", measured(t[500:] + 10.0)))
    assert [len(batch) for batch in batches] == [500, 500] and refusals.reasons == {"stamp does not increase": 1}
    for name in STATE_FIELDS:
        np.testing.assert_array_equal(batches[1].values[name], alone.values[name])


def test_one_wrong_stamp_costs_one_sample(tmp_path: Path) -> None:
    messages = measured(np.arange(400) / RATE)
    for k in (0, 200):
        messages[k][1].header.stamp.sec = 2**31 - 1
    batches, refusals, _ = fitted(bag_of(tmp_path / "in", messages))
    assert [len(batch) for batch in batches] == [199, 199]
    assert refusals.reasons == {"motion of fewer than 20 samples is not fitted": 2}


def test_unusable_samples_are_skipped_and_counted(tmp_path: Path) -> None:
    messages = measured(np.arange(500) / RATE)
    messages[50][1].position[1] = np.nan
    messages[40][1].position[1] = 1e10
    messages[60] = (messages[60][0], messages[59][1])
    messages[70] = (messages[70][0], messages[30][1])
    messages[80] = (messages[80][0], joint_state(START + 400_000_000, ["joint_1"], [0.0]))
    messages[90] = (messages[90][0], joint_state(START + 450_000_000, NAMES, [0.0]))
    for k in (100, 200):
        messages[k][1].position[:] = messages[k - 1][1].position
    batches, refusals, figures = fitted(bag_of(tmp_path / "in", messages))
    assert sum(map(len, batches)) == 494 and np.all(figures.largest < 1e-2)
    assert (figures.repeated, figures.first_repeated) == (2, messages[100][0])
    assert refusals.reasons == {
        "stamp does not increase": 2,
        "position is not finite, or beyond 1e+09": 2,
        "name: joint 'joint_2' missing; name has 'joint_1'": 1,
        "position has 1 entries, name has 2": 1,
    }
    other = [(START + k, joint_state(START + k, ["a", "b"], [0.0, 0.0])) for k in range(30)]
    job = Job(bag_of(tmp_path / "other", other), tmp_path / "out", "planar_2r")
    with pytest.raises(BagError, match=r"'joint_1'.*'joint_2'.*missing.*'a'.*'b'"):
        replay_bag(job)


def test_without_stamps_the_times_of_recording_are_used(tmp_path: Path) -> None:
    messages = measured(np.arange(500) / RATE)
    bare = [(time, joint_state(0, m.name, m.position)) for time, m in messages]
    (batch,), _, _ = fitted(bag_of(tmp_path / "bare", bare))
    (stamped,), _, _ = fitted(bag_of(tmp_path / "stamped", messages))
    assert "effort" not in batch.values
    # Efforts are of the same joints as positions.
    np.testing.assert_allclose(stamped.values["effort"], 10 * stamped.values["position"], atol=1e-3)
    assert stamped.names == NAMES
    np.testing.assert_array_equal(stamped.recorded, stamped.stamp + 50_000)
    for name in STATE_FIELDS:
        np.testing.assert_allclose(batch.values[name], stamped.values[name], rtol=1e-9, atol=1e-9)


def test_efforts_of_two_motors_at_a_joint_cannot_be_compared_with_recorded_efforts(tmp_path: Path) -> None:
    bag = bag_of(tmp_path / "in", measured(np.arange(100) / RATE))
    with pytest.raises(BagError, match=r"motor_effort.*compared.*4.*2"):
        replay_bag(Job(bag, tmp_path / "out", "vsa_planar_2r", against="motor_effort"))


REPEATING = np.array(
    [[0.0, 1.0]] * 5 + [[x, 1.0] for x in (0.1, 0.2, 0.2, 0.3, 0.4, 0.4, 0.5)] + [[0.5, 1.0]] * 5, dtype=float
)


def test_repeats_are_between_two_steps() -> None:
    assert repeated_positions(REPEATING).tolist() == [7, 10]
    still = np.array([[1e-5 * (k // 2)] for k in range(9)])
    assert len(repeated_positions(still)) == 0 and len(repeated_positions(np.array([[0.0], [1.0]]))) == 0


TIMES = [0.0, 0.4, 1.0]
POINTS = np.array([[0.0, 0.2], [0.5, -0.1], [0.3, 0.4]])
SECOND = 1_000_000_000


def replayed_plans(tmp_path: Path, messages, rate: float = 100.0):
    bag = write_bag(tmp_path / "in", {"/joint_trajectory": (TRAJECTORY, messages)})
    report = replay_bag(Job(bag, tmp_path / "out", "planar_2r", sampling=Sampling(rate=rate)))
    return report, read_bag(tmp_path / "out")["/feedforward"]


def test_samples_are_those_of_the_interpolant(tmp_path: Path) -> None:
    message = trajectory(START, NAMES[::-1], TIMES, POINTS[:, ::-1], velocities=0.1 * POINTS[:, ::-1])
    report, commands = replayed_plans(tmp_path, [(START + 77, message)])
    assert report.commands == len(commands) == 101 and report.seconds == pytest.approx(1.0)
    motion = through(TIMES, POINTS, velocities=0.1 * POINTS)
    arm = ElasticArm(ROBOT)
    for k, (time, command) in enumerate(commands):
        assert time == START + 77 + k * 10_000_000
        assert command.header.stamp.sec * SECOND + command.header.stamp.nanosec == START + k * 10_000_000
        expected = arm.feedforward(*motion.derivatives(k * 0.01))
        # The order of joints changes the rounding of the interpolant; its snap is of the order of 1e3.
        np.testing.assert_allclose(command.motor_effort[::-1], expected.motor_effort, rtol=1e-9, atol=1e-7)


def test_the_next_trajectory_takes_over(tmp_path: Path) -> None:
    first = (START, trajectory(START, NAMES, TIMES, POINTS))
    second = (START + 10, trajectory(START + SECOND // 2, NAMES, TIMES, POINTS))
    # Without a stamp it starts when it was recorded.
    third = (START + 4 * SECOND, trajectory(0, NAMES, TIMES, POINTS))
    report, commands = replayed_plans(tmp_path, [first, second, third])
    stamps = np.array([c.header.stamp.sec * SECOND + c.header.stamp.nanosec for _, c in commands]) - START
    expected = [k * 10_000_000 for k in range(50)]
    expected += [SECOND // 2 + k * 10_000_000 for k in range(101)]
    expected += [4 * SECOND + k * 10_000_000 for k in range(101)]
    assert sorted(stamps.tolist()) == expected and report.refusals.total == 0


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (trajectory(0, NAMES, [], []), "trajectory has no points"),
        (trajectory(0, NAMES, [0.0, 0.0, 1.0], POINTS), r"must be later than points\[0\]"),
        (trajectory(0, NAMES, TIMES, POINTS * np.nan), r"points\[0\].positions\[0\] \(joint 'joint_1'\) is nan"),
        (trajectory(0, NAMES, [0.0, 1e9, 2e9], POINTS), "too long to sample"),
        (trajectory(0, ["a", "b"], TIMES, POINTS), "the robot has no joint 'a'"),
        (b"\x00\x01\x00\x00abc", "JointTrajectory"),
        (b"\x00", "too short for a message"),
    ],
)
def test_unusable_trajectories_are_refused(tmp_path: Path, message, reason: str) -> None:
    with pytest.raises(BagError, match=reason):
        replayed_plans(tmp_path, [(START, message)])
    good = (START + 1, trajectory(0, NAMES, TIMES, POINTS))
    bag = write_bag(tmp_path / "both", {"/joint_trajectory": (TRAJECTORY, [(START, message), good])})
    report = replay_bag(Job(bag, tmp_path / "out", "planar_2r", sampling=Sampling(rate=10.0)))
    assert report.commands == 11 and report.refusals.total >= 1
