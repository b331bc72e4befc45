# SPDX-License-Identifier: Apache-2.0
"""Public surface of the package."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from paths import ROOT

import eom_dynamics as eom


def test_each_public_name_is_there() -> None:
    for name in eom.__all__:
        assert getattr(eom, name) is not None
        assert name in dir(eom)
    with pytest.raises(AttributeError, match="module 'eom_dynamics' has no attribute 'trajectories'"):
        _ = eom.trajectories


def test_what_few_programs_need_is_imported_at_first_use() -> None:
    """Subpackages with SciPy or SymPy, which take longer than the rest; readers of YAML, and writers."""
    code = (
        "import sys, eom_dynamics as eom\n"
        "lazy = ('trajectory', 'simulation', 'loops', 'lagrange')\n"
        "assert not any(f'eom_dynamics.{name}' in sys.modules for name in lazy)\n"
        "assert not {'scipy', 'sympy', 'yaml', 'difflib', 'xml.etree'} & set(sys.modules)\n"
        "eom.trajectory.through, eom.simulation.simulate, eom.loops.ClosedLoopArm, eom.kinematics.body_poses\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_each_source_file_names_its_license() -> None:
    folders = ("action", "bench", "config", "eom_dynamics", "examples", "launch", "msg", "scripts", "srv", "test")
    kinds = {".py", ".msg", ".srv", ".action", ".yaml"}
    files = [file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in kinds]
    assert {file.suffix for file in files} == kinds
    for file in (*files, *(ROOT / name for name in ("CMakeLists.txt", "Makefile", "package.xml", "setup.py"))):
        assert "SPDX-License-Identifier: Apache-2.0" in file.read_text(encoding="utf-8")[:400], file


def imported_rooms(path: Path) -> Iterator[str]:
    """Folders of the package that a module imports, anywhere in it."""
    own = ["eom_dynamics", *path.relative_to(ROOT / "eom_dynamics").parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [name.name for name in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        if isinstance(node, ast.ImportFrom):
            start = own[: len(own) - node.level + 1] if node.level else []
            names = [".".join([*start, *filter(None, [node.module, name])]) for name in names]
        parts = (name.split(".") for name in names)
        yield from (part[1] for part in parts if part[0] == "eom_dynamics" and len(part) > 1)


ROOMS = (
    *("exceptions", "extras", "spelling", "terminal", "arrays", "number_rules", "units", "states", "arguments"),
    *("jet", "elementary", "lie", "jet_functions", "actuators", "robot", "recursion", "codegen", "kinematics"),
    *("equations", "lagrange", "constraints", "floating_base", "dynamics", "contacts", "loops", "elastic"),
    *("trajectory", "simulation", "learning", "identification", "messages", "stream", "export", "bags"),
    *("ros", "tools"),
)


def test_imports_go_one_way() -> None:
    """Each room imports from those before it; tools start nodes as processes."""
    paths = {path: path.relative_to(ROOT / "eom_dynamics").parts[0] for path in (ROOT / "eom_dynamics").rglob("*.py")}
    rooms = {path: room.removesuffix(".py") for path, room in paths.items() if room != "__init__.py"}
    assert set(rooms.values()) == set(ROOMS)
    places = {room: place for place, room in enumerate(ROOMS)}
    for path, room in rooms.items():
        later = {other for other in imported_rooms(path) if places.get(other, -1) > places[room]}
        assert not later and not (room == "tools" and "ros" in imported_rooms(path)), (path, later)
