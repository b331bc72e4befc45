# SPDX-License-Identifier: Apache-2.0
"""What makes kernels: a digest of the code that traces and emits them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from .cache import digest

if TYPE_CHECKING:
    from importlib.abc import Traversable

# Of this package: all that decides on the code of a kernel. Exporters and callers do not.
_MAKERS = ("jet.py", "lie.py", "recursion", "kernel")


@cache
def sources_digest() -> str:
    """Digest of every file that decides on the code of a kernel: a change in one of them makes new kernels."""
    package = resources.files(__package__.rpartition(".")[0])
    return digest(*(file.read_bytes() for maker in _MAKERS for file in _files(package / maker)))


def _files(at: Traversable) -> Iterator[Traversable]:
    """The file, or the sources of the folder, in a fixed order."""
    if at.is_file():
        yield at
        return
    for entry in sorted(at.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith((".py", ".c", ".h", ".in")) or (entry.is_dir() and entry.name == "csrc"):
            yield from _files(entry)
