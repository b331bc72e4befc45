# SPDX-License-Identifier: Apache-2.0
"""Child processes that end in good order."""

import subprocess
import time
from contextlib import suppress
from pathlib import Path

# Fast DDS writes these to stderr when another process holds, or has left behind, a port in shared memory.
_MIDDLEWARE = ("RTPS_TRANSPORT_SHM", "RTPS_SHM")

_PATIENCE = 60.0


def popen(command, **options):
    return subprocess.Popen(list(map(str, command)), **options)


def run(command, **options):
    with popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as process:
        output, errors = process.communicate(timeout=_PATIENCE)
    return process.returncode, output, own_lines(errors)


def end(*processes):
    """End processes with SIGTERM, so that the middleware removes its shared memory; processes that hang are killed.

    After a second signal half a second later, a node does not wait until its arm rests.
    """
    for pause in (0.0, 0.5):
        limit = time.monotonic() + pause
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(limit - time.monotonic(), 0.0))
        for process in processes:
            if process.poll() is None:
                process.terminate()
    for process in processes:
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def planners(node):
    """Numbers of the planner processes of a node, by its own."""
    children = " ".join(x.read_text() for x in Path(f"/proc/{node}/task").glob("*/children")).split()
    return [int(x) for x in children if "planning.serving" in Path(f"/proc/{x}/cmdline").read_text()]


def own_lines(text):
    """Text without messages of the middleware about shared memory, which other processes of the machine cause."""
    return "".join(line for line in text.splitlines(keepends=True) if not any(word in line for word in _MIDDLEWARE))
