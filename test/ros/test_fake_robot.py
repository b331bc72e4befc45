# SPDX-License-Identifier: Apache-2.0
"""The fake robot as a process: alone, and at the end of the whole stack without hardware."""

import itertools
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml
from node_client import CONFIG, PATIENCE, NodeProcess, message_fields, status_of

import eom_dynamics as eom

IIWA = ("--params-file", CONFIG / "iiwa.yaml")
FAST = ("-p", "diagnostic_period:=0.1", "-p", "warning_period:=0.0")
# For commands that a test sends once: on a busy machine, the next one may be late.
PATIENT = ("-p", "command_timeout:=0.0")
ROBOT = eom.load_robot("iiwa")
NAMES = list(ROBOT.joint_names)
ARM = eom.ElasticArm(ROBOT)
ZERO = np.zeros(7)
Q = np.linspace(-1.0, 1.0, 7)
AT_Q = ("-p", f"initial_position:={Q.tolist()}")


class Client:
    """Publishes commands to one fake robot, and collects what it says."""

    def __init__(self, rclpy, process, remapped=""):
        from diagnostic_msgs.msg import DiagnosticArray
        from eom_dynamics.msg import FeedforwardCommand
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.qos import QoSProfile
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Float64MultiArray

        self.process = process
        self.node = rclpy.create_node("client", namespace=f"/{process.name}")
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        qos = QoSProfile(depth=10_000)
        self.joints, self.motors, self.diagnostics = [], [], []
        self._subscriptions = [
            self.node.create_subscription(JointState, "joint_states", self.joints.append, qos),
            self.node.create_subscription(JointState, "motor_states", self.motors.append, qos),
            self.node.create_subscription(DiagnosticArray, "diagnostics", self.diagnostics.append, qos),
        ]
        self._publishers = {
            topic: (message_type, self.node.create_publisher(message_type, topic, qos))
            for topic, message_type in (
                ("motor_setpoint", JointState),
                ("feedforward", FeedforwardCommand),
                ("effort_command", Float64MultiArray),
            )
        }

    def send(self, topic, **fields):
        message_type, publisher = self._publishers[topic]
        self.wait(publisher.get_subscription_count, f"a subscriber of {topic}")
        publisher.publish(message_type(**message_fields(fields)))

    def wait(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.process.poll() is None, f"the node ended:\n{self.process.log}"
            assert time.monotonic() < deadline, f"waited {PATIENCE:g} s for {what}; the node said:\n{self.process.log}"
            self._executor.spin_once(timeout_sec=0.05)

    def next_states(self, count=2):
        """The last joint and motor states of as many as come after this call."""
        before = len(self.joints), len(self.motors)
        self.wait(
            lambda: len(self.joints) >= before[0] + count and len(self.motors) >= before[1] + count, "joint states"
        )
        return self.joints[-1], self.motors[-1]

    def status(self, condition, what):
        """The first diagnostic status from now on for which ``condition(level, message, values)`` holds."""
        start = len(self.diagnostics)
        self.wait(lambda: any(condition(*status_of(m)) for m in self.diagnostics[start:]), what)
        return next(status_of(m) for m in self.diagnostics[start:] if condition(*status_of(m)))

    def settle(self, condition, what):
        self.wait(lambda: bool(self.joints) and bool(self.motors) and condition(self.joints[-1], self.motors[-1]), what)

    def close(self):
        self._executor.shutdown()
        self.node.destroy_node()


_numbers = itertools.count(1)


@pytest.fixture
def fake(ros, tmp_path):
    """Start fake robots with ROS arguments; all end with the test. Returns a client for each."""
    clients = []

    def start(*arguments):
        process = NodeProcess(tmp_path, *arguments, name=f"fake_{next(_numbers)}", module="fake_robot_node")
        clients.append(Client(ros, process))
        return clients[-1]

    yield start
    for client in clients:
        client.close()
        client.process.kill()


def close(values, wanted, tolerance=1e-3):
    return np.max(np.abs(np.array(values) - wanted)) < tolerance


# --- The whole stack ----------------------------------------------------------------------


def test_links_follow_setpoints_through_the_whole_stack(fake, tmp_path):
    """Player, dynamics_node and fake robot, each a process: where the links are is where setpoints just were."""
    t = np.arange(0.0, np.pi, 1e-3)[:, np.newaxis]
    swings = [-0.1 * np.cos(t + 0.5 * np.pi * k) * np.ones(7) for k in range(5)]
    swings[0] += Q + 0.1  # from Q at rest to Q + 0.2 at rest
    np.savez(tmp_path / "setpoints.npz", **dict(zip(("q", "qd", "qdd", "qddd", "qdddd"), swings, strict=True)))
    dynamics = NodeProcess(tmp_path, *IIWA)
    robot = fake(*IIWA, *FAST, *AT_Q, "-r", f"motor_setpoint:=/{dynamics.name}/motor_setpoint")
    try:
        robot.next_states()
        player = subprocess.Popen(
            [
                *(sys.executable, "-m", "eom_dynamics.ros.player", "setpoints.npz", "answers.npz", "--timeout", "30"),
                *("--ros-args", "-r", f"__ns:=/{dynamics.name}"),
                *("-r", f"/diagnostics:=/{dynamics.name}/diagnostics"),
            ],
            cwd=tmp_path,
        )
        robot.wait(lambda: player.poll() is not None, "the player to end")
        assert player.returncode == 0
        robot.settle(lambda joints, _: close(joints.position, Q + 0.2), "the links to be where the motion ends")
    finally:
        dynamics.kill()
    first_stamp = np.load(tmp_path / "answers.npz")["stamp"][0]
    stamps = np.array([m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in robot.joints])
    assert np.all(np.diff(stamps) > 0)
    said = np.array([m.position for m in robot.joints])
    moving = np.flatnonzero(np.abs(said[:, 0] - Q[0] - 0.1) < 0.08)
    assert len(moving) > 20
    for i in moving:
        # Where setpoints already were; how long ago is up to the machine. Where it stalls, a command stays in force,
        # and the drive leads it by 2 damping_ratio/natural_frequency times its velocity, 3e-3 rad.
        before = swings[0][: int((stamps[i] - first_stamp) * 1e-6) + 2]
        assert np.min(np.max(np.abs(before - said[i]), axis=1)) < 5e-3
    assert "Traceback" not in robot.process.log


# --- What it says -------------------------------------------------------------------------


def test_states_are_those_of_an_arm_at_rest(fake):
    robot = fake(*IIWA, *AT_Q, "-p", "publish_rate:=100.0")
    joints, motors = robot.next_states(20)
    rest = ARM.feedforward(Q, ZERO, ZERO, ZERO, ZERO)
    assert joints.name == motors.name == NAMES
    assert close(joints.position, Q, 1e-9) and close(joints.velocity, ZERO, 1e-9)
    assert close(joints.effort, rest.tau, 1e-6)
    assert close(motors.position, rest.motor_position, 1e-9) and close(motors.effort, rest.motor_effort, 1e-6)
    stamps = [m.header.stamp.sec + m.header.stamp.nanosec * 1e-9 for m in robot.joints]
    # A late state is followed by one on time, and a stalled machine lets some out: most are a period apart.
    assert np.min(np.diff(stamps)) > 0
    assert np.median(np.diff(stamps)) == pytest.approx(0.01, abs=1e-4)


def test_motors_come_by_their_own_names_where_two_pull_at_a_joint(fake, tmp_path):
    parameters = yaml.safe_load((CONFIG / "planar_2r.yaml").read_text())
    for joint in parameters["/**"]["ros__parameters"]["robot"]["joints"].values():
        joint["elasticity"] = {"type": "antagonistic_exponential", "stiffness": 50.0, "growth": 6.0, "nominal": 1500.0}
    file = tmp_path / "pairs.yaml"
    file.write_text(yaml.safe_dump(parameters))
    arm = eom.ElasticArm(eom.load_robot(file))
    robot = fake("--params-file", file, *PATIENT, "-p", "command:=feedforward")
    zero = np.zeros(2)
    goal = arm.feedforward(np.array([0.2, -0.1]), zero, zero, zero, zero)
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


# --- Commands -----------------------------------------------------------------------------


def test_efforts_move_motors_and_joint_efforts_the_links(fake):
    tau = ARM.dynamics.effort(Q, ZERO, ZERO)
    links = fake(*IIWA, *AT_Q, *PATIENT, "-p", "command:=joint_effort")
    links.next_states()
    links.send("effort_command", data=tau)
    motors = fake(*IIWA, *AT_Q, *PATIENT, "-p", "command:=motor_effort")
    motors.next_states()
    motors.send("effort_command", data=tau + np.eye(7)[0])
    motors.settle(lambda joints, state: close(state.effort, tau + np.eye(7)[0], 1e-12), "the effort")
    motors.settle(lambda joints, state: joints.position[0] > Q[0] + 0.01, "the first joint to turn")
    assert close(links.next_states()[0].effort, tau, 1e-12)


BAD_COMMANDS = {
    "short": ({"position": np.zeros(3)}, "position has 3 entries, must have 7"),
    "nothing": ({}, "position has 0 entries, must have 7"),
    "effort long": ({"position": ZERO, "effort": np.zeros(8)}, "effort has 8 entries, must have 7 or none"),
    "nan": ({"position": np.array([0, 0, np.nan, 0, 0, 0, 0])}, f"position of {NAMES[2]} is nan"),
    "infinite": ({"position": ZERO, "velocity": np.array([np.inf, *ZERO[1:]])}, f"velocity of {NAMES[0]} is inf"),
    "unknown": ({"name": [*NAMES[:6], "tool"], "position": ZERO}, "name[6]: there is no motor 'tool'; there are"),
    "missing": ({"name": NAMES[:6], "position": ZERO[:6]}, f"name: {NAMES[6]} missing"),
    "twice": ({"name": [*NAMES[:6], NAMES[0]], "position": ZERO}, f"name[6]: motor '{NAMES[0]}' stands there twice"),
}


def test_a_bad_command_is_refused_and_the_last_good_one_holds(fake):
    robot = fake(*IIWA, *FAST, *PATIENT)
    goal = np.full(7, 0.1)
    robot.next_states()
    robot.send("motor_setpoint", position=goal)
    for count, (bad, reason) in enumerate(BAD_COMMANDS.values(), start=1):
        robot.send("motor_setpoint", **bad)
        _, _, values = robot.status(lambda _l, _m, v, n=count: int(v["commands refused"]) == n, reason)
        assert values["last refusal"].startswith(reason)
        assert f"command refused, the last good one stays: {reason}" in robot.process.log
    # Without effort beside it, the PD sags by some hundredths of a radian.
    robot.settle(lambda joints, motors: close(motors.position, goal, 2e-2), "the good command")


def test_when_commands_stop_the_position_is_held(fake):
    robot = fake(*IIWA, *FAST, *AT_Q)
    start = np.array(robot.next_states()[1].position)
    robot.send("motor_setpoint", position=start + 0.1, velocity=np.full(7, 0.5))
    robot.status(lambda level, message, v: (level, v["phase"]) == (1, "lost"), "the loss")
    assert "no commands for 0.1 s: holding the position" in robot.process.log
    robot.settle(lambda joints, motors: close(motors.position, start + 0.1), "the held position")
    robot.send("motor_setpoint", position=start)
    robot.status(lambda level, message, v: int(v["timeouts"]) == 2, "the second loss")


def test_or_there_is_no_effort(fake):
    robot = fake(*IIWA, *FAST, *AT_Q, "-p", "command:=motor_effort", "-p", "on_timeout:=zero_effort")
    robot.next_states()
    robot.send("effort_command", data=ARM.dynamics.effort(Q, ZERO, ZERO))
    robot.settle(lambda joints, motors: not np.any(motors.effort), "the loss")
    robot.settle(lambda joints, motors: not close(joints.position, Q, 0.1), "the arm to fall")
    assert "no commands for 0.1 s: no effort" in robot.process.log


def test_a_motion_out_of_bounds_stops_until_commands_have_paused(fake):
    robot = fake(*IIWA, *FAST, *AT_Q, "-p", "command:=motor_effort", "-p", "command_timeout:=1.0")
    robot.next_states()
    robot.send("effort_command", data=np.full(7, 1e12))
    level, message, _ = robot.status(lambda _l, _m, v: v["phase"] == "stopped", "the stop")
    assert level == 2 and message.startswith("stopped: the motion left all bounds")
    assert "stopped: iiwa: the motion leaves all bounds" in robot.process.log
    robot.status(lambda _l, _m, v: v["phase"] == "waiting", "the pause")
    joints, motors = robot.next_states()
    assert np.all(np.isfinite([*joints.position, *joints.velocity, *joints.effort, *motors.position]))
    assert close(joints.position, Q, 1e-2)
    robot.send("effort_command", data=ZERO)
    robot.settle(lambda joints, motors: not np.any(motors.effort), "the command after the stop")


# --- Its life -----------------------------------------------------------------------------


def test_time_may_come_from_a_clock(fake, ros):
    from rosgraph_msgs.msg import Clock

    robot = fake(*IIWA, *FAST, "-p", "use_sim_time:=true", "-r", "/clock:={namespace}/clock")
    publisher = robot.node.create_publisher(Clock, "clock", 10)
    level, _, values = robot.status(lambda _l, message, _v: message == "waiting for /clock", "diagnostics")
    assert level == 1 and values["steps"] == "0"
    robot.wait(publisher.get_subscription_count, "a subscriber of clock")

    def tick(milliseconds):
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(milliseconds * 1_000_000, 10**9)
        publisher.publish(message)

    tick(5000)
    robot.status(lambda _l, message, _v: message != "waiting for /clock", "the clock")
    tick(5050)
    robot.status(lambda _l, _m, v: v["steps"] == "50", "the steps of 50 ms")
    assert robot.status(lambda _l, _m, v: True, "more")[2]["steps"] == "50"
    assert robot.joints[-1].header.stamp.sec == 5
    assert robot.joints[-1].header.stamp.nanosec == pytest.approx(50_000_000, abs=2_000_000)


def test_the_robot_may_be_that_of_the_node_that_runs(fake, start):
    client = start(*IIWA)
    robot = fake(*FAST, "-p", f"robot_source_node:=/{client.process.name}/{client.process.name}")
    assert robot.next_states()[0].name == NAMES


REFUSED_AT_START = {
    "command": (("-p", "command:=voltage"), "command must be one of motor_setpoint, feedforward, motor_effort, joint"),
    "type": (("-p", "kp:=many"), "kp"),
    "argument": (("--", "--colour"), "--colour"),
}


@pytest.mark.parametrize(("arguments", "reason"), REFUSED_AT_START.values(), ids=REFUSED_AT_START)
def test_a_value_that_is_not_allowed_is_refused_at_the_start(fake, arguments, reason):
    robot = fake(*IIWA, *arguments)
    assert robot.process.process.wait(PATIENCE) in (1, 2)
    assert reason in robot.process.log
    assert "Traceback" not in robot.process.log


NOT_LOADED = {
    "position": (("-p", "initial_position:=[0.0, 1.0]"), "initial_position must have 1 or 7 entries, has 2"),
    "robot": (("-p", "robot.joints.iiwa_joint_1.mass:=-1.0"), "mass"),
}


@pytest.mark.parametrize(("arguments", "reason"), NOT_LOADED.values(), ids=NOT_LOADED)
def test_a_robot_that_cannot_be_simulated_is_an_error_with_its_reason(fake, arguments, reason):
    robot = fake(*IIWA, *FAST, *arguments)
    level, message, _ = robot.status(lambda _l, message, _v: message.startswith("robot not loaded"), "diagnostics")
    assert level == 2 and reason in message
    assert not robot.joints
    assert "Traceback" not in robot.process.log


def test_a_signal_ends_it_in_good_order(fake):
    robot = fake(*IIWA)
    robot.next_states()
    assert robot.process.stop(signal.SIGINT) == 0
    assert "Traceback" not in robot.process.log and "xception" not in robot.process.log
