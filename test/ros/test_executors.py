# SPDX-License-Identifier: Apache-2.0
"""Timers in simulated time, if the clock advances again while a call is queued; timers always late; workers."""

import signal
import threading
from unittest.mock import Mock

import numpy as np
import pytest
from paths import CONFIG
from rclpy.clock_type import ClockType
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.time import Time
from robot_client import RobotClient
from setpoint_engines import goal_at

import eom_dynamics as eom
from eom_dynamics.control.setpoint_loop import SetpointLoop
from eom_dynamics.control.setpoint_to_command import SetpointEvaluator
from eom_dynamics.ros.executors import PunctualTimers, Worker, end_workers, make_executor
from eom_dynamics.trajectory import through

PERIOD = 20_000_000
START = 100 * 10**9


@pytest.mark.parametrize("events", [True, False])
def test_a_trajectory_leaves_no_setpoint_out(ros, events):
    """On a clock of the test."""
    from eom_dynamics.ros.dynamics.clocks import WatchedClock
    from eom_dynamics.ros.dynamics.trajectory_player import TrajectoryPlayer

    node = ros.create_node("simulated", parameter_overrides=[Parameter("use_sim_time", value=True)])
    node.declare_parameter("stream_rate", 1e9 / PERIOD)
    node.punctual = PunctualTimers()
    executor = make_executor() if events else SingleThreadedExecutor()
    executor.add_node(node)

    def advance(*times):
        for time in times:
            node.get_clock().set_ros_time_override(Time(nanoseconds=time, clock_type=ClockType.ROS_TIME))
        for _ in range(6):
            executor.spin_once(timeout_sec=0.002)

    advance(START)
    sent = []
    clock = WatchedClock(lambda: node.get_clock().now().nanoseconds)
    measured = Mock(sag=lambda *_: 0.0)
    player = TrajectoryPlayer(
        node, clock, measured, Mock(), lambda host, *_: not sent.append(host.loop.setpoint["q"][0])
    )
    player.take(SetpointLoop(SetpointEvaluator(eom.ElasticArm(eom.load_robot(CONFIG / "planar_2r.yaml")))))
    motion = through([0.0, 1.0], [[0.0, 0.0], [0.4, 0.2]])
    player.play(motion, goal_at())
    advance()
    # Queued before the timer is called: the clock advances four times.
    advance(*(START + PERIOD + k for k in range(4)))
    for k in range(2, 8):
        advance(START + k * PERIOD + 10)
    expected = motion.derivatives(np.arange(8) * PERIOD * 1e-9, 0)[0][:, 0]
    np.testing.assert_allclose(sent, expected, rtol=0, atol=1e-12)
    assert player.skipped == 0
    executor.shutdown()
    node.destroy_node()


# --- Timers that are always late ---------------------------------------------------------

# The callback of a fast timer takes longer than its period.
LATE = """
import time
from rclpy.node import Node
create_timer = Node.create_timer
def create_late_timer(self, period, callback, **options):
    def late():
        callback()
        time.sleep(2 * period)
    return create_timer(self, period, late if period < 1e-3 else callback, **options)
Node.create_timer = create_late_timer
"""


def test_a_simulated_robot_whose_steps_are_always_late_ends_with_a_signal(start):
    arguments = ("-p", "robot_file:=sea_planar_2r", "-p", "rate:=5000.0")
    robot = start(*arguments, module="simulated_robot_node", client=RobotClient, patch=LATE)
    robot.wait_for_diagnostics(lambda *status: float(status[2]["steps late"]) > 0, "late steps")
    assert robot.process.stop(signal.SIGINT) == 0


# --- Worker threads ---------------------------------------------------------------------


@pytest.fixture
def node(ros):
    node = ros.create_node("with_workers")
    yield node
    node.destroy_node()


def test_workers_end_after_their_present_job(ros, node):
    other = ros.create_node("another")
    begun, released, done = threading.Event(), threading.Event(), []
    worker, idle, others = Worker(node, "busy"), Worker(node, "idle"), Worker(other, "another's")

    def job():
        begun.set()
        released.wait()
        done.append(1)

    for _ in range(2):
        worker.submit(job, print)
    assert begun.wait(60)
    assert not end_workers(node, 0.01)
    released.set()
    assert end_workers(node, 60)
    assert done == [1]
    assert not idle._thread.is_alive()
    assert others._thread.is_alive()
    assert end_workers(other, 60)
    other.destroy_node()


def test_a_node_with_an_endless_job_ends_and_is_forgotten(start, tmp_path):
    from eom_dynamics.srv import ComputeInverseKinematics

    patch = (
        "import pathlib, threading\n"
        "from eom_dynamics.ros.planning import services\n"
        "def endless(*_):\n"
        "    pathlib.Path('begun').touch()\n"
        "    threading.Event().wait()\n"
        "kind, _ = services.SERVICES['inverse_kinematics']\n"
        "services.SERVICES['inverse_kinematics'] = kind, endless\n"
    )
    client = start.planning("--params-file", CONFIG / "iiwa.yaml", patch=patch)
    service = client.client(ComputeInverseKinematics, "inverse_kinematics")
    service.call_async(ComputeInverseKinematics.Request())
    client.wait((tmp_path / "begun").exists, "the job")
    assert client.process.stop(signal.SIGTERM) == 0
    while client.node.count_services(service.srv_name):
        client.spin(0.05)
    assert "Traceback" not in client.process.log
