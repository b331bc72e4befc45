# SPDX-License-Identifier: Apache-2.0
"""The documentation site, without building it, the page of a package index, and versions that are in several files."""

import configparser
import importlib
import re
import runpy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import reference_pages
from page_links import broken_links, links
from paths import DOCS, ROOT

import eom_dynamics as eom

LOCK = ROOT / "requirements" / "lock.txt"


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


def test_interfaces_have_entries(pages: dict[str, str]) -> None:
    for kind in ("msg", "srv"):
        names = {path.stem for path in (ROOT / kind).glob(f"*.{kind}")}
        assert names == set(re.findall(r"^## (\w+)$", pages[f"{kind}.md"], re.MULTILINE))


def test_parameters_of_each_node_have_a_row(pages: dict[str, str]) -> None:
    tables = pytest.importorskip("eom_dynamics.ros.parameter_tables", reason="tables of parameters need rclpy")
    text = pages["parameters.md"]
    served = importlib.import_module("eom_dynamics.ros.planning.services").SERVICES
    assert set(served) <= set(re.findall(r"^\| `~/(\w+)` \| serves", text, re.MULTILINE))
    for node, table in reference_pages.NODES.items():
        section = text.partition(f"## {node}\n")[2].partition("\n## ")[0].partition("| parameter |")[2]
        assert re.findall(r"^\| `(\w+(?:\.\w+)*)`", section, re.MULTILINE) == list(getattr(tables, table))


def written() -> list[Path]:
    """Pages of docs except the reference, which `make docs` writes."""
    return [path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] != "reference"]


def test_links_of_pages_lead_somewhere(pages: dict[str, str]) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in [*written(), *ROOT.glob("*.md")]}
    texts |= {DOCS / "reference" / name: text for name, text in pages.items()}
    broken = [
        link
        for path, text in texts.items()
        if path.suffix == ".md" and path.name not in ("contributing.md", "quality.md")  # as in their own place
        for link in broken_links(path, text, texts)
    ]
    assert not broken


def test_links_lead_somewhere_before_the_site_is_built() -> None:
    pages = [*written(), ROOT / "README.md"]
    found = {page: [(page.parent / link).resolve() for link in links(page.read_text("utf-8"))] for page in pages}
    assert not [page for page, ends in found.items() if any(x.is_relative_to(DOCS / "reference") for x in ends)]


OF_TEXTS = {
    *("actuators", "closed_loops", "contacts", "dynamics", "equations", "floating_base", "inverse_kinematics"),
    *("kinematics", "lagrange", "learning", "notation", "recursion", "simulation", "texts", "theory"),
    "worked_examples",
}
"""Pages with contents for the map of the texts, without a limit of words."""


GENERATED = {"figures"}
"""Pages that workflows write."""


def prose_words(text: str) -> int:
    """Words of a page outside code, comments, directives, and tables."""
    text = re.sub(r"<!--.*?-->|^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return len(re.sub(r"^(?:\||    |#).*$", "", text, flags=re.MULTILINE).split())


def test_the_site_is_short() -> None:
    """At most 45 pages and 20,000 words of prose, 900 a page, except for pages of the texts."""
    words = {path.relative_to(DOCS).as_posix()[:-3]: prose_words(path.read_text("utf-8")) for path in written()}
    assert words.keys() >= OF_TEXTS
    counted = {page: count for page, count in words.items() if page not in OF_TEXTS | GENERATED}
    assert len(counted) <= 45 and sum(counted.values()) <= 20_000
    assert {page: count for page, count in counted.items() if count > 900} == {}


def test_every_page_is_in_the_navigation() -> None:
    texts = [path.read_text(encoding="utf-8") for path in written()]
    listed = {
        entry
        for text in texts
        for part in re.findall(r"```\{toctree\}\n(.*?)```", text, re.S)
        for entry in part.split()
    }
    missing = {path.relative_to(DOCS).with_suffix("").as_posix() for path in written()} - listed - {"index"}
    assert not missing, "add them to docs/start.md, guides.md, reference.md or background.md"


def test_links_and_pictures_on_a_package_index_are_absolute(monkeypatch) -> None:
    """For a release; its workflow writes the address of the sources."""
    given: dict[str, Any] = {}
    setuptools = pytest.importorskip("setuptools")
    monkeypatch.setattr(setuptools, "setup", given.update)
    read = configparser.ConfigParser.read

    def with_address(parser: configparser.ConfigParser, *arguments: Any, **keywords: Any) -> list[str]:
        found = read(parser, *arguments, **keywords)
        parser["metadata"]["url"] = "https://github.com/someone/eom_dynamics"
        return found

    monkeypatch.setattr(configparser.ConfigParser, "read", with_address)
    runpy.run_path(str(ROOT / "setup.py"))
    links = re.findall(r"(!?)\[[^]]*\]\(([^)]+)\)", given["long_description"])
    assert len(links) == len(re.findall(r"\[[^]]*\]\(", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert all(link.startswith("https://raw." if picture else "https://") for picture, link in links)


def names(text: str) -> set[str]:
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    return {re.split(r"[\[=<> ;]", line)[0].lower() for line in lines if line}


def test_package_xml_and_library_agree() -> None:
    assert ElementTree.parse(ROOT / "package.xml").findtext("version") == eom.__version__
    assert f"\nversion: {eom.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_every_requirement_has_an_exact_locked_version() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    texts = [setup["options"]["install_requires"], *setup["options.extras_require"].values()]
    texts += [(LOCK.parent / name).read_text() for name in ("ros.txt", "build.txt")]
    assert names("\n".join(texts)) <= names(LOCK.read_text())
    exact = re.compile(r'[\w.-]+==[\w.]+( ; python_version [<>=]+ "3\.\d+")?')
    assert not [x for x in LOCK.read_text().splitlines() if not x.startswith("#") and not exact.fullmatch(x)]
