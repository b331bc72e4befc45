# SPDX-License-Identifier: Apache-2.0
"""Real-time scheduling of the stream: who has it, who has not, and what is said where it is not permitted."""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from node_client import CONFIG, Client, NodeProcess

from eom_dynamics.stream.conversions import STATE_FIELDS

PRIORITY = 7
ARGUMENTS = ("--params-file", CONFIG / "iiwa.yaml", "-p", "diagnostic_period:=0.1")


def permitted():
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except PermissionError:
        return False
    os.sched_setscheduler(0, *before)
    return True


def threads(pid):
    """Policy without its flags, and priority, of each thread, by its number; the command as well."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        thread = int(task.name)
        policy = os.sched_getscheduler(thread) & ~os.SCHED_RESET_ON_FORK
        found[thread] = (task / "comm").read_text().strip(), policy, os.sched_getparam(thread).sched_priority
    return found


def answers(client):
    number = client.publish(**dict.fromkeys(STATE_FIELDS, np.zeros(7)))
    return client.answers_to(number)[0].effort


@pytest.mark.skipif(not permitted(), reason="real-time scheduling is not permitted here")
def test_stream_and_middleware_are_in_real_time_and_nothing_else_is(start):
    client = start(*ARGUMENTS, "-p", f"realtime_priority:={PRIORITY}", "-p", "planning_services:=true")
    client.wait_for_diagnostics(lambda _level, _message, values: values["planning services"] == "ready", "the services")
    assert len(answers(client)) == 7
    node = client.process.process.pid
    stream = threads(node)
    assert stream[node][1:] == (os.SCHED_FIFO, PRIORITY)
    middleware = [entry[1:] for entry in stream.values() if entry[0].startswith("dds.")]
    assert middleware
    assert set(middleware) == {(os.SCHED_FIFO, PRIORITY)}
    (planning,) = client.process.children
    assert {entry[1] for entry in threads(planning).values()} == {os.SCHED_OTHER}


@pytest.mark.skipif(not permitted(), reason="real-time scheduling is not permitted here")
def test_python_threads_and_what_is_started_later_stay_normal(tmp_path):
    program = f"""
import os, subprocess, sys, threading
from eom_dynamics.ros.realtime import stream_in_real_time
go, policies = threading.Event(), []
def other():
    go.wait()
    policies.append(os.sched_getscheduler(0))
before = threading.Thread(target=other)
before.start()
stream_in_real_time({PRIORITY})
after = threading.Thread(target=other)
after.start()
go.set()
before.join(), after.join()
child = subprocess.run([sys.executable, "-c", "import os; print(os.sched_getscheduler(0))"], stdout=-1, text=True)
print(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, *policies, child.stdout)
"""
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert printed.split() == [str(policy) for policy in (os.SCHED_FIFO, *[os.SCHED_OTHER] * 3)]


@pytest.mark.skipif(not permitted(), reason="real-time scheduling is not permitted here")
def test_loading_is_not_in_real_time(start):
    client = start(*ARGUMENTS, "-p", f"realtime_priority:={PRIORITY}", "-p", "autostart:=false")
    node = client.process.process.pid
    assert client.transition("configure")
    assert threads(node)[node][1] == os.SCHED_OTHER
    assert client.transition("activate")
    assert threads(node)[node][1] == os.SCHED_FIFO


def test_scheduling_is_normal_unless_asked_for(iiwa):
    assert {entry[1] for entry in threads(iiwa.process.process.pid).values()} == {os.SCHED_OTHER}


def test_where_it_is_not_permitted_the_node_says_so_and_streams(ros, tmp_path):
    prefix = ("prlimit", "--rtprio=0")
    if permitted():
        if not shutil.which("setpriv"):
            pytest.skip("setpriv, which takes the permission away, is not installed")
        prefix = (*prefix, "setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice")
    elif resource.getrlimit(resource.RLIMIT_RTPRIO)[1] == 0:
        prefix = ()
    client = Client(ros, NodeProcess(tmp_path, *ARGUMENTS, "-p", f"realtime_priority:={PRIORITY}", prefix=prefix))
    try:
        client.wait_for_node()
        assert len(answers(client)) == 7
        client.wait_for_diagnostics(
            lambda level, message, _: level == 1 and f"realtime_priority {PRIORITY} is not permitted" in message,
            "a word",
        )
        assert "raise the limit rtprio to 7" in client.process.log
        assert "Traceback" not in client.process.log
    finally:
        client.close()
        client.process.kill()


@pytest.mark.parametrize("value", [-1, 100, 1.5, "high"])
def test_bad_priorities_are_refused_at_the_start(tmp_path, value):
    process = NodeProcess(tmp_path, *ARGUMENTS, "-p", f"realtime_priority:={value}")
    assert process.process.wait(30) == 1
    assert "realtime_priority" in process.log
    assert "Traceback" not in process.log
    process.kill()
