# SPDX-License-Identifier: Apache-2.0
"""Typed reading of a ROS 2 parameter tree, in which every misuse is an error that names the full parameter."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..exceptions import RobotDescriptionError

Array = NDArray[np.float64]

# No robot has an entry beyond these, in SI units; products of what is beyond them overflow.
_LARGEST, _SMALLEST = 1e12, 1e-12


class Section:
    """One mapping of the tree: typed reading, and an error that names the full parameter for each misuse.

    As a context manager it refuses, at its end, entries that nobody has read.
    """

    def __init__(self, mapping: Any, name: str, source: str) -> None:
        self._name, self._source = name, source
        if not isinstance(mapping, Mapping):
            raise RobotDescriptionError(f"{source}: {name}: must be a section, is {_shown(mapping)}")
        self._mapping = mapping
        self._known: list[str] = []

    def __enter__(self) -> Section:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is not None:
            return
        for key in self._mapping:
            if key not in self._known:
                close = difflib.get_close_matches(str(key), [k for k in self._known if k not in self._mapping], n=1)
                hint = f"did you mean {close[0]}?" if close else f"known here: {', '.join(dict.fromkeys(self._known))}"
                self.refuse(key, f"unknown entry; {hint}")

    def __contains__(self, key: str) -> bool:
        self._known.append(key)
        return key in self._mapping

    @property
    def name(self) -> str:
        """Full name of the section, without its source."""
        return self._name

    def refuse(self, key: str, reason: str) -> NoReturn:
        """Raise the error of an entry: where, and why."""
        raise RobotDescriptionError(f"{self._source}: {self._name}.{key}: {reason}")

    def section(self, key: str) -> Section:
        """A section within."""
        return Section(self._read(key), f"{self._name}.{key}", self._source)

    def text(self, key: str) -> str:
        """A text that is not blank."""
        value = self._read(key)
        if not isinstance(value, str) or not value.strip():
            self.refuse(key, f"must be a text, is {_shown(value)}")
        return str(value)

    def choice(self, key: str, options: Sequence[str], default: str | None = None) -> str:
        """One of the options."""
        value = self._read(key, default)
        if not isinstance(value, str) or value not in options:
            self.refuse(key, f"must be one of {', '.join(options)}, is {_shown(value)}")
        return str(value)

    def names(self, key: str) -> list[str]:
        """A list of at least one name, each that of a ROS 2 parameter, none of them twice."""
        value = self._read(key)
        if not _is_list(value) or not len(value) or not all(isinstance(v, str) and v for v in value):
            self.refuse(key, f"must be a list of at least one name, is {_shown(value)}")
        names = list(value)
        for name in names:
            if names.count(name) > 1:
                self.refuse(key, f"{name!r} stands there twice")
            if "." in name or "/" in name:
                self.refuse(key, f"{name!r} has a '.' or '/', which ROS 2 parameter names cannot hold")
            if not name.isprintable() or name != name.strip():
                self.refuse(key, f"{name!r} has control characters, or blanks at an end")
        return names

    def texts(self, key: str) -> str | list[str]:
        """A text, or a list of them, none of them blank."""
        value = self._read(key)
        values = value if _is_list(value) else [value]
        if not values or not all(isinstance(v, str) and v.strip() for v in values):
            self.refuse(key, f"must be a text or a list of them, is {_shown(value)}")
        return str(value) if isinstance(value, str) else list(value)

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number."""
        value = self._read(key, default)
        if not _is_number(value):
            self.refuse(key, f"must be a number, is {_shown(value)}")
        self._check_size(key, [value])
        return float(value)

    def not_negative(self, key: str, default: float | None = None) -> float:
        """A finite number that is at least 0."""
        value = self.number(key, default)
        if value < 0:
            self.refuse(key, f"must not be negative, is {value:g}")
        return value

    def positive(self, key: str, default: float | None = None) -> float:
        """A finite number greater than 0."""
        value = self.number(key, default)
        if value <= 0:
            self.refuse(key, f"must be greater than 0, is {value:g}")
        if value < _SMALLEST:
            self.refuse(key, f"must be at least {_SMALLEST:g}, is {value:g}")
        return value

    def vector(self, key: str, length: int, default: Sequence[float] | None = None) -> Array:
        """A list of finite numbers."""
        value = self._read(key, default)
        if not _is_list(value) or not all(_is_number(v) for v in value):
            self.refuse(key, f"must be a list of {length} numbers, is {_shown(value)}")
        if len(value) != length:
            self.refuse(key, f"must have {length} entries, has {len(value)}")
        self._check_size(key, value)
        return np.array(value, dtype=float)

    def row(self, key: str) -> Array:
        """A list of at least one finite number."""
        value = self._read(key)
        if not _is_list(value) or not len(value) or not all(_is_number(v) for v in value):
            self.refuse(key, f"must be a list of at least one number, is {_shown(value)}")
        self._check_size(key, value)
        return np.array(value, dtype=float)

    def _check_size(self, key: str, values: Sequence[float]) -> None:
        for value in values:
            if isinstance(value, float) and not math.isfinite(value):
                self.refuse(key, f"must be finite, is {value}")
            if abs(value) > _LARGEST:
                self.refuse(key, f"must not exceed {_LARGEST:g} in SI units, is {_shown(value)}")

    def _read(self, key: str, default: Any = None) -> Any:
        self._known.append(key)
        value = self._mapping.get(key, default)
        if value is None and key in self._mapping:
            self.refuse(key, "has no value")
        if value is None:
            unread = [str(k) for k in self._mapping if k not in self._known]
            close = difflib.get_close_matches(key, unread, n=1, cutoff=0.8)
            self.refuse(key, f"missing; is it what is called {close[0]}?" if close else "missing")
        return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    # rclpy hands arrays over as array.array, a parameter file as list.
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
