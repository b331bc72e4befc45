# SPDX-License-Identifier: Apache-2.0
"""The simulated robot as a process: alone, and at the end of the whole stack."""

import re
import signal

import numpy as np
import pytest
import yaml
from node_client import EACH_WARNING, refusals_at_start, stamp_of
from paths import CONFIG
from robot_client import BY_CLOCK, RobotClient

import eom_dynamics as eom
from eom_dynamics.ros.simulated_robot_node import CommandPhase, CommandWatchdog, Pace

IIWA = ("--params-file", CONFIG / "iiwa.yaml", EACH_WARNING, "-p", "rate:=500.0")
# For commands that a test sends once: on a busy machine, the next may be late.
PATIENT = ("-p", "command_timeout:=0.0")
ROBOT = eom.load_robot("iiwa")
NAMES = list(ROBOT.joint_names)
ARM = eom.ElasticArm(ROBOT)
ZERO = np.zeros(7)
Q = np.linspace(-1.0, 1.0, 7)
SETPOINT = ("position", "velocity", "acceleration", "jerk", "snap")
AT_Q = ("-p", f"initial_position:={Q.tolist()}")


def starter(start):
    def start_robot(*arguments):
        robot = start(*arguments, module="simulated_robot_node", client=RobotClient)
        robot.wait(lambda: robot.joints and robot.motors, "states")
        return robot

    return start_robot


@pytest.fixture
def simulate(start):
    """Start simulated robots with ROS arguments; all end with the test."""
    return starter(start)


@pytest.fixture(scope="module")
def at_q(start_shared):
    """A robot at rest at Q, for all tests of the module that leave it at rest."""
    return starter(start_shared)(*IIWA, *AT_Q, *PATIENT, "-p", "publish_rate:=100.0")


@pytest.fixture(scope="module")
def by_effort(start_shared):
    """A robot that takes motor efforts, and publishes no missing efforts."""
    arguments = ("-p", "command:=motor_effort", "-p", "command_timeout:=0.5", "-p", "on_timeout:=zero_effort")
    return starter(start_shared)(*IIWA, *AT_Q, *arguments)


def close(values, wanted, tolerance=1e-3):
    return np.max(np.abs(np.array(values) - wanted)) < tolerance


def test_links_follow_setpoints_through_the_whole_stack(start):
    """Setpoint, command, time, state: each follows the one before, at the same pace on a slow or stalling machine."""
    t = np.arange(0.0, np.pi, 0.01)[:, np.newaxis]
    swings = [-0.1 * np.cos(t + 0.5 * np.pi * k) * np.ones(7) for k in range(5)]
    swings[0] += Q + 0.1  # from Q at rest to Q + 0.2 at rest
    dynamics = start("--params-file", CONFIG / "iiwa.yaml")
    node = dynamics.process
    # It takes its robot from the node that drives it.
    source = ("-p", f"robot_source_node:={node.namespace}/{node.name}", "-p", "publish_rate:=100.0")
    robot = start(
        *(*source, *AT_Q, *BY_CLOCK, "-r", f"motor_setpoint:={node.namespace}/motor_setpoint"),
        module="simulated_robot_node",
        client=RobotClient,
    )
    level, _, values = robot.wait_for_diagnostics(lambda *s: s[1] == "waiting for /clock", "diagnostics")
    assert (level, values["steps"]) == (1, "0")
    robot.start_clock()
    setpoints = [dict(zip(SETPOINT, setpoint, strict=True)) for setpoint in zip(*swings, strict=True)]
    sent = []
    # Both nodes are there, but may not have met yet.
    robot.repeat(
        lambda: sent.append(dynamics.publish(**setpoints[0])), lambda: robot.values["commands"] != "0", "a command"
    )
    followed = []
    for k, setpoint in enumerate(setpoints, start=1):
        sent.append(dynamics.publish(**setpoint))
        dynamics.wait(lambda: len(dynamics.motor_setpoint) == len(sent), "the command")
        robot.tick(10 * k, lambda k=k: len(robot.joints) == k)
        followed.append(robot.joints[-1].position)
    assert robot.joints[0].name == NAMES
    assert robot.joints[0].header.stamp.sec == 5
    assert robot.joints[0].header.stamp.nanosec == pytest.approx(10**7, abs=2 * 10**6)
    assert int(robot.next_diagnostics()[2]["steps"]) == 10 * len(followed)
    # A command holds for 10 ms, and may reach the robot after the time that follows it: 20 ms at 0.1 rad/s.
    assert close(followed, swings[0], 2e-3)
    assert robot.process.stop(signal.SIGINT) == 0
    assert "Traceback" not in robot.process.log and "xception" not in robot.process.log


# --- Commands and states ------------------------------------------------------------------


def test_two_motors_a_joint_have_names_and_drives_the_timing_of_the_robot_file(simulate, tmp_path):
    """A parameter that is given overrides the timing of the file; a time between steps is rounded."""
    parameters = yaml.safe_load((CONFIG / "planar_2r.yaml").read_text())
    robot = parameters["/**"]["ros__parameters"]["robot"]
    robot |= {"command_period": 0.004, "drive_delay": 0.0021, "drive_interpolation": "linear"}
    for joint in robot["joints"].values():
        joint["elasticity"] = {"type": "antagonistic_exponential", "stiffness": 50.0, "growth": 6.0, "nominal": 1500.0}
    file = tmp_path / "pairs.yaml"
    file.write_text(yaml.safe_dump(parameters))
    arm = eom.ElasticArm(eom.load_robot(file))
    robot = simulate("--params-file", file, *PATIENT, "-p", "command:=feedforward", "-p", "drive_interpolation:=none")
    log = robot.process.log
    assert "held for 4 ms and acting 2 ms later" in log
    assert re.search(r"\[WARN\].*drive_delay of 0\.0021 s is not a multiple of the step of 0\.001 s; simulated as", log)
    goal = arm.feedforward(np.array([0.2, -0.1]), *np.zeros((4, 2)))
    order = [2, 3, 0, 1]
    robot.send(
        "feedforward",
        joint_names=["joint_2", "joint_1"],
        motor_names=[arm.motor_names[i] for i in order],
        motor_position=goal.motor_position[order],
        motor_effort=goal.motor_effort[order],
    )
    robot.settle(lambda joints, motors: close(motors.position, goal.motor_position), "the motors")
    assert robot.motors[-1].name == list(arm.motor_names)


def test_when_commands_stop_the_position_is_held(simulate):
    robot = simulate(*IIWA, *AT_Q)
    start = np.array(robot.next_states()[1].position)
    robot.send("motor_setpoint", position=start)
    robot.wait_for_diagnostics(lambda level, message, v: v["phase"] == "lost", "the loss")
    assert re.search(r"\[INFO\].*0\.1.*holding", robot.process.log)
    assert "[WARN]" not in robot.process.log
    robot.send("motor_setpoint", position=start + 0.1, velocity=np.full(7, 0.5))
    robot.wait_for_diagnostics(lambda level, _, v: (level, v["phase"], v["timeouts"]) == (1, "lost", "2"), "the loss")
    assert re.search(r"\[WARN\].*0\.1.*holding", robot.process.log)
    robot.settle(lambda joints, motors: close(motors.position, start + 0.1), "the held position")
    robot.send("motor_setpoint", position=start)
    robot.wait_for_diagnostics(lambda level, message, v: int(v["timeouts"]) == 3, "the third loss")
    robot.wait(lambda: len(re.findall(r"\[INFO\].* no commands for 0\.1 s", robot.process.log)) == 2, "its line")
    assert "Exception" not in robot.process.log


# --- The start ---------------------------------------------------------------------------


REFUSED_AT_START = [
    (("-p", "command:=voltage"), "command must be one of motor_setpoint, feedforward, motor_effort, is"),
    (("--", "--colour"), "--colour"),
]


def test_values_that_are_not_allowed_are_refused_at_the_start(ros, tmp_path):
    cases = [((*IIWA, *arguments), reason) for arguments, reason in REFUSED_AT_START]
    for code, log, reason in refusals_at_start(tmp_path, cases, module="simulated_robot_node"):
        assert code in (1, 2) and reason in log and "Traceback" not in log


# --- Shared robots, last since each takes a quarter of a core until the module ends ---------


def test_efforts_move_motors(by_effort):
    tau = ARM.dynamics.effort(Q, ZERO, ZERO)
    by_effort.send("effort_command", data=tau + np.eye(7)[0])
    by_effort.settle(lambda joints, state: close(state.effort, tau + np.eye(7)[0], 1e-12), "the effort")
    by_effort.settle(lambda joints, state: joints.position[0] > Q[0] + 0.01, "the first joint to turn")
    # When commands stop, there is no effort, and the arm falls.
    by_effort.settle(lambda joints, motors: not np.any(motors.effort), "the loss")
    by_effort.settle(lambda joints, motors: not close(joints.position, Q, 0.1), "the arm to fall")
    assert "no commands for 0.5 s: no effort" in by_effort.process.log


def test_a_motion_that_diverges_stops_until_commands_have_paused(by_effort):
    by_effort.send("effort_command", data=np.full(7, 1e12))
    level, message, _ = by_effort.wait_for_diagnostics(lambda *s: s[2]["phase"] == "stopped", "the stop")
    assert level == 2 and message.startswith("stopped: the simulation diverged")
    assert "stopped: iiwa: the motion leaves all bounds" in by_effort.process.log
    by_effort.wait_for_diagnostics(lambda *s: s[2]["phase"] == "waiting", "the pause")
    joints, motors = by_effort.next_states()
    assert np.all(np.isfinite([*joints.position, *joints.velocity, *joints.effort, *motors.position]))
    by_effort.send("effort_command", data=ZERO)
    by_effort.settle(lambda joints, motors: not np.any(motors.effort), "the command after the stop")


def test_states_are_those_of_an_arm_at_rest(at_q):
    joints, motors = at_q.next_states(20)
    rest = ARM.feedforward(Q, ZERO, ZERO, ZERO, ZERO)
    assert joints.name == motors.name == NAMES
    assert close(joints.position, Q, 1e-9) and close(joints.velocity, ZERO, 1e-9)
    assert close(joints.effort, rest.tau, 1e-6)
    assert close(motors.position, rest.motor_position, 1e-9) and close(motors.effort, rest.motor_effort, 1e-6)

    at_q.joints.clear()
    at_q.next_states(60)
    distances = np.diff([stamp_of(m) for m in at_q.joints]) * 1e-9
    # If the machine stalls for longer than 0.1 s, some time is dropped.
    assert close(np.median(distances), 0.01, 1e-4)


def test_a_push_turns_the_arm_while_messages_come(at_q):
    """At a link that is no tool; unknown frames and numbers that are not finite are refused."""
    from geometry_msgs.msg import WrenchStamped

    publisher, message = at_q.publisher(WrenchStamped, "applied_wrench"), WrenchStamped()
    for frame, force in (("hand", 1.0), ("", np.nan)):
        message.header.frame_id, message.wrench.force.x = frame, force
        publisher.publish(message)
        at_q.wait(lambda: "applied_wrench refused: " in at_q.process.log, "the refusal")
    message.header.frame_id, message.wrench.force.x, message.wrench.torque.z = NAMES[3], 0.0, 40.0
    before = np.array(at_q.next_states()[0].position)
    # The spring of 15,000 N m/rad, and the drive behind it.
    at_q.repeat(lambda: publisher.publish(message), lambda: at_q.joints[-1].position[3] > before[3] + 40 / 15e3, "push")
    at_q.settle(lambda joints, motors: close(joints.position, before, 1e-4), "the end of the push")


BAD_COMMANDS = [
    ({}, "position has 0 entries, must have 7"),
    ({"name": [*NAMES[:6], "tool"], "position": ZERO}, "name[6]: the robot has no motor 'tool'"),
]


def test_a_bad_command_is_refused_and_the_last_good_one_holds(at_q):
    goal = Q + 0.1
    at_q.send("motor_setpoint", position=goal)
    for count, (bad, reason) in enumerate(BAD_COMMANDS, start=1):
        at_q.send("motor_setpoint", **bad)
        _, _, values = at_q.wait_for_diagnostics(lambda *s, n=count: int(s[2]["commands refused"]) == n, reason)
        assert values["last refusal"].startswith(reason)
        assert f"command refused, the last valid one remains: {reason}" in at_q.process.log
    # Without feedforward effort, the PD sags by some hundredths of a radian.
    at_q.settle(lambda joints, motors: close(motors.position, goal, 2e-2), "the good command")


# --- Pace and watchdog of the simulation ------------------------------------------------

MS = 1e-3
# Period; readings of the clock, after the first of which no period is due; periods due at the others; steps; those that
# came late, and those that were let go.
PACES = {
    "a steady clock": (MS, [5.0 + MS * k for k in range(5000)], [1] * 4999, 4999, 0, 0),
    "between two periods nothing is due": (MS, [0.0, 0.0004, 0.0011, 0.0015, 0.0021], [0, 1, 0, 1], 2, 0, 0),
    "after a hiccup it catches up in goes of 20 ms": (MS, [0.0, *[0.05] * 4], [20, 20, 10, 0], 50, 19 + 19 + 9, 0),
    "time beyond 100 ms is let go": (MS, [0.0, *[7.0] * 6, 7.001], [20] * 5 + [0, 1], 101, 5 * 19, 6900),
    "a clock that is set back starts again": (MS, [100.0, 100.001, 3.0, 3.002], [1, 0, 2], 3, 1, 0),
    "slow steps run one at a time": (0.1, [0.0, 0.05, 0.1, 0.35, 0.35, 0.35], [0, 1, 1, 0, 0], 2, 0, 1),
}


@pytest.mark.parametrize(("period", "clock", "due", "steps", "late", "lost"), PACES.values(), ids=PACES)
def test_periods_are_counted(period, clock, due, steps, late, lost):
    pace = Pace(period)
    assert [pace.due(t) for t in clock] == [0, *due]
    assert (pace.steps, pace.late, pace.lost) == (steps, late, lost)
    if period == MS:
        assert pace.lag == pytest.approx(1e-4 if steps == 2 else 0.0, abs=1e-9)


def test_missing_commands_are_noticed_once_and_the_next_one_is_obeyed():
    watchdog = CommandWatchdog(0.1)
    assert not watchdog.missed(1000.0) and watchdog.phase is CommandPhase.WAITING
    assert watchdog.command(1.0)
    assert not watchdog.missed(1.09)
    assert watchdog.missed(1.11) and not watchdog.missed(1.12)
    assert watchdog.phase is CommandPhase.LOST
    assert watchdog.command(2.0) and watchdog.phase is CommandPhase.FOLLOWING
    # A clock that is set back keeps nobody waiting.
    assert [watchdog.missed(now) for now in (1.0, 1.09, 1.11)] == [False, False, True]
    without = CommandWatchdog(0.0)
    assert without.command(1.0) and not without.missed(1e6)


@pytest.mark.parametrize(("timeout", "pause"), [(0.1, 0.11), (0.0, 1.01)])
def test_after_a_stop_commands_are_obeyed_when_they_have_paused(timeout, pause):
    watchdog = CommandWatchdog(timeout)
    watchdog.command(1.0)
    watchdog.stop(1.0)
    assert not any(watchdog.command(now) or watchdog.missed(now) for now in (1.05, 1.1, 1.15))
    assert watchdog.phase is CommandPhase.STOPPED
    assert not watchdog.missed(1.15 + pause) and watchdog.phase is CommandPhase.WAITING
    assert watchdog.command(1.15 + pause)
