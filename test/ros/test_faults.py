# SPDX-License-Identifier: Apache-2.0
"""What is wrong around the node: its streams, its compiler, itself."""

import os
import signal
import subprocess
import sys
import time

import pytest
from node_client import CONFIG, Client, NodeProcess

IIWA = ("--params-file", CONFIG / "iiwa.yaml")
FAST = ("-p", "diagnostic_period:=0.1")


@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&- <&-"])
def test_the_node_runs_without_standard_streams(ros, tmp_path, closed):
    process = NodeProcess(tmp_path, *IIWA, *FAST, prefix=("sh", "-c", f'exec "$@" {closed}', "sh"))
    client = Client(ros, process)
    client.wait_for_node()
    assert client.state == "active"
    assert process.stop(signal.SIGTERM) == 0
    client.close()
    process.kill()


def test_an_error_of_the_node_itself_is_reported(start, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(
        "from eom_dynamics.actuators import ElasticArm\n"
        "def fail(*_): raise ZeroDivisionError('on\\x1b purpose')\n"
        "ElasticArm.__init__ = fail\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    client = start(*IIWA, *FAST)
    level, message, values = client.next_diagnostics()
    assert (level, values["state"]) == (2, "unconfigured")
    assert message == r"robot not loaded: internal error: ZeroDivisionError: on\x1b purpose"
    assert client.process.log.count("robot not loaded: internal error: ZeroDivisionError") == 1
    assert "\x1b purpose" not in client.process.log
    assert not client.transition("configure")


def test_names_reach_the_log_as_text(start):
    client = start(*IIWA, *FAST, "-p", "autostart:=false")
    assert client.set_parameter("robot.\x1b[31m", 1) == ""
    assert not client.transition("configure")
    assert "\x1b[31m" not in client.process.log
    assert r"robot.\x1b[31m: unknown entry" in client.process.log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("autostart", [True, False])
def test_a_signal_ends_a_node_that_compiles(start, tmp_path, monkeypatch, autostart, number):
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nsleep 100 & wait\n")
    compiler.chmod(0o700)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("EOM_DYNAMICS_CACHE", str(tmp_path / "cache"))
    client = start(*IIWA, *FAST, "-p", f"autostart:={autostart}".lower(), discovered=not autostart)
    if not autostart:
        from lifecycle_msgs.msg import Transition
        from lifecycle_msgs.srv import ChangeState

        name = f"/{client.process.name}/{client.process.name}/change_state"
        service = client.node.create_client(ChangeState, name)
        client.wait(service.service_is_ready, "change_state")
        configure = Transition(id=Transition.TRANSITION_CONFIGURE)
        service.call_async(ChangeState.Request(transition=configure))
    client.wait((tmp_path / "pid").exists, "the compiler to start")
    started = time.monotonic()
    assert client.process.stop(number) == 0
    assert time.monotonic() - started < 10
    assert "Traceback" not in client.process.log
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_one_after_another_end_a_node_once(start, number):
    client = start(*IIWA, *FAST)
    process = client.process.process
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        process.send_signal(number)
        time.sleep(0.002)
    assert process.returncode == 0
    assert "Traceback" not in client.process.log


def run(tmp_path, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "eom_dynamics.ros.dynamics_node", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_help_says_how_to_start_the_node_and_what_its_parameters_are(ros, tmp_path):
    result = run(tmp_path, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    for word in ("--params-file", "~/inverse_dynamics", "setpoint", "clip_to_limits", "hold_last_command", "autostart"):
        assert word in result.stdout


@pytest.mark.parametrize("arguments", [["--params-file", "arm.yaml"], ["arm.yaml", "--ros-args"]])
def test_arguments_that_nothing_reads_are_refused(ros, tmp_path, arguments):
    result = run(tmp_path, *arguments)
    assert result.returncode == 2
    assert "arm.yaml; parameters and remappings follow --ros-args" in result.stderr
