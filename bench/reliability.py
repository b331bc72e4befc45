# SPDX-License-Identifier: Apache-2.0
"""Write docs/reliability.md from the report of ``make soak``.

``python bench/reliability.py build/soak.xml`` reads the JUnit report of the tests marked ``soak``, or several. Tests
give rows of tables as properties (``test/ros/soak/conftest.py``); every test is listed with its outcome.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from machine_facts import machine
from report import CONSOLE, DOCS, RESULTS, Bar, Section, Table, facts_markdown, seconds, write_section

PAGE = DOCS / "reliability.md"

# Growth of memory, bytes, and round trip beside an echo node by rate, Hz, of a stream without planners.
GROWTH, RATIOS = 1e6, {"p50": 1.25, "p99": 1.5}
PERCENTS = ("p50", "p99", "p99.9", "max")


class Outcome(NamedTuple):
    """A test: name in words, seconds, rows of each table, and what failed or why it was skipped."""

    name: str
    seconds: float
    rows: list[tuple[str, dict[str, Any]]]
    failure: str
    skipped: str


def outcomes(report: ElementTree.Element) -> Iterator[Outcome]:
    """Tests of a JUnit report."""
    for case in report.iter("testcase"):
        if not case.get("classname"):  # a whole file that is skipped, of other tests
            continue
        rows = [(each.get("name", ""), json.loads(each.get("value", "{}"))) for each in case.iter("property")]
        failed = [each.get("message", "") for kind in ("failure", "error") for each in case.iter(kind)]
        skipped = [each.get("message", "") for each in case.iter("skipped")]
        name = case.get("name", "").removeprefix("test_").replace("_", " ")
        yield Outcome(name, float(case.get("time", 0)), rows, _line(failed), _line(skipped))


def _line(messages: list[str]) -> str:
    """First line of the first message, short enough for a table."""
    return messages[0].strip().partition("\n")[0][:160] if messages else ""


def section(tests: list[Outcome]) -> Section:
    """Tables and goals of a run."""
    rows: dict[str, list[dict[str, Any]]] = {"stream": [], "fault": [], "robots": []}
    for test in tests:
        for table, cells in test.rows:
            rows.setdefault(table, []).append(cells)
    done = Section("reliability", "Reliability")
    done.tables = [*_streams(rows["stream"]), _faults(rows["fault"]), _robots(rows["robots"]), _tests(tests)]
    done.bars = [*_bars(rows["stream"], rows["fault"], tests)]
    return done


def _streams(rows: list[dict[str, Any]]) -> list[Table]:
    columns = ["", "length", "setpoints", "lost", "numbers", "different", "held up", "memory", "growth"]
    losses = Table("Streams, seven joints, every number recomputed by the library", [*columns, "answers to planners"])
    latency = Table("Round trip, and that of an echo node in the same run", ["", *PERCENTS, "× echo, p50", "p99"])
    for row in rows:
        losses.add(
            row["stream"],
            f"{row['seconds']:g} s",
            *(f"{row[name]:,}" for name in ("sent", "lost", "numbers", "different")),
            f"{row['held_up']:.1f} s",
            f"{row['resident'] / 1e6:.1f} MB",
            "" if row["growth"] is None else f"{row['growth'] / 1e6:.2f} MB",
            f"{row['batches']:,}",
        )
        ratios = [ours / echo for ours, echo in zip(row["node"], row["echo"], strict=True)]
        latency.add(row["stream"], *(seconds(x * 1e-6) for x in row["node"]), f"{ratios[0]:.2f}", f"{ratios[1]:.2f}")
        latency.add(f"{row['stream']}: echo", *(seconds(x * 1e-6) for x in row["echo"]), "", "")
    return [losses, latency]


def _faults(rows: list[dict[str, Any]]) -> Table:
    table = Table(
        "Faults, injected into a stream of setpoints", ["", "sent", "lost", "wrong answers", "state after", "remark"]
    )
    for row in rows:
        table.add(
            row["fault"], *(f"{row[name]:,}" for name in ("sent", "lost", "wrong")), row["state"], row.get("remark", "")
        )
    return table


def _robots(rows: list[dict[str, Any]]) -> Table:
    columns = [
        "",
        "rate",
        "sent",
        "lost",
        "wrong answers",
        "processor time, a setpoint",
        "memory, a robot",
        "round trip p50",
        "p99",
    ]
    table = Table("Several robots on one machine", columns)
    for row in rows:
        table.add(
            row["robots"],
            f"{row['rate']:g} Hz",
            *(f"{row[name]:,}" for name in ("sent", "lost", "wrong")),
            seconds(row["processor"]),
            f"{row['memory'] / 1e6:.1f} MB",
            *(seconds(x) for x in row["round_trip"]),
        )
    return table


def _tests(tests: list[Outcome]) -> Table:
    table = Table("Tests of this run", ["", "time", "outcome"])
    for test in tests:
        outcome = (
            f"**failed**: {test.failure}" if test.failure else f"skipped: {test.skipped}" if test.skipped else "passed"
        )
        table.add(test.name, f"{test.seconds:.0f} s", outcome)
    return table


def _bars(rows: list[dict[str, Any]], faults: list[dict[str, Any]], tests: list[Outcome]) -> Iterator[Bar]:
    lost, different = (sum(row[name] for row in rows) for name in ("lost", "different"))
    yield Bar("streams: no setpoint lost", f"{lost}", bool(rows) and not lost)
    yield Bar("streams: every number is that of the library", f"{different} differ", bool(rows) and not different)
    if grown := [row["growth"] for row in rows if row["growth"] is not None]:
        measured = f"at most {max(grown) / 1e6:.2f} MB"
        yield Bar("streams: memory grows by less than 1 MB after the first minute", measured, max(grown) < GROWTH)
    for row in rows:
        if not row["batches"]:
            for k, (percent, most) in enumerate(RATIOS.items()):
                ratio = row["node"][k] / row["echo"][k]
                promise = f"{row['stream']}: {percent} of the round trip at most {most:g} × that of an echo node"
                yield Bar(promise, f"{ratio:.2f} ×", ratio <= most)
    wrong = sum(row["wrong"] for row in faults)
    yield Bar("faults: no wrong answer", f"{wrong} in {len(faults)} faults", bool(faults) and not wrong)
    failed = sum(bool(test.failure) for test in tests)
    yield Bar("all tests of the run pass", f"{failed} of {len(tests)} failed", bool(tests) and not failed)


def _facts(reports: list[ElementTree.Element], tests: list[Outcome]) -> dict[str, str]:
    """Machine, date, commit and length of the run, and what its tests say of the machine."""
    git = ["git", "-C", str(DOCS)]
    described = subprocess.run([*git, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return machine(["numpy"]) | {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": described.stdout.strip() or "unknown",
        "load, mean of the last 15 minutes": f"{os.getloadavg()[2]:.1f}",
        **{
            each.get("name", ""): each.get("value", "")
            for report in reports
            for each in report.iterfind(".//testsuite/properties/property")
        },
        "length of the run": f"{sum(test.seconds for test in tests) / 60:.0f} minutes",
    }


def main() -> int:
    """Write the page; returns the exit code, 1 if a goal is missed and 2 without a report."""
    parser = argparse.ArgumentParser(prog="reliability", description=__doc__)
    parser.add_argument("reports", type=Path, nargs="+", help="JUnit report of the tests marked soak")
    parser.add_argument("--page", type=Path, default=PAGE, help="default: docs/reliability.md")
    options = parser.parse_args()
    try:
        reports = [ElementTree.parse(path).getroot() for path in options.reports]
    except (OSError, ElementTree.ParseError) as error:
        CONSOLE.print(f"{error}; run: make soak")
        return 2
    tests = [test for report in reports for test in outcomes(report)]
    written = section(tests)
    written.show()
    results = RESULTS if options.page == PAGE else options.page.parent
    write_section(options.page, written, facts=facts_markdown(_facts(reports, tests)), results=results)
    CONSOLE.print(f"figures written to {options.page}")
    return int(not all(bar.kept for bar in written.bars))


if __name__ == "__main__":
    raise SystemExit(main())
