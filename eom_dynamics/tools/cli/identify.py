# SPDX-License-Identifier: Apache-2.0
"""Identify masses, inertias, friction and rotors of a robot from recordings, and write a robot file that predicts them.

A recording is a bag with JointState messages (positions and efforts), or a .csv or .parquet table. The robot's file
gives the geometry, and inertias to start from.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from ...extras import require
from ...terminal import printable
from ..writing import check_file, whole_file
from .arguments import not_negative, number, path, positive
from .console import complain, progress_bars
from .convention_arguments import add_convention_arguments, conventions
from .robot_arguments import add_robot_arguments, load

if TYPE_CHECKING:
    from ...identification import Recording

SUMMARY = "identify masses, inertias, friction and rotors of a robot from recordings"

_TERMS = ("viscous", "coulomb", "stribeck", "asymmetric", "load", "rotor_inertia", "offset")

_ESTIMATORS = ("weighted", "ordinary", "huber", "total")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    parser.add_argument("bags", metavar="BAG", nargs="+", type=path, help="recording to train on")
    add_robot_arguments(parser, "--robot", required=True)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=_output, required=True, help="robot file to write, .yaml or .urdf"
    )
    parser.add_argument("--page", metavar="PAGE.html", type=path, help="write a page with charts of the results")
    parser.add_argument("--force", action="store_true", help="overwrite files that exist")
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of tables")
    judge = parser.add_argument_group("validation")
    either = judge.add_mutually_exclusive_group()
    either.add_argument(
        "--validate",
        metavar="BAG",
        type=path,
        action="append",
        default=[],
        help="recording to judge by, not trained on; may be repeated",
    )
    either.add_argument(
        "--hold-out",
        metavar="SHARE",
        type=number(lambda x: 0 < x < 1, "a number between 0 and 1"),
        help="judge by this last part of each recording, such as 0.3",
    )
    judge.add_argument(
        "--tolerance",
        metavar="X",
        type=not_negative,
        help="exit code 1 if the RMS residual of a joint exceeds X, N m or N, on validation (else on training)",
    )
    what = parser.add_argument_group("what is identified")
    what.add_argument(
        "--side",
        choices=("joint", "motor"),
        help="where efforts were measured: at the joints, behind the gears, or at the motors, in units of the joints; "
        "default: joint if the robot's joints have springs, else motor",
    )
    what.add_argument(
        "--terms",
        metavar="NAME,…",
        type=_terms,
        help=f"terms besides inertias, of {', '.join(_TERMS)}; none for no terms; default: viscous,coulomb,offset, and "
        "rotor_inertia on the motor side",
    )
    what.add_argument(
        "--no-inertia", action="store_true", help="keep the inertias of the file, and identify terms alone"
    )
    what.add_argument(
        "--payload",
        metavar="JOINT",
        help="identify a payload on the body of this joint alone, all else as in the file (offsets excepted)",
    )
    how = parser.add_argument_group("how")
    how.add_argument("--estimator", choices=_ESTIMATORS, default="weighted", help="default: %(default)s")
    how.add_argument(
        "--prior",
        choices=("entropic", "geodesic"),
        default="entropic",
        help="distance from the file; default: %(default)s",
    )
    how.add_argument(
        "--prior-weight",
        metavar="W",
        type=positive,
        help="of that distance: 1 if inertias of the file are known to a factor of e; default: chosen by "
        "held-out blocks of the training data",
    )
    how.add_argument("--cutoff", metavar="HZ", type=positive, help="of the filter; default: chosen in the same way")
    how.add_argument(
        "--velocity",
        choices=("auto", "measured", "position"),
        default="auto",
        help="use recorded velocities, or differences of positions; default: what predicts held-out efforts better",
    )
    source = parser.add_argument_group("recordings")
    source.add_argument("--topic", metavar="NAME", help="topic of the joint states, if a bag has several")
    source.add_argument(
        "--effort-topic",
        metavar="NAME",
        help="take efforts from this topic, such as motor_states or feedforward; default: that of the joint states",
    )
    source.add_argument(
        "--position-unit",
        choices=("auto", "rad", "deg"),
        default="auto",
        help="of recorded positions; default: degrees if only so they are within the limits of the robot",
    )
    add_convention_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Identify, write and print; returns the exit code, 1 if a residual exceeds the tolerance.

    Raises:
        EomDynamicsError: a recording or the robot cannot be used, or a library is missing.
        OSError: a file cannot be read.
    """
    require("replay")
    if options.page:
        require("report")
    # After the check for the libraries that these import.
    from ...identification import Options, fit, identified_robot
    from .. import provenance
    from ..identify.outputs import robot_file
    from ..identify.read import Source, read_recording
    from ..identify.summary import as_json, as_text, failures

    for output in (options.output, *((options.page,) if options.page else ())):
        check_file(output, force=options.force)
    robot = load(options)
    source = Source(options.topic, options.effort_topic, conventions(options), options.position_unit)
    settings = Options(
        side=options.side,
        terms=options.terms,
        inertia=not options.no_inertia,
        estimator=options.estimator,
        prior=options.prior,
        prior_weight=options.prior_weight,
        cutoff=options.cutoff,
        measured_velocity={"auto": None, "measured": True, "position": False}[options.velocity],
        payload=options.payload,
    )
    with progress_bars() as bars:
        bar = bars.add_task("read", total=1.0)

        def report(step: str, done: float) -> None:
            bars.update(bar, description=printable(step), completed=done)

        def read(file: Path) -> Recording:
            return read_recording(file, robot, source, lambda done: report(f"read {file.name}", done))

        training = [read(file) for file in options.bags]
        validation = [read(file) for file in options.validate]
        if options.hold_out:
            training, validation = map(list, zip(*(each.split(options.hold_out) for each in training), strict=True))
        found = fit(robot, training, validation, settings, progress=report)
        about = {
            "Recordings": ", ".join(str(file) for file in options.bags),
            "Validation": ", ".join(map(str, options.validate))
            or (f"the last {options.hold_out:g} of each" if options.hold_out else "none"),
            "Robot": f"{robot.name}, from {options.robot:.200}",
            "Date": provenance.date(),
            "Software": provenance.software(),
        }
        failed = [] if options.tolerance is None else failures(found, options.tolerance)
        text, lost = robot_file(options.output, options.robot, identified_robot(found), found, about)
        with whole_file(options.output, force=options.force) as temporary:
            temporary.write_text(text, encoding="utf-8")
        if options.page:
            report("draw the page", 0.0)
            from ..identify.identification_page import identification_page

            html = identification_page(found, training, validation, failed, about)
            with whole_file(options.page, force=options.force) as temporary:
                temporary.write_text(html, encoding="utf-8")
    print(json.dumps(as_json(found), indent=2) if options.json else as_text(found))
    for line in lost:
        complain(options.program, f"warning: {line}")
    if options.json:
        for note in found.notes:
            complain(options.program, f"note: {note}")
    for line in failed:
        complain(options.program, f"failed: {line}")
    return 1 if failed else 0


def _output(text: str) -> Path:
    if path(text).suffix not in (".yaml", ".yml", ".urdf"):
        raise argparse.ArgumentTypeError(f"must end in .yaml, .yml or .urdf, is {text!r}")
    return Path(text)


def _terms(text: str) -> tuple[str, ...]:
    names = () if text == "none" else tuple(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in _TERMS:
            raise argparse.ArgumentTypeError(f"there is no term {name!r}; there are {', '.join(_TERMS)}, or none")
    return names
