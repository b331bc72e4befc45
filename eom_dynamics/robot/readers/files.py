# SPDX-License-Identifier: Apache-2.0
"""Robot files: input of the readers, text of bounded size, folders of ROS packages, and XML from untrusted sources.

Document type declarations are refused, so that no entities but the five of XML exist: nothing expands, and nothing is
fetched. Size, depth and number of elements are bounded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, NoReturn
from xml.parsers import expat

import numpy as np

from ...arguments import LARGEST, violation
from ...arrays import Array
from ...exceptions import RobotDescriptionError
from ...spelling import close_match

KNOWN: ContextVar[Mapping[str, str]] = ContextVar("folders of packages by name", default=MappingProxyType({}))
"""Package folders that take precedence over ROS."""

PACKAGE = "package://"


def package_folder(name: str) -> str:
    """Share folder of a package by ``AMENT_PREFIX_PATH``, else ``ROS_PACKAGE_PATH``; raises LookupError without it."""
    if name in KNOWN.get():
        return KNOWN.get()[name]
    if name and "/" not in name:
        for variable, mark, folder in (
            ("AMENT_PREFIX_PATH", f"share/ament_index/resource_index/packages/{name}", f"share/{name}"),
            ("ROS_PACKAGE_PATH", f"{name}/package.xml", name),
        ):
            for start in filter(None, os.environ.get(variable, "").split(os.pathsep)):
                if Path(start, mark).is_file():
                    return str(Path(start, folder))
    raise LookupError(
        f"package {name!r:.200} not found; source the workspace that has it, or set ROS_PACKAGE_PATH to the folder "
        "above its own"
    )


def located(name: str) -> str:
    """The path of a file given as ``package://package/path``, or LookupError; any other name unchanged."""
    if not name.startswith(PACKAGE):
        return name
    package, _, rest = name.removeprefix(PACKAGE).partition("/")
    return os.path.join(package_folder(package), rest)


Expand = Callable[[Path, Mapping[str, str]], str]
"""Returns the URDF of a xacro file and its arguments, as :func:`.urdf.expand_xacro` does."""


class DescriptionFile(NamedTuple):
    """A robot description to read: content, or a path if it is None, with options of :func:`eom_dynamics.load_robot`.

    Every message begins with ``label``; ``expand`` expands xacro files.
    """

    label: str
    path: Path | None
    content: str | None
    inertia_reference: str | None
    xacro_arguments: Mapping[str, str]
    expand: Expand

    def text(self, largest: int) -> str:
        """Return the description."""
        if self.content is None:
            assert self.path is not None
            return read_text(self.path, largest)
        if len(self.content) > largest:
            raise RobotDescriptionError(f"{self.label}: must be at most {largest} characters, has {len(self.content)}")
        return self.content

    def refuse_inertia_reference(self) -> None:
        """Refuse the option ``inertia_reference`` unless a parameter file gives the inertias."""
        if self.inertia_reference is not None:
            raise RobotDescriptionError(
                f"{self.label}: inertia_reference is for parameter files; other inertias are about the center of mass"
            )


def refuse_special_file(path: Path) -> None:
    """Refuse paths that exist but are not regular files, such as folders and pipes."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise RobotDescriptionError(f"{path}: cannot be read: not a file")


def read_text(path: Path, largest: int) -> str:
    """Read a file as UTF-8 text; RobotDescriptionError if it cannot be read, is larger, or is not UTF-8 text."""
    refuse_special_file(path)
    try:
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except OSError as error:
        raise RobotDescriptionError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # an invalid file name, for example with a null character
        raise RobotDescriptionError(f"{str(path)!r}: cannot be read: {error}") from None
    if len(data) > largest:
        raise RobotDescriptionError(f"{path}: must be at most {largest} bytes; is this a robot description?")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RobotDescriptionError(f"{path}: must be UTF-8 text, is not at byte {error.start}") from None


# float() alone would accept 1_0, nan and the digits of all scripts.
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_NOT_FINITE = ("nan", "inf", "infinity")

_COUNTS = {3: "three", 4: "four"}

# Maximum number of unknown tags of an element that are compared with known tags: more than tools add to a URDF.
_MOST_UNKNOWN = 200


@dataclass
class Element:
    """Element of an XML document, with its first line and its direct text.

    Messages begin with the ``source``, a file or topic; below the line, ``where`` is the element's name, or its tag
    within another's.
    """

    source: str
    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""
    where: str = ""
    # Deviations of the robot from the text: one list, shared by all elements of a document.
    remarks: list[str] = field(default_factory=list)

    def remark(self, text: str) -> None:
        """Keep a remark on this element, once."""
        if (remark := f"line {self.line}: {self.where}: {text}") not in self.remarks:
            self.remarks.append(remark)

    def equals(self, other: Element) -> bool:
        """True if another element has the same tag, attributes, text and children."""
        mine, theirs = ((x.tag, x.attributes, x.text.split(), len(x.children)) for x in (self, other))
        return mine == theirs and all(a.equals(b) for a, b in zip(self.children, other.children, strict=True))

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
        elements: dict[str, Element] = {}
        for child in self.all(tag):
            child.where = f"<{tag}>"
            name = child.name()
            child.where = f"{tag} {name}"
            if name in elements:
                child.refuse(f"the name is already used in line {elements[name].line}")
            elements[name] = child
        return elements

    def child(self, tag: str, attributes: Sequence[str] | None = None) -> Element | None:
        """The only child with this tag, or None; attributes other than ``attributes`` and namespaced ones are refused.

        An identical repetition counts once, with a remark; the first of several origins counts, as in other readers.
        """
        children = self.all(tag)
        for child in children:
            child.where = f"{self.where}: <{tag}>" if self.where else f"<{tag}>"
        if not children:
            return None
        first, *others = children
        for other in others:
            if tag != "origin" and not other.equals(first):
                other.refuse("must occur only once")
            other.remark(f"occurs more than once: that of line {first.line} counts")
        known = first.attributes if attributes is None else attributes
        for attribute in first.attributes:
            if attribute not in known and ":" not in attribute:
                first.refuse(f"unknown attribute {attribute!r}; known are {', '.join(known)}")
        return first

    def needed(self, tag: str, attributes: Sequence[str] | None = None) -> Element:
        """The required child with this tag, as :meth:`child`."""
        child = self.child(tag, attributes)
        if child is None:
            self.refuse(f"<{tag}> is missing")
        return child

    def check_children(self, known: Sequence[str], once: Sequence[str] | None = None) -> None:
        """Refuse misspelt child elements, and duplicates of elements in ``once``, by default all known elements."""
        unknown = {child.tag: child for child in reversed(self.children) if child.tag not in known}
        for tag, child in islice(reversed(unknown.items()), _MOST_UNKNOWN):
            if close := close_match(tag, known):
                child.where = self.where
                child.refuse(f"unknown <{tag}>; did you mean <{close}>?")
        for tag in known if once is None else once:
            self.child(tag)

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

    def number(
        self, attribute: str, default: float | None = None, rule: str = "finite", *, largest: float = LARGEST
    ) -> float:
        """An attribute that is a number by a rule of :func:`.violation`; it may overflow where ``largest`` is inf."""
        if default is not None and attribute not in self.attributes:
            return default
        return self.parse(attribute, self.word(attribute), rule, largest)

    def vector(self, attribute: str, default: Sequence[float] | None = None, *, count: int = 3) -> Array:
        """An attribute that is some finite numbers (count,)."""
        if default is not None and attribute not in self.attributes:
            return np.array(default, dtype=float)
        words = self.word(attribute).split()
        if len(words) != count:
            self.refuse(f"{attribute} must be {_COUNTS[count]} numbers, is {self.word(attribute)!r:.60}")
        return np.array([self.parse(attribute, word) for word in words])

    def parse(self, label: str, text: str, rule: str = "finite", largest: float = LARGEST) -> float:
        """Parse a number by a rule, as :meth:`number`; error messages call it ``label``."""
        text = text.strip()
        if not _NUMBER.fullmatch(text):
            expected = "finite" if text.lower().lstrip("+-") in _NOT_FINITE else "a number"
            self.refuse(f"{label} must be {expected}, is {text!r:.60}")
        value = float(text)
        if not abs(value) <= largest:
            self.refuse(f"{label} must not exceed {largest:g} in SI units, is {text!r:.60}")
        if np.isfinite(value) and (reason := violation(value, rule)):
            self.refuse(f"{label} {reason}")
        return value


MAX_CHARACTERS = 4_000_000
"""Largest document; a large humanoid with all its sensors takes a twentieth of it."""

_MAX_ELEMENTS = 30_000

# Number of characters within which the root element must start, and number of bytes per search.
_HEAD, _PIECE = 100_000, 1000
_MAX_DEPTH = 100

_NO_DOCTYPE = "document type declarations and entities are not allowed; remove <!DOCTYPE …>"


def is_xml(text: str) -> bool:
    """True if a text is XML, rather than the name of a file."""
    return text[:1000].lstrip("\ufeff \t\r\n").startswith("<")


def root_tag(text: str) -> str | None:
    """Tag of the root element of a text; None if it does not begin as XML does."""
    return _beginning(text)[0]


def refuse_doctype(text: str, source: str) -> None:
    """Raise RobotDescriptionError for a document type declaration, in texts that another parser reads."""
    if line := _beginning(text)[1]:
        raise RobotDescriptionError(f"{source}: line {line}: {_NO_DOCTYPE}")


def _beginning(text: str) -> tuple[str | None, int]:
    """Tag of the root element, None without one, and line of the document type declaration, 0 without one."""
    if not is_xml(text):
        return None, 0
    tags, lines = list[str](), list[int]()
    parser = expat.ParserCreate(encoding="utf-8")
    parser.StartElementHandler = lambda tag, _: tags.append(tag)
    parser.StartDoctypeDeclHandler = lambda *_: lines.append(parser.CurrentLineNumber)
    data = text[:_HEAD].removeprefix("\ufeff").encode("utf-8", "replace")
    try:
        for start in range(0, len(data), _PIECE):
            parser.Parse(data[start : start + _PIECE])
            if tags:
                break
    except expat.ExpatError:
        pass  # the reader of the format reports the error
    return tags[0] if tags else None, lines[0] if lines else 0


def parse(text: str, source: str) -> Element:
    """Parse a document and return its root element.

    RobotDescriptionError if the text is too large, has a document type declaration, or is not XML.
    """
    if len(text) > MAX_CHARACTERS:
        raise RobotDescriptionError(
            f"{source}: must be at most {MAX_CHARACTERS} characters, has {len(text)}; is this a robot description?"
        )
    # The text is already decoded; the encoding of its declaration is ignored.
    parser = expat.ParserCreate(encoding="utf-8")
    opened, count = [Element(source, "", {}, 0)], 0

    def refuse(reason: str) -> NoReturn:
        raise RobotDescriptionError(f"{source}: line {parser.CurrentLineNumber}: {reason}")

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > _MAX_ELEMENTS:
            refuse(f"more than {_MAX_ELEMENTS} elements; is this a robot description?")
        if len(opened) > _MAX_DEPTH:
            refuse(f"elements nested deeper than {_MAX_DEPTH}; is this a robot description?")
        element = Element(source, tag, attributes, parser.CurrentLineNumber, remarks=opened[0].remarks)
        opened[-1].children.append(element)
        opened.append(element)

    def characters(text: str) -> None:
        opened[-1].text += text

    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = lambda *_: refuse(_NO_DOCTYPE)
    parser.StartElementHandler, parser.CharacterDataHandler = start, characters
    parser.EndElementHandler = lambda _: opened.pop()
    try:
        parser.Parse(text.encode("utf-8"), True)
    except UnicodeEncodeError as error:
        raise RobotDescriptionError(f"{source}: not valid Unicode (character {error.start})") from None
    except expat.ExpatError as error:
        place = f"line {error.lineno}, column {error.offset + 1}"
        raise RobotDescriptionError(f"{source}: {place}: not valid XML: {expat.ErrorString(error.code)}") from None
    return opened[0].children[0]
