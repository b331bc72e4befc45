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
from report import CONSOLE, DOCS, Section, bars_markdown, facts_markdown, write_between_marks
from settings import FULL, QUICK

SECTIONS = (
    "one_state",
    "equations",
    "motors",
    "batch",
    "first_use",
    "scaling",
    "closed_form",
    "kinematics",
    "open_loop",
    "benefit",
    "differences",
    "drives",
    "replay",
    "control_cycle",
    "identification",
    "identification_peers",
    "identification_cases",
    "error_bars",
    "closed_circle",
    "random_circle",
    "learning",
    "drive_timing",
    "minimum_time",
    "fastest_tracking",
)

RECORDINGS, MODELS = "public_recordings", "mjcf_models"

JTC = "joint_trajectory_controller"

ON_REQUEST = ("round_trip", JTC, "ros2_controller", "online_motion", RECORDINGS, MODELS)
"""Sections that need ROS 2, ros2_control, Ruckig, or data that are not part of a checkout."""

# Of what sections simulate.
sys.path += [str(DOCS.parent / "test" / "helpers"), str(DOCS.parent / "examples")]

# Document of a section's figures, but for those that share the machine and the date of one run in performance.md.
DOCUMENTS = {
    "equations": DOCS / "dynamics.md",
    "closed_form": DOCS / "recursion.md",
    "motors": DOCS / "actuators.md",
    "kinematics": DOCS / "kinematics.md",
    "open_loop": DOCS / "elastic_joints.md",
    "benefit": DOCS / "elastic_joints.md",
    "differences": DOCS / "elastic_joints.md",
    "drives": DOCS / "command_lead.md",
    "replay": DOCS / "replay.md",
    "control_cycle": DOCS / "control_loop.md",
    "ros2_controller": DOCS / "control_loop.md",
    JTC: DOCS / "control_loop.md",
    "round_trip": DOCS / "node.md",
    "identification": DOCS / "identification.md",
    "identification_peers": DOCS / "identification.md",
    "identification_cases": DOCS / "identification.md",
    "error_bars": DOCS / "identification.md",
    "public_recordings": DOCS / "identification.md",
    "mjcf_models": DOCS / "robots.md",
    "closed_circle": DOCS / "closed_circle.md",
    "random_circle": DOCS / "closed_circle.md",
    "learning": DOCS / "learning.md",
    "drive_timing": DOCS / "command_lead.md",
    "minimum_time": DOCS / "minimum_time.md",
    "fastest_tracking": DOCS / "minimum_time.md",
}
PERFORMANCE = DOCS / "performance.md"

PACKAGES = ("numpy", "scipy", "pin")


def main() -> int:
    """Run the benchmarks; returns exit code 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer samples, shorter chains; does not write documents")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=(*SECTIONS, *ON_REQUEST),
        default=SECTIONS,
        metavar="SECTION",
        help=f"run only some of {', '.join((*SECTIONS, *ON_REQUEST))}; performance.md is written by its four together",
    )
    parser.add_argument(
        "--recordings", metavar="FOLDER", type=Path, help=f"checkouts of public recordings, for {RECORDINGS}"
    )
    parser.add_argument("--models", metavar="FOLDER", type=Path, help=f"folders of MJCF models, for {MODELS}")
    parser.add_argument(
        "--problems",
        metavar="FILE",
        type=Path,
        help="a problem suite of toppra, problem_suite_1.yaml, for minimum_time",
    )
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
    settings.recordings, settings.problems, settings.models = options.recordings, options.problems, options.models
    settings.robot = options.robot or settings.robot
    # A separate cache, so that first uses compile and the user's cache does not change.
    os.environ["EOM_DYNAMICS_CACHE"] = str(scratch() / "cache")
    facts = machine(PACKAGES)
    for key, value in facts.items():
        CONSOLE.print(f"{key}: {value}")
    busy = os.getloadavg()[0]
    CONSOLE.print(f"load before the run: {busy:.1f}")
    start = time.perf_counter()
    sections = []
    for name in (*SECTIONS, *ON_REQUEST):
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
    if not options.quick and options.robot is None:
        facts |= {"load before the run": f"{busy:.1f}", "date": datetime.now(timezone.utc).date().isoformat()}
        for path in _write(sections, facts):
            CONSOLE.print(f"figures written to {path}")
    return int(not all(bar.kept for bar in bars))


def _write(sections: list[Section], facts: dict[str, str]) -> list[Path]:
    """Write each section to its document, those that share one only together; returns the documents."""
    written = set()
    for section in sections:
        if path := DOCUMENTS.get(section.name):
            machine = f"{facts['date']}, on {facts['processor']}, load {facts['load before the run']}"
            options = f"--only {section.name}"
            # make bench has a ROS 2 of its own, which does not mix with a workspace.
            in_workspace = section.name in (JTC, "ros2_controller")
            command = f"python3 bench {options}" if in_workspace else f'make bench BENCH_ARGS="{options}"'
            source = f"`{command}`, {machine}."
            write_between_marks(path, section.name, f"{section.markdown()}\n\n{source}")
            written.add(path)
    shared = [section for section in sections if section.name not in DOCUMENTS]
    if {section.name for section in shared} == set(SECTIONS) - set(DOCUMENTS):
        write_between_marks(PERFORMANCE, "machine", facts_markdown(facts))
        write_between_marks(PERFORMANCE, "promises", bars_markdown([bar for each in shared for bar in each.bars]))
        for section in shared:
            write_between_marks(PERFORMANCE, section.name, section.markdown())
        written.add(PERFORMANCE)
    return sorted(written)


if __name__ == "__main__":
    raise SystemExit(main())
