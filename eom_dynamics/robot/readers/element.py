# SPDX-License-Identifier: Apache-2.0
"""XML element with typed access to its attributes; every error names the line, the element and the rule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NoReturn

import numpy as np

from ...arrays import Array
from ...exceptions import RobotDescriptionError
from ...number_rules import violation
from ...spelling import close_match
from .numbers import LARGEST

# float() alone would accept 1_0, nan and the digits of all scripts.
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_NOT_FINITE = ("nan", "inf", "infinity")

# Unknown tags of an element that are compared with the known ones: more than tools add to a URDF.
_MOST_UNKNOWN = 200


@dataclass
class Element:
    """An element of an XML document.

    Attributes:
        source: file or topic of the document; every message begins with it.
        tag: name of the tag.
        attributes: values by name.
        line: line where it begins.
        children: child elements in order.
        text: text directly within it.
        where: location in messages, below the line: the element's name, or its tag within another's.
    """

    source: str
    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""
    where: str = ""

    def refuse(self, reason: str) -> NoReturn:
        """Raise RobotDescriptionError with the location of this element and the reason."""
        where = f"line {self.line}: {self.where}" if self.where else f"line {self.line}"
        raise RobotDescriptionError(f"{self.source}: {where}: {reason}")

    def walk(self) -> Iterator[Element]:
        """This element and all elements within it."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += element.children

    def all(self, tag: str) -> list[Element]:
        """All children with this tag."""
        return [child for child in self.children if child.tag == tag]

    def named(self, tag: str) -> dict[str, Element]:
        """All children with this tag by their attribute ``name``, which must be unique."""
        found: dict[str, Element] = {}
        for child in self.all(tag):
            child.where = f"<{tag}>"
            name = child.name()
            child.where = f"{tag} {name}"
            if name in found:
                child.refuse(f"the name is already used in line {found[name].line}")
            found[name] = child
        return found

    def child(self, tag: str) -> Element | None:
        """The only child with this tag, or None."""
        found = self.all(tag)
        for child in found:
            child.where = f"{self.where}: <{tag}>" if self.where else f"<{tag}>"
        if len(found) > 1:
            found[1].refuse("must occur only once")
        return found[0] if found else None

    def needed(self, tag: str) -> Element:
        """The required child with this tag; it must be the only one."""
        found = self.child(tag)
        if found is None:
            self.refuse(f"<{tag}> is missing")
        return found

    def check_children(self, known: Sequence[str], once: Sequence[str] | None = None) -> None:
        """Refuse misspelt child elements, and duplicates of those in ``once``, by default all known ones."""
        unknown = {child.tag: child for child in reversed(self.children) if child.tag not in known}
        for tag, child in islice(reversed(unknown.items()), _MOST_UNKNOWN):
            if close := close_match(tag, known, 0.75):
                child.where = self.where
                child.refuse(f"unknown <{tag}>; did you mean <{close}>?")
        for tag in known if once is None else once:
            self.child(tag)

    def check_attributes(self, known: Sequence[str]) -> None:
        """Refuse attributes other than those known and those with a namespace."""
        for attribute in self.attributes:
            if attribute not in known and ":" not in attribute:
                self.refuse(f"unknown attribute {attribute!r}; known are {', '.join(known)}")

    def name(self) -> str:
        """The attribute ``name``, without surrounding blanks."""
        name = self.word("name").strip()
        if not name or not name.isprintable():
            self.refuse(f"name must be printable characters, is {name!r:.60}")
        return name

    def word(self, attribute: str) -> str:
        """A required attribute."""
        value = self.attributes.get(attribute)
        if value is None:
            self.refuse(f"attribute {attribute!r} is missing")
        return value

    def number(self, attribute: str, default: float | None = None, *, largest: float = LARGEST) -> float:
        """An attribute that is a finite number."""
        if default is not None and attribute not in self.attributes:
            return default
        return self.parse(attribute, self.word(attribute), largest)

    def not_negative(self, attribute: str, default: float, *, largest: float = LARGEST) -> float:
        """An attribute that is a finite number of at least 0."""
        value = self.number(attribute, default, largest=largest)
        if np.isfinite(value) and (reason := violation(value, "not negative")):
            self.refuse(f"{attribute} {reason}")
        return value

    def vector(self, attribute: str, default: Sequence[float] | None = None) -> Array:
        """An attribute that is three finite numbers (3,)."""
        if default is not None and attribute not in self.attributes:
            return np.array(default, dtype=float)
        words = self.word(attribute).split()
        if len(words) != 3:
            self.refuse(f"{attribute} must be three numbers, is {self.word(attribute)!r:.60}")
        return np.array([self.parse(attribute, word) for word in words])

    def parse(self, label: str, text: str, largest: float = LARGEST) -> float:
        """Parse a finite number; error messages call it ``label``."""
        text = text.strip()
        if not _NUMBER.fullmatch(text):
            rule = "finite" if text.lower().lstrip("+-") in _NOT_FINITE else "a number"
            self.refuse(f"{label} must be {rule}, is {text!r:.60}")
        value = float(text)
        if not abs(value) <= largest:
            self.refuse(f"{label} must not exceed {largest:g} in SI units, is {text!r:.60}")
        return value
