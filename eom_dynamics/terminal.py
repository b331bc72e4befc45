# SPDX-License-Identifier: Apache-2.0
"""Text for terminals and logs, and the streams on which it goes there."""

from __future__ import annotations

import io
import os
import sys


def printable(text: str) -> str:
    r"""Text on one line, in which whatever a terminal would act on is written out: a line feed as ``\n``."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def prepare_streams() -> None:
    """Make the standard streams ones that can be written to, however the process was started.

    Where one is closed, the next file to be opened would take its number, and what is printed would go there.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # τ and µ, where the encoding lacks them
