# SPDX-License-Identifier: Apache-2.0
"""Tables of benchmarks and of make soak, documents that have them, interleaved timing, and sampled motions."""

import gc
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import quoteattr

import harness
import numpy as np
import pytest
from fastest_motions import SteppedMotion
from harness import TimedTask, Timings, interleaved
from identification import coverage
from reliability import reliability

from eom_dynamics.trajectory import through


def test_figures_are_written_between_their_marks(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text("before\n<!-- bench a: begin -->\nold\n<!-- bench a: end -->\nafter\n")
    harness.write_between_marks(document, "a", "new")
    harness.write_between_marks(document, "a", "newer")
    expected = "before\n<!-- bench a: begin -->\n\nnewer\n\n<!-- bench a: end -->\nafter\n"
    assert document.read_text() == expected
    with pytest.raises(ValueError, match="no marks"):
        harness.write_between_marks(document, "b", "new")


def test_coverage_of_standard_deviations() -> None:
    """Two parameters of four runs, one of which is identifiable in three of them; a third never is."""
    none = np.nan
    scores = [np.array(row) for row in ([1.0, -4.0, none], [-2.0, 1.0, none], [2.0, none, none], [-1.0, 0.0, none])]
    np.testing.assert_allclose(coverage(scores), [6 / 7, 2 / 3, np.sqrt((1 + 16 + 4 + 1 + 4 + 1 + 0) / 7)])


def test_a_document_has_a_small_first_table_and_the_results_all(tmp_path: Path) -> None:
    document, rows = tmp_path / "page.md", [(str(k), "1") for k in range(20)]
    document.write_text("<!-- bench a: begin -->\n<!-- bench a: end -->\n", encoding="utf-8")
    tables = [harness.Table("small", ("x", "y"), rows[:2]), harness.Table("large", ("x", "y"), rows)]
    for first in (tables, tables[::-1]):
        section = harness.Section("a", "A", ["Text."], first, [harness.Bar("fast", "1 s", True)])
        harness.write_section(document, section, "`make bench`.", results=tmp_path)
        page, whole = (path.read_text(encoding="utf-8") for path in (document, tmp_path / "a.md"))
        assert "promised" not in page and "large" not in page and ("small" in page) is (first is tables)
        link = "[All figures]" if first is tables else "Results: [A]"
        assert f"{link}(../bench/results/a.md)." in page and "`make bench`." not in page
        assert "large" in whole and "small" in whole and "`make bench`." in whole and "| fast | 1 s | met |" in whole


# --- The page of make soak --------------------------------------------------------------

STREAM = {
    **{"stream": "1000 Hz, alone", "seconds": 600.0, "sent": 600000, "lost": 0, "numbers": 29400000, "different": 0},
    **{"held_up": 1.5, "node": [120.0, 300.0, 500.0, 900.0], "echo": [100.0, 250.0, 450.0, 800.0], "growth": 400000},
    **{"resident": 100e6, "batches": 0},
}
FAULT = {"fault": "node: kill -9", "sent": 3000, "lost": 639, "wrong": 0, "state": "active, native", "remark": "late"}
ROBOTS = {"robots": "four robots", "rate": 200, "sent": 4000, "lost": 0, "wrong": 0}
ROBOTS |= {"processor": 4e-4, "memory": 28e6, "round_trip": [1e-3, 2e-3]}


def soak_report(folder: Path, stream: dict = STREAM, fault: dict = FAULT, failure: str = "") -> Path:
    rows = {"stream": stream, "fault": fault, "robots": ROBOTS}
    properties = "".join(f"<property name='{name}' value={quoteattr(json.dumps(row))}/>" for name, row in rows.items())
    failed = f"<failure message={quoteattr(failure)}>trace</failure>" if failure else ""
    path = folder / "soak.xml"
    path.write_text(
        "<testsuites><testsuite><properties><property name='idle processors' value='asleep'/></properties>"
        "<testcase classname='test.ros' name='test_a_long_stream[alone]' time='612.3'>"
        f"<properties>{properties}</properties>{failed}</testcase>"
        "<testcase classname='test.codegen' name='test_sanitizers' time='3'><skipped message='no compiler'/></testcase>"
        "</testsuite></testsuites>"
    )
    return path


def section(path: Path) -> harness.Section:
    found = harness.Section("reliability", "Reliability")
    reliability(found, replace(harness.QUICK, reports=[path]))
    return found


def kept(path: Path) -> dict[str, bool]:
    return {bar.promise: bar.kept for bar in section(path).bars}


def test_rows_of_tests_become_tables(tmp_path: Path, capsys) -> None:
    written = section(soak_report(tmp_path))
    written.show()
    assert "a long stream[alone]" in capsys.readouterr().out
    text = written.markdown()
    for row in (
        "29,400,000 | 0 | 1.5 s",
        "900 µs | 1.20 | 1.20",
        "| 639 | 0 |",
        "| 1 ms | 2 ms |",
        "skipped: no compiler",
    ):
        assert row in text
    assert all(kept(soak_report(tmp_path)).values())
    (empty := tmp_path / "empty.xml").write_text("<testsuites/>")
    assert not any(kept(empty).values()), "nothing measured meets no goal"


ECHO = "p50 of the round trip at most 1.25 × an echo node"


@pytest.mark.parametrize(
    ("change", "promise"),
    [
        ({"stream": STREAM | {"lost": 1}}, "streams: no setpoint lost"),
        ({"stream": STREAM | {"different": 1}}, "streams: every number equals the library's"),
        ({"stream": STREAM | {"growth": 1e6}}, "streams: memory grows by less than 1 MB after the first minute"),
        ({"stream": STREAM | {"node": [126.0, 300.0, 500.0, 900.0]}}, f"1000 Hz, alone: {ECHO}"),
        ({"fault": FAULT | {"wrong": 1}}, "faults: no wrong answer"),
        ({"failure": "assert 1 == 0\nmore"}, "all tests of the run pass"),
    ],
)
def test_a_goal_that_is_missed(tmp_path: Path, change: dict, promise: str) -> None:
    assert [name for name, met in kept(soak_report(tmp_path, **change)).items() if not met] == [promise]


# --- Interleaved timing, by a clock that only the tasks move ----------------------------

Sleep = Callable[[float], None]


@pytest.fixture
def sleep(monkeypatch) -> Sleep:
    now = [0.0]

    def move(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(harness.time, "perf_counter", lambda: now[0])
    return move


def test_times_are_those_of_one_evaluation(sleep: Sleep) -> None:
    tasks = {"one": TimedTask(lambda: sleep(0.002)), "ten": TimedTask(lambda: sleep(0.002), 10)}
    timings = interleaved(tasks, 5, at_least=0.005)
    assert timings.median("one") == pytest.approx(0.002)
    assert timings.ratio("one", "ten") == pytest.approx(10)
    assert Timings({"a": np.array([1.0, 2.0, 30.0, 4.0, 5.0])}).middle_half("a") == "2 s – 5 s"


def test_tasks_run_in_rotating_order(sleep: Sleep) -> None:
    calls: list[str] = []
    tasks = {name: TimedTask(lambda name=name: (calls.append(name), sleep(0.001))) for name in "abc"}
    timings = interleaved(tasks, 3, at_least=1e-4)
    assert "".join(calls[-9:]) == "abcbcacab"
    assert all(len(samples) == 3 for samples in timings.samples.values())
    assert gc.isenabled()


# --- Motions of other libraries ---------------------------------------------------------

MOTION = SteppedMotion(
    through([0.0, 1.0, 2.0], [[0.0, 0.5], [0.8, -0.2], [1.2, 0.6]]),
    np.array([0.0, 0.3, 1.5, 2.0]),
    np.array([0.0, 1.2, 1.5, 0.0]),
)
H = 1e-4


@pytest.mark.parametrize("t", [0.2, 0.9, 1.7])
def test_derivatives_between_steps_of_acceleration(t: float) -> None:
    before, here, after = (np.array(MOTION.derivatives(t + x)) for x in (-H, 0.0, H))
    slopes = (after - before)[:-1] / (2 * H)
    assert here[1:] == pytest.approx(slopes, rel=1e-5, abs=1e-5 * np.max(np.abs(here)))
