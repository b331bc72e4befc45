# SPDX-License-Identifier: Apache-2.0
"""Write docs/measurements.md from the report of ``make soak``.

``python bench/reliability.py build/soak.xml`` reads the JUnit report of the tests marked ``soak``, or several. Tests
give rows of tables as properties (``test/ros/soak/conftest.py``); every test is listed with its outcome.
"""

import argparse
import json
import os
import subprocess
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from harness import CONSOLE, DOCS, RESULTS, Section, facts_markdown, machine, seconds, write_section

PAGE = DOCS / "measurements.md"

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
    _streams(done, rows["stream"])
    _faults(done, rows["fault"])
    _robots(done, rows["robots"])
    table = done.table("Tests of this run", "", "time", "outcome")
    for test in tests:
        skipped = f"skipped: {test.skipped}" if test.skipped else "passed"
        table.add(test.name, f"{test.seconds:.0f} s", f"**failed**: {test.failure}" if test.failure else skipped)
    failed = sum(bool(test.failure) for test in tests)
    done.promise("all tests of the run pass", f"{failed} of {len(tests)} failed", tests and not failed)
    return done


def _streams(done: Section, rows: list[dict[str, Any]]) -> None:
    """Losses and times of streams, and their goals."""
    losses = done.table(
        "Streams, seven joints, every number recomputed by the library",
        *("", "length", "setpoints", "lost", "numbers", "different", "held up", "memory", "growth"),
        "answers to planners",
    )
    columns = ("", *PERCENTS, "× echo, p50", "p99")
    latency = done.table("Round trip, and that of an echo node in the same run", *columns)
    for row in rows:
        losses.add(
            *(row["stream"], f"{row['seconds']:g} s"),
            *(f"{row[name]:,}" for name in ("sent", "lost", "numbers", "different")),
            *(f"{row['held_up']:.1f} s", f"{row['resident'] / 1e6:.1f} MB"),
            *("" if row["growth"] is None else f"{row['growth'] / 1e6:.2f} MB", f"{row['batches']:,}"),
        )
        ratios = [f"{ours / echo:.2f}" for ours, echo in zip(row["node"], row["echo"], strict=True)]
        latency.add(row["stream"], *(seconds(x * 1e-6) for x in row["node"]), *ratios[:2])
        latency.add(f"{row['stream']}: echo", *(seconds(x * 1e-6) for x in row["echo"]), "", "")
    lost, different = (sum(row[name] for row in rows) for name in ("lost", "different"))
    done.promise("streams: no setpoint lost", f"{lost}", rows and not lost)
    done.promise("streams: every number is that of the library", f"{different} differ", rows and not different)
    if grown := [row["growth"] for row in rows if row["growth"] is not None]:
        promise = "streams: memory grows by less than 1 MB after the first minute"
        done.promise(promise, f"at most {max(grown) / 1e6:.2f} MB", max(grown) < GROWTH)
    for row in rows:
        for k, (percent, most) in enumerate(() if row["batches"] else RATIOS.items()):
            ratio = row["node"][k] / row["echo"][k]
            promise = f"{row['stream']}: {percent} of the round trip at most {most:g} × that of an echo node"
            done.promise(promise, f"{ratio:.2f} ×", ratio <= most)


def _faults(done: Section, rows: list[dict[str, Any]]) -> None:
    columns = ("", "sent", "lost", "wrong answers", "state after", "remark")
    table = done.table("Faults, injected into a stream of setpoints", *columns)
    for row in rows:
        counts = (f"{row[name]:,}" for name in ("sent", "lost", "wrong"))
        table.add(row["fault"], *counts, row["state"], row.get("remark", ""))
    wrong = sum(row["wrong"] for row in rows)
    done.promise("faults: no wrong answer", f"{wrong} in {len(rows)} faults", rows and not wrong)


def _robots(done: Section, rows: list[dict[str, Any]]) -> None:
    table = done.table(
        "Several robots on one machine",
        *("", "rate", "sent", "lost", "wrong answers", "processor time, a setpoint", "memory, a robot"),
        *("round trip p50", "p99"),
    )
    for row in rows:
        counts = (f"{row[name]:,}" for name in ("sent", "lost", "wrong"))
        costs = seconds(row["processor"]), f"{row['memory'] / 1e6:.1f} MB"
        table.add(row["robots"], f"{row['rate']:g} Hz", *counts, *costs, *map(seconds, row["round_trip"]))


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
    parser.add_argument("--page", type=Path, default=PAGE, help="default: docs/measurements.md")
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
