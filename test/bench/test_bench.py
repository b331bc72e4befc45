# SPDX-License-Identifier: Apache-2.0
"""Tables that the benchmarks write, and the documents that they write them to."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import report
from identification import coverage
from paths import ROOT


def test_figures_are_written_between_their_marks(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text("before\n<!-- bench a: begin -->\nold\n<!-- bench a: end -->\nafter\n")
    report.write_between_marks(document, "a", "new")
    report.write_between_marks(document, "a", "newer")
    expected = "before\n<!-- bench a: begin -->\n\nnewer\n\n<!-- bench a: end -->\nafter\n"
    assert document.read_text() == expected
    with pytest.raises(ValueError, match="no marks"):
        report.write_between_marks(document, "b", "new")


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = spec_from_file_location("bench_main", ROOT / "bench" / "__main__.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_documents_have_marks_for_all_sections(bench: ModuleType) -> None:
    for name, document in {**dict.fromkeys(("machine", "promises"), bench.PERFORMANCE), **bench.DOCUMENTS}.items():
        text = document.read_text(encoding="utf-8")
        assert f"<!-- bench {name}: begin -->" in text and f"<!-- bench {name}: end -->" in text, name


def test_coverage_of_standard_deviations() -> None:
    """Two parameters of four runs, one of which is identifiable in three of them; a third never is."""
    none = np.nan
    scores = [np.array(row) for row in ([1.0, -4.0, none], [-2.0, 1.0, none], [2.0, none, none], [-1.0, 0.0, none])]
    np.testing.assert_allclose(coverage(scores), [6 / 7, 2 / 3, np.sqrt((1 + 16 + 4 + 1 + 4 + 1 + 0) / 7)])


@pytest.mark.parametrize(
    ("value", "text"),
    [(5e-10, "0.5 ns"), (9.994e-7, "999 ns"), (9.996e-7, "1 µs"), (1.234e-3, "1.23 ms"), (2.5, "2.5 s")],
)
def test_units_of_times(value: float, text: str) -> None:
    assert report.seconds(value) == text


def test_markdown() -> None:
    section = report.Section("a", "A", ["Text."], [report.Table("T", ("x", "y"), [("1", "2|3")])])
    section.bars = [report.Bar("fast", "1 s", True), report.Bar("small", "1 MB", False)]
    assert section.markdown() == (
        "**T**\n\n| x | y |\n|---|---:|\n| 1 | 2\\|3 |\n\nText.\n\n"
        "| promised | measured | |\n|---|---|---|\n| fast | 1 s | met |\n| small | 1 MB | **missed** |"
    )


def test_a_document_has_promises_and_a_small_first_table(tmp_path: Path) -> None:
    document, rows = tmp_path / "page.md", [(str(k), "1") for k in range(20)]
    document.write_text("<!-- bench a: begin -->\n<!-- bench a: end -->\n", encoding="utf-8")
    tables = [report.Table("small", ("x", "y"), rows[:2]), report.Table("large", ("x", "y"), rows)]
    for first in (tables, tables[::-1]):
        section = report.Section("a", "A", ["Text."], first, [report.Bar("fast", "1 s", True)])
        report.write_section(document, section, "`make bench`.", results=tmp_path)
        page, whole = (path.read_text(encoding="utf-8") for path in (document, tmp_path / "a.md"))
        assert "| fast | 1 s | met |" in page and "large" not in page and ("small" in page) is (first is tables)
        assert "[All figures](../bench/results/a.md)." in page and "`make bench`." not in page
        assert "large" in whole and "small" in whole and "`make bench`." in whole and "| fast | 1 s | met |" in whole
