# SPDX-License-Identifier: Apache-2.0
"""Private copies of compiled code, which stay whole when the file that they were made from changes.

The pages of a loaded library are those of its file: where an entry of the cache is overwritten or truncated in place,
code that runs changes with it, or the process ends with SIGBUS. A copy in an anonymous file has no name that anyone
could open.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from .cache import entry_name

# Copies that have been loaded, by the name of their entry, which is unique to the contents.
_loaded: dict[str, Path] = {}
_numbers = count(1)


@contextmanager
def private_copy(entry: Path) -> Iterator[Path]:
    """Path to load a cache entry from; valid in the context only.

    dlopen takes a library with a known path for the one that it has loaded. So the path is the same for the same
    contents, of which each process then has one copy, and is never that of other contents, although descriptors are
    used again.

    Raises:
        OSError: the entry cannot be read, or has changed since it was checked.
    """
    if known := _loaded.get(entry.name):
        yield known
        return
    content = entry.read_bytes()
    if entry.name != entry_name(entry.name.partition("-")[0], content):
        raise OSError(f"{entry.name} has changed while it was loaded")
    try:
        descriptor = os.memfd_create("eom_dynamics")
    except (AttributeError, OSError):  # not this system, or forbidden by vm.memfd_noexec
        yield entry
        return
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        path = Path("/proc/self/fd", *_detour(next(_numbers)), str(descriptor))
        yield path
    _loaded[entry.name] = path


def _detour(number: int) -> list[str]:
    """A way from a folder of descriptors to itself that is different for each number."""
    return [("../fd", "../../self/fd")[bit == "1"] for bit in f"{number:b}"]
