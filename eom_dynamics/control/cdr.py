# SPDX-License-Identifier: Apache-2.0
"""Byte offsets of stamp and numbers in serialised messages (CDR).

ROS 2 messages travel in CDR, the common data representation of the OMG (DDS-XTypes 1.3, section 7.4.1, encoding version
1): four bytes of encapsulation, and then the fields in their order, each aligned to its size from there on. A sequence
has its length in front, a string its size with the zero at its end. Only little-endian messages are described here.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

ENCAPSULATION = b"\x00\x01"
"""First bytes of a message in plain CDR, little-endian; the two after them are options."""

_START = 4
_LENGTH, _DOUBLE = struct.Struct("<I"), 8


def stamp_of(message: bytes) -> int:
    """Stamp, ns, of a serialised message that begins with a header; any number where it is too short for one."""
    seconds = int.from_bytes(message[_START : _START + 4], "little", signed=True)
    return seconds * 1_000_000_000 + int.from_bytes(message[_START + 4 : _START + 8], "little")


@dataclass
class MessageLayout:
    """Layout of a message, built field by field in the order of its definition.

    Attributes:
        constants: offsets, and bytes that are the same in all messages of the layout; bytes between fields are free.
        numbers: offset and count of each array of doubles, in order.
        stamp: offset of the stamp, int32 seconds and uint32 nanoseconds; -1 for none.
        size: bytes so far, with the encapsulation.
    """

    constants: list[tuple[int, bytes]] = field(default_factory=lambda: [(0, ENCAPSULATION)])
    numbers: list[tuple[int, int]] = field(default_factory=list)
    stamp: int = -1
    size: int = _START

    def header(self, frame_id: str) -> MessageLayout:
        """Add a ``std_msgs/Header``."""
        self._align(4)
        self.stamp = self.size
        self.size += 8
        self._string(frame_id)
        return self

    def strings(self, texts: Sequence[str]) -> MessageLayout:
        """Add a ``string[]``."""
        self.length(len(texts))
        for text in texts:
            self._string(text)
        return self

    def doubles(self, count: int, each: int = 1) -> MessageLayout:
        """Add an array of ``count`` elements of ``each`` doubles, with its length."""
        self.length(count)
        if count:
            self._align(_DOUBLE)
            self.numbers.append((self.size, count * each))
            self.size += count * each * _DOUBLE
        return self

    def length(self, number: int) -> MessageLayout:
        """Add a ``uint32``, such as the length of an empty sequence."""
        self._constant(_LENGTH.pack(number), 4)
        return self

    def byte(self, number: int) -> MessageLayout:
        """Add a ``uint8`` or ``bool``."""
        self._constant(bytes([number]), 1)
        return self

    def double(self, number: float) -> MessageLayout:
        """Add a ``float64`` with the same value in all messages."""
        self._constant(struct.pack("<d", number), _DOUBLE)
        return self

    def describes(self, message: bytes) -> bool:
        """True if a serialised message has this layout; with Fast DDS there are unused bytes at its end."""
        return len(message) >= self.size and all(
            message[at : at + len(wanted)] == wanted for at, wanted in self.constants
        )

    def _string(self, text: str) -> None:
        encoded = text.encode()
        self._constant(_LENGTH.pack(len(encoded) + 1), 4)
        self._constant(encoded + b"\0", 1)

    def _constant(self, constant: bytes, alignment: int) -> None:
        self._align(alignment)
        at, before = self.constants[-1]
        if at + len(before) == self.size:
            self.constants[-1] = at, before + constant
        else:
            self.constants.append((self.size, constant))
        self.size += len(constant)

    def _align(self, alignment: int) -> None:
        self.size += -(self.size - _START) % alignment
