# SPDX-License-Identifier: Apache-2.0
"""Typed access to a tree of ROS 2 parameters; every error names the full parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from ...actuators.parameters import ParameterError
from ...arguments import LARGEST, SMALLEST, violation
from ...arrays import Array
from ...exceptions import RobotDescriptionError
from ...spelling import close_match, duplicates, hint

T = TypeVar("T")
U = TypeVar("U")

# Nobody reads more of them, and a file with more does not describe a robot.
_MOST_ERRORS = 20


class EntryError(RobotDescriptionError):
    """An unusable entry, with its full name."""

    def __init__(self, source: str, entry: str, reason: str) -> None:
        super().__init__(f"{source}: {entry}: {reason}")
        self.entry = entry


class _Errors:
    """Errors of a tree of sections, the first of each entry."""

    def __init__(self) -> None:
        self.by_entry: dict[str, RobotDescriptionError] = {}

    def add(self, error: RobotDescriptionError) -> None:
        self.by_entry.setdefault(error.entry if isinstance(error, EntryError) else str(error), error)

    def joined(self) -> RobotDescriptionError:
        """One error with the messages of all."""
        lines = [line for error in self.by_entry.values() for line in error.errors]
        more = len(lines) - _MOST_ERRORS
        return RobotDescriptionError(*lines[:_MOST_ERRORS], *([f"… and {more} more errors"] if more > 0 else []))


class Section:
    """A section: one mapping of the parameter tree, with its full ``name``, without the ``source``, a file or node.

    Reading continues after an error: unusable numbers are NaN, texts empty. As a context manager, a
    section reports unread entries on exit, and the section of the whole tree raises all errors as one.
    """

    def __init__(self, mapping: Any, name: str, source: str, errors: _Errors | None = None) -> None:
        self.name, self.source = name, source
        if not isinstance(mapping, Mapping):
            raise EntryError(source, name, f"must be a section, is {_short(mapping)}")
        self._mapping = mapping
        self._known: dict[str, None] = {}  # in order
        self._is_whole, self._errors = errors is None, errors or _Errors()
        self._is_complete = True

    def __enter__(self) -> Section:
        return self

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None, *_: object) -> None:
        original = failure
        if isinstance(failure, ParameterError):  # an error caused by earlier errors is not reported
            failure = RobotDescriptionError() if self.has_errors else self._error(failure.name, failure.reason)
        if failure is None and self._is_complete:
            for key in self._mapping:
                if key not in self._known:
                    absent = (name for name in self._known if name not in self._mapping)
                    self._errors.add(self._error(key, f"unknown entry; {hint(key, self._known, absent)}"))
        if self._is_whole and self._errors.by_entry and (failure is None or isinstance(failure, RobotDescriptionError)):
            if isinstance(failure, RobotDescriptionError):
                self._errors.add(failure)
            raise self._errors.joined() from None
        if failure is not None and failure is not original:
            raise failure from None

    def __contains__(self, key: str) -> bool:
        self._known[key] = None
        return key in self._mapping

    def __iter__(self) -> Iterator[str]:
        """Names of all entries."""
        return (str(key) for key in self._mapping)

    @property
    def has_errors(self) -> bool:
        """True if this section, or a section within it, has errors."""
        return any(entry.startswith((f"{self.name}.", f"{self.source}: ")) for entry in self._errors.by_entry)

    def refuse(self, key: str, reason: str) -> NoReturn:
        """Raise RobotDescriptionError with the full name of an entry and the reason."""
        raise self._error(key, reason)

    def _error(self, key: str, reason: str) -> EntryError:
        return EntryError(self.source, f"{self.name}.{key}", reason)

    def skip(self, *keys: str) -> None:
        """Mark entries as known without reading them, because other errors prevent it."""
        self._known.update(dict.fromkeys(keys))

    def attempt(self, read: Callable[[Section], T], otherwise: U, *, several: bool = False) -> T | U:
        """Return the value that a function reads from this section; record an error, and return ``otherwise``.

        After an error, a function that reads ``several`` entries of this section leaves some unread: unknown entries
        are then not reported.
        """
        try:
            return read(self)
        except RobotDescriptionError as error:
            self._errors.add(error)
            self._is_complete = self._is_complete and not several
            return otherwise

    def part(self, key: str, read: Callable[[Section], T], otherwise: U, form: str = "") -> T | U:
        """Return the value that a function reads from a subsection; ``otherwise`` without it, or after an error.

        ``form`` describes the subsection in errors.
        """

        def read_part(_: Section) -> T | U:
            if key not in self:
                return otherwise
            with self.section(key, form) as part:
                return read(part)

        return self.attempt(read_part, otherwise)

    def section(self, key: str, form: str = "") -> Section:
        """A subsection; ``form`` describes it in errors."""
        value = self._read(key)
        if form and not isinstance(value, Mapping):
            self.refuse(key, f"must be {form}, is {_short(value)}")
        return Section(value, f"{self.name}.{key}", self.source, self._errors)

    def text(self, key: str) -> str:
        """A string that is not blank."""
        return self.attempt(lambda _: self._text(key), "")

    def _text(self, key: str) -> str:
        value = self._read(key)
        if not isinstance(value, str) or not value.strip():
            self.refuse(key, f"must be a string, is {_short(value)}")
        return str(value)

    def word(self, key: str) -> str:
        """A string, or a number or bool as YAML would write it."""
        value = self._read(key)
        if isinstance(value, bool):
            return str(value).lower()
        if not isinstance(value, (str, int, float)):
            self.refuse(key, f"must be a string or a number, is {_short(value)}")
        return str(value)

    def choice(
        self, key: str, options: Sequence[str], default: str | None = None, *, otherwise: str | None = None
    ) -> str:
        """One of the options; after an error, reading continues with ``otherwise`` if given."""
        if otherwise is not None:
            return self.attempt(lambda _: self.choice(key, options, default), otherwise)
        value = self._read(key, default)
        if not isinstance(value, str) or value not in options:
            self.refuse(key, f"must be one of {', '.join(options)}, is {_short(value)}")
        return str(value)

    def flag(self, key: str) -> bool | None:
        """True or false; None without the entry."""
        if key not in self:
            return None
        value = self._read(key)
        if not isinstance(value, bool):
            self.refuse(key, f"must be true or false, is {_short(value)}")
        return value

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
        """A string or a list of strings, all nonblank."""
        return self.attempt(lambda _: self._texts(key), ())

    def _texts(self, key: str) -> tuple[str, ...]:
        value = self._read(key)
        values = value if _is_list(value) else [value]
        if not values or not all(isinstance(v, str) and v.strip() for v in values):
            self.refuse(key, f"must be a string or a list of strings, is {_short(value)}")
        return tuple(values)

    def number(self, key: str, default: float | None = None, rule: str = "finite") -> float:
        """A number by a rule of :func:`.violation`, of a plausible size in SI units."""

        def read(_: Section) -> float:
            value = self._read(key, default)
            if not _is_number(value):
                self.refuse(key, f"must be a number, is {_short(value)}")
            if reason := violation(value, rule, smallest=SMALLEST if rule == "positive" else 0.0, largest=LARGEST):
                self.refuse(key, reason)
            return float(value)

        return self.attempt(read, math.nan)

    def not_negative(self, key: str, default: float | None = None) -> float:
        """A finite number of at least 0."""
        return self.number(key, default, "not negative")

    def positive(self, key: str, default: float | None = None) -> float:
        """A finite number greater than 0."""
        return self.number(key, default, "positive")

    def vector(self, key: str, length: int, default: Sequence[float] | None = None) -> Array:
        """A list of finite numbers."""
        return self.attempt(lambda _: self._numbers(key, default, length), np.full(length, np.nan))

    def row(self, key: str) -> Array:
        """A list of at least one finite number."""
        return self.attempt(lambda _: self._numbers(key, None, None), np.full(1, np.nan))

    def _numbers(self, key: str, default: Sequence[float] | None, length: int | None) -> Array:
        value = self._read(key, default)
        count = "at least one number" if length is None else f"{length} numbers"
        if not _is_list(value) or not all(_is_number(v) for v in value) or (length is None and not len(value)):
            self.refuse(key, f"must be a list of {count}, is {_short(value)}")
        if length is not None and len(value) != length:
            self.refuse(key, f"must have {length} entries, has {len(value)}")
        for number in value:
            if reason := violation(number, largest=LARGEST):
                self.refuse(key, reason)
        return np.array(value, dtype=float)

    def _read(self, key: str, default: Any = None) -> Any:
        self._known[key] = None
        value = self._mapping.get(key, default)
        if value is None and key in self._mapping:
            self.refuse(key, "has no value")
        if value is None:
            close = close_match(key, (str(k) for k in self._mapping if k not in self._known), 0.8)
            if close is not None:
                self._known[close] = None  # one error of both
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
