# SPDX-License-Identifier: Apache-2.0
"""Real-time scheduling of the stream: which threads have it, and the warning where it is not permitted."""

import os
import resource
import shutil
import sys
from pathlib import Path

import numpy as np
import processes
import pytest
from paths import CONFIG

from eom_dynamics.messages.fields import STATE_FIELDS

PRIORITY = 7
ARGUMENTS = ("--params-file", CONFIG / "iiwa.yaml")


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
def test_from_activation_on_stream_and_middleware_are_in_real_time(start):
    client = start(*ARGUMENTS, "-p", f"realtime_priority:={PRIORITY}", "-p", "autostart:=false")
    node = client.process.process.pid
    assert client.transition("configure")
    assert {entry[1] for entry in threads(node).values()} == {os.SCHED_OTHER}
    assert client.transition("activate")
    assert len(answers(client)) == 7
    stream = threads(node)
    assert stream[node][1:] == (os.SCHED_FIFO, PRIORITY)
    middleware = {entry[1:] for entry in stream.values() if entry[0].startswith("dds.")}
    assert middleware == {(os.SCHED_FIFO, PRIORITY)}


@pytest.mark.skipif(not permitted(), reason="real-time scheduling is not permitted here")
def test_python_threads_and_what_is_started_later_stay_normal(tmp_path):
    program = f"""
import os, subprocess, sys, threading
from eom_dynamics.ros.dynamics.realtime import stream_in_real_time
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
    code, printed, errors = processes.run([sys.executable, "-c", program], cwd=tmp_path)
    assert (code, errors) == (0, "")
    assert printed.split() == [str(policy) for policy in (os.SCHED_FIFO, *[os.SCHED_OTHER] * 3)]


def test_where_it_is_not_permitted_the_node_warns_and_streams(start):
    prefix = ("prlimit", "--rtprio=0")
    if permitted():
        if not shutil.which("setpriv"):
            pytest.skip("setpriv, which takes the permission away, is not installed")
        prefix = (*prefix, "setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice")
    elif resource.getrlimit(resource.RLIMIT_RTPRIO)[1] == 0:
        prefix = ()
    client = start(*ARGUMENTS, "-p", f"realtime_priority:={PRIORITY}", prefix=prefix)
    assert len(answers(client)) == 7
    client.wait_for_diagnostics(
        lambda level, message, _: level == 1 and f"realtime_priority {PRIORITY} is not permitted" in message,
        "the warning",
    )
    assert "raise the limit rtprio to 7" in client.process.log
    assert "Traceback" not in client.process.log
