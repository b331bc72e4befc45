# SPDX-License-Identifier: Apache-2.0
"""The process of the planning services: whose names it serves, what it follows, and how both processes end."""

import os
import signal
import socket
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
from node_client import CONFIG, PATIENCE
from urdf_arms import urdf_arm

import eom_dynamics as eom
from eom_dynamics.stream.conversions import STATE_FIELDS

IIWA = ("--params-file", CONFIG / "iiwa.yaml")
PLANNING = ("-p", "planning_services:=true", "-p", "diagnostic_period:=0.1")
NAMES = {"inverse_dynamics_batch", "forward_dynamics", "equations_of_motion", "trajectory_feedforward"}


def terms(client, name="equations_of_motion", n=7, **fields):
    from eom_dynamics.srv import GetEquationsOfMotion

    request = GetEquationsOfMotion.Request(position=[0.1] * n, velocity=[0.1] * n, **fields)
    return client.call(GetEquationsOfMotion, name, request)


def planning_process(client):
    (pid,) = (pid for pid in client.process.children if b"planning" in command_line(pid))
    return pid


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""


def has_ended(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def services_of(client):
    return {name for name, _ in client.node.get_service_names_and_types()}


def test_all_their_threads_give_way_to_the_stream(start):
    client = start(*IIWA, *PLANNING)
    assert terms(client).success
    for task in Path(f"/proc/{planning_process(client)}/task").iterdir():
        thread = int(task.name)
        assert os.getpriority(os.PRIO_PROCESS, thread) == 10, (task / "comm").read_text()
        cores = os.sched_getaffinity(0)
        assert os.sched_getaffinity(thread) == (cores - {min(cores)} or cores)


def test_they_have_the_nodes_names_remapped_as_the_node_is(start):
    client = start(
        *IIWA,
        *PLANNING,
        *("-r", "~/forward_dynamics:=accelerations", "-r", f"~/equations_of_motion:=/terms_of_{os.getpid()}"),
        # A name is remapped once; the other process must not do it a second time.
        *("-r", "accelerations:=wrong"),
    )
    name = client.process.name
    base = f"/{name}/{name}"
    wanted = {f"{base}/inverse_dynamics_batch", f"{base}/trajectory_feedforward", f"/{name}/accelerations"}
    wanted |= {f"/terms_of_{os.getpid()}", f"{base}/compute_trajectory_feedforward/_action/send_goal"}
    client.wait(lambda: wanted <= services_of(client), "the services")
    assert f"{base}/forward_dynamics" not in services_of(client)
    # Nothing is to be asked of the other process but this.
    assert not any("_planning" in service for service in services_of(client))


def test_they_run_at_a_lower_priority(start):
    client = start(*IIWA, *PLANNING)
    client.wait_for_diagnostics(lambda *status: status[2]["planning services"] == "ready", "the services")
    pids = client.process.process.pid, planning_process(client)
    own, other = (os.getpriority(os.PRIO_PROCESS, pid) for pid in pids)
    assert other == min(own + 10, 19)


def test_they_can_be_left_out(start):
    client = start(*IIWA, *PLANNING[2:], "-p", "planning_services:=false")
    assert client.next_diagnostics()[2]["planning services"] == "off"
    assert not any(name in service for service in services_of(client) for name in NAMES)
    assert not client.process.children
    assert client.set_parameter("planning_services", True)  # the reason why not


def test_they_answer_only_while_the_node_is_active(start):
    client = start(*IIWA, *PLANNING, "-p", "autostart:=false")
    assert terms(client).message == "the node is unconfigured; it answers only when active"
    assert client.transition("configure")
    assert terms(client).message == "the node is inactive; it answers only when active"
    assert client.transition("activate")
    assert terms(client).success
    assert client.transition("deactivate")
    assert terms(client).message == "the node is inactive; it answers only when active"
    assert client.transition("cleanup")
    assert terms(client).message == "the node is unconfigured; it answers only when active"
    assert client.transition("configure")
    assert client.transition("activate")
    assert terms(client).success


def test_they_follow_a_new_robot(start, describe):
    arms = [urdf_arm(joints=("shoulder", "elbow")), urdf_arm(joints=("hip", "knee", "foot"), mass=2.0)]
    describe(arms[0])
    client = start(*PLANNING, "-r", f"robot_description:={describe.topic}")
    for text in arms:
        describe(text)
        robot = eom.load_robot(text)
        client.wait_for_diagnostics(
            lambda *status, names=robot.joint_names: (
                status[2]["joints"] == ", ".join(names) and status[2]["state"] == "active"
            ),
            "the robot",
        )
        answer = terms(client, n=robot.n, joint_names=list(robot.joint_names))
        assert answer.success, answer.message
        wanted = eom.equations_of_motion(robot, np.full(robot.n, 0.1), np.full(robot.n, 0.1)).M[0]
        np.testing.assert_allclose(answer.mass_matrix, wanted.ravel(), rtol=0, atol=1e-12 * wanted.max())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_they_end_with_the_node_however_it_ends(start, number):
    client = start(*IIWA, *PLANNING)
    assert terms(client).success
    pid = planning_process(client)
    client.process.process.send_signal(number)
    client.process.process.wait(PATIENCE)
    wait_until(lambda: has_ended(pid))
    assert "Traceback" not in client.process.log


def test_they_end_with_the_node_before_they_are_there(start):
    client = start(*IIWA, *PLANNING, discovered=False)
    wait_until(lambda: any(b"planning" in command_line(pid) for pid in client.process.children))
    pid = planning_process(client)
    client.process.process.kill()
    client.process.process.wait(PATIENCE)
    wait_until(lambda: has_ended(pid))


@pytest.mark.parametrize("told", [False, True])
def test_they_say_nothing_where_the_node_has_ended_before_they_are_there(ros, tmp_path, told):
    from eom_dynamics.ros.planning.link import Identity, LastNumber
    from eom_dynamics.ros.planning.of_node import NAMES as ALL_NAMES

    ours, theirs = socket.socketpair()
    with theirs, Connection(ours.detach()) as link, (tmp_path / "number").open("w+b") as shared:
        shared.truncate(LastNumber.SIZE)
        code = "import sys; from eom_dynamics.ros.planning.process import main; sys.exit(main())"
        files = [theirs.fileno(), shared.fileno()]
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, files)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=files,
            cwd=tmp_path,
        )
        if told:
            names = {name: f"/ended/{name}" for name in ALL_NAMES}
            link.send(Identity((), "ended", "/", names, False, "/clock", "/joint_trajectory"))
    assert process.communicate(timeout=PATIENCE) == (b"", None)
    assert process.returncode == 0


def test_signals_of_a_terminal_leave_them_to_the_node(start):
    client = start(*IIWA, *PLANNING)
    assert terms(client).success
    pid = planning_process(client)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(pid, number)
    assert terms(client).success
    assert planning_process(client) == pid


def test_signals_reach_only_the_node_also_while_they_start(start):
    client = start(*IIWA, *PLANNING, discovered=False)
    wait_until(lambda: any(b"planning" in command_line(pid) for pid in client.process.children))
    pid = planning_process(client)
    for _ in range(10):
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(pid, number)
        time.sleep(0.02)
    client.wait_for_node()
    assert terms(client).success
    assert planning_process(client) == pid
    assert "KeyboardInterrupt" not in client.process.log


def test_they_start_again_and_the_stream_goes_on(start):
    client = start(*IIWA, *PLANNING)
    assert terms(client).success
    os.kill(planning_process(client), signal.SIGKILL)
    client.answers_to(client.publish(**dict.fromkeys(STATE_FIELDS, np.zeros(7))))
    client.wait_for_diagnostics(
        lambda *status: status[2]["planning services"] == "ready; restarted 1 times, last: ended by SIGKILL",
        "the services again",
    )
    assert client.process.log.count("the planning services ended by SIGKILL; they start again") == 1
    # For some seconds the middleware takes the one that was killed for alive, and a request may go there.
    wait_until(lambda: terms_in_a_second(client))


def terms_in_a_second(client):
    from eom_dynamics.srv import GetEquationsOfMotion

    service = client.node.create_client(
        GetEquationsOfMotion, f"/{client.process.name}/{client.process.name}/equations_of_motion"
    )
    client.wait(service.service_is_ready, "the service")
    future = service.call_async(GetEquationsOfMotion.Request(position=[0.1] * 7, velocity=[0.1] * 7))
    client.spin(1.0)
    client.node.destroy_client(service)
    return future.done() and future.result().success


def test_simulated_time_that_stands_keeps_nobody_waiting(start):
    client = start(*IIWA, *PLANNING, "-p", "use_sim_time:=true")
    assert terms(client).success
