# SPDX-License-Identifier: Apache-2.0
"""Versions that stand in more than one file."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import eom_dynamics

ROOT = Path(__file__).parents[2]


def names(file: Path) -> set[str]:
    lines = [line.split("#")[0].strip() for line in file.read_text().splitlines()]
    return {re.split("[=<> ;]", line)[0].lower() for line in lines if line and not line.startswith("-")}


def test_package_xml_and_library_agree() -> None:
    assert ElementTree.parse(ROOT / "package.xml").findtext("version") == eom_dynamics.__version__


def test_every_wanted_package_has_a_locked_version() -> None:
    lock = ROOT / "requirements" / "lock.txt"
    for file in set(lock.parent.glob("*.txt")) - {lock}:
        assert names(file) <= names(lock), file.name


def test_every_locked_version_is_exact() -> None:
    lines = (ROOT / "requirements" / "lock.txt").read_text().splitlines()
    for line in lines:
        assert line.startswith("#") or re.fullmatch(r'[\w.-]+==[\w.]+( ; python_version [<>=]+ "3\.\d+")?', line), line
