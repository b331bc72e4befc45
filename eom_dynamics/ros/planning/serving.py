# SPDX-License-Identifier: Apache-2.0
"""Main function of the worker process that plans trajectories.

The module imports the standard library alone, so that a process whose node ends during its start ends soon.
"""

import multiprocessing
import os
import threading
import traceback
from contextlib import suppress
from multiprocessing import connection
from typing import Any

# Freed memory that is kept for the next trajectory, MiB.
_KEPT_MEMORY = 256


def serve(jobs: Any) -> None:
    """Receive jobs from a connection and send their answers until the node ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from ...control.setpoint_to_command import refusal_reason
    from ...exceptions import EomDynamicsError
    from ..running import keep_memory
    from .fits import plan

    keep_memory(_KEPT_MEMORY)
    with suppress(EOFError, OSError):  # the node has ended
        while True:
            job = jobs.recv()
            try:
                answer: Any = plan(job)
            except Exception as error:
                if not isinstance(error, EomDynamicsError):
                    traceback.print_exc()
                answer = refusal_reason(error)
            jobs.send(answer)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(0)
