# SPDX-License-Identifier: Apache-2.0
"""Links, anchors and names in the text of pages."""

import re
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from urllib.parse import unquote

import eom_dynamics as eom


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """Places of a page that links lead to: headings, as GitHub and MyST name them, and targets of MyST."""
    text = prose(text)
    lines = [re.sub(r"[*`]|\[([^]]*)\]\([^)]*\)", r"\1", line) for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    headings = {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}
    return headings | set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))


def links(text: str) -> list[str]:
    """Targets of the links of a page, without those into the web."""
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", prose(text)) if not re.match(r"\w+:", link)]


def broken_links(path: Path, text: str, unwritten: Mapping[Path, str] | None = None) -> list[str]:
    """Links of a page that lead to no file or place; ``unwritten`` are texts of pages by their paths."""
    broken, unwritten = [], unwritten or {}
    for link in links(text):
        file, _, place = unquote(link).partition("#")
        target = (path.parent / file).resolve() if file else path
        found = unwritten.get(target) or (target.read_text(encoding="utf-8") if target.is_file() and place else "")
        if not (target.exists() or target in unwritten) or (place and place not in anchors(found)):
            broken.append(f"{path.name}: {link}")
    return broken


def public_names(text: str) -> list[str]:
    """Names that a page writes as ``eom.…`` in code, without duplicates."""
    return sorted(set(re.findall(r"`eom\.([\w.]+)", text)))


def attribute(name: str) -> object:
    """Object of a name of :func:`public_names`; fields of a class are returned unchanged.

    Raises:
        AttributeError: there is no such name.
    """

    def step(owner: object, part: str) -> object:
        if hasattr(owner, part):
            return getattr(owner, part)
        if part in {field for one in getattr(owner, "__mro__", ()) for field in getattr(one, "__annotations__", {})}:
            return f"{owner}.{part}"
        raise AttributeError(f"{owner} has no {part}")

    return reduce(step, name.split("."), eom)
