# SPDX-License-Identifier: Apache-2.0
"""Types of command-line arguments, for argparse."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path


def path(text: str) -> Path:
    """Return the path of a file or folder; an empty one, which would be the working directory, is refused."""
    if not text:
        raise argparse.ArgumentTypeError("must be a path, is empty")
    return Path(text)


def _path_with(ending: str) -> Callable[[str], Path]:
    """Return a type for files that are overwritten: with another ending it could be a bag, which must not be."""

    def read(text: str) -> Path:
        if path(text).suffix.lower() != ending:
            raise argparse.ArgumentTypeError(f"must end in {ending}, is {text!r}")
        return Path(text)

    return read


html_path, xml_path = _path_with(".html"), _path_with(".xml")


def number(accepts: Callable[[float], bool], wanted: str) -> Callable[[str], float]:
    """Return a type for finite numbers.

    Args:
        accepts: whether a number may be given.
        wanted: the numbers that may be given, in words; part of the error message.
    """

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and accepts(value)):
            raise argparse.ArgumentTypeError(f"must be {wanted}, is {text!r}")
        return value

    return read


positive = number(lambda x: x > 0, "a positive number")

not_negative = number(lambda x: x >= 0, "a number from 0 on")


_MOST = 10_000


def whole_number(text: str) -> int:
    """Return a whole number from 1 to 10 000: of processes or repetitions, more would not end."""
    if len(text) > len(str(_MOST)) or not text.isdecimal() or not 1 <= int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {_MOST}, is {text!r:.40}")
    return int(text)
