# SPDX-License-Identifier: Apache-2.0
"""The interface of a bag's files, whatever their storage format."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..exceptions import EomDynamicsError

# More lines than these are only counted.
_LISTED = 20


class BagError(EomDynamicsError):
    """A bag cannot be read or written, or lacks required contents."""


class Damage:
    """Damage: unreadable places, one line each; the first line names a remedy."""

    def __init__(self, remedy: str) -> None:
        self._remedy = remedy
        self._listed: list[str] = []
        self._others = 0

    def add(self, line: str) -> None:
        """Report a place that cannot be read."""
        if line in self._listed:
            return  # found again: a file is read once for each topic
        if len(self._listed) < _LISTED:
            self._listed.append(line)
        else:
            self._others += 1

    @property
    def lines(self) -> list[str]:
        """The first lines, and the number of the others."""
        first = [f"{line}; {self._remedy}" for line in self._listed[:1]]
        return [*first, *self._listed[1:], *([f"… and {self._others} more places"] if self._others else [])]


def unpacked(path: Path, source: Path) -> tuple[str, str]:
    """Shell command that unpacks a compressed file, as far as it goes, and the file to work on after it.

    Args:
        path: of the file that is read, a temporary one if it was compressed.
        source: of the file in the bag.
    """
    if path == source:
        return "", shlex.quote(str(path))
    name = f"unpacked{path.suffix}"
    return f"zstd -dc {shlex.quote(str(source))} > {name}; ", name


class Block(NamedTuple):
    """Messages in the order in which they were recorded.

    Attributes:
        times: of recording, ns.
        messages: serialised.
        fraction: of the file read so far, 0 to 1.
    """

    times: Sequence[int]
    messages: Sequence[bytes]
    fraction: float
