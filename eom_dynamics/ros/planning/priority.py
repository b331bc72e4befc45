# SPDX-License-Identifier: Apache-2.0
"""Priority, CPU affinity and memory of the planning process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

# Options of mallopt in glibc.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

# The largest that glibc accepts.
_LARGEST_MMAP_THRESHOLD = 32 * 2**20


def give_way(niceness: int, reserved_cores: int) -> None:
    """Lower the priority of all threads and leave cores to other processes; Linux only.

    Threads that linear algebra libraries have started are included, since Linux sets both per thread.

    Args:
        niceness: nice value of all threads, unless theirs is higher.
        reserved_cores: number of cores left to others; at least one is used.
    """
    if sys.platform != "linux":
        return
    cores = sorted(os.sched_getaffinity(0))
    used = cores[min(reserved_cores, len(cores) - 1) :]
    for thread in map(int, os.listdir("/proc/self/task")):
        with contextlib.suppress(ProcessLookupError):  # it has ended
            if os.getpriority(os.PRIO_PROCESS, thread) < niceness:
                os.setpriority(os.PRIO_PROCESS, thread, niceness)
            os.sched_setaffinity(thread, used)


def keep_memory(megabytes: int) -> None:
    """Keep freed memory in the process, which saves mapping and clearing pages again."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # of glibc
    if megabytes and mallopt:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
        mallopt(_M_TRIM_THRESHOLD, megabytes * 2**20)
