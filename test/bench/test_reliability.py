# SPDX-License-Identifier: Apache-2.0
"""The page of ``make soak``: what tests report becomes tables and goals."""

import json
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import pytest
import reliability

STREAM = {
    "stream": "1000 Hz, alone",
    "seconds": 600.0,
    "sent": 600000,
    "lost": 0,
    "numbers": 29400000,
    "different": 0,
    "held_up": 1.5,
    "node": [120.0, 300.0, 500.0, 900.0],
    "echo": [100.0, 250.0, 450.0, 800.0],
    "growth": 400000,
    "resident": 100e6,
    "batches": 0,
}
FAULT = {"fault": "node: kill -9", "sent": 3000, "lost": 639, "wrong": 0, "state": "active, native", "remark": "late"}
ROBOTS = {"robots": "four robots", "rate": 200, "sent": 4000, "lost": 0, "wrong": 0}
ROBOTS |= {"processor": 4e-4, "memory": 28e6, "round_trip": [1e-3, 2e-3]}


def report(folder: Path, stream: dict = STREAM, fault: dict = FAULT, failure: str = "") -> Path:
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


def section(path: Path) -> reliability.Section:
    return reliability.section(list(reliability.outcomes(ElementTree.parse(path).getroot())))


def kept(path: Path) -> dict[str, bool]:
    return {bar.promise: bar.kept for bar in section(path).bars}


def test_rows_of_tests_become_tables(tmp_path: Path, capsys) -> None:
    written = section(report(tmp_path))
    written.show()
    assert "a long stream[alone]" in capsys.readouterr().out
    text = written.markdown()
    for line in (
        "| 1000 Hz, alone | 600 s | 600,000 | 0 | 29,400,000 | 0 | 1.5 s | 100.0 MB | 0.40 MB | 0 |",
        "| 1000 Hz, alone | 120 µs | 300 µs | 500 µs | 900 µs | 1.20 | 1.20 |",
        "| 1000 Hz, alone: echo | 100 µs | 250 µs | 450 µs | 800 µs |  |  |",
        "| node: kill -9 | 3,000 | 639 | 0 | active, native | late |",
        "| four robots | 200 Hz | 4,000 | 0 | 0 | 400 µs | 28.0 MB | 1 ms | 2 ms |",
        "| a long stream[alone] | 612 s | passed |",
        "| sanitizers | 3 s | skipped: no compiler |",
    ):
        assert line in text
    assert all(kept(report(tmp_path)).values())


ECHO = "p50 of the round trip at most 1.25 × that of an echo node"


@pytest.mark.parametrize(
    ("change", "promise"),
    [
        ({"stream": STREAM | {"lost": 1}}, "streams: no setpoint lost"),
        ({"stream": STREAM | {"different": 1}}, "streams: every number is that of the library"),
        ({"stream": STREAM | {"growth": 1e6}}, "streams: memory grows by less than 1 MB after the first minute"),
        ({"stream": STREAM | {"node": [126.0, 300.0, 500.0, 900.0]}}, f"1000 Hz, alone: {ECHO}"),
        ({"fault": FAULT | {"wrong": 1}}, "faults: no wrong answer"),
        ({"failure": "assert 1 == 0\nmore"}, "all tests of the run pass"),
    ],
)
def test_a_goal_that_is_missed(tmp_path: Path, change: dict, promise: str) -> None:
    assert [name for name, met in kept(report(tmp_path, **change)).items() if not met] == [promise]


def test_nothing_measured_meets_no_goal(tmp_path: Path) -> None:
    path = tmp_path / "soak.xml"
    path.write_text("<testsuites/>")
    assert not any(kept(path).values())
