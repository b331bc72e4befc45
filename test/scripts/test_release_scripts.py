# SPDX-License-Identifier: Apache-2.0
"""Scripts of workflows: addresses of the owner, figures over commits, the drivers' claims, and slim environments."""

import configparser
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import addresses
import figures
import harness
import yaml
from paths import ROOT


def test_addresses_are_filled_in_once(tmp_path: Path) -> None:
    for name in addresses.TEXTS:
        shutil.copy(ROOT / name, tmp_path)
    for owner in ("first", "second"):
        url, docs, email = (
            f"https://github.com/{owner}/eom_dynamics",
            f"https://{owner}.example.org",
            f"{owner}@example.org",
        )
        addresses.write_addresses(url, docs, email, tmp_path)
        setup = configparser.ConfigParser(interpolation=None)
        setup.read(tmp_path / "setup.cfg")
        metadata = setup["metadata"]
        assert (metadata["url"], metadata["maintainer_email"]) == (url, email)
        assert f"Documentation = {docs}" in metadata["project_urls"] and metadata["name"] == "eom_dynamics"
        package = ElementTree.parse(tmp_path / "package.xml")
        maintainer, places = package.find("maintainer"), {x.get("type"): x.text for x in package.iter("url")}
        assert maintainer is not None and maintainer.get("email") == email
        assert places == {"website": docs, "repository": url, "bugtracker": f"{url}/issues"}
        # In the order of the schema.
        tags = [x.tag for x in package.getroot()]
        assert tags[3:9] == ["maintainer", "license", "url", "url", "url", "author"]
        citation = yaml.safe_load((tmp_path / "CITATION.cff").read_text())
        assert (citation["repository-code"], citation["url"]) == (url, docs)


def test_the_page_has_the_last_commits_and_one_column_for_each(tmp_path: Path) -> None:
    coverage = tmp_path / "coverage.json"
    coverage.write_text('{"totals": {"percent_covered": 93.26}}')
    for k in [*range(10), 9]:
        bars = [
            harness.Bar("error at most 1e-10", f"{k}e-12", k != 9),
            *[harness.Bar("new | one", "2 ×", True)] * (k > 8),
        ]
        facts = {"date": f"2026-11-{k + 10}", "processor": "EPYC"}
        bench = harness.write_json([harness.Section("motors", "Motors", bars=bars)], facts, tmp_path / "bench.json")
        figures.main(f"{k}" * 40, *map(str, (bench, coverage, tmp_path / "all.jsonl", tmp_path / "page.md")))
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 10
    rows = [line for line in (tmp_path / "page.md").read_text().splitlines() if line.startswith("|")]
    assert rows[0].startswith("|  | 2026-11-19 99999999 | 2026-11-18 88888888 |") and rows[0].count("|") == 10
    assert rows[3].startswith("| coverage | 93.3 % |") and rows[4].startswith(
        "| error at most 1e-10 | **9e-12** | 8e-12 |"
    )
    assert rows[5].startswith("| new \\| one | 2 × |  |")


# --- Claims of the drivers' page --------------------------------------------------------

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "drivers.py"))


def test_claims_hold_or_fail(tmp_path, capsys):
    clone = tmp_path / "owner+name"
    clone.mkdir()
    (clone / "file").write_text("gains: 3\n")
    identity = ("-c", "user.name=x", "-c", "user.email=x@y")
    for command in (["init", "-q"], ["add", "file"], [*identity, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", "-C", clone, *command], check=True)
    source = ("owner/name", "HEAD")
    cases = ((r"gains: \d", True, 0), (r"gains: \d", False, 1), ("losses", False, 0), ("losses", True, 1))
    for pattern, there, failed in cases:
        SCRIPT["main"].__globals__["CLAIMS"] = ((source, "file", pattern, there, "a claim"),)
        assert SCRIPT["main"]([str(tmp_path)]) == failed
    SCRIPT["main"].__globals__["CLAIMS"] = ((source, "absent", "x", False, "a claim"),)
    assert SCRIPT["main"]([str(tmp_path)]) == 1
    assert "FAILS  owner/name@HEAD absent: a claim" in capsys.readouterr().out


# --- Files that slim.py removes and links -----------------------------------------------


def test_tests_go_and_equal_files_are_one(tmp_path: Path) -> None:
    packages = tmp_path / "lib/python3.11/site-packages"
    texts = {
        **{"numpy/core.py": "a", "numpy/linalg/tests/test_a.py": "b", "cmake/data/bin/cmake": "c"},
        **{"cmake/data/bin/ctest": "d", "../../../bin/ctest": "d", "../../../bin/cmake": "c"},
        **{"other/tests/test_b.py": "e", "one.libs/lib.so": "x" * 40_000, "two.libs/lib.so": "x" * 40_000},
        **{"three.libs/lib.so": "y" * 40_000, "small.libs/lib.so": "z", "same.libs/lib.so": "z"},
    }
    for name, text in texts.items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(text)
    for _ in range(2):  # once more changes nothing
        subprocess.run([sys.executable, ROOT / "scripts/slim.py", tmp_path], check=True)
        left = {os.path.relpath(path, packages) for path in tmp_path.rglob("*") if path.is_file()}
        assert left == set(texts) - {"numpy/linalg/tests/test_a.py", "cmake/data/bin/ctest", "../../../bin/ctest"}
        assert all((packages / name).read_text() == texts[name] for name in left)
        one, two, three = (packages / f"{name}.libs/lib.so" for name in ("one", "two", "three"))
        assert one.samefile(two) and not one.samefile(three)
        assert not (packages / "small.libs/lib.so").samefile(packages / "same.libs/lib.so")
