# SPDX-License-Identifier: Apache-2.0
"""Loop with a change of its headers, to show that the oracle of drive commands finds the fault.

``python test/helpers/put_back.py HEADER OLD NEW [FIRST:LAST]`` prints the findings of random scenes with OLD in
eom/HEADER replaced by NEW.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))

import loop_rig
import random_scenes
from exported import loop_sources, succeed, write

import eom_dynamics
from eom_dynamics.control.library import NAME, library


@contextmanager
def changed(*replacements: tuple[str, str, str]) -> Iterator[None]:
    """Load a library with replaced texts in headers of eom/; each text must occur once: header, old, new."""
    texts = loop_sources()
    for header, old, new in replacements:
        path = f"include/eom/{header}"
        assert texts[path].count(old) == 1, f"{header} has the text {texts[path].count(old)} times"
        texts[path] = texts[path].replace(old, new)

    def forget() -> None:
        for cached in (library, loop_rig.table_of, random_scenes.arm_of):
            cached.cache_clear()

    with TemporaryDirectory() as name, patch.object(eom_dynamics, "__path__", [name, *eom_dynamics.__path__]):
        folder = Path(name)
        write(texts, folder)
        flags = ("-std=c++17", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-Iinclude")
        succeed(["c++", *flags, "src/loop.cpp", "-o", NAME], folder)
        forget()
        try:
            yield
        finally:
            forget()


if __name__ == "__main__":
    header, old, new, *seeds = sys.argv[1:]
    first, last = map(int, (seeds or ["0:100"])[0].split(":"))
    with changed((header, old, new)):
        print(random_scenes.run(range(first, last)).summary() or "nothing found")
