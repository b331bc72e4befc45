# SPDX-License-Identifier: Apache-2.0
"""Time eom_dynamics and its peers in one run, and write the figures to the documentation.

Compared runs are interleaved, so that ratios are valid on a busy machine. All results are first compared with
the closed form.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import sys
import time
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from harness import (
    CONSOLE,
    DOCS,
    FULL,
    QUICK,
    RESULTS,
    Section,
    Settings,
    bars_markdown,
    facts_markdown,
    machine,
    scratch,
    show_bars,
    write_between_marks,
    write_json,
    write_section,
)

MAKE, IN_WORKSPACE = 'make bench BENCH_ARGS="--only {}"', "python3 bench --only {}"
"""Commands that run a section. The environment of ``make bench`` cannot be combined with a ros2_control workspace."""


class Entry(NamedTuple):
    """Module of a section (its function has the section's name), page that quotes it, title, and command."""

    module: str
    page: str
    title: str
    command: str = MAKE


SECTIONS = {
    "one_state": Entry("performance", "measurements", "One state, called from Python"),
    "equations": Entry("equations", "dynamics", "Terms of the equations of motion"),
    "motors": Entry("motors", "actuators", "Feedforward with every kind of spring"),
    "batch": Entry("performance", "measurements", "A batch of states"),
    "first_use": Entry("performance", "measurements", "First use"),
    "scaling": Entry("performance", "measurements", "Cost against the number of joints"),
    "closed_form": Entry("performance", "recursion", "Closed form against recursion"),
    "kinematics": Entry("equations", "kinematics", "Kinematics"),
    "open_loop": Entry("tracking", "elastic_models", "Open loop, springs of every kind"),
    "benefit": Entry("benefit", "elastic_joints", "Benefit of the feedforward"),
    "differences": Entry("tracking", "elastic_joints", "Exact derivatives against differences"),
    "drives": Entry("drives", "command_lead", "Drives that sample, and Coulomb friction"),
    "friction_scale": Entry("drives", "command_lead", "Scale of dry friction"),
    "replay": Entry("replay", "replay", "Offline replay"),
    "control_cycle": Entry("exported_code", "exported_code", "Control cycle"),
    "identification": Entry("identification", "measurements", "Identification of simulated arms"),
    "identification_cases": Entry(
        "identification_cases",
        "measurements",
        "Identification of arms that files cannot describe, and wrong recordings",
    ),
    "foreign_friction": Entry(
        "identification_cases", "measurements", "Identification with friction that is not the model's"
    ),
    "error_bars": Entry("error_bars", "measurements", "Coverage of standard deviations"),
    "random_circle": Entry("drive_timing", "identification_of_springs", "Closed circle on random arms in MuJoCo"),
    "drive_timing": Entry("drive_timing", "command_lead", "Timing of drives with Coulomb friction"),
    "minimum_time": Entry("fastest_motions", "trajectories", "Fastest motions"),
    "planned_paths": Entry("fastest_motions", "trajectories", "Planned paths"),
    "fastest_tracking": Entry("fastest_motions", "trajectories", "Tracking of fastest motions"),
}
"""Sections of a whole run."""

ON_REQUEST = {
    "joint_trajectory_controller": Entry(
        "joint_trajectory_controller",
        "control_loop",
        "joint_trajectory_controller alone, and with feedforward",
        IN_WORKSPACE,
    ),
    "ros2_controller": Entry("exported_code", "control_loop", "Controller of ros2_control", IN_WORKSPACE),
    "round_trip": Entry("round_trip", "node_operation", "Round trip of a setpoint, compared with an echo node"),
    "online_motion": Entry("online_motion", "targets", "Streams of targets on elastic arms"),
    "impedance": Entry("impedance", "impedance", "Impedance and hands"),
    "public_recordings": Entry("public_recordings", "measurements", "Identification from public recordings"),
    "mjcf_models": Entry("mjcf_models", "parameter_files", "MJCF models"),
    "gpu": Entry("exported_code", "dynamics", "States a second on a GPU"),
    "reliability": Entry("reliability", "measurements", "Reliability", "make soak"),
}
"""Sections that need ROS 2, ros2_control, a GPU, Ruckig, an hour, or data that are not part of a checkout."""

DATA = {
    "public_recordings": ("recordings", "FOLDER", "checkouts of public recordings"),
    "mjcf_models": ("models", "FOLDER", "folders of MJCF models"),
    "reliability": ("reports", "FILE", "JUnit reports of make soak"),
}
"""Options for the data of sections that need some."""

# Modules with the simulated arms of the sections.
sys.path += [str(DOCS.parent / "test" / "helpers"), str(DOCS.parent / "examples")]

ENTRIES = SECTIONS | ON_REQUEST
DOCUMENTS = {name: DOCS / f"{entry.page}.md" for name, entry in ENTRIES.items()}

PERFORMANCE = DOCS / "measurements.md"

SHARED = ("one_state", "batch", "first_use", "scaling")
"""Sections of ``PERFORMANCE`` that share the machine and the date of one run."""

PACKAGES = ("numpy", "scipy", "pin")


def main() -> int:
    """Run the benchmarks; returns exit code 1 if a promise is not kept."""
    names, settings = _arguments()
    # A separate cache, so that first uses compile and the user's cache does not change.
    os.environ["EOM_DYNAMICS_CACHE"] = str(scratch() / "cache")
    facts = machine(PACKAGES)
    for key, value in facts.items():
        CONSOLE.print(f"{key}: {value}")
    busy = os.getloadavg()[0]
    CONSOLE.print(f"load before the run: {busy:.1f}")
    start = time.perf_counter()
    sections = []
    for name, entry in ENTRIES.items():
        if name in names:
            CONSOLE.print(f"\n{name} …", style="dim")
            sections.append(Section(name, entry.title))
            function = getattr(importlib.import_module(entry.module), name)
            function(sections[-1], settings)
            # All but the first line of its docstring tells a reader of the figures how they were measured.
            sections[-1].text += [" ".join(x.split()) for x in inspect.getdoc(function).split("\n\n")[1:]]
            sections[-1].show()
    bars = [bar for section in sections for bar in section.bars]
    CONSOLE.rule("all promises")
    show_bars(bars)
    CONSOLE.print(f"{(time.perf_counter() - start) / 60:.1f} minutes")
    facts |= {"load before the run": f"{busy:.1f}", "date": datetime.now(timezone.utc).date().isoformat()}
    CONSOLE.print(f"all figures in {write_json(sections, facts)}")
    if not settings.quick and settings.robot is None:
        for path in _write(sections, facts):
            CONSOLE.print(f"figures written to {path}")
    return int(not all(bar.kept for bar in bars))


def _arguments() -> tuple[list[str], Settings]:
    """Sections to run, and settings."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer samples, shorter chains; does not write documents")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=ENTRIES,
        default=list(SECTIONS),
        metavar="SECTION",
        help=f"run only some of {', '.join(ENTRIES)}; measurements.md is written by {', '.join(SHARED)} together",
    )
    for section, (option, value, what) in DATA.items():
        several = {"nargs": "+", "default": ()} if value == "FILE" else {}
        parser.add_argument(f"--{option}", metavar=value, type=Path, help=f"{what}, for {section}", **several)
    robot = "packaged robot or file, for one_state, gpu and round_trip; writes no documents"
    parser.add_argument("--robot", metavar="ROBOT", help=robot)
    options = vars(parser.parse_args())
    names, settings = options.pop("only"), QUICK if options.pop("quick") else FULL
    for section, (option, value, _) in DATA.items():
        if section in names and not options[option]:
            parser.error(f"{section} takes --{option} {value}")
    return names, replace(settings, **options)


def _write(sections: list[Section], facts: dict[str, str]) -> list[Path]:
    """Write each section to its document, and the documents of SHARED only after all sections; return the documents."""
    written = set()
    for section in sections:
        if section.name not in SHARED:
            command = ENTRIES[section.name].command.format(section.name)
            where = f"{facts['date']}, on {facts['processor']}, load {facts['load before the run']}"
            write_section(DOCUMENTS[section.name], section, f"`{command}`, {where}.")
            written.add(DOCUMENTS[section.name])
    shared = [section for section in sections if section.name in SHARED]
    if len(shared) == len(SHARED):
        write_between_marks(PERFORMANCE, "machine", facts_markdown(facts))
        goals = bars_markdown([bar for each in shared for bar in each.bars])
        (RESULTS / "promises.md").write_text(f"# Performance goals\n\n{goals}\n", encoding="utf-8")
        for section in shared:
            write_section(PERFORMANCE, section)
        written.add(PERFORMANCE)
    return sorted(written)


if __name__ == "__main__":
    raise SystemExit(main())
