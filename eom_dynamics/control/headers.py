# SPDX-License-Identifier: Apache-2.0
"""Sources of the control loop in C++, the same for every robot: the folder ``eom``, filled in. Imports no NumPy."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from ..codegen.cache import digest
from ..filling import SETTLED, TOLERANCE, filled
from ..vectors import VECTORS, of_part
from .settings import CHOICES, CONSTANTS, OF_LOOP, SAFETY, SETTINGS, SHARED_MESSAGES, settings_at

LARGEST_LOADED = {"joints": 64, "motors": 128, "tools": 16}
"""Maximum numbers of joints, motors and tools of a robot."""

_FOLDER = Path(__file__).with_name("eom")


def _settings() -> dict[str, str]:
    """Settings of the loop in C++: enumerations, members of eom::LoopSettings, and rows of eom::SETTINGS and SAFETY."""
    enumerations = {x.of_loop: x.choices for x in OF_LOOP.values() if x.choices}
    members, rows = [], []
    for name, x in OF_LOOP.items():
        value = f"{x.of_loop}::{x.default}" if x.choices else x.default
        is_parameter = str(name in SETTINGS).lower()
        members.append(f"    /// {x.about[0].upper()}{x.about[1:]}.\n    {x.of_loop} {name} = {value};")
        if x.limits:
            low, high = x.limits
            texts = [f"{end:g}".replace("e+0", "e").replace("e-0", "e-") for end in x.limits]
            text = " to ".join(texts) + (x.unit and f" {x.unit}")
            rows.append(f'    EOM_NUMBER({name}, {is_parameter}, {low}, {high}, "{text}"),')
        else:
            choices = ", ".join(f'"{choice}"' for choice in x.choices)
            rows.append(f"    EOM_CHOICE({name}, {is_parameter}, {len(x.choices) - 1}, {choices}),")
    safety = [
        f'{{"{level}", "{name}", {CHOICES[name].index(value) if isinstance(value, str) else value}}}'
        for level in SAFETY
        for name, value in settings_at(level).items()
    ]
    return {
        "enumerations": "\n".join(f"enum class {kind} {{ {', '.join(x)} }};" for kind, x in enumerations.items()),
        "members": "\n".join(members),
        "settings": "\n".join(rows),
        "safety": ", ".join(safety),
    }


def source(name: str) -> str:
    """Text of a file of the folder, with its ``@fields@``."""
    return (_FOLDER / name).read_text(encoding="ascii")


def table_rows(text: str, name: str) -> list[list[str]]:
    """Rows of the C++ table macro ``name``: the arguments of each ``X(…)``."""
    match = re.search(rf"#define {name}\(X\) ?((?:.*\\\n)*.*)", text)
    assert match is not None
    rows = re.findall(r"X\(((?:\"[^\"]*\"|[^()\"])*)\)", match.group(1).replace("\\\n", ""))
    return [re.findall(r"\"[^\"]*\"|[\w:]+", row) for row in rows]


def enumerators(text: str, name: str) -> list[str]:
    """Names of the enumerators of a C++ enumeration, in order."""
    match = re.search(rf"enum class {name} {{(.*?)}};", text, re.DOTALL)
    assert match is not None
    return re.findall(r"\w+", re.sub(r"//.*", "", match.group(1)))


@cache
def loop_headers() -> dict[str, str]:
    """Texts of the filled-in headers by path."""
    # Digest of the table shared by a robot's library and its user, without comments and layout.
    shared = {"settled": repr(SETTLED)} | {f"most_{name}": str(most) for name, most in LARGEST_LOADED.items()}
    shared["vectors"] = " ".join(f"X({name})" for name in VECTORS)
    table = filled(source("robot_table.hpp"), **shared, robot_abi="")
    abi = digest("".join(re.sub(r"//.*", "", table).split()))[:8]
    constants = {name.lower(): _literal(x) for name, x in (CONSTANTS | {"limit_tolerance": TOLERANCE}).items()}
    first = {"k": "Robot::nominal_stiffness", "friction_state": "Robot::settled_friction"}
    parts = {
        part: " ".join(f"X({of}, {name}, {first.get(name, '{}')})" for name, of in of_part(part).items())
        for part in ("setpoint", "payload", "base", "command", "sent")
    }
    fields = _settings() | parts | shared | constants | SHARED_MESSAGES | {"robot_abi": f"0x{abi}"}
    names = sorted(entry.name for entry in _FOLDER.iterdir() if entry.is_file() and entry.name != "loop.cpp")
    texts = {name: filled(source(name), **fields) for name in names}
    sources = digest(source("loop.cpp"), *(part for file in texts.items() for part in file))
    return {f"include/eom/{name}": filled(text, loop_digest=sources) for name, text in texts.items()}


def loop_digest() -> str:
    """Digest of the sources, to compare with the digest in a built library."""
    match = re.search(r'EOM_LOOP_DIGEST "(\w+)"', loop_headers()["include/eom/loop.h"])
    assert match is not None
    return match.group(1)


def _literal(value: object) -> str:
    return ", ".join(map(repr, value)) if isinstance(value, tuple) else repr(value)
