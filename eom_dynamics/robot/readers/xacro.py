# SPDX-License-Identifier: Apache-2.0
"""Expansion of xacro files to URDF."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.parsers.expat import ErrorString, ExpatError

from ...exceptions import RobotDescriptionError
from ...extras import MissingLibraryError, require
from ...spelling import close_match, hint
from .files import Expand as Expand
from .files import refuse_special_file
from .packages import package_folder
from .xacro_expressions import confined


def expand_xacro(path: Path, arguments: Mapping[str, str]) -> str:
    """Expand a xacro file to URDF with the package ``xacro``.

    A xacro file is a program: it reads any file that you can read, and evaluates expressions in this process, which are
    confined (:mod:`.xacro_expressions`). It is run by xacro's own function ``xacro.process_file``, without limits of
    time and memory. Expand only files that you trust, and none that something from the network names. The package
    ``xacro`` keeps its state in global variables: expand one file at a time.

    Args:
        path: the file.
        arguments: values of its arguments, ``<xacro:arg>``.

    Raises:
        RobotDescriptionError: the package ``xacro`` is missing, the file cannot be read or expanded, an argument has no
            value, or a given argument is not one of the file's. The message names the file.
    """
    try:
        require("xacro")
    except MissingLibraryError as error:
        raise RobotDescriptionError(f"{path}: {error}") from None
    import xacro

    refuse_special_file(path)
    values = _Arguments(arguments)
    try:
        with confined(xacro), _finding_packages():
            document = xacro.process_file(str(path), mappings=values, verbosity=0)
    except Exception as error:  # of xacro, its expressions, the XML parser, the file system
        unused = [name for name in arguments if name not in values.used]
        raise RobotDescriptionError(f"{_place(path, xacro)}: {_reason(error, path, xacro, unused)}") from None
    for name in arguments:
        if name not in values.used:
            raise RobotDescriptionError(
                f"{path}: xacro argument {name!r} does not exist; {hint(name, sorted(values.used))}"
            )
    # As the command xacro writes it, so that lines have the same numbers; a document type is not accepted.
    if document.doctype is not None:
        document.replaceChild(document.createComment(""), document.doctype)
    text: str = document.toprettyxml(indent="  ")
    return text


@contextmanager
def _finding_packages() -> Iterator[None]:
    """Have ``$(find …)`` look for packages as ``package://`` does, without ament_index_python."""
    substitution: Any = import_module("xacro.substitution_args")
    original, substitution._eval_find = substitution._eval_find, package_folder
    try:
        yield
    finally:
        substitution._eval_find = original


class _Arguments(dict[str, str]):
    """Values of xacro arguments, with the names that the file has used."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.used: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.used.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.used.add(name)
        return super().__getitem__(name)


def _place(path: Path, xacro: ModuleType) -> str:
    """The file, and the file that it includes where the error occurred."""
    current = xacro.filestack[-1] if xacro.filestack else str(path)
    return str(path) if current == str(path) else f"{path}: in {os.path.relpath(current, path.parent)}"


def _reason(error: Exception, path: Path, xacro: ModuleType, unused: Sequence[str]) -> str:
    """The innermost cause of an error, on one line, and what to do about it."""
    context = ""
    cause: Any = error
    while isinstance(cause, xacro.XacroException) and cause.exc is not None:
        context = " ".join(f"{context} {cause.suffix or ''}".split())
        cause = cause.exc
    kind = type(cause).__name__
    if kind == "ArgException":
        if given := close_match(cause, unused):
            return f"argument {str(cause)!r} has no value; is {given} a misspelling of it?"
        return f"argument {str(cause)!r} has no value; set it in xacro_arguments (command line: --xacro {cause}:=…)"
    if isinstance(cause, ModuleNotFoundError):
        return f"needs the Python module {cause.name}, which is not installed"
    if isinstance(cause, OSError) and cause.filename:
        other = "" if os.path.abspath(cause.filename) == os.path.abspath(path) else f"{cause.filename}: "
        return f"{other}cannot be read: {cause.strerror}"
    if isinstance(cause, ExpatError):
        return f"line {cause.lineno}, column {cause.offset + 1}: not valid XML: {ErrorString(cause.code)}"
    return " ".join(f"{str(cause) or kind} {context}".split())
