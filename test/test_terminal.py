# SPDX-License-Identifier: Apache-2.0
"""Escaped text for terminals."""

from __future__ import annotations

import pytest

from eom_dynamics.terminal import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("an arm, 2 µs, τ", "an arm, 2 µs, τ"),
        ("\x1b[31mred\n\r", "\\x1b[31mred\\n\\r"),
        ("\u202eright to left", "\\u202eright to left"),
        ("no text: \udc80", "no text: \\udc80"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
