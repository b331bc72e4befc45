# SPDX-License-Identifier: Apache-2.0
"""The planning node: names of its services, priority, robots, and shared memory."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from paths import CONFIG
from urdf_arms import urdf_arm

import eom_dynamics as eom

IIWA = ("--params-file", CONFIG / "iiwa.yaml")


def terms(client, name="inverse_dynamics", n=7, **fields):
    from eom_dynamics.srv import ComputeInverseDynamics

    states = {field: [x] * n for field, x in (("position", 0.1), ("velocity", 0.1), ("acceleration", 0.0))}
    request = ComputeInverseDynamics.Request(**states, outputs=ComputeInverseDynamics.Request.MATRICES, **fields)
    return client.call(ComputeInverseDynamics, name, request)


def nice_values(pid):
    return {os.getpriority(os.PRIO_PROCESS, int(task.name)) for task in Path(f"/proc/{pid}/task").iterdir()}


def largest_shared_memory(pid):
    """Largest piece of shared memory of the middleware that a process has mapped, bytes."""
    lines = [line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if "/dev/shm/" in line]
    ends = [[int(x, 16) for x in line.split()[0].split("-")] for line in lines]
    return max((end - begin for begin, end in ends), default=0)


def cores(pid):
    return {frozenset(os.sched_getaffinity(int(task.name))) for task in Path(f"/proc/{pid}/task").iterdir()}


def test_names_quality_of_service_priority_and_end(start):
    client = start.planning(
        *IIWA,
        *("-r", "~/inverse_kinematics:=positions", "-r", "~/inverse_dynamics:={namespace}_terms"),
        *("-p", "use_sim_time:=true", {"running.NICENESS": 7}),
    )
    space = client.process.namespace
    own = f"{space}/{client.process.name}"
    offered = {name for name, _ in client.node.get_service_names_and_types()}
    assert {f"{space}/positions", f"{space}_terms", f"{own}/trajectory_feedforward"} <= offered
    # Simulated time that stands still keeps nobody waiting.
    assert terms(client, f"{space}_terms").success
    bad = terms(client, f"{space}_terms", joint_names=["x"])
    assert not bad.success and bad.message.startswith("joint_names[0]: the robot has no joint 'x'; it has ")
    assert "request of inverse_dynamics refused: joint_names[0]: the robot has no joint" in client.process.log
    # Once the warning of the refusal is over.
    status = client.wait_for_diagnostics(lambda *x: x[:2] == (0, "ready") and x[2]["requests refused"] == "1", "status")
    assert (status[2]["robot"], status[2]["requests answered"], status[2]["requests refused"]) == ("iiwa", "1", "1")
    assert (status[2]["last refusal"], status[2]["robot source"]) == (bad.message, "parameters robot.*")
    assert client.diagnostics[-1].status[0].name == f"{space[1:]}/{client.process.name}: planning"
    assert client.set_parameter("robot.name", "x").startswith("robot.name is read-only while there is a robot")
    pid = client.process.process.pid
    assert nice_values(pid) == {max(7, os.getpriority(os.PRIO_PROCESS, os.getpid()))}
    own = os.sched_getaffinity(0)
    assert cores(pid) == {frozenset(own - {min(own)} or own)}
    assert client.process.stop(signal.SIGINT) == 0
    assert "Traceback" not in client.process.log


def test_it_waits_for_a_robot_and_follows_a_new_one(start, describe):
    client = start.planning("-r", f"robot_description:={describe.topic}")
    missing = f"none from topic {describe.topic}: nothing has been published on it yet"
    assert terms(client).message == f"there is no robot: {missing}"
    assert client.next_diagnostics()[1].startswith(f"waiting for the robot from topic {describe.topic}")
    for text in (urdf_arm(joints=("shoulder", "elbow")), urdf_arm("legs", joints=("hip", "knee", "foot"), mass=2.0)):
        describe(text)
        robot = eom.load_robot(text)
        wanted_names = ", ".join(robot.joint_names)
        client.wait_for_diagnostics(lambda *s, wanted=wanted_names: s[2]["joints"] == wanted, "the robot")
        answer = terms(client, n=robot.n, joint_names=list(robot.joint_names))
        assert answer.success, answer.message
        wanted = eom.equations_of_motion(robot, np.full(robot.n, 0.1), np.full(robot.n, 0.1)).M[0]
        np.testing.assert_allclose(answer.mass_matrix, wanted.ravel(), rtol=0, atol=1e-12 * wanted.max())
    describe("<robot/>")
    level, message, values = client.wait_for_diagnostics(lambda *s: "refused robot" in s[2], "the refusal")
    assert level == 1 and message.startswith("new robot refused, the current one remains: topic")
    assert values["robot"] == "legs"
    assert terms(client, n=3).success


def test_answers_have_shared_memory_unless_a_profile_is_chosen(start, monkeypatch):
    """Also with an invalid robot, which diagnostics and answers report."""
    chosen = start.planning(*IIWA, "-p", "robot.joints.iiwa_joint_1.mass:=-1.0")
    level, message, _ = chosen.next_diagnostics()
    assert level == 2
    assert message.startswith("robot not loaded: parameters: robot.joints.iiwa_joint_1.mass: must be positive")
    assert terms(chosen).message == f"there is no robot: {message.partition(': ')[2]}"
    before = largest_shared_memory(chosen.process.process.pid)  # later it also maps the memory of others
    if not before:
        pytest.skip("this middleware needs no shared memory")
    monkeypatch.delenv("FASTRTPS_DEFAULT_PROFILES_FILE")
    own = start.planning(*IIWA)
    assert terms(own).success
    assert before < 2**21 and largest_shared_memory(own.process.process.pid) >= 2**25


def test_profiles_and_transports_of_the_user_are_kept(monkeypatch, tmp_path):
    from eom_dynamics.ros.running import share_memory

    names = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE", "FASTDDS_BUILTIN_TRANSPORTS")
    monkeypatch.chdir(tmp_path)
    for name in names:
        monkeypatch.setenv(name, "")  # which the end of the test restores
    for name in names:
        monkeypatch.setenv(name, "mine")
        share_memory()
        assert [os.environ[each] for each in names] == ["mine" if each == name else "" for each in names]
        monkeypatch.setenv(name, "")
    for library in ("FASTRTPS", "FASTDDS"):
        file = tmp_path / f"DEFAULT_{library}_PROFILES.xml"
        file.write_text("<dds/>")
        share_memory()
        assert not any(os.environ[name] for name in names)
        file.unlink()
    share_memory()
    assert all(Path(os.environ[name]).is_file() for name in names[:2])
