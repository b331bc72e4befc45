# SPDX-License-Identifier: Apache-2.0
"""Real-time scheduling of the stream, and locked memory: effects, and warnings on failure."""

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import processes
import pytest
from paths import CONFIG

from eom_dynamics.control.fields import STATE_FIELDS

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
    """Policy without its flags, and priority, of each thread, by its number; also the command."""
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
    """Memory is locked if permitted."""
    asked = f"realtime_priority:={PRIORITY}", "autostart:=false"
    client = start(*ARGUMENTS, *(word for x in asked for word in ("-p", x)))
    node = client.process.process.pid
    assert client.transition("configure")
    assert {entry[1] for entry in threads(node).values()} == {os.SCHED_OTHER}
    assert client.transition("activate")
    assert len(answers(client)) == 7
    found = threads(node)
    middleware = [thread for thread, entry in found.items() if entry[0].startswith("dds.")]
    assert {found[thread][1:] for thread in (node, *middleware)} == {(os.SCHED_FIFO, PRIORITY)} and middleware
    locked = int(Path(f"/proc/{node}/status").read_text().partition("VmLck:")[2].split()[0])  # kB
    assert locked == 0 if "locked memory is not permitted" in client.process.log else locked > 10_000


@pytest.mark.skipif(not permitted(), reason="real-time scheduling is not permitted here")
def test_python_threads_and_what_is_started_later_stay_normal(tmp_path):
    program = f"""
import os, subprocess, sys, threading
from eom_dynamics.ros.running import stream_in_real_time
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


def test_where_they_are_not_possible_the_node_warns_and_streams(start):
    prefix = ("prlimit", "--memlock=65536", "--rtprio=0")
    if os.geteuid() == 0 or permitted():
        if not shutil.which("setpriv"):
            pytest.skip("setpriv, which takes the permission away, is not installed")
        prefix = (*prefix, "setpriv", "--bounding-set=-sys_nice,-ipc_lock", "--inh-caps=-sys_nice,-ipc_lock")
    client = start(*ARGUMENTS, "-p", f"realtime_priority:={PRIORITY}", prefix=prefix)
    assert len(answers(client)) == 7
    reasons = (f"realtime_priority {PRIORITY} is not permitted", "locked memory is not permitted (limit 64 kB)")
    client.wait_for_diagnostics(lambda *s: s[0] == 1 and all(reason in s[1] for reason in reasons), "the warning")
    for remedy in ("raise the limit rtprio to 7", "raise the limit memlock to unlimited"):
        assert remedy in client.process.log
    assert "Traceback" not in client.process.log
