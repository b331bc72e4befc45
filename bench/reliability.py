# SPDX-License-Identifier: Apache-2.0
"""Reliability, from the JUnit reports of the tests marked ``soak``.

Tests give rows of tables as properties (``test/ros/soak/conftest.py``); every test is listed with its outcome.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.etree import ElementTree

from harness import DOCS, Section, Settings, seconds

GROWTH, RATIOS = 1e6, {"p50": 1.25, "p99": 1.5}
"""Growth of memory, bytes, and round trip relative to an echo node, of a stream without planners."""

PERCENTS = ("p50", "p99", "p99.9", "max")


class Outcome(NamedTuple):
    """A test: name in words, seconds, rows of each table, and the reason of a failure or a skip."""

    name: str
    seconds: float
    rows: list[tuple[str, dict[str, Any]]]
    failure: str
    skipped: str


def reliability(section: Section, settings: Settings) -> None:
    """Tables and goals of a run of ``make soak``."""
    try:
        reports = [ElementTree.parse(path).getroot() for path in settings.reports]
    except (OSError, ElementTree.ParseError) as error:
        raise SystemExit(f"{error}; run: make soak") from error
    tests = [test for report in reports for test in _outcomes(report)]
    rows: dict[str, list[dict[str, Any]]] = {"stream": [], "fault": [], "robots": []}
    for test in tests:
        for table, cells in test.rows:
            rows.setdefault(table, []).append(cells)
    _streams(section, rows["stream"])
    _faults(section, rows["fault"])
    _robots(section, rows["robots"])
    table = section.table("Tests of this run", "", "time", "outcome")
    for test in tests:
        skipped = f"skipped: {test.skipped}" if test.skipped else "passed"
        table.add(test.name, f"{test.seconds:.0f} s", f"**failed**: {test.failure}" if test.failure else skipped)
    failed = sum(bool(test.failure) for test in tests)
    section.promise("all tests of the run pass", f"{failed} of {len(tests)} failed", tests and not failed)
    _run(section, reports, tests)


def _outcomes(report: ElementTree.Element) -> Iterator[Outcome]:
    """Tests of a JUnit report."""

    def first_line(case: ElementTree.Element, *kinds: str) -> str:
        messages = [each.get("message", "") for kind in kinds for each in case.iter(kind)]
        return messages[0].strip().partition("\n")[0][:160] if messages else ""

    for case in report.iter("testcase"):
        if not case.get("classname"):  # a whole file that is skipped, of other tests
            continue
        rows = [(each.get("name", ""), json.loads(each.get("value", "{}"))) for each in case.iter("property")]
        name, failure = (
            case.get("name", "").removeprefix("test_").replace("_", " "),
            first_line(case, "failure", "error"),
        )
        yield Outcome(name, float(case.get("time", 0)), rows, failure, first_line(case, "skipped"))


def _streams(section: Section, rows: list[dict[str, Any]]) -> None:
    """Losses and times of streams, and their goals."""
    losses = section.table(
        "Streams, seven joints, every number recomputed by the library",
        *("", "length", "setpoints", "lost", "numbers", "different", "held up", "memory", "growth"),
        "answers to planners",
    )
    columns = ("", *PERCENTS, "× echo, p50", "p99")
    latency = section.table("Round trips of the node and of an echo node in the same run", *columns)
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
    section.promise("streams: no setpoint lost", f"{lost}", rows and not lost)
    section.promise("streams: every number equals the library's", f"{different} differ", rows and not different)
    if grown := [row["growth"] for row in rows if row["growth"] is not None]:
        promise = "streams: memory grows by less than 1 MB after the first minute"
        section.promise(promise, f"at most {max(grown) / 1e6:.2f} MB", max(grown) < GROWTH)
    for row in rows:
        for k, (percent, most) in enumerate(() if row["batches"] else RATIOS.items()):
            ratio = row["node"][k] / row["echo"][k]
            promise = f"{row['stream']}: {percent} of the round trip at most {most:g} × an echo node"
            section.promise(promise, f"{ratio:.2f} ×", ratio <= most)


def _counts(row: dict[str, Any]) -> list[str]:
    return [f"{row[name]:,}" for name in ("sent", "lost", "wrong")]


def _faults(section: Section, rows: list[dict[str, Any]]) -> None:
    columns = ("", "sent", "lost", "wrong answers", "state after", "remark")
    table = section.table("Faults, injected into a stream of setpoints", *columns)
    for row in rows:
        table.add(row["fault"], *_counts(row), row["state"], row.get("remark", ""))
    wrong = sum(row["wrong"] for row in rows)
    section.promise("faults: no wrong answer", f"{wrong} in {len(rows)} faults", rows and not wrong)


def _robots(section: Section, rows: list[dict[str, Any]]) -> None:
    table = section.table(
        "Several robots on one machine",
        *("", "rate", "sent", "lost", "wrong answers", "processor time, a setpoint", "memory, a robot"),
        *("round trip p50", "p99"),
    )
    for row in rows:
        costs = seconds(row["processor"]), f"{row['memory'] / 1e6:.1f} MB"
        table.add(row["robots"], f"{row['rate']:g} Hz", *_counts(row), *costs, *map(seconds, row["round_trip"]))


def _run(section: Section, reports: list[ElementTree.Element], tests: list[Outcome]) -> None:
    """Commit and length of the run, and properties of the machine in its reports."""
    git = ["git", "-C", str(DOCS), "describe", "--always", "--dirty"]
    table = section.table("Run", "", "")
    table.add("commit", subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown")
    table.add("load, mean of the last 15 minutes", f"{os.getloadavg()[2]:.1f}")
    for report in reports:
        for each in report.iterfind(".//testsuite/properties/property"):
            table.add(each.get("name", ""), each.get("value", ""))
    table.add("length of the run", f"{sum(test.seconds for test in tests) / 60:.0f} minutes")
