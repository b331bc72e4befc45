# SPDX-License-Identifier: Apache-2.0
"""Write the sources of the control loop, with the numbers of Python filled in, for a compiler.

loop_sources.py FOLDER    headers to FOLDER/include, and loop.cpp; needs Python alone.
"""

import sys
import types
from pathlib import Path

# The package without its __init__.py, which imports NumPy.
package = sys.modules["eom_dynamics"] = types.ModuleType("eom_dynamics")
package.__path__ = [str(Path(__file__).resolve().parent.parent / "eom_dynamics")]
sys.dont_write_bytecode = True  # the sources may be of another user

from eom_dynamics.control.headers import loop_headers, source

for name, text in {**loop_headers(), "loop.cpp": source("loop.cpp")}.items():
    path = Path(sys.argv[1], name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")
