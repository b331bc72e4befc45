# SPDX-License-Identifier: Apache-2.0
"""Names in README, docs and examples are public: each is in ``__all__`` of its module, where the module has one."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import pytest
from paths import ROOT

import eom_dynamics as eom

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.py"))]

# Interfaces are generated when the package is built.
_GENERATED = ("eom_dynamics.msg", "eom_dynamics.srv", "eom_dynamics.action")


def documented() -> set[tuple[str, str]]:
    """Module and name of each ``eom.name``, and of each ``from eom_dynamics… import name``."""
    found = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"\beom\.([a-z_]\w*(?:\.\w+)*|[A-Z]\w*)", text, re.IGNORECASE):
            module, (name, *_) = resolved(path.split("."))
            found.add((module, name))
        for module, names in re.findall(r"from (eom_dynamics[\w.]*) import (\w+(?:, \w+)*)", text):
            found |= {(module, name) for name in names.split(", ")}
    return {(module, name) for module, name in found if not module.startswith(_GENERATED)}


def resolved(names: list[str]) -> tuple[str, list[str]]:
    """The module that the first names lead to, and the names after it."""
    module = "eom_dynamics"
    while len(names) > 1 and find_spec(f"{module}.{names[0]}"):
        module, names = f"{module}.{names[0]}", names[1:]
    return module, names


def imported(module: str) -> ModuleType:
    """The module; skips where a library that it needs is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name and module.startswith(error.name):
            raise
        pytest.skip(f"could not import {module}: {error}")


DOCUMENTED = documented()


@pytest.mark.parametrize("module", sorted({module for module, _ in DOCUMENTED}))
def test_documented_names_are_public(module: str) -> None:
    found = imported(module)
    # lagrange needs SymPy, without which a star import works.
    public = {*getattr(found, "__all__", vars(found)), *(("lagrange", "__version__") if found is eom else ())}
    assert {name for other, name in DOCUMENTED if other == module} <= public


def test_names_are_found() -> None:
    assert {("eom_dynamics", "load_robot"), ("eom_dynamics.lie", "pose")} <= DOCUMENTED
