# SPDX-License-Identifier: Apache-2.0
"""Motions whose pace changes: on their paths, within limits, C4; and PathTime for planners."""

from functools import partial

import numpy as np
import pytest
from paced import STEP, fast, played
from reference.path import chain

import eom_dynamics as eom
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.control.settings import Status
from eom_dynamics.trajectory import Samples, Spline, check, rest_to_rest, through


@pytest.fixture(scope="module", params=["sea_planar_2r", "panda"])
def arm(request):
    return eom.ElasticArm(eom.load_robot(request.param))


def test_a_change_ends_before_the_next_one(arm):
    motion = fast(arm, np.random.default_rng(11))
    begin = 0.3 * motion.end
    requests = {0: "pause", 100: 0.6, 110: "resume", 120: "pause", 130: "resume"}
    events = [(begin + 1e-3 * k, x) for k, x in requests.items()]
    (_, s, pace), loop = played(arm, motion, events, motion.end + 2.0, step=10 * STEP)
    assert np.min(np.diff(s)) >= 0 and loop.number("over_limits") == 0
    rests = int(np.argmax(pace == 0))
    assert rests > 0 and np.all(np.diff(pace[:rests]) <= 0)
    faster = int(np.argmax(pace[rests:] == 0.6))
    assert faster > 0 and np.all(np.diff(pace[rests : rests + faster]) >= 0) and pace.max() == 1


def test_speeds_above_the_planned_speed_are_rejected(arm):
    loop = ControlLoop(RobotTable(arm))
    for factor in (1.0 + 1e-9, 1.5, -0.1, np.nan):
        with pytest.raises(eom.StateError, match=r"speed_scaling must be 0 to 1, is "):
            loop.speed(factor)
    loop.speed(1.0)


@pytest.mark.parametrize("seed", range(3))
def test_the_path_and_its_limits_are_kept(arm, seed):
    motion, rng = fast(arm, np.random.default_rng(seed)), np.random.default_rng(seed)
    T, choices = motion.end, ["pause", "resume", 0.3, 0.8, 0.6, "resume", 1.0]
    times = np.sort(rng.uniform(0.05, 1.0, 6)) * T
    events = [(t, choices[int(rng.integers(len(choices)))]) for t in times] + [
        (1.1 * T, "resume"),
        (1.1 * T + 0.05, "stop"),
    ]
    (states, s, _), loop = played(arm, motion, events, 1.1 * T + 0.6)
    # At the loop's parameter, along the stop, too: a path that crosses itself has two nearest places.
    path = motion.derivatives(np.clip(s, motion.start, motion.end), 0)[0]
    np.testing.assert_allclose(states[:, 0], path, rtol=0, atol=2e-14)  # rounding of the path parameter
    assert not states[-1, 1:].any() and loop.number("over_limits") == 0
    found = check(arm, Samples(1e-9 * STEP * np.arange(len(states)), *np.moveaxis(states, 1, 0)))
    assert found.ok, str(found)
    # Each derivative is the slope of the one before, to the next one's own change within a step.
    for order in range(4):
        slope = np.diff(states[:, order], axis=0) / (1e-9 * STEP)
        mean = 0.5 * (states[1:, order + 1] + states[:-1, order + 1])
        changes = np.abs(np.diff(states[:, order + 1], axis=0)).max()
        assert np.max(np.abs(slope - mean)) <= 0.3 * changes + 1e-6


def near_limits(arm, rng):
    """A random motion around the middle of all ranges, 3 % slower than limits allow."""
    ranges = [np.clip([x.limits.lower, x.limits.upper], -3.0, 3.0) for x in arm.robot.independent_joints]
    points = np.mean(ranges, axis=1) + np.cumsum(rng.uniform(-0.1, 0.1, (4, arm.robot.n)), axis=0)
    found = check(arm, through(np.arange(4.0), points), rate=1000.0)
    return through(max(1.03 * float(found.margin), 0.2) * np.arange(4.0), points)


@pytest.mark.parametrize("name", eom.packaged_robots())
def test_every_arm_keeps_its_path_and_its_limits(name):
    arm, rng = eom.ElasticArm(eom.load_robot(name)), np.random.default_rng(5)
    motion = near_limits(arm, rng)
    T = motion.end
    events = [(t, ("pause", "resume", 0.4)[int(rng.integers(3))]) for t in np.sort(rng.uniform(0.0, 2.0, 8)) * T]
    events += [(0.1 * T, "pause"), (2 * T + 1.0, "resume"), (2 * T + 1.01, 0.8), (2 * T + 1.4, "stop")]
    (states, s, pace), loop = played(arm, motion, events, 2 * T + 3.0, step=5 * STEP)
    path = motion.derivatives(np.clip(s, motion.start, T), 0)[0]
    np.testing.assert_allclose(states[:, 0], path, rtol=0, atol=1e-13)
    assert pace.min() == 0 and not states[-1, 1:].any() and loop.number("over_limits") == 0
    found = check(arm, Samples(5e-9 * STEP * np.arange(len(states)), *np.moveaxis(states, 1, 0)))
    assert found.ok, str(found)


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6])
def test_a_motion_at_its_limits_pauses_and_resumes_within_them(arm, share):
    motion = fast(arm, np.random.default_rng(9), fastest=True).stretched(1.02)
    T = motion.end
    events = [(share * T, "pause"), (share * T + 2.5, "resume"), (share * T + 4.5, 0.5)]
    (states, _, pace), loop = played(arm, motion, events, T + 6.0, step=10 * STEP)
    assert pace.min() == 0 or (1 - share) * T < 1.0  # the end of the path is nearer than a stop
    assert loop.number("finished") == 1 and loop.number("over_limits") == 0
    found = check(arm, Samples(1e-8 * STEP * np.arange(len(states)), *np.moveaxis(states, 1, 0)))
    assert found.ok, str(found)


def test_a_pause_shortly_before_the_end_of_a_path_rests_there(arm):
    motion = fast(arm, np.random.default_rng(8))
    T = motion.end
    (states, s, pace), loop = played(arm, motion, [(T - 0.05, "pause")], T + 0.5, step=10 * STEP)
    assert pace.min() == 1 and s.max() == pytest.approx(T, abs=1.1e-3) and loop.number("finished") == 1
    np.testing.assert_allclose(states[-1, 0], motion.derivatives(T, 0)[0], rtol=0, atol=1e-15)


def test_a_stop_starts_where_the_arm_rests_earliest(arm):
    """At limits, a stop that starts later may be shorter."""
    path = eom.trajectory.PathTime(motion := fast(arm, np.random.default_rng(7), fastest=True), arm)
    step, times = 0.05, np.arange(0.0, motion.end - 0.05, 0.05)
    rests = np.array([path.stop(t).duration for t in times])
    assert np.all(rests <= np.minimum(motion.end - times, 3.0) + 0.05)
    # Of each segment, the worst place counts; and some cycles are for the check.
    assert np.all(rests[:-1] <= rests[1:] + step + 0.12)


@pytest.mark.parametrize("period", [0.0, -1.0, np.nan])
def test_a_stop_needs_no_period(period):
    motion = fast(arm := eom.ElasticArm(eom.load_robot("sea_planar_2r")), np.random.default_rng(0))
    (states, _, _), _ = played(arm, motion, [(0.2, "stop")], 0.7, step=10 * STEP, period=period)
    assert states[199, 1].any() and not states[-1, 1:].any()


@pytest.mark.parametrize("seed", [22, 50])
def test_limits_are_kept_between_the_instants_that_are_checked(seed):
    """Narrow peaks of motor efforts in long sections of a change: up to 3 % over with eight instants a section."""
    arm = eom.ElasticArm(eom.load_robot("sea_planar_2r"))
    motion, rng, events = fast(arm, np.random.default_rng(seed)), np.random.default_rng(seed), []
    for t in np.sort(rng.uniform(0.05, 1.5, 12)) * motion.end:
        kind = int(rng.integers(3))
        events.append((t, ("pause", "resume")[kind] if kind < 2 else float(rng.uniform(0.1, 1.0))))
    (states, _, _), _ = played(arm, motion, events, 1.6 * motion.end)
    found = check(arm, Samples(1e-9 * STEP * np.arange(len(states)), *np.moveaxis(states, 1, 0)))
    assert found.ok, str(found)


def test_limits_are_kept_where_a_motor_reverses_between_those_instants():
    """Its friction and the loss of its gear step: by 6 % of its limit, which it exceeded by 0.3 %."""
    arm = eom.ElasticArm(eom.load_robot("sea_planar_2r"))
    events = [(0.0042, "pause"), (0.5025, "resume"), (0.5585, 0.503), (0.7011, 0.274)]
    (states, _, _), _ = played(arm, fast(arm, np.random.default_rng(1044)), events, 0.8, shortest=0.2)
    found = check(arm, Samples(1e-9 * STEP * np.arange(len(states)), *np.moveaxis(states, 1, 0)))
    assert found.ok, str(found)


@pytest.mark.parametrize(("name", "seed"), [("sea_planar_2r", 6), ("panda", 24)])
def test_limits_are_kept_by_changes_in_quick_succession(name, seed):
    """Peaks before the first instant, in short sections, and where friction has risen after a reversal: up to 2.3 %."""
    arm, rng = eom.ElasticArm(eom.load_robot(name)), np.random.default_rng(seed)
    motion, times = fast(arm, rng), np.cumsum(rng.exponential(0.004, 600))
    events = [(t, ("pause", "resume", float(rng.uniform(0.0, 1.0)))[int(rng.integers(3))]) for t in times]
    (states, _, _), _ = played(arm, motion, events, 2.4, shortest=0.05)
    found = check(arm, Samples(1e-9 * STEP * np.arange(len(states)), *np.moveaxis(states, 1, 0)))
    assert found.ok, str(found)


def test_a_pause_resumes_what_was(arm):
    motion = fast(arm, np.random.default_rng(7))
    T = motion.end
    resumes = 0.3 * T + 2.0
    events = [(0.3 * T, "pause"), (resumes, "resume")]
    (states, _, pace), loop = played(arm, motion, events, 2 * T + 4.0, step=10 * STEP)
    assert pace[round(0.1e9 * resumes / STEP) - 1] == 0 and pace.max() == 1
    np.testing.assert_allclose(states[-1, 0], motion.derivatives(T, 0)[0], rtol=0, atol=1e-15)
    assert loop.number("over_limits") == 0 and not loop.number("playing")
    _, loop = played(arm, motion, [(0.3 * T, "pause"), (resumes, "stop")], resumes + 0.01, step=10 * STEP)
    assert loop.status is Status.HELD and not loop.state[1:].any()


@pytest.mark.parametrize(
    ("name", "late"), [("slider", 0.0), ("pauses", 0.0), ("pause", 0.95)], ids=["slider", "toggled", "uneven cycles"]
)
def test_a_pace_changes_amid_others_and_in_uneven_cycles(name, late):
    """As soon as after one pace in even cycles: others each 2 ms held it for ever, late cycles 134 ms instead of 19."""
    arm = eom.ElasticArm(eom.load_robot("panda"))
    motion, begin = fast(arm, np.random.default_rng(4)), 0.57
    often = {"slider": [0.3, 0.3001], "pauses": ["pause", "resume"], "pause": ["pause"]}[name] * 50
    once, quick = (
        played(arm, motion, events, begin + 0.1, step=10 * STEP, late=part)[0][2]
        for events, part in (([(begin, often[0])], 0.0), ([(begin + 2e-3 * k, x) for k, x in enumerate(often)], late))
    )
    begun = [int(np.argmax(pace < 1 - 1e-3)) for pace in (once, quick)]
    # A cycle late, and one of rounding; amid a change, another one begins within its bounds.
    assert begun[0] > 570 and abs(begun[1] - begun[0]) <= (2 if name != "pauses" else 8)


@pytest.mark.parametrize("halt", ["pause", 0.0])
def test_a_motion_from_rest_does_not_begin_in_a_pause(arm, halt):
    """It began at its own pace, and stopped up to 0.58 rad later."""
    motion = fast(arm, np.random.default_rng(7))
    start, resumes = motion.derivatives(motion.start, 0)[0], "resume" if halt == "pause" else 1.0
    (states, _, _), _ = played(arm, motion, [(0.0, halt), (0.1, resumes)], motion.end + 0.5, step=10 * STEP)
    assert not np.any(states[:100, 0] - start) and not states[:100, 1:].any()
    np.testing.assert_allclose(states[-1, 0], motion.derivatives(motion.end, 0)[0], rtol=0, atol=1e-15)


def test_planners_are_told_what_a_stop_takes(arm):
    motion = fast(arm, np.random.default_rng(3))
    path, T = eom.trajectory.PathTime(motion, arm, period=1e-9 * STEP), motion.end
    last = round(0.4e9 * T / STEP)  # cycle before the stop: in another one, another change of pace may be found
    found = path.stop(1e-9 * STEP * last)
    assert found.on_path and found.excess == 0 and 0.01 <= found.duration <= 0.6 * T
    begin = 1e-9 * STEP * (last + 1)
    (states, _, _), _ = played(arm, motion, [(begin, "stop")], begin + found.duration + 2e-3)
    at = last + round(1e9 * found.duration / STEP)
    assert states[at - 20, 1].any() and not states[at + 2, 1:].any()
    # Also in the first cycles of a motion, whose stops were longer.
    _, loop = played(arm, motion, [(0.1, "stop")], 0.5, step=100 * STEP)
    assert loop.number("stop_end") == eom.trajectory.PathTime(motion, arm, period=1e-2).stop(0.09).duration
    for beyond in (partial(path.stop, 2 * T), partial(path.fastest, [0.0, 2 * T])):
        with pytest.raises(eom.TrajectoryError, match="within the motion"):
            beyond()
    with pytest.raises(eom.StateError, match="period must be within"):  # else the stop would never end
        eom.trajectory.PathTime(motion, arm, period=4e-10)
    for wrong in ("1", [0.1, 0.2]):
        with pytest.raises(eom.StateError, match="t must"):
            path.stop(wrong)


def test_a_stop_does_not_depend_on_the_one_before_and_none_is_within_limits_where_a_spring_is_slack():
    motion = rest_to_rest([0.1] * 2, [0.4] * 2, 0.2)
    path = eom.trajectory.PathTime(motion, eom.ElasticArm(eom.load_robot("vsa_planar_2r")))
    assert [path.stop(t) for t in (0.02, 0.06, 0.2)] == [(np.inf, False, np.inf)] * 2 + [(0.0, True, 0.0)]


def test_the_fastest_motion_stops_amid_its_path():
    """It is at a limit all along, where no change to a stop meets limits at once: parts of it come first."""
    arm = eom.ElasticArm(eom.load_robot("panda"))
    motion = fast(arm, np.random.default_rng(7), fastest=True)
    found = eom.trajectory.PathTime(motion, arm).stop(0.2 * motion.end)
    # 0.3 of the rest was measured; all of it without parts.
    assert found.on_path and found.duration < 0.5 * 0.8 * motion.end


def test_the_fastest_pace_meets_limits_and_a_faster_one_does_not(arm):
    motion = fast(arm, np.random.default_rng(5))
    t = np.linspace(0.1, 0.9, 9) * motion.end
    paces = eom.trajectory.PathTime(motion, arm).fastest(t, 20.0)
    rows = np.stack(motion.derivatives(t))
    assert paces.min() >= 1.0
    for i, pace in enumerate(paces):
        for factor, ok in ((1 - 1e-6, True), (1 + 1e-3, pace >= 20.0)):
            states = rows[:, i] * (factor * pace) ** np.arange(5.0)[:, np.newaxis]
            assert check(arm, Samples(np.zeros(1), *states[:, np.newaxis])).ok == ok


def test_where_no_change_of_pace_meets_limits_the_joints_stop():
    """A motion that ends at a velocity cannot stop on its path shortly before: the joints move on beyond its end.

    Stops that would end beyond it are not on the path.
    """
    arm = eom.ElasticArm(eom.load_robot("sea_planar_2r"))
    states = np.zeros((5, 2, 2))
    states[0, 1], states[1, 1] = 0.3, 1.0
    motion = Spline([0.0, 0.6], states)
    path = eom.trajectory.PathTime(motion, arm)
    assert path.stop(0.2).on_path
    for t in (0.5, 0.595):
        found = path.stop(t)
        assert not found.on_path and np.isfinite(found.excess)


def test_states_on_a_path_are_those_of_the_chain_rule(arm):
    """Of the path parameter and its velocity that are told; each further derivative is one number for all joints."""
    motion = fast(arm, np.random.default_rng(2))
    events = [(0.1 * motion.end, 0.4), (0.5 * motion.end, 0.9), (0.7 * motion.end, "stop")]
    (states, places, paces), _ = played(arm, motion, events, 1.2 * motion.end, step=10 * STEP)
    rates = np.abs(motion.derivatives(places, 1)[1]).max(axis=1)
    moving = np.flatnonzero((paces > 0.1) & (rates > 0.1 * rates.max()))
    assert len(np.unique(paces[moving])) > 100
    for k in moving:
        s, path = np.array([places[k], paces[k], 0.0, 0.0, 0.0]), np.stack(motion.derivatives(places[k]))
        for order in (2, 3, 4):
            s[order] = path[1] @ (states[k, order] - chain(path, s)[order]) / (path[1] @ path[1])
        size = np.abs(path).max(axis=1) + np.abs(states[k]).max(axis=1)
        assert np.all(np.abs(chain(path, s) - states[k]).max(axis=1) <= 1e-9 * size)
