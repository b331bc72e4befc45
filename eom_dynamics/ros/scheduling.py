# SPDX-License-Identifier: Apache-2.0
"""Scheduling and memory of the nodes' processes, and the transport of large answers.

Under the normal policy, a thread that becomes ready may wait for the scheduler's next tick, up to 4 ms at 250 Hz, while
a thread of lower priority computes. Under SCHED_FIFO it runs at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import sys
import threading
from pathlib import Path

# Flags of mlockall: present and future pages.
_MCL_CURRENT, _MCL_FUTURE = 1, 2

# Bit of the capability to lock memory without limit, in /proc/self/status.
_CAP_IPC_LOCK = 14


def schedule(priority: int, locks_memory: bool) -> list[str]:
    """Apply priority and locked memory where permitted; return the reasons for failures."""
    if sys.platform != "linux":
        asked = priority or locks_memory
        return ["realtime_priority and lock_memory are possible on Linux only"] if asked else []
    reasons = stream_in_real_time(priority), lock_memory() if locks_memory else ""
    return [reason for reason in reasons if reason]


def stream_in_real_time(priority: int) -> str:
    """Run the calling thread and the middleware's threads under SCHED_FIFO; return why not, or an empty text.

    Other Python threads, such as those that load robots, keep normal scheduling; so do threads and processes started
    later. A priority of 0 changes nothing.
    """
    policy, parameter = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority)
    try:
        for thread in _threads() if priority else ():
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.sched_setscheduler(thread, policy, parameter)
    except OSError as error:
        return (
            f"realtime_priority {priority} is not permitted ({error.strerror}), scheduling stays normal: raise the "
            f"limit rtprio to {priority} (limits.conf; LimitRTPRIO= of systemd; docker --ulimit rtprio={priority} "
            "--cap-add SYS_NICE)"
        )
    return ""


def lock_memory() -> str:
    """Lock all present and future memory of the process, against page faults; return why not, or an empty text.

    With a finite limit of locked memory, it is refused, since a later allocation beyond it would fail.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    reason = ""
    if limit != resource.RLIM_INFINITY and not _may_lock_memory():
        reason = f"limit {limit // 1024} kB"
    elif ctypes.CDLL(None, use_errno=True).mlockall(_MCL_CURRENT | _MCL_FUTURE):
        reason = os.strerror(ctypes.get_errno())
    return reason and (
        f"lock_memory is not permitted ({reason}), memory stays pageable: raise the limit memlock to unlimited "
        "(limits.conf; LimitMEMLOCK=infinity of systemd; docker --ulimit memlock=-1)"
    )


def _threads() -> list[int]:
    """The calling thread and the middleware's threads, by number: all but other Python threads."""
    others = {thread.native_id for thread in threading.enumerate()} - {threading.get_native_id()}
    return [thread for thread in map(int, os.listdir("/proc/self/task")) if thread not in others]


def _may_lock_memory() -> bool:
    with contextlib.suppress(OSError, ValueError), open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("CapEff:"):
                return bool(int(line.split()[1], 16) >> _CAP_IPC_LOCK & 1)
    return False


# Options of mallopt in glibc.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

# The largest that glibc accepts.
_LARGEST_MMAP_THRESHOLD = 32 * 2**20


NICENESS, RESERVED_CORES = 10, 1
"""Nice value of a process that gives way, and CPU cores that it leaves to others, if there are more."""


def give_way() -> None:
    """Lower the priority of all threads and leave a core to other processes; Linux only.

    Threads that linear algebra libraries have started are included, since Linux sets both per thread.
    """
    if sys.platform != "linux":
        return
    cores = sorted(os.sched_getaffinity(0))
    used = cores[min(RESERVED_CORES, len(cores) - 1) :]
    for thread in map(int, os.listdir("/proc/self/task")):
        with contextlib.suppress(ProcessLookupError):  # it has ended
            if os.getpriority(os.PRIO_PROCESS, thread) < NICENESS:
                os.setpriority(os.PRIO_PROCESS, thread, NICENESS)
            os.sched_setaffinity(thread, used)


def keep_memory(megabytes: int) -> None:
    """Keep freed memory in the process, which saves mapping and clearing pages again."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # of glibc
    if mallopt:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
        mallopt(_M_TRIM_THRESHOLD, megabytes * 2**20)


def freeze_objects() -> None:
    """Have garbage collections skip the present objects, 40 000 of imported modules, for which they take a while."""
    gc.collect()
    gc.freeze()


_PROFILE = Path(__file__).with_name("fast_dds.xml")

# Fast DDS 2 and 3 read a file named by the first two, or in the working directory.
_VARIABLES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
_FILES = ("DEFAULT_FASTRTPS_PROFILES.xml", "DEFAULT_FASTDDS_PROFILES.xml")


def share_memory() -> None:
    """Have Fast DDS send answers through 32 MiB of shared memory, unless the user has chosen a profile or a transport.

    Its default of 512 KiB holds a fraction of an answer. The rest waits for a heartbeat, up to 3 s, as soon as several
    planners call, and now and then an answer is lost. It must be called before the first context is initialised; other
    middleware ignores it. With less shared memory, Fast DDS logs this and uses UDP.
    """
    chosen = any(os.environ.get(name) for name in (*_VARIABLES, "FASTDDS_BUILTIN_TRANSPORTS"))
    if not chosen and not any(Path(name).exists() for name in _FILES):
        os.environ.update(dict.fromkeys(_VARIABLES, str(_PROFILE)))
