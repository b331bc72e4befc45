# SPDX-License-Identifier: Apache-2.0
"""Hints about misspelt names, at bounded cost for any number and length of names; kinds of texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable
from itertools import islice

# No robot has longer names, and hints with more names do not help. A comparison takes some 10 µs.
_LONGEST, _MOST, _MOST_LISTED = 100, 500, 60
_LONGEST_VALUE = 60

# Digits of names and indices, such as joint_1 and position[0], are not numbers.
_NUMBER = re.compile(r"(?<![\w.\[])-?\d+(\.\d+)?(e[+-]?\d+)?(?!\w)")


def close_match(name: object, known: Iterable[str], cutoff: float = 0.75) -> str | None:
    """Return the known name that is most similar to ``name``; None if no name is similar.

    At most 500 known names of up to 100 characters are compared. The cutoff is the minimum similarity, from
    0 to 1, as in :func:`difflib.get_close_matches`; the default accepts two swapped letters in a name of four.
    """
    from difflib import get_close_matches  # for messages only

    text = str(name)
    if len(text) > _LONGEST:
        return None
    names = [other for other in islice(known, _MOST) if len(other) <= _LONGEST]
    return next(iter(get_close_matches(text, names, n=1, cutoff=cutoff)), None)


def hint(name: object, known: Iterable[str], candidates: Iterable[str] | None = None) -> str:
    """Return the end of a message about an unknown name: a similar candidate, by default of all known names.

    The only name with the same word before its underscore is also similar. Without a similar name, the text lists at
    most 60 known names.
    """
    names = list(dict.fromkeys(known))
    close = close_match(name, names if candidates is None else candidates)
    word, underscore, _ = str(name).partition("_")
    if close is None and underscore and len(similar := [other for other in names if other.startswith(f"{word}_")]) == 1:
        close = similar[0]
    if close is not None:
        return f"did you mean {close}?"
    return f"known are {listed(names)}" if names else "none are defined"


def listed(names: Iterable[str]) -> str:
    """Return names as a list for a message: at most 60, each cut at 100 characters."""
    first = [f"{name:.{_LONGEST}}" for name in islice(names, _MOST_LISTED + 1)]
    return ", ".join(first[:_MOST_LISTED]) + (", …" if len(first) > _MOST_LISTED else "")


def shown(value: object) -> str:
    """Return a value as text for a message: on one line, at most 60 characters."""
    return " ".join(repr(value).split())[:_LONGEST_VALUE]


def without_numbers(text: str) -> str:
    """Return a text with # for numbers: texts of one kind that differ in their values become equal."""
    return _NUMBER.sub("#", text)


def duplicates(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, in order."""
    return [name for name, count in Counter(names).items() if count > 1]


def unused_name(name: str, taken: Container[str]) -> str:
    """Return the name, with underscores added until it is unused."""
    while name in taken:
        name += "_"
    return name
