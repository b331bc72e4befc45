# SPDX-License-Identifier: Apache-2.0
"""Main program of the worker process that plans trajectories; its argument is the descriptor of a connection.

The module imports only the standard library, so that the process ends with its node also during its other imports.
"""

import os
import select
import signal
import sys
import threading
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any


def main() -> None:
    """Receive jobs from the node and send their answers until the node ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal, for the node alone
    jobs: Connection = Connection(int(sys.argv[1]))
    threading.Thread(target=_end_with_node, args=(jobs.fileno(),), daemon=True).start()
    from ...control.setpoint_to_command import refusal_reason
    from ...exceptions import EomDynamicsError
    from ..running import keep_memory
    from .fits import plan

    keep_memory()
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


def _end_with_node(jobs: int) -> None:
    """End the process once the node has closed the connection, also during a job."""
    node = select.poll()
    node.register(jobs, 0)  # its end alone
    node.poll()
    os._exit(0)


if __name__ == "__main__":
    main()
