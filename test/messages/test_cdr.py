# SPDX-License-Identifier: Apache-2.0
"""Byte offsets in serialised messages."""

import struct

import pytest

from eom_dynamics.messages.cdr import ENCAPSULATION, MessageLayout, stamp_of


@pytest.mark.parametrize("nanoseconds", [0, 5, 999_999_999, 2**32 - 1])
@pytest.mark.parametrize("seconds", [-2, 0, 1_700_000_000])
def test_stamp_of_a_header(seconds, nanoseconds):
    layout = MessageLayout().header("base")
    message = bytearray(layout.size)
    message[: len(ENCAPSULATION)] = ENCAPSULATION
    struct.pack_into("<iI", message, layout.stamp, seconds, nanoseconds)
    assert stamp_of(bytes(message)) == seconds * 1_000_000_000 + nanoseconds


@pytest.mark.parametrize("size", range(12))
def test_a_message_without_room_for_a_stamp_raises_nothing(size):
    assert isinstance(stamp_of(bytes(size)), int)
