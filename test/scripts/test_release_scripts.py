# SPDX-License-Identifier: Apache-2.0
"""Scripts of workflows: addresses of the owner, and figures over commits."""

import configparser
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import yaml
from paths import ROOT

sys.path.append(str(ROOT / "bench"))

import addresses
import figures
import report


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
        maintainer = ElementTree.parse(tmp_path / "package.xml").find("maintainer")
        assert maintainer is not None and maintainer.get("email") == email
        citation = yaml.safe_load((tmp_path / "CITATION.cff").read_text())
        assert (citation["repository-code"], citation["url"]) == (url, docs)


def test_the_page_has_the_last_commits_and_one_column_for_each(tmp_path: Path) -> None:
    coverage = tmp_path / "coverage.json"
    coverage.write_text('{"totals": {"percent_covered": 93.26}}')
    for k in [*range(10), 9]:
        bars = [
            report.Bar("error at most 1e-10", f"{k}e-12", k != 9),
            *[report.Bar("new | one", "2 ×", True)] * (k > 8),
        ]
        facts = {"date": f"2026-11-{k + 10}", "processor": "EPYC"}
        bench = report.write_json([report.Section("motors", "Motors", bars=bars)], facts, tmp_path / "bench.json")
        figures.main(f"{k}" * 40, *map(str, (bench, coverage, tmp_path / "all.jsonl", tmp_path / "page.md")))
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 10
    rows = [line for line in (tmp_path / "page.md").read_text().splitlines() if line.startswith("|")]
    assert rows[0].startswith("|  | 2026-11-19 99999999 | 2026-11-18 88888888 |") and rows[0].count("|") == 10
    assert rows[3].startswith("| coverage | 93.3 % |") and rows[4].startswith(
        "| error at most 1e-10 | **9e-12** | 8e-12 |"
    )
    assert rows[5].startswith("| new \\| one | 2 × |  |")
