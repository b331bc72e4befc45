# SPDX-License-Identifier: Apache-2.0
"""Real-time scheduling of the stream.

Under the normal policy, a thread that becomes ready may wait for the scheduler's next tick, up to 4 ms at 250 Hz, while
a thread of lower priority computes. Under SCHED_FIFO it runs at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading

from ...exceptions import EomDynamicsError

HIGHEST = 99
"""Highest priority of SCHED_FIFO; the lowest is 1."""


class SchedulingError(EomDynamicsError, RuntimeError):
    """Real-time scheduling was requested but is unavailable."""


def stream_in_real_time(priority: int) -> None:
    """Run the calling thread and those of the middleware under SCHED_FIFO.

    Other Python threads, such as those that load robots, keep normal scheduling; so do threads and processes started
    later.

    Args:
        priority: 1 … 99; 0 changes nothing.

    Raises:
        SchedulingError: the system does not permit it; the message says how to.
    """
    if not priority:
        return
    if sys.platform != "linux":
        raise SchedulingError(f"realtime_priority {priority} is not possible: this system is not Linux")
    others = {thread.native_id for thread in threading.enumerate()} - {threading.get_native_id()}
    policy, parameter = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority)
    try:
        for thread in map(int, os.listdir("/proc/self/task")):
            if thread not in others:
                with contextlib.suppress(ProcessLookupError):  # it has ended
                    os.sched_setscheduler(thread, policy, parameter)
    except OSError as error:
        raise SchedulingError(
            f"realtime_priority {priority} is not permitted ({error.strerror}), scheduling stays normal: raise the "
            f"limit rtprio to {priority} (limits.conf; LimitRTPRIO= of systemd; docker --ulimit rtprio={priority} "
            "--cap-add SYS_NICE)"
        ) from None
