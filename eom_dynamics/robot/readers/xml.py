# SPDX-License-Identifier: Apache-2.0
"""Safe parsing of XML from untrusted sources.

Document type declarations are refused, so that no entities but the five of XML exist: nothing expands, and nothing is
fetched. Size, depth and number of elements are bounded.
"""

from __future__ import annotations

from typing import NoReturn
from xml.parsers import expat

from ...exceptions import RobotDescriptionError
from .element import Element

MAX_CHARACTERS = 4_000_000
"""Largest document; a large humanoid with all its sensors takes a twentieth of it."""

_MAX_ELEMENTS = 30_000

# Characters within which the root element is searched, and bytes that are searched at once.
_HEAD, _PIECE = 100_000, 1000
_MAX_DEPTH = 100

_NO_DOCTYPE = "document type declarations and entities are not allowed; remove <!DOCTYPE …>"


def is_xml(text: str) -> bool:
    """Whether a text is XML, rather than the name of a file."""
    return text[:1000].lstrip("\ufeff \t\r\n").startswith("<")


def root_tag(text: str) -> str | None:
    """Tag of the root element of a text; None if it does not begin as XML does."""
    return _beginning(text)[0]


def refuse_doctype(text: str, source: str) -> None:
    """Refuse a document type declaration, for texts that another parser reads.

    Raises:
        RobotDescriptionError: there is one.
    """
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
        pass  # the reader of the format says what is wrong
    return tags[0] if tags else None, lines[0] if lines else 0


def parse(text: str, source: str) -> Element:
    """Parse a document and return its root element.

    Raises:
        RobotDescriptionError: the text is too large, has a document type declaration, or is not XML.
    """
    if len(text) > MAX_CHARACTERS:
        raise RobotDescriptionError(
            f"{source}: must be at most {MAX_CHARACTERS} characters, has {len(text)}; is this a robot description?"
        )
    builder = _Builder(source)
    try:
        builder.parser.Parse(text.encode("utf-8"), True)
    except UnicodeEncodeError as error:
        raise RobotDescriptionError(f"{source}: not valid Unicode (character {error.start})") from None
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise RobotDescriptionError(
            f"{source}: line {error.lineno}, column {error.offset + 1}: not valid XML: {reason}"
        ) from None
    return builder.root


class _Builder:
    """Builds the tree of elements from the parser's events."""

    def __init__(self, source: str) -> None:
        # The text is decoded already, whatever encoding its declaration names.
        self.parser = expat.ParserCreate(encoding="utf-8")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self._source = source
        self._open = [Element(source, "", {}, 0)]
        self._count = 0

    @property
    def root(self) -> Element:
        return self._open[0].children[0]

    def _refuse(self, reason: str) -> NoReturn:
        raise RobotDescriptionError(f"{self._source}: line {self.parser.CurrentLineNumber}: {reason}")

    def _doctype(self, *_: object) -> None:
        self._refuse(_NO_DOCTYPE)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > _MAX_ELEMENTS:
            self._refuse(f"more than {_MAX_ELEMENTS} elements; is this a robot description?")
        if len(self._open) > _MAX_DEPTH:
            self._refuse(f"elements nested deeper than {_MAX_DEPTH}; is this a robot description?")
        element = Element(self._source, tag, attributes, self.parser.CurrentLineNumber)
        self._open[-1].children.append(element)
        self._open.append(element)

    def _end(self, _: str) -> None:
        self._open.pop()

    def _text(self, text: str) -> None:
        self._open[-1].text += text
