# SPDX-License-Identifier: Apache-2.0
"""Length of the runs, processors that stay awake, and rows of the tables in docs/measurements.md."""

import contextlib
import json
import os
import sys
from pathlib import Path

import processes
import pytest
from paths import ROOT

HELPERS = ROOT / "test" / "helpers" / "soak"

LATENCY = Path("/dev/cpu_dma_latency")

SECONDS = float(os.environ.get("SOAK_SECONDS", "30"))


@pytest.fixture(scope="session")
def seconds():
    """Length of each stream, s; of ``make soak SECONDS=600``."""
    return SECONDS


@pytest.fixture(scope="session", autouse=True)
def awake(record_testsuite_property):
    """Keep idle processors awake if permitted: in a virtual machine on a busy host, some take 50 ms to wake up."""
    permitted = os.access(LATENCY, os.W_OK)
    record_testsuite_property("idle processors", "kept awake" if permitted else "asleep")
    with contextlib.ExitStack() as kept:
        if permitted:
            latency = kept.enter_context(LATENCY.open("wb", buffering=0))
            latency.write((0).to_bytes(4, sys.byteorder))  # the longest in us, as long as the file is open
        yield


@pytest.fixture
def row(record_property):
    """Add a row to a table of docs/measurements.md, which bench/reliability.py writes from the report of the tests."""

    def report(table, **cells):
        record_property(table, json.dumps(cells))
        print(table, cells)

    return report


@pytest.fixture
def fault_row(row):
    """Add a fault to docs/measurements.md: setpoints sent and lost, wrong answers, and the node after it."""

    def report(fault, counts, wrong, values, remark):
        state = f"{values['state']}, {values['backend']}"
        row("fault", fault=fault, sent=counts["sent"], lost=counts["lost"], wrong=wrong, state=state, remark=remark)

    return report


@pytest.fixture
def script(tmp_path):
    """Start a script of test/helpers/soak, or another folder, in a namespace; all of them end with the test."""
    with contextlib.ExitStack() as started:

        def start(name, *arguments, namespace="/", folder=HELPERS, **options):
            command = [sys.executable, folder / f"{name}.py", *arguments, "--ros-args", "-r", f"__ns:={namespace}"]
            process = processes.popen(command, cwd=tmp_path, **options)
            started.callback(processes.end, process)
            return process

        yield start
