# SPDX-License-Identifier: Apache-2.0
"""Run a module as a child process that does not outlive its parent.

    python -m eom_dynamics.tools.demo.child MODULE ARGUMENT…

Its stdin is a pipe whose other end the parent holds and never writes to. The child ends when the pipe closes: when the
parent closes it, or ends, even by SIGKILL.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time

# Time from SIGTERM to SIGKILL, s.
_PATIENCE = 10.0


def main() -> int:
    """Run the module; returns its exit code."""
    module, *arguments = sys.argv[1:]
    threading.Thread(target=_end_with_parent, name="end with parent", daemon=True).start()
    sys.argv = [module, *arguments]
    return int(importlib.import_module(module).main())


def _end_with_parent() -> None:
    # sys.stdin would hold a lock that the interpreter needs at exit.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_PATIENCE)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
