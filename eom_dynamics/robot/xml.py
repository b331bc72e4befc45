# SPDX-License-Identifier: Apache-2.0
"""XML from anywhere, read so that it can do no harm: elements, attributes, text, and nothing else.

A document type declaration is refused where it begins. Without one there are no entities but the five of XML
itself, so that nothing expands and nothing is fetched; no parser of the URDF world refuses it. Size, depth and
number of elements are bounded. What is read has its line, for messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from ..exceptions import RobotDescriptionError

MAX_CHARACTERS = 4_000_000
"""A description of a large humanoid with all its sensors takes a twentieth of it."""

_MAX_ELEMENTS = 30_000
_MAX_DEPTH = 100


@dataclass
class Element:
    """An element with its attributes, its children in order, the text directly in it, and its line."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self, tag: str) -> list[Element]:
        """The children of this tag."""
        return [child for child in self.children if child.tag == tag]


def parse(text: str, source: str) -> Element:
    """The root element of a document.

    Raises:
        RobotDescriptionError: the text is too large, has a document type declaration, or is not XML.
    """
    if len(text) > MAX_CHARACTERS:
        raise RobotDescriptionError(
            f"{source}: larger than {MAX_CHARACTERS} characters ({len(text)}); this is not a robot's description"
        )
    builder = _Builder(source)
    try:
        builder.parser.Parse(text.encode("utf-8"), True)
    except UnicodeEncodeError as error:
        raise RobotDescriptionError(f"{source}: not a Unicode text (character {error.start})") from None
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise RobotDescriptionError(
            f"{source}: line {error.lineno}, column {error.offset + 1}: not valid XML: {reason}"
        ) from None
    return builder.root


class _Builder:
    """Makes a tree of what the parser calls out."""

    def __init__(self, source: str) -> None:
        # The text is Unicode already, whatever encoding it says that it once had.
        self.parser = expat.ParserCreate(encoding="utf-8")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self._source = source
        self._open = [Element("", {}, 0)]
        self._count = 0

    @property
    def root(self) -> Element:
        return self._open[0].children[0]

    def _refuse(self, reason: str) -> NoReturn:
        raise RobotDescriptionError(f"{self._source}: line {self.parser.CurrentLineNumber}: {reason}")

    def _doctype(self, *_: object) -> None:
        self._refuse("document type declarations and entities are not allowed; remove <!DOCTYPE …>")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > _MAX_ELEMENTS:
            self._refuse(f"more than {_MAX_ELEMENTS} elements; this is not a robot's description")
        if len(self._open) > _MAX_DEPTH:
            self._refuse(f"elements nested deeper than {_MAX_DEPTH}; this is not a robot's description")
        element = Element(tag, attributes, self.parser.CurrentLineNumber)
        self._open[-1].children.append(element)
        self._open.append(element)

    def _end(self, _: str) -> None:
        self._open.pop()

    def _text(self, text: str) -> None:
        self._open[-1].text += text
