# SPDX-License-Identifier: Apache-2.0
"""Faults around the node: its standard streams, its compiler, signals, its arguments."""

import contextlib
import os
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import processes
import pytest
from node_client import NodeProcess, ended
from paths import CONFIG

from eom_dynamics.messages.fields import STATE_FIELDS

IIWA = ("--params-file", CONFIG / "iiwa.yaml")


def test_the_node_runs_without_standard_streams(start):
    client = start(*IIWA, prefix=("sh", "-c", 'exec "$@" >&- 2>&- <&-', "sh"))
    assert client.state == "active"
    assert client.process.stop(signal.SIGTERM) == 0


def test_an_internal_error_is_reported(start):
    patch = (
        "from eom_dynamics.elastic import ElasticArm\n"
        "def fail(*_): raise ZeroDivisionError('on\\x1b purpose')\n"
        "ElasticArm.__init__ = fail\n"
    )
    client = start(*IIWA, patch=patch)
    level, message, values = client.next_diagnostics()
    assert (level, values["state"]) == (2, "unconfigured")
    assert message == r"robot not loaded: internal error: ZeroDivisionError: on\x1b purpose"
    assert client.process.log.count("robot not loaded: internal error: ZeroDivisionError") == 1
    assert "\x1b purpose" not in client.process.log
    assert not client.transition("configure")


def test_an_internal_error_is_not_answered_by_a_held_command(start):
    patch = (
        "from eom_dynamics.messages import setpoint_to_command\n"
        "read_samples = setpoint_to_command.read_samples\n"
        "def fail(message, *rest, **options):\n"
        "    return read_samples(message, *rest, **options) if message.snap[0] == 0.0 else 1 / 0\n"
        "setpoint_to_command.read_samples = fail\n"
    )
    client = start(*IIWA, "-p", "hold_last_command:=always", "-p", "warning_period:=0.0", patch=patch)
    good = dict.fromkeys(STATE_FIELDS, np.zeros(7))
    client.answers_to(client.publish(**good))
    held = client.publish(**good | {"jerk": np.zeros(3)})
    assert client.answers_to(held)[0].held
    client.publish(**good | {"snap": np.ones(7)})
    last = client.publish(**good)
    client.answers_to(last)
    assert [m.header.stamp.nanosec for m in client.feedforward][-2:] == [held, last]
    assert client.process.log.count("setpoint refused: internal error: ZeroDivisionError: division by zero") == 1


# A transition whose file exists fails once.
FAILING_TRANSITIONS = """
import os
from eom_dynamics.ros import scheduling
from eom_dynamics.ros.dynamics.spline_topic import SplineTopic
from eom_dynamics.ros.robot_sources import RobotSupply
def failing(name, function):
    def fail(*arguments, **options):
        if os.path.exists(name):
            os.remove(name)
            raise ZeroDivisionError(f"on\x1b purpose, {name}")
        return function(*arguments, **options)
    return fail
RobotSupply.load = failing("configure", RobotSupply.load)
scheduling.stream_in_real_time = failing("activate", scheduling.stream_in_real_time)
SplineTopic.stop = failing("deactivate", SplineTopic.stop)
RobotSupply.resume = failing("cleanup", RobotSupply.resume)
RobotSupply.pause = failing("unconfigured_shutdown", RobotSupply.pause)
"""


def test_an_exception_in_a_transition_is_reported_and_leaves_a_node_that_can_be_configured(start, tmp_path):
    """Also in the bring-up of the node, with which it begins."""
    (tmp_path / "activate").touch()
    client = start(*IIWA, patch=FAILING_TRANSITIONS)
    good = dict.fromkeys(STATE_FIELDS, np.zeros(7))
    paths = {"activate": (), "configure": (), "deactivate": ("configure", "activate"), "cleanup": ("configure",)}
    for failing, path in {**paths, "unconfigured_shutdown": ()}.items():
        assert all(map(client.transition, path))
        if failing == "deactivate":
            client.answers_to(client.publish(**good))
        if failing != "activate":  # which has failed already
            (tmp_path / failing).touch()
            assert not client.transition(failing)
        assert client.state == "unconfigured"
        reason = rf"{failing.removeprefix('unconfigured_')} failed: ZeroDivisionError: on\x1b purpose, {failing}"
        level, message, values = client.next_diagnostics()
        assert (level, message, values["robot"]) == (2, f"unconfigured: {reason}", "")
        assert client.process.log.count(f"{reason} (correct it and configure again)\nTraceback") == 1
        client.publish(**good)
    answer = client.inverse_dynamics(position=np.zeros(7), velocity=np.zeros(7), acceleration=np.zeros(7))
    assert (answer.success, answer.message) == (False, "the node is unconfigured; it answers only when active")
    assert client.transition("configure")
    assert client.next_diagnostics()[:2] == (0, "inactive: setpoints are not answered")
    assert client.transition("activate")
    assert client.process.log.count("transition activate from inactive") == 2
    last = client.publish(**good)
    client.answers_to(last)
    # The second one is the last command before the transition that failed.
    assert [m.held for m in client.feedforward] == [False, True, False]
    assert client.feedforward[-1].header.stamp.nanosec == last and not any(client.feedforward[1].effort)


@pytest.mark.parametrize(("autostart", "number"), [(True, signal.SIGINT), (False, signal.SIGTERM)])
def test_a_signal_ends_a_node_that_compiles(start, tmp_path, monkeypatch, autostart, number):
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nsleep 100 & wait\n")
    compiler.chmod(0o700)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("EOM_DYNAMICS_CACHE", str(tmp_path / "cache"))
    client = start(*IIWA, "-p", f"autostart:={autostart}".lower(), discovered=not autostart)
    if not autostart:
        client.begin_transition("configure")
    client.wait((tmp_path / "pid").exists, "the compiler to start")
    started = time.monotonic()
    assert client.process.stop(number) == 0
    assert time.monotonic() - started < 10
    assert "Traceback" not in client.process.log
    assert not list((tmp_path / "cache").iterdir())


def test_signals_one_after_another_end_a_node_once(start):
    client = start(*IIWA)
    process = client.process.process
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.002)
    assert process.returncode == 0
    assert "Traceback" not in client.process.log


def test_times_that_no_clock_can_show_are_ignored(start):
    from rosgraph_msgs.msg import Clock

    client = start(*IIWA, "-p", "use_sim_time:=true", "-r", "/clock:={namespace}/clock")
    clock, time_of = client.publisher(Clock, "clock"), Clock()

    def show(seconds, until, what):
        time_of.clock.sec = seconds
        client.repeat(lambda: clock.publish(time_of), until, what)

    for seconds in (5, 7):
        show(-3, lambda: "a time of /clock is ignored: Seconds value must not be negative" in client.process.log, "it")
        show(seconds, lambda s=seconds: client.diagnostics[-1].header.stamp.sec == s, "the next time")
    assert "Traceback" not in client.process.log


def test_without_ros_the_error_is_one_line(tmp_path):
    hide = (
        "import importlib.util, runpy, sys\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'rclpy' else find(name, *rest)\n"
        "sys.modules['rclpy'] = None\n"
    )
    (tmp_path / "sitecustomize.py").write_text(hide)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    code, output, errors = processes.run(
        [sys.executable, "-m", "eom_dynamics.ros.dynamics_node"], cwd=tmp_path, env=environment
    )
    assert (code, output) == (2, "")
    assert errors.startswith("rclpy is not installed; run: ")
    assert errors.count("\n") == 1


def test_without_the_events_executor_the_node_warns_and_runs(start):
    client = start(*IIWA, patch="import sys\nsys.modules['rclpy.experimental.events_executor'] = None\n")
    assert client.state == "active"
    assert client.process.log.count("this rclpy has no events executor, single_threaded is used") == 1


NODES = {
    "dynamics_node": ("~/inverse_dynamics", "spline_trajectory", "limits", "hold_last_command", "autostart"),
    "planning_node": ("~/trajectory_feedforward", "joint_trajectory", "niceness", "reserved_cores"),
    "simulated_robot_node": ("motor_setpoint", "joint_states", "natural_frequency", "on_timeout"),
    "dynamics_nodes": ("--params-file left.yaml --node",),
}


@pytest.mark.parametrize("node", NODES)
def test_help_describes_topics_and_parameters(ros, tmp_path, node):
    code, output, errors = ended(f"eom_dynamics.ros.{node}", tmp_path, "--help")
    assert (code, errors) == (0, "")
    general = () if node == "dynamics_nodes" else ("--params-file", "robot_source_node", "/diagnostics")
    for word in (*general, *NODES[node]):
        assert word in output


@pytest.mark.parametrize("arguments", [["--params-file", "arm.yaml"], ["arm.yaml", "--ros-args"]])
def test_arguments_that_nothing_reads_are_refused(ros, tmp_path, arguments):
    code, _, errors = ended("eom_dynamics.ros.dynamics_node", tmp_path, *arguments)
    assert code == 2
    assert "arm.yaml; parameters and remappings follow --ros-args" in errors


def files_in_shared_memory(pid):
    """Names of the middleware's files that a process uses; none where it has ended.

    Not those of ports below 7400, which processes of all domains share.
    """
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        names = {Path(line.split()[5]).name for line in lines if "/dev/shm/" in line}
        return {name for name in names if re.search(r"fastrtps_([0-9a-f]{16}|port(?!7[0-3])\d+)", name)}
    return set()


MOMENTS = [0.0, 0.03, 0.1, 0.3, 0.6, 1.0]
"""From the first file of a node to the signal, s."""


SIGNALS = {"dynamics_node": signal.SIGINT, "planning_node": signal.SIGTERM, "simulated_robot_node": signal.SIGHUP}


@pytest.mark.parametrize(("node", "number"), SIGNALS.items(), ids=SIGNALS)
def test_a_signal_leaves_nothing_in_shared_memory(ros, tmp_path, node, number):
    names, before = set(), set(os.listdir("/dev/shm"))  # a process that was killed has left ports of its domain
    for moment in MOMENTS:
        process = NodeProcess(tmp_path, *IIWA, module=node)
        pid, signals = process.process.pid, 0
        deadline = time.monotonic() + 60
        while process.process.poll() is None:
            names |= (found := files_in_shared_memory(pid))
            if found and not signals:
                signals, deadline = 1, time.monotonic() + moment
            elif signals == 1 and time.monotonic() > deadline:
                process.process.send_signal(number)
                signals = 2
            time.sleep(0.005)
        assert process.process.returncode == 0 and signals == 2 and "Traceback" not in process.log, process.log
        process.end()
    used = set().union(*(files_in_shared_memory(path.name) for path in Path("/proc").glob("[0-9]*")))
    left = [file for name in names - used for file in (name, f"{name}_el") if Path("/dev/shm", file).exists()]
    assert names and not set(left) - before
