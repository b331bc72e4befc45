# SPDX-License-Identifier: Apache-2.0
"""Priority, CPU affinity and memory of the planning process, and the transport of its large answers."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path

# Options of mallopt in glibc.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

# The largest that glibc accepts.
_LARGEST_MMAP_THRESHOLD = 32 * 2**20


def give_way(niceness: int, reserved_cores: int) -> None:
    """Lower the priority of all threads and leave cores to other processes; Linux only.

    Threads that linear algebra libraries have started are included, since Linux sets both per thread.
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


_PROFILE = Path(__file__).with_name("fast_dds.xml")

# Fast DDS 2 and 3 read a file named by the first two, or in the working directory.
_VARIABLES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
_FILES = ("DEFAULT_FASTRTPS_PROFILES.xml", "DEFAULT_FASTDDS_PROFILES.xml")


def share_memory() -> None:
    """Have Fast DDS send answers through 32 MiB of shared memory, unless the user has chosen a profile or a transport.

    Its default of 512 KiB holds a fraction of an answer. The rest waits for a heartbeat, up to 3 s, as soon as several
    planners call, and now and then an answer is lost. It must be called before the first context is initialised; other
    middleware ignores it. Where there is not as much shared memory, Fast DDS says so and uses UDP.
    """
    chosen = any(os.environ.get(name) for name in (*_VARIABLES, "FASTDDS_BUILTIN_TRANSPORTS"))
    if not chosen and not any(Path(name).exists() for name in _FILES):
        os.environ.update(dict.fromkeys(_VARIABLES, str(_PROFILE)))
