# SPDX-License-Identifier: Apache-2.0
"""Nodes, planners, publishers and subscribers that are killed or stopped (SIGSTOP) in the middle of a stream."""

import json
import signal
import time

import numpy as np
import processes
import pytest
from node_client import Client
from paths import CONFIG
from played import Play, played, swings, wrong_answers

import eom_dynamics as eom

IIWA = ("--params-file", CONFIG / "iiwa.yaml")
ROBOT = eom.load_robot(CONFIG / "iiwa.yaml")

# Setpoints a second: few enough for a busy machine, with delays that are not due to the fault.
# Setpoints of a stream; setpoints sent before the fault.
RATE, COUNT, FAULT = 250, 2000, 500

# Duration of the stop of a process, s: for the node less than its queue of 1000 setpoints holds, and more.
STOPPED, TOO_LONG = 1.0, 6.0
QUEUE = 1000

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]


class Fault:
    """Calls an action when so many setpoints have been sent, and another some seconds later."""

    def __init__(self, action, later=None, pause=0.0):
        self._due = [(0.0, action)] + ([(pause, later)] if later else [])
        self._since = None

    def __call__(self, sent):
        if sent >= FAULT and self._since is None:
            self._since = time.monotonic()
        while self._since is not None and self._due and time.monotonic() >= self._since + self._due[0][0]:
            self._due.pop(0)[1]()

    @property
    def came(self):
        return not self._due


def stop_and_continue(process, pause):
    return Fault(lambda: process.send_signal(signal.SIGSTOP), lambda: process.send_signal(signal.SIGCONT), pause)


def kill(process):
    return Fault(process.kill)


@pytest.fixture
def stream(tmp_path, fault_row):
    def run(client, name, fault, after=None):
        arrays = swings(ROBOT.n, COUNT, RATE)
        counts, record = played(client, tmp_path, arrays, RATE, fault)
        assert fault.came, "the stream ended before the fault"
        wrong = wrong_answers([eom.ElasticArm(ROBOT)], arrays, record)
        late = np.nanmax(record["round_trip"])
        values = (after() if after else client).next_diagnostics()[2]
        fault_row(name, counts, wrong, values, f"longest round trip {late * 1e3:.0f} ms")
        assert wrong == counts["out_of_order"] == 0
        assert values["state"] == "active"
        return counts

    return run


def test_a_node_that_is_killed_and_started_again(start, stream):
    client = start(*IIWA, client=Client)
    restarted = []

    def restart():
        restarted.append(start(*IIWA, client=Client, discovered=False, beside=client.process))

    fault = Fault(client.process.process.kill, restart, 0.5)
    counts = stream(client, "node: kill -9, started again 0.5 s later", fault, after=lambda: restarted[0])
    # No command without a node; everything before, and from its activation on.
    assert 0 < counts["lost"] < COUNT - FAULT


@pytest.mark.parametrize("pause", [STOPPED, TOO_LONG])
def test_a_node_that_is_stopped(start, stream, pause):
    client = start(*IIWA, client=Client)
    counts = stream(client, f"node: SIGSTOP for {pause:g} s", stop_and_continue(client.process.process, pause))
    # Its queue and the publisher's queue keep the last setpoints.
    assert counts["lost"] <= max(0, round(pause * RATE) - QUEUE + RATE // 4)


@pytest.mark.parametrize("how", ["kill -9", "SIGSTOP"])
def test_a_subscriber(start, stream, script, tmp_path, how):
    client = start(*IIWA, client=Client)
    listener = script("listener", namespace=client.process.namespace, stdout=(tmp_path / "listener").open("w"))
    client.wait(lambda: (tmp_path / "listener").read_text(), "the subscriber")
    fault = kill(listener) if how == "kill -9" else stop_and_continue(listener, TOO_LONG)
    counts = stream(client, f"subscriber: {how}", fault)
    assert (tmp_path / "listener").read_text() == "listens\nreceives\n"
    assert counts["lost"] == 0


@pytest.mark.parametrize("victim", ["planning node", "planner"])
@pytest.mark.parametrize("how", ["kill -9", "SIGSTOP"])
def test_planners(start, stream, script, tmp_path, monkeypatch, victim, how):
    client = start(*IIWA, client=Client)
    space = client.process.namespace
    arguments = (*IIWA, {"running.NICENESS": 10})
    monkeypatch.delenv("FASTRTPS_DEFAULT_PROFILES_FILE")  # it has one of its own
    options = {"name": "planning", "beside": client.process}
    planning = start.planning(*arguments, **options)
    callers = [
        script("batch_planner", f"planner_{k}.json", namespace=space, stdout=(tmp_path / f"ready_{k}").open("w"))
        for k in range(2)
    ]
    for k in range(2):
        client.wait(lambda k=k: (tmp_path / f"ready_{k}").stat().st_size, "the planners")
    process = planning.process.process if victim == "planning node" else callers[0]
    if how == "SIGSTOP":
        fault = stop_and_continue(process, STOPPED)
    elif victim == "planning node":
        fault = Fault(process.kill, lambda: start.planning(*arguments, discovered=False, **options), 0.5)
    else:
        fault = kill(process)
    counts = stream(client, f"{victim}: {how}, while two planners call", fault)
    assert counts["lost"] == 0
    # The remaining planner is still answered, by the planning node or its successor.
    processes.end(callers[1])
    asked = json.loads((tmp_path / "planner_1.json").read_text())
    assert asked["problem"] == ""
    assert asked["missed"] == 0 or (victim, how) == ("planning node", "kill -9")


@pytest.mark.parametrize("how", ["kill -9", "SIGSTOP"])
def test_a_publisher(start, fault_row, tmp_path, how):
    watchdog = ("setpoint_timeout:=0.2", "on_setpoint_loss:=hold", "stop_duration:=0.3", "start_tolerance:=10.0")
    client = start(*IIWA, *(word for option in watchdog for word in ("-p", option)), client=Client)
    arrays = swings(ROBOT.n, COUNT, RATE)
    play = Play(client.process.namespace, tmp_path, arrays, rate=RATE)
    try:
        while play.counts["sent"] < FAULT:
            client.spin(0.05)
        play.process.send_signal(signal.SIGKILL if how == "kill -9" else signal.SIGSTOP)
        client.wait_for_diagnostics(lambda *s: s[2].get("watchdog") == "held", "the end of the stop")
        between = client.values
        if how == "kill -9":
            play.process.wait()
            play = Play(client.process.namespace, tmp_path, arrays, rate=RATE)
        else:
            play.process.send_signal(signal.SIGCONT)
        while play.process.poll() is None:
            client.spin(0.1)
    finally:
        processes.end(play.process)
    counts, record = play.record()
    wrong = wrong_answers([eom.ElasticArm(ROBOT)], arrays, record)
    remark = f"held after {between['last loss']}; what comes then is answered"
    fault_row(f"publisher: {how}", counts, wrong, client.next_diagnostics()[2], remark)
    assert (wrong, counts["lost"]) == (0, 0)
    assert between["state"] == "active"
