# SPDX-License-Identifier: Apache-2.0
"""Versions and requirements that are listed in more than one file."""

from __future__ import annotations

import configparser
import re
from xml.etree import ElementTree

from paths import ROOT

import eom_dynamics

LOCK = ROOT / "requirements" / "lock.txt"


def names(text: str) -> set[str]:
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    return {re.split(r"[\[=<> ;]", line)[0].lower() for line in lines if line}


def test_package_xml_and_library_agree() -> None:
    assert ElementTree.parse(ROOT / "package.xml").findtext("version") == eom_dynamics.__version__
    assert f"\nversion: {eom_dynamics.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_every_requirement_has_a_locked_version() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    texts = [setup["options"]["install_requires"], *setup["options.extras_require"].values()]
    texts += [(LOCK.parent / name).read_text() for name in ("ros.txt", "build.txt")]
    assert names("\n".join(texts)) <= names(LOCK.read_text())


def test_every_locked_version_is_exact() -> None:
    for line in LOCK.read_text().splitlines():
        assert line.startswith("#") or re.fullmatch(r'[\w.-]+==[\w.]+( ; python_version [<>=]+ "3\.\d+")?', line), line
