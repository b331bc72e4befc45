# SPDX-License-Identifier: Apache-2.0
"""The documentation site, without building it: every public name, page and link; and what a package index shows."""

from __future__ import annotations

import argparse
import configparser
import importlib
import re
import runpy
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import addresses
import pytest
import reference_pages
from paths import DOCS, ROOT
from site_links import problems

import eom_dynamics as eom
from eom_dynamics.tools.cli.main import _parser


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    pytest.importorskip("rclpy", reason="tables of parameters need rclpy")
    pytest.importorskip("rosbags", reason="the Python API needs rosbags")
    pytest.importorskip("sympy", reason="the Python API needs SymPy")
    return reference_pages.pages()


def test_every_public_name_has_an_entry(pages: dict[str, str]) -> None:
    text = "\n".join(pages.values())
    entries = set(re.findall(r"^\.\. auto(?!module)\w+:: (eom_dynamics[\w.]+)$", text, re.MULTILINE))
    constants = re.findall(r"^\.\. py:data:: (\w+)\n   :module: (.*)$", text, re.MULTILINE)
    entries |= {f"{module}.{name}" for name, module in constants}
    links = set(re.findall(r":obj:`\w+ <(.*)>`", pages["python/eom_dynamics.rst"]))
    assert links <= entries
    shown = {path.rpartition(".")[2] for path in entries if path.count(".") == 1}
    shown |= {path.rpartition(".")[2] for path in links}
    modules = {name.rpartition(".")[2] for name in reference_pages.public_modules()}
    assert set(eom.__all__) == shown | (modules & set(eom.__all__))
    for module in reference_pages.public_modules()[1:]:
        if listed := getattr(importlib.import_module(module), "__all__", ()):
            names = {f"{module}.{name}" for name in listed}
            assert names <= entries | {name for name in names if f"python/{name}.rst" in pages}, module


def test_interfaces_commands_and_parameters_have_entries(pages: dict[str, str]) -> None:
    for kind in ("msg", "srv", "action"):
        names = {path.stem for path in (ROOT / kind).glob(f"*.{kind}")}
        assert names == set(re.findall(r"^## (\w+)$", pages[f"{kind}.md"], re.MULTILINE))
    (parsers,) = (each.choices for each in _parser()._actions if isinstance(each.choices, dict))
    for command, parser in parsers.items():
        options = {text for each in parser._actions if each.help != argparse.SUPPRESS for text in each.option_strings}
        (section,) = re.findall(rf"^## {command}\n(.*?)(?=^## |\Z)", pages["command_line.md"], re.MULTILINE | re.DOTALL)
        assert options - {"-h", "--help"} <= set(re.findall(r"`(-[\w-]+)[ `]", section)), command
    for node in ("dynamics", "planning", "simulated_robot"):
        table = importlib.import_module(f"eom_dynamics.ros.{node}.{node}_parameters").TABLE
        assert {f"| `{name}` |" in pages["parameters.md"] for name in table} == {True}


def written() -> list[Path]:
    """Pages of docs but those of the reference, which `make docs` writes."""
    return [path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] != "reference"]


def headings(text: str) -> set[str]:
    """Anchors of the headings of a page, as GitHub and MyST make them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [re.sub(r"[*`]|\[([^]]*)\]\([^)]*\)", r"\1", line) for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def test_links_of_pages_lead_somewhere(pages: dict[str, str]) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in [*written(), *ROOT.glob("*.md")]}
    texts |= {DOCS / "reference" / name: text for name, text in pages.items()}
    broken = []
    for path, text in texts.items():
        if path.suffix != ".md" or path.name in ("contributing.md", "quality.md"):
            continue  # the latter as in their own place
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", prose):
            file, _, place = unquote(link).partition("#")
            if re.match(r"\w+:", link):
                continue
            target = (path.parent / file).resolve() if file else path
            if not (target.exists() or target in texts):
                broken.append(f"{path.name}: {link}")
            if place and place not in headings(texts.get(target, "")):
                broken.append(f"{path.name}: {link}")
    assert not broken


def test_every_page_is_in_the_navigation() -> None:
    texts = [path.read_text(encoding="utf-8") for path in written()]
    listed = {
        entry
        for text in texts
        for part in re.findall(r"```\{toctree\}\n(.*?)```", text, re.S)
        for entry in part.split()
    }
    missing = {path.relative_to(DOCS).with_suffix("").as_posix() for path in written()} - listed - {"index"}
    assert not missing, "add them to docs/tutorials.md, howto.md, reference.md, explanation.md or measurements.md"


def test_broken_links_of_a_built_site_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<p id="top"><a href="b.html#end">b</a><a href="#top">a</a><img src="no.png">')
    (tmp_path / "b.html").write_text(
        '<a href="a.html#end">a</a><a href="https://web">w</a><script src="https://web/x.js">'
    )
    assert problems(tmp_path) == [
        "a.html: b.html#end has no such place",
        "a.html: no.png has no file",
        "b.html: a.html#end has no such place",
        "b.html: https://web/x.js comes from the network",
    ]


def test_addresses_are_those_of_setup_cfg() -> None:
    for path, text in addresses.files().items():
        assert path.read_text(encoding="utf-8") == text, "run: python scripts/addresses.py"


def test_links_and_pictures_on_a_package_index_are_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    setuptools = pytest.importorskip("setuptools")
    monkeypatch.setattr(setuptools, "setup", given.update)
    runpy.run_path(str(ROOT / "setup.py"))
    links = re.findall(r"(!?)\[[^]]*\]\(([^)]+)\)", given["long_description"])
    assert len(links) == len(re.findall(r"\[[^]]*\]\(", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert all(link.startswith("https://raw." if picture else "https://") for picture, link in links)


def test_robot_files_are_once_in_the_wheel() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    assert ".yaml" not in " ".join(setup["options.data_files"].values())
    assert (ROOT / "eom_dynamics" / "py.typed").exists()
