# SPDX-License-Identifier: Apache-2.0
"""Types of command-line arguments."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from ...number_rules import violation
from ...spelling import shown

_Value = TypeVar("_Value")


def path(text: str) -> Path:
    """Return the path of a file or folder; an empty one is refused, since it would mean the working directory."""
    if not text:
        raise argparse.ArgumentTypeError("must be a path, is empty")
    return Path(text)


def path_with(*endings: str) -> Callable[[str], Path]:
    """Return a type for output files with a fixed ending, so that a bag is never overwritten."""

    def read(text: str) -> Path:
        if path(text).suffix not in endings:
            raise argparse.ArgumentTypeError(f"must end in {', '.join(endings)}, is {text!r}")
        return Path(text)

    return read


def number(rule: str = "finite", kind: type = float) -> Callable[[str], Any]:
    """Return a type for numbers that keep a rule of :mod:`eom_dynamics.number_rules`."""

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            wanted = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"must be {wanted}, is {shown(text)}") from None
        if reason := violation(value, rule):
            raise argparse.ArgumentTypeError(reason)
        return value

    return read


def named(metavar: str, value: Callable[[str], Any]) -> Callable[[str], tuple[str | None, Any]]:
    """Return a type for a metavar such as ``[JOINT=]X``: a name, None for all of them, and a value."""

    def read(text: str) -> tuple[str | None, Any]:
        name, assigned, rest = text.rpartition("=")
        if assigned and not name:
            raise argparse.ArgumentTypeError(f"must be {metavar}, is {text!r}")
        return name or None, value(rest)

    return read


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """Return a type for one of some names."""

    def read(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"invalid choice: {text!r} (choose from {', '.join(names)})")
        return text

    return read


def listed(value: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    """Return a type for values with commas between them."""
    return lambda text: tuple(map(value, text.split(",")))


def some_of(names: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a type for some of the names with commas between them, each once; ``none`` for none of them."""
    return lambda text: () if text == "none" else tuple(dict.fromkeys(listed(one_of(names))(text)))


def shown_errors(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """Return a type whose ValueError the command line shows."""

    def read(text: str) -> _Value:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read
