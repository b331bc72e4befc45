# SPDX-License-Identifier: Apache-2.0
"""Time eom_dynamics and its peers in one run, and write the figures to the documentation.

Runs that are compared are interleaved, so that ratios hold on a busy machine, too. All results are first compared with
the closed form.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

from compiled import scratch
from machine_facts import machine
from report import CONSOLE, DOCS, Section, bars_markdown, facts_markdown, write_between_marks, write_json, write_section
from settings import FULL, QUICK

SECTIONS = {
    "one_state": "performance",
    "equations": "dynamics",
    "motors": "actuators",
    "batch": "performance",
    "first_use": "performance",
    "scaling": "performance",
    "closed_form": "recursion",
    "kinematics": "kinematics",
    "open_loop": "elastic_models",
    "benefit": "elastic_joints",
    "differences": "elastic_joints",
    "drives": "command_lead",
    "replay": "replay",
    "control_cycle": "exported_code",
    "identification": "identification_measured",
    "identification_cases": "identification_measured",
    "error_bars": "identification_measured",
    "random_circle": "closed_circle",
    "drive_timing": "command_timing",
    "minimum_time": "minimum_time",
    "fastest_tracking": "minimum_time",
}
"""Documents of the figures of sections."""

RECORDINGS, MODELS = "public_recordings", "mjcf_models"

JTC = "joint_trajectory_controller"

ON_REQUEST = {
    "round_trip": "node_operation",
    JTC: "bringup",
    "ros2_controller": "control_loop",
    "online_motion": "online_trajectories",
    "path_time": "online_trajectories",
    "external_effort": "external_efforts",
    "impedance": "impedance",
    RECORDINGS: "identification_measured",
    MODELS: "mjcf",
}
"""Sections that need ROS 2, ros2_control, Ruckig, an hour, or data that are not part of a checkout."""

# Of what sections simulate.
sys.path += [str(DOCS.parent / "test" / "helpers"), str(DOCS.parent / "examples")]

# Those of performance.md share the machine and the date of one run.
DOCUMENTS = {name: DOCS / f"{document}.md" for name, document in (SECTIONS | ON_REQUEST).items()}
PERFORMANCE = DOCS / "performance.md"

PACKAGES = ("numpy", "scipy", "pin")


def main() -> int:
    """Run the benchmarks; returns exit code 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer samples, shorter chains; does not write documents")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=DOCUMENTS,
        default=list(SECTIONS),
        metavar="SECTION",
        help=f"run only some of {', '.join(DOCUMENTS)}; performance.md is written by its four together",
    )
    parser.add_argument(
        "--recordings", metavar="FOLDER", type=Path, help=f"checkouts of public recordings, for {RECORDINGS}"
    )
    parser.add_argument("--models", metavar="FOLDER", type=Path, help=f"folders of MJCF models, for {MODELS}")
    parser.add_argument("--hours", type=float, default=0.5, help="that external_effort simulates for each arm")
    parser.add_argument(
        "--robot",
        metavar="ROBOT",
        help="packaged robot or file for one_state, in place of the iiwa; writes no documents",
    )
    options = parser.parse_args()
    if RECORDINGS in options.only and options.recordings is None:
        parser.error(f"{RECORDINGS} takes --recordings FOLDER")
    if MODELS in options.only and options.models is None:
        parser.error(f"{MODELS} takes --models FOLDER")
    # One of the two objects, since sections ask which.
    settings = QUICK if options.quick else FULL
    settings.recordings, settings.models = options.recordings, options.models
    settings.robot, settings.hours = options.robot or settings.robot, options.hours
    # A separate cache, so that first uses compile and the user's cache does not change.
    os.environ["EOM_DYNAMICS_CACHE"] = str(scratch() / "cache")
    facts = machine(PACKAGES)
    for key, value in facts.items():
        CONSOLE.print(f"{key}: {value}")
    busy = os.getloadavg()[0]
    CONSOLE.print(f"load before the run: {busy:.1f}")
    start = time.perf_counter()
    sections = []
    for name in DOCUMENTS:
        if name in options.only:
            CONSOLE.print(f"\n{name} …", style="dim")
            sections.append(importlib.import_module(name).run(settings))
            sections[-1].show()
    bars = [bar for section in sections for bar in section.bars]
    minutes = (time.perf_counter() - start) / 60
    CONSOLE.rule("all promises")
    for bar in bars:
        CONSOLE.print(f"{'met   ' if bar.kept else 'MISSED'}  {bar.promise}: {bar.measured}")
    CONSOLE.print(f"{minutes:.1f} minutes")
    facts |= {"load before the run": f"{busy:.1f}", "date": datetime.now(timezone.utc).date().isoformat()}
    CONSOLE.print(f"all figures in {write_json(sections, facts)}")
    if not options.quick and options.robot is None:
        for path in _write(sections, facts):
            CONSOLE.print(f"figures written to {path}")
    return int(not all(bar.kept for bar in bars))


def _write(sections: list[Section], facts: dict[str, str]) -> list[Path]:
    """Write each section to its document, those that share one only together; returns the documents."""
    written = set()
    for section in sections:
        if (path := DOCUMENTS[section.name]) != PERFORMANCE:
            machine = f"{facts['date']}, on {facts['processor']}, load {facts['load before the run']}"
            options = f"--only {section.name}"
            # make bench has a ROS 2 of its own, which does not mix with a workspace.
            in_workspace = section.name in (JTC, "ros2_controller")
            command = f"python3 bench {options}" if in_workspace else f'make bench BENCH_ARGS="{options}"'
            source = f"`{command}`, {machine}."
            write_section(path, section, source)
            written.add(path)
    shared = [section for section in sections if DOCUMENTS[section.name] == PERFORMANCE]
    if len(shared) == list(DOCUMENTS.values()).count(PERFORMANCE):
        write_between_marks(PERFORMANCE, "machine", facts_markdown(facts))
        write_between_marks(PERFORMANCE, "promises", bars_markdown([bar for each in shared for bar in each.bars]))
        for section in shared:
            write_section(PERFORMANCE, section, promises=False)  # which are in the table of all
        written.add(PERFORMANCE)
    return sorted(written)


if __name__ == "__main__":
    raise SystemExit(main())
