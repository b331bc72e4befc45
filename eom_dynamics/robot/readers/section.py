# SPDX-License-Identifier: Apache-2.0
"""Typed access to a tree of ROS 2 parameters; every error names the full parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ...arrays import Array
from ...exceptions import RobotDescriptionError
from ...spelling import close_match, duplicates, hint
from . import numbers


class Section:
    """One mapping of the tree.

    On exit as a context manager, it refuses entries that have not been read.
    """

    def __init__(self, mapping: Any, name: str, source: str) -> None:
        self._name, self._source = name, source
        if not isinstance(mapping, Mapping):
            raise RobotDescriptionError(f"{source}: {name}: must be a section, is {_short(mapping)}")
        self._mapping = mapping
        self._known: dict[str, None] = {}  # in order

    def __enter__(self) -> Section:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is not None:
            return
        for key in self._mapping:
            if key not in self._known:
                absent = (name for name in self._known if name not in self._mapping)
                self.refuse(key, f"unknown entry; {hint(key, self._known, absent)}")

    def __contains__(self, key: str) -> bool:
        self._known[key] = None
        return key in self._mapping

    def __iter__(self) -> Iterator[str]:
        """Names of all entries, whatever they are."""
        return (str(key) for key in self._mapping)

    @property
    def name(self) -> str:
        """Full name of the section, without the source."""
        return self._name

    @property
    def source(self) -> str:
        """File or node that it comes from."""
        return self._source

    def refuse(self, key: str, reason: str) -> NoReturn:
        """Raise RobotDescriptionError with the full name of an entry and the reason."""
        raise RobotDescriptionError(f"{self._source}: {self._name}.{key}: {reason}")

    def section(self, key: str) -> Section:
        """A section within this one."""
        return Section(self._read(key), f"{self._name}.{key}", self._source)

    def text(self, key: str) -> str:
        """A string that is not blank."""
        value = self._read(key)
        if not isinstance(value, str) or not value.strip():
            self.refuse(key, f"must be a string, is {_short(value)}")
        return str(value)

    def word(self, key: str) -> str:
        """A string, or a number or truth value as YAML would write it."""
        value = self._read(key)
        if isinstance(value, bool):
            return str(value).lower()
        if not isinstance(value, (str, int, float)):
            self.refuse(key, f"must be a string or a number, is {_short(value)}")
        return str(value)

    def choice(self, key: str, options: Sequence[str], default: str | None = None) -> str:
        """One of the options."""
        value = self._read(key, default)
        if not isinstance(value, str) or value not in options:
            self.refuse(key, f"must be one of {', '.join(options)}, is {_short(value)}")
        return str(value)

    def names(self, key: str) -> list[str]:
        """A list of at least one name, unique and valid as names of ROS 2 parameters."""
        value = self._read(key)
        if not _is_list(value) or not len(value) or not all(isinstance(v, str) and v for v in value):
            self.refuse(key, f"must be a list of at least one name, is {_short(value)}")
        names = list(value)
        for name in duplicates(names):
            self.refuse(key, f"{name!r} is listed twice")
        for name in names:
            if "." in name or "/" in name:
                self.refuse(key, f"{name!r} must not contain '.' or '/', as a name of ROS 2 parameters")
            if not name.isprintable() or name != name.strip():
                self.refuse(key, f"{name!r} must not contain control characters, or begin or end with blanks")
        return names

    def texts(self, key: str) -> tuple[str, ...]:
        """One string or a list of strings, none of them blank."""
        value = self._read(key)
        values = value if _is_list(value) else [value]
        if not values or not all(isinstance(v, str) and v.strip() for v in values):
            self.refuse(key, f"must be a string or a list of strings, is {_short(value)}")
        return tuple(values)

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number."""
        value = self._read(key, default)
        if not _is_number(value):
            self.refuse(key, f"must be a number, is {_short(value)}")
        self._check(key, numbers.violation(value))
        return float(value)

    def not_negative(self, key: str, default: float | None = None) -> float:
        """A finite number of at least 0."""
        value = self.number(key, default)
        self._check(key, numbers.negative_violation(value))
        return value

    def positive(self, key: str, default: float | None = None) -> float:
        """A finite number greater than 0."""
        value = self.number(key, default)
        self._check(key, numbers.positive_violation(value))
        return value

    def vector(self, key: str, length: int, default: Sequence[float] | None = None) -> Array:
        """A list of finite numbers."""
        return self._numbers(key, self._read(key, default), length)

    def row(self, key: str) -> Array:
        """A list of at least one finite number."""
        return self._numbers(key, self._read(key), None)

    def _numbers(self, key: str, value: Any, length: int | None) -> Array:
        count = "at least one number" if length is None else f"{length} numbers"
        if not _is_list(value) or not all(_is_number(v) for v in value) or (length is None and not len(value)):
            self.refuse(key, f"must be a list of {count}, is {_short(value)}")
        if length is not None and len(value) != length:
            self.refuse(key, f"must have {length} entries, has {len(value)}")
        for number in value:
            self._check(key, numbers.violation(number))
        return np.array(value, dtype=float)

    def _check(self, key: str, violation: str | None) -> None:
        if violation is not None:
            self.refuse(key, violation)

    def _read(self, key: str, default: Any = None) -> Any:
        self._known[key] = None
        value = self._mapping.get(key, default)
        if value is None and key in self._mapping:
            self.refuse(key, "has no value")
        if value is None:
            close = close_match(key, (str(k) for k in self._mapping if k not in self._known), 0.8)
            self.refuse(key, f"missing; is {close} a misspelling of it?" if close else "missing")
        return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    # Arrays come from rclpy as array.array, from a parameter file as list.
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
