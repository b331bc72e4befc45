# SPDX-License-Identifier: Apache-2.0
"""Faults around the node: its standard streams, its compiler, signals, its arguments."""

import contextlib
import os
import re
import signal
import sys
import time
from itertools import groupby
from pathlib import Path

import numpy as np
import processes
import pytest
from node_client import NodeProcess, ended
from paths import CONFIG

from eom_dynamics.control.fields import STATE_FIELDS

IIWA = ("--params-file", CONFIG / "iiwa.yaml")


def test_the_node_runs_without_standard_streams(start):
    client = start(*IIWA, prefix=("sh", "-c", 'exec "$@" >&- 2>&- <&-', "sh"))
    assert client.state == "active"
    assert client.process.stop(signal.SIGTERM) == 0


# A transition fails once if its file exists.
FAILING_TRANSITIONS = """
import os
from eom_dynamics.ros.dynamics.node import DynamicsNode
from eom_dynamics.ros.dynamics.supervision import Supervision
from eom_dynamics.ros.robot_sources import RobotSupply
def failing(name, function):
    def fail(*arguments, **options):
        if os.path.exists(name):
            os.remove(name)
            raise ZeroDivisionError(f"on\x1b purpose, {name}")
        return function(*arguments, **options)
    return fail
RobotSupply.load = failing("configure", RobotSupply.load)
Supervision.begin = failing("activate", Supervision.begin)
DynamicsNode._end = failing("deactivate", DynamicsNode._end)
RobotSupply.resume = failing("cleanup", RobotSupply.resume)
RobotSupply.pause = failing("unconfigured_shutdown", RobotSupply.pause)
"""


def test_an_exception_in_a_transition_is_reported_and_leaves_a_node_that_can_be_configured(start, tmp_path):
    """Also during autostart."""
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
    # Efforts fade before the transition that failed.
    answers = [[*group] for _, group in groupby(client.feedforward, lambda m: m.held)]
    assert [group[0].held for group in answers] == [False, True, False]
    assert answers[-1][-1].header.stamp.nanosec == last and not any(answers[1][-1].effort)


def test_a_signal_ends_a_node_that_compiles(start, tmp_path, monkeypatch):
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nsleep 100 & wait\n")
    compiler.chmod(0o700)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("EOM_DYNAMICS_CACHE", str(tmp_path / "cache"))
    client = start(*IIWA, discovered=False)
    client.wait((tmp_path / "pid").exists, "the compiler to start")
    assert client.process.stop(signal.SIGINT) == 0  # sooner than the compiler
    assert "Traceback" not in client.process.log
    assert not list((tmp_path / "cache").iterdir())


def test_without_the_events_executor_the_node_warns_and_runs_until_signals_end_it_once(start):
    client = start(*IIWA, patch="import sys\nsys.modules['rclpy.experimental.events_executor'] = None\n")
    assert client.state == "active"
    assert client.process.log.count("rclpy has no events executor, its executor of one thread is used") == 1
    process, deadline = client.process.process, time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.002)
    assert process.returncode == 0
    assert "Traceback" not in client.process.log


WARNS = r"""
import warnings
from eom_dynamics.ros.dynamics import target_topics
def limits(*arguments):
    warnings.warn("no compiler\x1b here")
    return given(*arguments)
given, target_topics.motion_limits = target_topics.motion_limits, limits
"""


def test_a_warning_of_a_thread_is_one_line_of_the_log(start):
    from sensor_msgs.msg import JointState

    client = start(*IIWA, patch=WARNS)
    client.publisher(JointState, "target").publish(JointState())
    client.wait(lambda: "no compiler" in client.process.log, "the warning")
    (line,) = (line for line in client.process.log.splitlines() if "compiler" in line)
    assert line.startswith("[WARN]") and line.endswith(r": no compiler\x1b here")
    assert "UserWarning" not in client.process.log


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


def test_interfaces_that_are_not_built_are_an_error_that_says_what_to_do(ros, monkeypatch):
    monkeypatch.delitem(sys.modules, "eom_dynamics.ros.interfaces", raising=False)
    monkeypatch.setitem(sys.modules, "eom_dynamics.msg", None)
    with pytest.raises(ImportError, match=r"interfaces.*eom_dynamics"):
        import eom_dynamics.ros.interfaces  # noqa: F401


NODES = {
    "dynamics_node": ("~/inverse_dynamics", "joint_trajectory", "constraints.goal_time"),
    "planning_node": ("~/trajectory_feedforward", "payload"),
    "simulated_robot_node": ("motor_setpoint", "joint_states", "natural_frequency"),
}


def test_help_describes_topics_and_parameters(ros, tmp_path):
    for node, words in NODES.items():
        code, output, errors = ended(f"eom_dynamics.ros.{node}", tmp_path, "--help")
        assert (code, errors) == (0, "")
        for word in ("--params-file", "robot_source_node", "/diagnostics", *words):
            assert word in output


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (("--params-file", "arm.yaml"), "--params-file arm.yaml"),
        (("robot_file:=iiwa", "limits:=warn", "-r", "a:=b"), "-p robot_file:=iiwa -p limits:=warn -r a:=b"),
        (("-p", "robot_file:=iiwa"), "-p robot_file:=iiwa"),
        (("--robot_file", "iiwa"), "-p NAME:=VALUE"),
    ],
)
def test_arguments_that_nothing_reads_are_refused(ros, capsys, arguments, written):
    from eom_dynamics.ros.dynamics_node import PROGRAM
    from eom_dynamics.ros.running import read_arguments

    with pytest.raises(SystemExit, match="2"):
        read_arguments(PROGRAM, ["dynamics_node", *arguments])
    remedy = f"parameters and remappings follow --ros-args: write dynamics_node --ros-args {written}\n"
    assert f"{arguments[-1].replace('a:=b', 'limits:=warn')}; {remedy}" in capsys.readouterr().err


def files_in_shared_memory(pid):
    """Names of the middleware's files that a process uses; empty after its end.

    Except ports below 7400, which processes of all domains share.
    """
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        names = {Path(line.split()[5]).name for line in lines if "/dev/shm/" in line}
        return {name for name in names if re.search(r"fastrtps_([0-9a-f]{16}|port(?!7[0-3])\d+)", name)}
    return set()


# From the first file of a node to the signal, s.
MOMENTS = {
    "dynamics_node": (signal.SIGINT, [0.0, 0.4]),
    "planning_node": (signal.SIGTERM, [0.6]),
    "simulated_robot_node": (signal.SIGHUP, [0.06]),
}


@pytest.mark.parametrize("node", MOMENTS)
def test_a_signal_leaves_nothing_in_shared_memory(ros, tmp_path, node):
    names, before = set(), set(os.listdir("/dev/shm"))  # a process that was killed has left ports of its domain
    number, moments = MOMENTS[node]
    for moment in moments:
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


def test_values_of_another_type_are_taken_as_they_are_meant(start):
    given = {"stream_rate:=500": 500.0, "joint_prefix:=0": "0", "safety:=off": "off"}
    node = start(*IIWA, *(word for each in given for word in ("-p", each)))
    assert [node.get_parameter(each.partition(":")[0]) for each in given] == list(given.values())
