# SPDX-License-Identifier: Apache-2.0
"""The documentation site, without building it, the page of a package index, and versions that are in several files."""

import configparser
import importlib
import json
import re
import runpy
import warnings
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
    for kind in ("msg", "srv", "action"):
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
    """Pages of docs but those of the reference, which `make docs` writes."""
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


@pytest.mark.parametrize("page", [*written(), ROOT / "README.md"], ids=lambda page: page.stem)
def test_links_lead_somewhere_before_the_site_is_built(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not [link for link in links(text) if (page.parent / link).resolve().is_relative_to(DOCS / "reference")]


OF_TEXTS = {
    *("actuators", "closed_loops", "contacts", "dynamics", "equations", "floating_base", "inverse_kinematics"),
    *("kinematics", "lagrange", "learning", "notation", "recursion", "simulation", "texts", "theory"),
    "worked_examples",
}
"""Pages to which the map of the texts leads for their contents: no limit of words takes from them."""


GENERATED = {"figures"}
"""Pages that workflows write."""


def prose_words(text: str) -> int:
    """Words of a page outside code, comments, directives, and tables."""
    text = re.sub(r"<!--.*?-->|^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return len(re.sub(r"^(?:\||    |#).*$", "", text, flags=re.MULTILINE).split())


def test_the_site_is_short() -> None:
    """At most 45 pages and 20,000 words of prose, 900 a page, but for pages of the texts."""
    words = {path.relative_to(DOCS).as_posix()[:-3]: prose_words(path.read_text("utf-8")) for path in written()}
    assert words.keys() >= OF_TEXTS
    counted = {page: count for page, count in words.items() if page not in OF_TEXTS | GENERATED}
    assert len(counted) <= 45 and sum(counted.values()) <= 20_000
    assert {page: count for page, count in counted.items() if count > 900} == {}


def listed_in(page: str) -> list[str]:
    """Pages that the lists of a page have."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    lists = re.findall(r"```\{toctree\}\n(?::[^\n]*\n)*(.*?)```", text, re.DOTALL)
    return [entry for entries in lists for entry in entries.split()]


def test_the_site_has_four_parts_of_at_most_twelve_pages() -> None:
    """Beside pages of the texts and generated ones."""
    parts = listed_in("index")
    assert len(parts) == 4
    for part in parts:
        pages = [page for page in listed_in(part) if page not in OF_TEXTS | GENERATED and "reference/" not in page]
        assert 0 < len(pages) <= 12, part


def test_the_glossary_is_short() -> None:
    rows = re.findall(r"^\| (?!term |-)(.+?) \|", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert 20 < len(rows) <= 40 and len(set(rows)) == len(rows)


SEARCHED = {
    "Zhang": "texts",
    "Xiang": "texts",
    "Caron": "texts",
    "De Luca": "texts",
    "PR robot": "lagrange",
    "homework": "lagrange",
    "parameter server": "node",
    "Euler matrix": "lagrange",
    "boundary singularity": "worked_examples",
    "biped leg": "worked_examples",
}
"""Queries of readers of the texts, and a page that the search of the site must find for each."""


@pytest.fixture(scope="module")
def search_index(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Search index of a site of these pages alone, without the reference, which takes a minute."""
    pytest.importorskip("myst_parser", reason="myst-parser is not installed")
    from sphinx.application import Sphinx

    folder = tmp_path_factory.mktemp("site")
    settings = {
        "extensions": ["myst_parser"],
        "html_theme": "basic",
        "include_patterns": [f"{page}.md" for page in set(SEARCHED.values())],
        "myst_enable_extensions": ["dollarmath"],
        "root_doc": "texts",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MyST uses parts of Sphinx that are deprecated
        site = Sphinx(
            str(DOCS), None, str(folder / "html"), str(folder / "trees"), "html", settings, status=None, warning=None
        )
        site.build()
    text = (folder / "html" / "searchindex.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))


@pytest.mark.parametrize("query", SEARCHED)
def test_the_search_of_the_site_finds(query: str, search_index: dict[str, Any]) -> None:
    """Pages that have all words of a query, by their stems, as in the script of the site."""
    stemmer = pytest.importorskip("snowballstemmer", reason="Sphinx is not installed").stemmer("english")

    def pages_with(word: str) -> set[str]:
        stem = stemmer.stemWord(word.lower())
        found = (search_index[kind].get(stem, []) for kind in ("terms", "titleterms"))
        return {search_index["docnames"][i] for x in found for i in (x if isinstance(x, list) else [x])}

    found = set.intersection(*map(pages_with, query.split()))
    assert SEARCHED[query] in found, sorted(found)


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
    """Of a release, whose workflow writes the address of the sources."""
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


def test_robot_files_are_once_in_the_wheel() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    assert ".yaml" not in " ".join(setup["options.data_files"].values())
    assert (ROOT / "eom_dynamics" / "py.typed").exists()


def test_docstrings_have_the_shapes_of_the_results() -> None:
    """Of all compiled methods in the reference, or refer to one that has them."""
    pytest.importorskip("rclpy", reason="pages of the reference need rclpy")
    owner: type = object
    method, missing, count = "", [], 0
    for line in reference_pages.signature_page().splitlines():
        if line.startswith("## "):
            owner = getattr(eom, line.removeprefix("## "))
        elif line.startswith("### "):
            method = line.removeprefix("### ")
        elif found := re.match(r"\| → \w+ \| (\(.*?\)) \|", line):
            text, count = getattr(owner, method).__doc__ or "", count + 1
            shape = found.group(1)
            if shape not in text and not re.search(r"as (in|for) :meth:", text):
                missing.append(f"{owner.__name__}.{method}: {shape}")
    assert count > 50 and not missing


def names(text: str) -> set[str]:
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    return {re.split(r"[\[=<> ;]", line)[0].lower() for line in lines if line}


def test_package_xml_and_library_agree() -> None:
    assert ElementTree.parse(ROOT / "package.xml").findtext("version") == eom.__version__
    assert f"\nversion: {eom.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_every_requirement_has_a_locked_version() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    texts = [setup["options"]["install_requires"], *setup["options.extras_require"].values()]
    texts += [(LOCK.parent / name).read_text() for name in ("ros.txt", "build.txt")]
    assert names("\n".join(texts)) <= names(LOCK.read_text())


def test_every_locked_version_is_exact() -> None:
    for line in LOCK.read_text().splitlines():
        assert line.startswith("#") or re.fullmatch(r'[\w.-]+==[\w.]+( ; python_version [<>=]+ "3\.\d+")?', line), line
