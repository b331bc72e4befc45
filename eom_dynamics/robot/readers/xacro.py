# SPDX-License-Identifier: Apache-2.0
"""Expansion of xacro files to URDF by the package xacro."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

from ...exceptions import MissingLibraryError, RobotDescriptionError, require
from .files import Expand as Expand
from .files import package_folder, refuse_special_file
from .xml import MAX_CHARACTERS

_ONE_AT_A_TIME = Lock()  # xacro keeps its state in global variables


def expand_xacro(path: Path, arguments: Mapping[str, str]) -> str:
    """Expand a xacro file to URDF by xacro's ``process_file``, with these values of its arguments, ``<xacro:arg>``.

    A xacro file is a program that runs with your rights, for as long as it takes: expand only files that you trust, and
    none that something from the network names. ``$(find …)`` looks for packages as ``package://`` does.

    RobotDescriptionError if the package ``xacro`` is missing, or the file cannot be read or expanded.
    """
    try:
        require("xacro")
    except MissingLibraryError as error:
        raise RobotDescriptionError(f"{path}: {error}") from None
    refuse_special_file(path)
    xacro: Any = import_module("xacro")
    substitution: Any = import_module("xacro.substitution_args")
    with _ONE_AT_A_TIME:
        original, substitution._eval_find = substitution._eval_find, package_folder
        try:
            document = xacro.process_file(str(path), mappings=dict(arguments), verbosity=0)
        except Exception as error:  # of xacro, its expressions, the XML parser, the file system
            reason = " ".join(str(error).split()) or type(error).__name__
            raise RobotDescriptionError(f"{path}: xacro refuses it: {reason}") from None
        finally:
            substitution._eval_find = original
    # As the command xacro writes it, so that lines have the same numbers; a document type is not accepted.
    if document.doctype is not None:
        document.replaceChild(document.createComment(""), document.doctype)
    text: str = document.toprettyxml(indent="  ")
    if len(text) > MAX_CHARACTERS:
        raise RobotDescriptionError(f"{path}: expands to {len(text)} characters, may have {MAX_CHARACTERS}")
    return text
