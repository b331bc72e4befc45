# SPDX-License-Identifier: Apache-2.0
"""Identify masses, inertias, friction, rotors and springs of a robot from recordings, and write a robot file.

A recording is a bag with JointState messages (positions and efforts), or a .csv or .parquet table. The robot's file
gives the geometry, and inertias as the prior. Where motors were recorded, too, springs, rotors and motor friction are
identified; where only motors were recorded, from their resonance.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

from ...extras import require
from ...terminal import printable
from ..results import Result
from ..writing import check_file, whole_file
from .arguments import (
    add_choice,
    add_convention_arguments,
    add_json,
    add_number,
    add_output_file,
    add_repeated,
    add_robot_arguments,
    any_number,
    conventions,
    html_path,
    load,
    named,
    not_negative,
    number,
    path,
    positive,
    robot_options,
    robot_path,
    whole_number,
)
from .console import progress_bars

SUMMARY = "identify masses, inertias, friction, rotors and springs of a robot from recordings"

_SPRINGS = ("auto", "both", "resonance", "off")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    from ...identification.estimators import ESTIMATORS
    from ...identification.joint_terms import TERMS

    # The others are entries of the law of a parallel spring, which follow from the robot's file.
    terms = tuple(name for name in TERMS if not name.startswith("spring_"))
    parser.add_argument("bags", metavar="BAG", nargs="+", type=path, help="recording to train on")
    add_robot_arguments(parser, "--robot", required=True)
    add_output_file(parser, "FILE", robot_path, "robot file to write, .yaml or .urdf")
    parser.add_argument("--page", metavar="PAGE.html", type=html_path, help="write a page with charts of the results")
    add_json(parser)
    judge = parser.add_argument_group("validation")
    either = judge.add_mutually_exclusive_group()
    validated = "recording to validate on, not used for training; may be repeated"
    add_repeated(either, "--validate", "BAG", path, validated)
    either.add_argument(
        "--hold-out",
        metavar="SHARE",
        type=number(lambda x: 0 <= x < 1, "a number from 0 to below 1"),
        help="hold out this fraction of each recording, in spread blocks, for validation; 0 validates on the "
        "training data; default: 0.2, or 0 with --validate, springs from a resonance, or a few seconds alone",
    )
    judge.add_argument(
        "--tolerance",
        metavar="X",
        type=not_negative,
        help="exit code 1 if the RMS residual of a joint exceeds X, N m or N, on validation (else on training)",
    )
    worse = (
        "if the identified parameters predict a joint worse than the given ones, the exit code is 1, and the given "
        "ones are kept for that joint, or for the whole file"
    )
    add_choice(judge, "--keep", ("joint", "file"), worse)
    contradicting = (
        "if a recording contradicts the robot's file in signs, units, joint order or time, the exit code is 1 "
        "and the given parameters are kept, or it is used nevertheless"
    )
    add_choice(judge, "--suspect", ("keep", "use"), contradicting)
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
        type=_names(terms),
        help=f"terms besides inertias, of {', '.join(terms)}; none for no terms; default: viscous,coulomb,offset, and "
        "rotor_inertia on the motor side; offset where springs and motors are identified, too",
    )
    offsets = (
        "whether offsets are constant efforts of the arm, such as a counterbalance, written to its file, or sensor "
        "biases; one recording cannot distinguish them"
    )
    add_choice(what, "--offset", ("arm", "sensor"), offsets)
    what.add_argument(
        "--no-inertia", action="store_true", help="keep the inertias of the file, and identify terms alone"
    )
    what.add_argument(
        "--payload",
        metavar="JOINT",
        help="identify only a payload on the body of this joint, and offsets; all else as in the file",
    )
    _add_elastic_arguments(parser)
    how = parser.add_argument_group("how")
    how.add_argument("--estimator", choices=ESTIMATORS, default="huber", help="default: %(default)s")
    add_choice(how, "--prior", ("entropic", "geodesic"), "distance from the file")
    how.add_argument(
        "--prior-weight",
        metavar="W",
        type=positive,
        help="weight of that distance: 1 if inertias of the file are known to a factor of e; default: chosen by "
        "held-out blocks of the training data",
    )
    how.add_argument("--cutoff", metavar="HZ", type=positive, help="of the filter; default: chosen in the same way")
    how.add_argument(
        "--velocity",
        choices=("auto", "measured", "position"),
        default="auto",
        help="recorded velocities, or differences of positions; default: whichever predicts held-out efforts better",
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
        help="of recorded positions; default: degrees if positions are within the robot's limits only then",
    )
    add_number(source, "--effort-delay", "S", 0.0, "time by which recorded efforts are late, s", any_number)
    add_convention_arguments(parser)


def run(options: argparse.Namespace) -> Result:
    """Identify and write.

    A check fails if a residual exceeds the tolerance, or the given robot predicts the efforts of a joint better.

    Raises:
        EomDynamicsError: a recording or the robot cannot be used, or a library is missing.
        OSError: a file cannot be read.
    """
    require("replay")
    if options.page:
        require("report")
    # After the check for the libraries that these import.
    from ...identification import Options
    from ...identification.elastic_options import ElasticOptions
    from ..identify.outputs import write_and_verify
    from ..identify.read import Source
    from ..identify.run import Request, identify
    from ..identify.sides import MotorSource
    from ..identify.summary import identification_result

    for output in (options.output, *((options.page,) if options.page else ())):
        check_file(output, force=options.force)
    robot = load(options)
    request = Request(
        training=options.bags,
        validation=options.validate,
        hold_out=options.hold_out,
        source=Source(
            options.topic, options.effort_topic, conventions(options), options.position_unit, options.effort_delay
        ),
        motors=MotorSource(
            options.motor_topic,
            options.motor_effort_topic,
            options.current_topic,
            options.motor_unit,
            options.motor_delay,
        ),
        springs=options.springs,
        link_options=Options(
            side=options.side,
            terms=options.terms,
            inertia=not options.no_inertia,
            estimator=options.estimator,
            prior=options.prior,
            prior_weight=options.prior_weight,
            cutoff=options.cutoff,
            measured_velocity={"auto": None, "measured": True, "position": False}[options.velocity],
            payload=options.payload,
            keep=options.keep,
            suspect=options.suspect,
            offset=options.offset,
        ),
        elastic_options=ElasticOptions(
            {joint or None: law for joint, law in options.spring_law},
            options.spring_terms,
            options.motor_terms,
            options.spring_points,
        ),
        tolerance=options.tolerance,
    )
    with progress_bars() as bars:
        bar = bars.add_task("read", total=1.0)

        def progress(step: str, fraction: float) -> None:
            bars.update(bar, description=printable(step), completed=fraction)

        found = identify(robot, request, progress)
        about = {
            "recordings": ", ".join(str(file) for file in options.bags),
            "validation": ", ".join(map(str, options.validate))
            or (f"{found.held_out:g} of each, in blocks" if found.held_out else "none"),
            "robot": f"{robot.name}, from {options.robot:.200}",
        }
        progress("write and verify the file", 0.0)
        with whole_file(options.output, force=options.force) as temporary:
            found, not_in_file = write_and_verify(temporary, options.robot, robot_options(options), found, about)
        if options.page:
            progress("draw the page", 0.0)
        result = replace(identification_result(found, about, options.page), warnings=not_in_file)
        if options.page:
            from ..pages.page import html_page

            with whole_file(options.page, force=options.force) as temporary:
                temporary.write_text(html_page("identify", result), encoding="utf-8")
    return result


def _add_elastic_arguments(parser: argparse.ArgumentParser) -> None:
    from ...identification.elastic_options import ACTUATOR_TERMS, SPRING_TERMS, joint_laws

    what = parser.add_argument_group("springs and motors, of joints with a spring and a motor each")
    what.add_argument(
        "--springs",
        choices=_SPRINGS,
        default="auto",
        help="identify springs and motors from both sides of the springs, from the resonance of the motors alone, or "
        "not at all; default: from what was recorded, where the robot has springs",
    )
    laws = (
        f"{', '.join(joint_laws())}, or keep for the spring of the file, of all joints or of one; may be repeated; "
        "default: that of the file"
    )
    add_repeated(what, "--spring-law", "[JOINT=]LAW", named("JOINT", _law, "LAW"), laws)
    add_number(what, "--spring-points", "N", 9, "of a table", whole_number)
    what.add_argument(
        "--spring-terms",
        metavar="NAME,…",
        type=_names(SPRING_TERMS),
        default=SPRING_TERMS,
        help=f"terms besides the law, of {', '.join(SPRING_TERMS)}; none for no terms; default: all",
    )
    what.add_argument(
        "--motor-terms",
        metavar="NAME,…",
        type=_names(ACTUATOR_TERMS),
        help=f"of {', '.join(ACTUATOR_TERMS)}; omitted friction is zero; none for no terms; default: "
        "rotor_inertia,viscous,coulomb,offset,torque_constant, and efficiency if the file has gear loss",
    )
    where = parser.add_argument_group("recordings of motors")
    where.add_argument(
        "--motor-topic",
        metavar="NAME",
        help="joint states of the motors; default: the topic whose name ends in motor_states. Tables have columns "
        "motor_position.NAME, motor_effort.NAME and current.NAME",
    )
    where.add_argument(
        "--motor-effort-topic",
        metavar="NAME",
        help="take motor efforts from this topic, such as feedforward; default: that of the motors",
    )
    where.add_argument(
        "--current-topic", metavar="NAME", help="joint states whose efforts are motor currents, A: identifies k_t"
    )
    where.add_argument(
        "--motor-unit",
        choices=("auto", "rad", "deg", "shaft"),
        default="auto",
        help="of motor positions: on the link side of the gears, or those of the shafts, with their torques; default: "
        "the one in which motors move as far as links",
    )
    delay = "delay of motor efforts and currents, s, such as half a step where they are means of the last step"
    add_number(where, "--motor-delay", "S", 0.0, delay, not_negative)


def _names(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    def names(text: str) -> tuple[str, ...]:
        given = () if text == "none" else tuple(dict.fromkeys(text.split(",")))
        for name in given:
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no term {name!r}; there are {', '.join(known)}, or none")
        return given

    return names


def _law(law: str) -> str:
    from ...identification.elastic_options import KEEP, joint_laws

    if law not in (known := (*joint_laws(), KEEP)):
        raise argparse.ArgumentTypeError(f"there is no law {law!r}; there are {', '.join(known)}")
    return law
