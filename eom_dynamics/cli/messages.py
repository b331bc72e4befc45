# SPDX-License-Identifier: Apache-2.0
"""What a command has to say beside its results."""

from __future__ import annotations

import sys

from ..terminal import printable


def complain(program: str, reason: str) -> None:
    """One line on stderr, from the program or one of its commands."""
    print(f"{program}: {printable(reason)}", file=sys.stderr)
