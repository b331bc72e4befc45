# SPDX-License-Identifier: Apache-2.0
"""Processes before all others of a machine, and how long it holds up even those: then there is no real time."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PERIOD = 0.005
"""Time that the process that watches sleeps, s."""


def prefer(nodes: bool) -> None:
    """Set the priority of a block: other tests do not hold up an arm that is simulated in real time and recorded.

    Commands, which may compute on all processors, must not hold up those either. Linux may divide processors among
    sessions first, by the niceness of each, and only then among their processes.
    """
    niceness = -15 if nodes else 0
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
        Path("/proc/self/autogroup").write_text(str(niceness))


@contextmanager
def stalls(path: Path) -> Iterator[Callable[[], float]]:
    """Watch the machine by a process that only sleeps, and writes its longest delay to a file, s."""
    path.write_text("0")
    process = subprocess.Popen([sys.executable, __file__, path], start_new_session=True)
    try:
        yield lambda: float(path.read_text())
    finally:
        process.kill()
        process.wait()


def watch(processor: int, longest: list[float], path: str) -> None:
    """Sleep on one processor."""
    with suppress(OSError):
        os.sched_setaffinity(0, {processor})
    parent, now = os.getppid(), time.monotonic()
    while os.getppid() == parent:
        time.sleep(PERIOD)
        now, before = time.monotonic(), now
        if now - before > longest[0] + PERIOD:
            longest[0] = now - before
            Path(f"{path}.{processor}").write_text(str(longest[0]))
            os.replace(f"{path}.{processor}", path)


def main() -> None:
    prefer(nodes=True)
    longest = [0.0]
    for processor in os.sched_getaffinity(0):
        threading.Thread(target=watch, args=(processor, longest, sys.argv[1])).start()


if __name__ == "__main__":
    main()
