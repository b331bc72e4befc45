# SPDX-License-Identifier: Apache-2.0
"""Public names: one for each class."""

from __future__ import annotations

import ast
import warnings
from collections import defaultdict

from paths import ROOT

import eom_dynamics as eom

PACKAGE = ROOT / "eom_dynamics"


def test_no_two_public_classes_have_the_same_name() -> None:
    places = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_the_package_lists_its_names_alone() -> None:
    assert set(eom.__all__) <= set(dir(eom))
    assert not {"Any", "import_module", "TYPE_CHECKING", "extend_path"} & set(dir(eom))


def test_a_star_import_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("from eom_dynamics import *", {})
