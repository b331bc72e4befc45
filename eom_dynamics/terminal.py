# SPDX-License-Identifier: Apache-2.0
"""Safe output to terminals and logs: escaped text, usable standard streams."""

from __future__ import annotations

import io
import os
import sys


def printable(text: str) -> str:
    r"""Text on one line with control characters escaped, for example a line feed as ``\n``."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def prepare_streams() -> None:
    """Replace closed standard streams by the null device, and escape characters that they cannot encode.

    Otherwise the next opened file would get the descriptor of a closed stream, and with it the printed text.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest free descriptor
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - stays open until the process ends
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for τ and µ
