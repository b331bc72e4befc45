# SPDX-License-Identifier: Apache-2.0
"""Timers in simulated time, where the clock advances again while a call is queued; timers always late; workers."""

import signal
import threading
from array import array

import numpy as np
import pytest
from paths import CONFIG
from robot_client import RobotClient

import eom_dynamics as eom
from eom_dynamics.trajectory import through

pytest.importorskip("rclpy", reason="rclpy is not installed")

from rclpy.clock_type import ClockType
from rclpy.parameter import Parameter
from rclpy.time import Time

from eom_dynamics.ros.executors import Worker, end_workers, keep_pace, make_executor

PERIOD = 20_000_000
START = 100 * 10**9


@pytest.fixture(params=["events", "single_threaded"])
def simulated(ros, request):
    """A node on a clock of the test, and what sets this clock and lets the executor work."""
    node = ros.create_node("simulated", parameter_overrides=[Parameter("use_sim_time", value=True)])
    node.declare_parameter("stream_rate", 1e9 / PERIOD)
    node.declare_parameter("start_tolerance", 0.01)
    node.declare_parameter("start_latency", 0.1)
    executor = make_executor(events=request.param == "events")
    executor.add_node(node)

    def advance(*times):
        for time in times:
            node.get_clock().set_ros_time_override(Time(nanoseconds=time, clock_type=ClockType.ROS_TIME))
        for _ in range(6):
            executor.spin_once(timeout_sec=0.002)

    advance(START)
    yield node, advance
    executor.shutdown()
    node.destroy_node()


# Queued before a timer is called: the clock advances four times.
AT_ONCE = [START + PERIOD + k for k in range(4)]
LATER = [START + k * PERIOD + 10 for k in range(2, 8)]


def test_a_timer_leaves_no_period_out(simulated):
    def call():
        keep_pace(node, timer)
        calls.append(node.get_clock().now().nanoseconds)

    calls = []
    node, advance = simulated
    timer = node.create_timer(PERIOD * 1e-9, call)
    advance()  # the executor gets to know the timer
    advance(*AT_ONCE)
    for time in LATER:
        advance(time)
    assert sorted(set(calls)) == [AT_ONCE[-1], *LATER]


def test_a_trajectory_leaves_no_setpoint_out(simulated):
    from eom_dynamics.ros.dynamics.trajectory_player import TrajectoryPlayer

    node, advance = simulated
    sent = []
    player = TrajectoryPlayer(node, lambda setpoint, _: not sent.append(setpoint.position[0]))
    motion = through([0.0, 1.0], [[0.0, 0.0], [0.4, 0.2]])
    player.play(motion, 0, "", eom.ElasticArm(eom.load_robot(CONFIG / "planar_2r.yaml")), lambda verdict: None)
    advance()
    advance(*AT_ONCE)
    for time in LATER:
        advance(time)
    expected = motion.derivatives(np.arange(1, 8) * PERIOD * 1e-9, 0)[0][:, 0]
    np.testing.assert_allclose(sent, expected, rtol=0, atol=1e-12)
    assert player.skipped == 0


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


def test_a_trajectory_whose_setpoints_are_always_late_is_stopped_with_a_signal(start):
    from eom_dynamics.msg import FeedforwardCommand, SplineTrajectory

    robot = eom.load_robot(CONFIG / "planar_2r.yaml")
    client = start("--params-file", CONFIG / "planar_2r.yaml", "-p", "stream_rate:=5000.0", patch=LATE)
    # From rest to rest in 20 s: 126 t^5 - 420 t^6 + 540 t^7 - 315 t^8 + 70 t^9 of the time as a fraction.
    shape = np.array([0, 0, 0, 0, 0, 126.0, -420.0, 540.0, -315.0, 70.0]) / 20.0 ** np.arange(10)
    message = SplineTrajectory(
        joint_names=robot.joint_names,
        knots=array("d", [0.0, 20.0]),
        degree=9,
        coefficients=array("d", np.repeat(shape, 2)),
    )
    client.publisher(SplineTrajectory, "spline_trajectory").publish(message)
    client.wait_for_diagnostics(lambda *status: "trajectory" in status[2], "the trajectory")
    assert client.process.stop(signal.SIGTERM) == 0
    client.until_silent()
    assert client.feedforward[-1].status == FeedforwardCommand.STATUS_HELD


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


def test_an_exception_of_a_job_is_raised_where_its_result_is_awaited(ros, node):
    worker = Worker(node, "failing")
    failed = worker.compute(lambda: 1 // 0)
    ros.spin_until_future_complete(node, failed, timeout_sec=60)
    assert isinstance(failed.exception(), ZeroDivisionError)
    after = worker.compute(lambda: 2)
    ros.spin_until_future_complete(node, after, timeout_sec=60)
    assert after.result() == 2
    assert end_workers(node, 60)


def test_a_node_with_an_endless_job_ends_and_is_forgotten(start, tmp_path):
    from eom_dynamics.srv import ComputeForwardDynamics

    patch = (
        "import pathlib, threading\n"
        "from eom_dynamics.ros.planning import services\n"
        "def endless(*_):\n"
        "    pathlib.Path('begun').touch()\n"
        "    threading.Event().wait()\n"
        "kind, _, takes = services.SERVICES['forward_dynamics']\n"
        "services.SERVICES['forward_dynamics'] = kind, endless, takes\n"
    )
    client = start.planning("--params-file", CONFIG / "iiwa.yaml", patch=patch)
    service = client.client(ComputeForwardDynamics, "forward_dynamics")
    service.call_async(ComputeForwardDynamics.Request())
    client.wait((tmp_path / "begun").exists, "the job")
    assert client.process.stop(signal.SIGTERM) == 0
    while client.node.count_services(service.srv_name):
        client.spin(0.05)
    assert "Traceback" not in client.process.log
