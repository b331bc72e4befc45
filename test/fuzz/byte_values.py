# SPDX-License-Identifier: Apache-2.0
"""Numbers and choices out of the bytes of a fuzzer, so that a small change of the bytes is a small change of them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

SPECIAL = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 1e-3, 3.141592653589793, 100.0, 1e9, -1e9, 1e154, 1e300, -1.7976931348623157e308),
    *(5e-324, 1e-300, 1e-9, float("inf"), float("-inf"), float("nan")),
)


class ByteValues:
    """Reads values from the front of some bytes; behind their end all bytes are zero."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        return max(len(self._data) - self._at, 0)

    def bytes(self, count: int) -> bytes:
        part = self._data[self._at : self._at + count]
        self._at += count
        return part.ljust(count, b"\0")

    def below(self, bound: int) -> int:
        """An integer from 0 to bound - 1, of at most 256."""
        return self.bytes(1)[0] % bound

    def choice(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]

    def number(self) -> float:
        """A small number of one byte, mostly; else one of SPECIAL, or any of the numbers of eight bytes."""
        kind = self.below(256)
        if kind < 224:
            return (kind - 112) / 32
        if kind < 248:
            return SPECIAL[kind % len(SPECIAL)]
        return float(struct.unpack("<d", self.bytes(8))[0])

    def numbers(self, count: int) -> list[float]:
        return [self.number() for _ in range(count)]

    def length(self, right: int) -> int:
        """A number of entries: mostly the right one or none."""
        kind = self.below(32)
        return right if kind < 26 else 0 if kind < 30 else kind - 29

    def text(self) -> str:
        return self.bytes(self.below(12)).decode("utf-8", "replace")
