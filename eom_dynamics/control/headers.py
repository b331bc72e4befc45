# SPDX-License-Identifier: Apache-2.0
"""The sources of the control loop in C++, the same for every robot: the folder ``eom``, filled in. Without NumPy."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from ..codegen.cache import digest
from ..filling import SETTLED, TOLERANCE, filled
from . import settings

LARGEST_LOADED = {"joints": 64, "motors": 128, "tools": 16}
"""Most joints, motors and tools of a robot that a loop loads."""

DEFAULTS = {name: str(value) for name, value in settings.DEFAULTS._asdict().items()}
"""Defaults of the settings that node and loop have, as templates write them."""

_FOLDER = Path(__file__).with_name("eom")


def _safety() -> str:
    """Entries of eom::SAFETY."""
    rows = [
        f'{{"{level}", "{name}", {settings.CHOICES[name].index(value) if isinstance(value, str) else value}}}'
        for level in settings.SAFETY
        for name, value in settings.settings_at(level).items()
    ]
    return ", ".join(rows)


def source(name: str) -> str:
    """Text of a file of the folder, with ``@fields@``."""
    return (_FOLDER / name).read_text(encoding="ascii")


@cache
def loop_headers() -> dict[str, str]:
    """Headers by path."""
    # Of what a robot's library and its user have in common, and of its code alone: comments and layout may change.
    shared = {"settled": repr(SETTLED)} | {f"most_{name}": str(most) for name, most in LARGEST_LOADED.items()}
    table = filled(source("robot_table.hpp"), **shared, robot_abi="")
    abi = digest("".join(re.sub(r"//.*", "", table).split()))[:8]
    constants = {name.lower(): _literal(x) for name, x in (settings.CONSTANTS | {"limit_tolerance": TOLERANCE}).items()}
    shared["safety"] = _safety()
    fields = DEFAULTS | shared | constants | {"robot_abi": f"0x{abi}"}
    names = sorted(entry.name for entry in _FOLDER.iterdir() if entry.is_file() and entry.name != "loop.cpp")
    texts = {name: filled(source(name), **fields) for name in names}
    sources = digest(source("loop.cpp"), *(part for file in texts.items() for part in file))
    return {f"include/eom/{name}": filled(text, loop_digest=sources) for name, text in texts.items()}


def loop_digest() -> str:
    """Digest of the sources, which a library that is built of them tells."""
    found = re.search(r'EOM_LOOP_DIGEST "(\w+)"', loop_headers()["include/eom/loop.h"])
    assert found is not None
    return found.group(1)


def _literal(value: object) -> str:
    return ", ".join(map(repr, value)) if isinstance(value, tuple) else repr(value)
