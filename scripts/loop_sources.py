# SPDX-License-Identifier: Apache-2.0
"""Write the sources of the control loop, with the numbers of Python filled in, for a compiler.

loop_sources.py FOLDER    headers to FOLDER/include, and loop.cpp; needs Python alone.
"""

import importlib
import sys
import types
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "eom_dynamics"


def write_sources(folder):
    """Write them with the package's own module, but without the package, which imports NumPy."""
    bare = types.ModuleType("eom_dynamics")
    bare.__path__ = [str(PACKAGE)]
    before = sys.modules.get(bare.__name__)
    sys.modules[bare.__name__] = bare
    try:
        importlib.import_module("eom_dynamics.control.headers").write_sources(Path(folder))
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == bare.__name__]:
            del sys.modules[name]
        if before:
            sys.modules[bare.__name__] = before


if __name__ == "__main__":
    sys.dont_write_bytecode = True  # the sources may be of another user
    write_sources(sys.argv[1])
