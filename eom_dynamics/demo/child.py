# SPDX-License-Identifier: Apache-2.0
"""Run a module of ``eom_dynamics.ros`` in this process, which ends when the one that started it does.

    python -m eom_dynamics.demo.child MODULE ARGUMENT…

The other process holds the writing end of a pipe that this one has for its stdin, and never writes to it. However it
ends, by a signal that nobody can catch too, the pipe comes to its end.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time

# How long the module may take to end in good order, in s.
_PATIENCE = 10.0


def main() -> int:
    """Run the module; returns its exit code."""
    module, *arguments = sys.argv[1:]
    threading.Thread(target=_end_with_parent, name="end with parent", daemon=True).start()
    sys.argv = [module, *arguments]
    return int(importlib.import_module(f"eom_dynamics.ros.{module}").main())


def _end_with_parent() -> None:
    # Not sys.stdin, whose lock Python wants when it ends.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_PATIENCE)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
